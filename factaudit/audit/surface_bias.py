"""Does an evaluator follow word overlap? Its rates in bins of ROUGE-2 precision (VC §4.1, Figure 5).

VC finds that evaluators miss attributable claims that are paraphrased (TPR rises with overlap) and pass unattributable
ones that copy the document's wording (TNR falls with overlap).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.arrays.covariate_rates import (
    RATE_CLASS_NAMES,
    RATE_LABELS,
    compute_covariate_rates_by_group,
    encode_task_groups,
)
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import SHARED_COLUMNS, Audit, Column, pick_shared_columns
from factaudit.audit.core.evaluator_comparison import drop_constant_evaluator_intervals
from factaudit.audit.core.interval_methods import WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables.documents import iterate_document_blocks
from factaudit.text.display_text import join_reasons
from factaudit.text.rouge_overlap import find_overlaps_lost_to_script, rouge2_precision

#: Why rows have no overlap.
OTHER_SCRIPT = "the claims are in another script than their documents"


@dataclass(frozen=True)
class _SurfaceBiasOverlap:
    """The labelled claims' overlap with their documents.

    tasks: the sorted task groups; a claim without a task has its dataset as group.
    task_codes: int64 (n,), each claim's group.
    rouge2: float64 (n,), ROUGE-2 precision; NaN where the claim isn't labelled, has fewer than two tokens, no
    document or one in another script.
    other_script: bool (n,), the labelled claims of the last kind.
    """

    tasks: list[str]
    task_codes: np.ndarray
    rouge2: np.ndarray
    other_script: np.ndarray

    def group_by_task(self, members: np.ndarray) -> tuple[np.ndarray, list[Row]]:
        """Each member's group (-1: not one of ``members``, or without overlap); how many of each have none."""
        defined = ~np.isnan(self.rouge2)
        masks = {"n_no_r2": members & ~defined, "n_other_script": members & self.other_script}
        lost = {key: np.bincount(self.task_codes[mask], minlength=len(self.tasks)) for key, mask in masks.items()}
        counts: list[Row] = [{key: int(lost[key][at]) for key in lost} for at in range(len(self.tasks))]
        return np.where(members & defined, self.task_codes, -1), counts


def compute_surface_bias(
    judgements: Judgements, *, bins: int = 5, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """TPR and TNR of each evaluator in bins of ROUGE-2 precision, within each task group.

    The bins hold equal numbers of the group's labelled claims as far as ties allow: bin b has the claims over its lower
    edge and up to its upper one (bin 1 has its lower one too). Where edges coincide a bin has no claim: its claims are
    in an earlier bin. The bins are the same for all evaluators.

    A row per task group, evaluator and bin: task (the dataset's name where the claims have no task), evaluator, bin
    (1..bins), r2_low, r2_high (the edges), n (scored claims), n_unscored, n_no_r2 (the group's labelled claims that
    have no ROUGE-2 precision, so no bin), n_other_script (those of them in another script than their document), n_pos,
    n_neg, tpr, tnr, each rate with ``_min`` and ``_max`` and, with intervals, ``_low`` and ``_high``
    (bin edges are held fixed).
    """
    if bins < 1:
        raise UsageError(f"surface_bias: expected at least 1 bin, found {bins}")
    overlap = measure_surface_overlap(judgements)
    grouped, lost = overlap.group_by_task(judgements.label >= 0)
    edges = [_compute_surface_bin_edges(overlap.rouge2[grouped == at], bins) for at in range(len(overlap.tasks))]
    codes = np.full(len(judgements.claims), -1, dtype=np.int64)
    for at, inner in enumerate(edges):
        inside = np.flatnonzero(grouped == at)
        codes[inside] = at * bins + np.searchsorted(inner[1:-1], overlap.rouge2[inside], side="left")
    size = len(overlap.tasks) * bins
    rows: list[tuple[int, Row]] = []
    for evaluator, counts, figures in compute_covariate_rates_by_group(judgements, codes, size, intervals):
        for place in range(size):
            task, position = divmod(place, bins)
            scored_of = counts[place, :2, :2].sum(-1)
            row: Row = {
                "task": overlap.tasks[task],
                "evaluator": evaluator,
                "bin": position + 1,
                "r2_low": none_if_undefined(edges[task][position]),
                "r2_high": none_if_undefined(edges[task][position + 1]),
                "n": int(scored_of.sum()),
                "n_unscored": int(counts[place, :2, -1].sum()),
                **lost[task],
                "n_pos": int(scored_of[1]),
                "n_neg": int(scored_of[0]),
            }
            row |= {name: none_if_undefined(values[place]) for name, values in figures.items()}
            rows.append((task, row | {"reason": _explain_surface_bias_bin(row, counts[place])}))
    drop_constant_evaluator_intervals((row for _, row in rows), *RATE_LABELS)
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


# ------------------------------------------------------------------------------------------------------- overlap


def measure_surface_overlap(judgements: Judgements) -> _SurfaceBiasOverlap:
    """The overlap, computed once for all audits of these claims: it takes most of their time."""
    return judgements.compute_once(("overlap",), lambda: _compute_surface_bias_overlap(judgements))


def _compute_surface_bias_overlap(judgements: Judgements) -> _SurfaceBiasOverlap:
    codes, tasks = encode_task_groups(judgements)
    labelled = np.flatnonzero(judgements.label >= 0)
    r2 = np.full(len(judgements.claims), np.nan)
    some = judgements.claims[["claim", "doc"]].iloc[labelled]
    other_script = np.zeros(len(r2), dtype=bool)
    for rows, docs in iterate_document_blocks(some["doc"]):
        claims = some["claim"].iloc[rows].tolist()
        r2[labelled[rows]] = found = rouge2_precision(claims, docs)
        other_script[labelled[rows]] = find_overlaps_lost_to_script(claims, docs, found)
    return _SurfaceBiasOverlap(tasks, codes, r2, other_script)


def _compute_surface_bin_edges(values: np.ndarray, bins: int) -> np.ndarray:
    """float64 (bins + 1,): the percentiles between which the bins lie; NaN where there is no value.

    Each edge is one of the values, so that a bin between two different edges has at least its upper one.
    """
    if not len(values):
        return np.full(bins + 1, np.nan)
    # The k-th edge is the least value that k / bins of the values do not exceed (in whole numbers: 3 / 5 is no float).
    places = -(-np.arange(bins + 1) * len(values) // bins) - 1
    return np.sort(values)[np.maximum(places, 0)]


def _explain_surface_bias_bin(row: Row, counts: np.ndarray) -> str | None:
    if row["r2_low"] is None:
        why = "no labelled claim of this task has a document and at least two tokens"
        return OTHER_SCRIPT if row["n_other_script"] else why
    if not counts.any():
        return f"no claim: both edges are {row['r2_high']:.4g}, so an earlier bin has all claims up to there"
    return join_reasons(
        f"{rate} needs {RATE_CLASS_NAMES[rate]} claims: "
        + ("none of this bin's is scored" if counts[label].sum() else "this bin has none")
        for rate, label in RATE_LABELS.items()
        if row[rate] is None
    )


# ----------------------------------------------------------------------------------------------------------- findings


# --------------------------------------------------------------------------------------------------------- declaration

_TASK_COLUMN = Column("task", "text", "the task group or, if the claims have none, the data set", key=True)
_CLASS_SIZES_DESCRIPTION = "scored claims with label 1, and with label 0"


def _make_bin_rate_column(heading: str, counted_in: str) -> Column:
    what = "within the bin; the interval treats the edges of the bin as fixed"
    return Column(heading, "percent", what, bounds=True, interval=WILSON, counted_in=counted_in)


AUDITS = (
    Audit(
        name="surface_bias",
        after="ranking_pairs",
        title="Leaning on word overlap",
        question=(
            "How often is an evaluator right on claims that repeat few words of the document, and on claims "
            "that repeat many?"
        ),
        source="VC §4.1, Fig. 5",
        formula=(
            "ROUGE-2 precision = share of the claim's bigrams that occur in the document (clipped counts; "
            "bigrams of characters in scripts without spaces). Claims of a task group are split into five bins "
            "by percentile; TPR and TNR are computed within each bin."
        ),
        text=(
            "An evaluator that relies on word overlap accepts more claims, right or wrong, the more words they "
            "share with the document: TPR rises and TNR falls (VC §4.1)."
        ),
        remedy="Do not compare systems whose texts overlap with their documents to different degrees.",
        columns={
            "task": _TASK_COLUMN,
            **pick_shared_columns("evaluator"),
            "bin": Column("bin", "count", "the bin; bin 1 has the least overlap", key=True),
            **pick_shared_columns("n", "n_unscored", "reason"),
            "n_no_r2": Column(
                "no R2", "count", "labelled claims of the task group that have no ROUGE-2 precision, and so no bin"
            ),
            "n_other_script": SHARED_COLUMNS["n_other_script"],
            "n_pos": Column("label 1", "count", _CLASS_SIZES_DESCRIPTION),
            "n_neg": Column("label 0", "count", _CLASS_SIZES_DESCRIPTION),
            "r2_low": Column("ROUGE-2 from", "number", "lowest and highest ROUGE-2 precision of the bin", digits=3),
            "r2_high": Column("ROUGE-2 to", "number", "lowest and highest ROUGE-2 precision of the bin", digits=3),
            "tpr": _make_bin_rate_column("TPR", "n_pos"),
            "tnr": _make_bin_rate_column("TNR", "n_neg"),
        },
        options={"bins": "number of bins"},
        compute=compute_surface_bias,
        applies=lambda judged: bool(judged.claims["claim"].notna().any()),
        plot=PlotSpec(
            what="TPR and TNR over bins of ROUGE-2 precision (1: least overlap with the document), by task group",
            reading="TPR that rises while TNR falls, by more than chance: leaning on word overlap.",
            keys=("tpr", "tnr"),
            groups=("task", "bin"),
            per_page=28,
        ),
    ),
)
