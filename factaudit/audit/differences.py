"""Is one evaluator better than another on the same claims? Differences in BAcc and bias."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from factaudit.arrays.judgements import LABEL, Judgements, check_evaluators
from factaudit.arrays.paired_changes import compare_evaluators
from factaudit.audit.core.audit_declaration import (
    DISCORDANT,
    Audit,
    Column,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import combine_figures
from factaudit.audit.core.result_rows import (
    FEW_CLUSTERS,
    Row,
    average_datasets,
    tabulate,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def compute_evaluator_differences(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """For each dataset and pair of evaluators, ``difference`` = the figure of a minus the figure of
    b, for BAcc and for bias.

    pairs: from each evaluator_a to its evaluator_b; by default all pairs.

    Each figure is over what its evaluator scored, as in `rates` and `quantification`, so the
    difference is that of the two printed figures. n labelled claims were scored by both; n_unscored
    labelled claims were not. ``_min`` and ``_max`` are the lowest and highest differences that the
    missing predictions allow. Intervals (``_low``, ``_high``) are paired: they come from the claims
    that only one of the two judges correctly. The dataset ``__macro__`` is the mean over the
    datasets on which the difference is defined.
    """
    datasets = judgements.make_groups("claim")
    confidence = None if intervals is None else intervals.confidence
    names = judgements.evaluators
    chosen = list(combinations(names, 2) if pairs is None else pairs.items())
    check_evaluators((name for pair in chosen for name in pair), names)
    rows: list[Row] = []
    for pair_of_names in chosen:
        a, b = map(names.index, pair_of_names)
        labelled = judgements.tally(datasets, LABEL, a, b).cells[:, :2]
        n = labelled[:, :, :2, :2].sum((1, 2, 3))
        n_unscored = labelled.sum((1, 2, 3)) - n
        counts = {"n": n, "n_unscored": n_unscored, "n_datasets": np.ones_like(n)}
        differences = compare_evaluators(judgements, datasets, a, b, confidence)
        for figure, difference in differences.items():
            pair: Row = {"evaluator_a": names[a], "evaluator_b": names[b], "key": figure}
            keys = [key | pair for key in datasets.keys]
            reasons = {_UNDEFINED[figure]: np.isnan(difference.point)}
            rows += tabulate(keys, counts, {"difference": difference}, reasons, _FEW_CLUSTERS)
    rows.sort(key=lambda row: row["dataset"])
    alike = ("evaluator_a", "evaluator_b", "key")
    means = average_datasets(rows, alike, ["difference"], ("n", "n_unscored", "n_datasets"))
    return rows + means


_UNDEFINED = {
    "bacc": "both must have scored labelled claims of both classes",
    "bias": "no labelled claim is scored by both",
}
_FEW_CLUSTERS = f"{FEW_CLUSTERS} (of a class)"


def find_bacc_difference(run: AuditedRun, dataset: str, a: str, b: str) -> Row | None:
    """How far the balanced accuracy of one evaluator is above that of another on the same claims,
    as the figure ``gap``; None if this was not computed."""
    for row in run.rows("differences"):
        pair = row["evaluator_a"], row["evaluator_b"]
        is_theirs = row["dataset"] == dataset and row["key"] == "bacc" and {*pair} == {a, b}
        if is_theirs and row["difference"] is not None:
            return combine_figures("gap", (row, "difference", 1 if pair == (a, b) else -1))
    return None


# ---- declaration

_DIFFERENCE_DESCRIPTION = (
    "figure of a − figure of b, each over the claims that it scored (the interval is paired)"
)

AUDIT = Audit(
    name="differences",
    title="Differences between evaluators",
    question="Is one evaluator better than another on the same claims?",
    formula=(
        "Difference = figure of the first evaluator − figure of the second, each over the claims"
        " that it scored, with a paired interval."
    ),
    text=(
        "The comparison is paired. Since both evaluators judge the same claims, a difference can be"
        " significant although the intervals of the two overlap."
    ),
    remedy=(
        "If the interval contains 0, choose by cost or by the kind of mistake that matters to you,"
        " or label more claims. Half the width needs four times as many labels."
    ),
    columns={
        **pick_shared_columns("dataset"),
        "key": Column(
            "figure",
            "text",
            "the figure compared: `bacc`, or `bias` (predicted − labelled error rate)",
            key=True,
            values={"bacc": "BAcc", "bias": "bias"},
        ),
        **pick_shared_columns(
            "evaluator_a", "evaluator_b", "n", "n_unscored", "reason", "n_datasets"
        ),
        "difference": share_column(
            "difference",
            _DIFFERENCE_DESCRIPTION + " (the interval is paired)",
            DISCORDANT,
            "points",
        ),
    },
    options={
        "pairs": "each evaluator_a with the evaluator_b to compare it with; by default all pairs"
    },
    compute=compute_evaluator_differences,
)
