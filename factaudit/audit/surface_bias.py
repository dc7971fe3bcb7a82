"""Does an evaluator follow word overlap? Its rates in bins of ROUGE-2 precision (VC §4.1, Figure
5).

VC finds that evaluators miss attributable claims that are paraphrased (TPR rises with overlap) and
pass unattributable ones that copy the document's wording (TNR falls with overlap).
"""

from __future__ import annotations

import numpy as np

from factaudit.arrays.figures import Figure, compute_rates
from factaudit.arrays.judgements import LABEL, ClaimGroups, Judgements, encode_claim_group_column
from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    LinePlot,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.result_rows import Row, tabulate
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.documents import iterate_document_blocks
from factaudit.text.rouge_overlap import rouge2_precision

#: Each rate, with the label of its class.
RATE_LABELS = {"tpr": 1, "tnr": 0}


def encode_task_groups(judgements: Judgements) -> tuple[np.ndarray, list[str]]:
    """The task of each claim, its dataset where it has none: int64 (n,) codes into the sorted
    names."""
    task, dataset = (judgements.claims[column].astype(object) for column in ("task", "dataset"))
    named = task.where(task.notna(), dataset)
    return encode_claim_group_column(named.to_frame("task"), "task")


def compute_surface_bias(
    judgements: Judgements, *, bins: int = 5, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """TPR and TNR of each evaluator in bins of ROUGE-2 precision, within each task group.

    The bins hold equal numbers of the group's labelled claims as far as ties allow. Bin b has the
    claims above its lower edge and up to its upper edge (bin 1 also has its lower edge). If edges
    coincide, a bin is empty, and its claims are in an earlier bin. The bins are the same for all
    evaluators.

    A row per task group, evaluator and bin has task (the dataset's name if the claims have no
    task), evaluator, bin (1..bins), r2_low and r2_high (the edges), n (scored claims), n_unscored,
    n_no_r2 (the group's labelled claims without ROUGE-2 precision, which are in no bin), n_pos,
    n_neg, tpr and tnr, each rate with ``_min`` and ``_max`` and, if intervals are wanted, ``_low``
    and ``_high`` (for fixed bin edges).
    """
    if bins < 1:
        raise UsageError(f"surface_bias: expected at least 1 bin, found {bins}")
    rouge2, (codes, tasks) = measure_surface_overlap(judgements), encode_task_groups(judgements)
    has_overlap = ~np.isnan(rouge2)
    lost = np.bincount(codes[(judgements.label >= 0) & ~has_overlap], minlength=len(tasks))
    bin_codes, edges = np.full(len(codes), -1, dtype=np.int64), np.empty((len(tasks), bins + 1))
    for at in range(len(tasks)):
        inside = (codes == at) & has_overlap
        edges[at] = _compute_surface_bin_edges(rouge2[inside], bins)
        place = np.searchsorted(edges[at, 1:-1], rouge2[inside], side="left")
        bin_codes[inside] = at * bins + place
    keys: list[Row] = [{"task": task, "bin": at + 1} for task in tasks for at in range(bins)]
    groups, confidence = (
        ClaimGroups(bin_codes, keys),
        None if intervals is None else intervals.confidence,
    )
    rows: list[Row] = []
    for at, evaluator in enumerate(judgements.evaluators):
        tally = judgements.tally(groups, LABEL, at)
        rates, cells = compute_rates(tally, confidence), tally.cells[:, :2]
        n_neg, n_pos = cells[:, :, :2].sum(2).T
        counts = {"n": n_neg + n_pos, "n_unscored": cells[:, :, 2].sum(1)}
        counts |= {"n_pos": n_pos, "n_neg": n_neg, "n_no_r2": np.repeat(lost, bins)}
        figures = {
            "r2_low": Figure(edges[:, :-1].ravel()),
            "r2_high": Figure(edges[:, 1:].ravel()),
            "tpr": rates["tpr"],
            "tnr": rates["tnr"],
        }
        rows += tabulate([key | {"evaluator": evaluator} for key in keys], counts, figures)
    return sorted(rows, key=lambda row: row["task"])


# ---- overlap


def measure_surface_overlap(judgements: Judgements) -> np.ndarray:
    """float64 (n,): ROUGE-2 precision; NaN if the claim is not labelled, has fewer than two tokens,
    no document, or a document in another script. It is computed once for all audits of these
    claims, because it takes most of their time."""
    return judgements.compute_once(("overlap",), lambda: _compute_surface_overlap(judgements))


def _compute_surface_overlap(judgements: Judgements) -> np.ndarray:
    labelled, rouge2 = (
        np.flatnonzero(judgements.label >= 0),
        np.full(len(judgements.claims), np.nan),
    )
    some = judgements.claims[["claim", "doc"]].iloc[labelled]
    for rows, docs in iterate_document_blocks(some["doc"]):
        rouge2[labelled[rows]] = rouge2_precision(some["claim"].iloc[rows].tolist(), docs)
    return rouge2


def _compute_surface_bin_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """float64 (bins + 1,): the percentiles between which the bins lie; NaN if there is no value.

    Each edge is one of the values, so a bin between two different edges contains at least its upper
    one.
    """
    if not len(values):
        return np.full(bins + 1, np.nan)
    # The k-th edge is the lowest value that at least k / bins of the values do not exceed. The
    # computation uses whole numbers, because 3 / 5 is not exact as a float.
    places = -(-np.arange(bins + 1) * len(values) // bins) - 1
    return np.sort(values)[np.maximum(places, 0)]


# ---- declaration

_CLASS_SIZES_DESCRIPTION = "scored claims with label 1, and with label 0"
_RATE_DESCRIPTION = "within the bin; the interval treats the edges of the bin as fixed"

AUDITS = (
    Audit(
        name="surface_bias",
        title="Leaning on word overlap",
        question=(
            "How often is an evaluator right on claims that repeat few words of the document, and"
            " on claims that repeat many?"
        ),
        source="VC §4.1, Fig. 5",
        formula=(
            "ROUGE-2 precision = share of the claim's bigrams that occur in the document (clipped"
            " counts; bigrams of characters in scripts without spaces). Claims of a task group are"
            " split into five bins by percentile; TPR and TNR are computed within each bin."
        ),
        text=(
            "An evaluator that relies on word overlap accepts more claims, right or wrong, the more"
            " words they share with the document: TPR rises and TNR falls (VC §4.1)."
        ),
        remedy=(
            "Do not compare systems whose texts overlap with their documents to different degrees."
        ),
        columns={
            "task": Column(
                "task", "text", "the task group or, if the claims have none, the data set", key=True
            ),
            **pick_shared_columns("evaluator"),
            "bin": Column("bin", "count", "the bin; bin 1 has the least overlap", key=True),
            **pick_shared_columns("n", "n_unscored", "reason"),
            "n_no_r2": Column(
                "no R2",
                "count",
                "labelled claims of the task group that have no ROUGE-2 precision, and so no bin",
            ),
            "n_pos": Column("label 1", "count", _CLASS_SIZES_DESCRIPTION),
            "n_neg": Column("label 0", "count", _CLASS_SIZES_DESCRIPTION),
            "r2_low": Column(
                "ROUGE-2 from",
                "number",
                "lowest and highest ROUGE-2 precision of the bin",
                digits=3,
            ),
            "r2_high": Column(
                "ROUGE-2 to", "number", "lowest and highest ROUGE-2 precision of the bin", digits=3
            ),
            "tpr": share_column("TPR", _RATE_DESCRIPTION, counted_in="n_pos"),
            "tnr": share_column("TNR", _RATE_DESCRIPTION, counted_in="n_neg"),
        },
        options={"bins": "number of bins"},
        compute=compute_surface_bias,
        applies=lambda judged: bool(judged.claims["claim"].notna().any()),
        plot=LinePlot(
            what=(
                "TPR and TNR over bins of ROUGE-2 precision (1: least overlap with the document),"
                " by task group"
            ),
            reading="TPR that rises while TNR falls, by more than chance: leaning on word overlap.",
            x="bin",
            what_is_binned="ROUGE-2 precision",
            keys=("tpr", "tnr"),
            rows="task",
        ),
    ),
)
