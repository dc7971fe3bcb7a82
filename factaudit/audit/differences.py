"""Is one evaluator better than another on the same claims? Differences in BAcc and bias, with a
paired test."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from factaudit.arrays.evaluator_contrast import compare_evaluators
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.judgements import pair_evaluators as pairs_of
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns, share_column
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import DISCORDANT
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    FEW_CLUSTERS,
    Row,
)
from factaudit.audit.core.tabulate import average_datasets, tabulate
from factaudit.signature import hash_texts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.hypothesis_tests import permutation_p

#: More would change a p-value of 0.05 by less than 0.01.
MOST_PERMUTATIONS = 1000


def compute_evaluator_differences(
    judgements: Judgements,
    *,
    pairs: Mapping[str, str] | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """Per dataset and pair of evaluators, ``difference`` = figure of a - figure of b, for BAcc and
    for bias.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Each figure is over what its evaluator scored, as in `rates` and `quantification`, so that the
    difference is that of the two printed figures; n labelled claims were scored by both
    (n_unscored: labelled, not scored by both). ``_min`` and ``_max`` say what the difference could
    be, whatever the missing predictions. With intervals: ``_low`` and ``_high`` are paired, from
    the claims that only one of the two judges rightly, and p_permutation is the two-sided p-value
    of a studentised permutation test (`factaudit.stats.hypothesis_tests`). Dataset ``__macro__`` is
    the mean over the datasets where the difference is defined; it has no p-value.
    """
    datasets = judgements.make_groups("claim")
    names = judgements.dataset_names
    confidence = None if intervals is None else intervals.confidence
    rows: list[Row] = []
    for a, b in pairs_of(judgements.evaluators, pairs):
        contrast = compare_evaluators(judgements, datasets, a, b, confidence)
        pair: Row = {
            "evaluator_a": judgements.evaluators[a],
            "evaluator_b": judgements.evaluators[b],
        }
        is_constant = all(map(is_constant_evaluator, pair.values()))
        by_label = contrast.both.sum((2, 3))
        n = by_label.sum(1)
        counts: dict[str, Any] = {
            "n": n,
            "n_unscored": contrast.n_labelled - n,
            "n_datasets": np.ones_like(n),
        }
        for key, figure in contrast.figures.items():
            of_class = " of a class" * (key == "bacc")
            if intervals is not None:
                counts["p_permutation"] = [
                    _compute_permutation_p(contrast.clusters, at, key, name, intervals)
                    for at, name in enumerate(names)
                ]
            reasons = {
                "no labelled claim is scored by both": n == 0,
                "only one class among the labelled claims that both scored": (
                    (by_label == 0).any(1) & (n > 0) & (key == "bacc")
                ),
            }
            figure = figure.without_interval(np.full(len(n), is_constant), CONSTANT_EVALUATOR)
            keys = [{"dataset": name, **pair, "key": key} for name in names]
            rows += tabulate(keys, counts, {"difference": figure}, reasons, FEW_CLUSTERS + of_class)
    rows.sort(key=lambda row: row["dataset"])
    if not rows:
        return rows
    alike, sizes = ("evaluator_a", "evaluator_b", "key"), ("n", "n_unscored", "n_datasets")
    remark = "" if intervals is None else "the permutation test is for one data set"
    return rows + average_datasets(rows, alike, ["difference"], sizes, remark)


def _compute_permutation_p(
    clusters: ClusterCounts, place: int, figure: str, dataset: str, intervals: ClusterBootstrap
) -> float | None:
    """Two-sided p-value of equal BAcc, or equal bias, on the claims that both scored; None where it
    is undefined."""
    inside = clusters.group == place
    counts, times = clusters.counts[inside].reshape(-1, 2, 2, 2), clusters.times[inside]
    # By label: a says 1 and b says 0, less the reverse.
    gains = counts[:, :, 1, 0] - counts[:, :, 0, 1]
    sizes = counts.sum((2, 3))
    weights = np.array([-0.5, 0.5])
    if figure == "bias":
        gains, sizes, weights = (
            gains.sum(1, keepdims=True),
            sizes.sum(1, keepdims=True),
            np.array([-1.0]),
        )
    seed = (intervals.seed, int(hash_texts(dataset, figure, "permutation"), 16))
    return permutation_p(
        gains, sizes, weights, seed, min(intervals.replicates, MOST_PERMUTATIONS), times
    )


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
        " that it scored, with a paired interval. The CSV also has the p-value of a permutation"
        " test, which is a different test from the one behind the interval."
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
        "p_permutation": Column(
            "p permutation",
            "p",
            "two-sided p-value of a studentised permutation test, which swaps the predictions of"
            " the two evaluators cluster by cluster; it tests whether the figures are equal, not"
            " whether the predictions are. Null for `__macro__`. Only in the CSV, since the"
            " interval rests on another test",
            shown=False,
        ),
    },
    options={
        "pairs": "each evaluator_a with the evaluator_b to compare it with; by default all pairs"
    },
    compute=compute_evaluator_differences,
)
