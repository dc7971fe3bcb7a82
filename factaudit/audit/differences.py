"""Is one evaluator better than another on the same claims? Differences in BAcc and bias, with a paired test."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factaudit.arrays.evaluator_contrast import EvaluatorContrast
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.judgements import pair_evaluators as pairs_of
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.evaluator_comparison import is_constant_evaluator
from factaudit.audit.core.interval_methods import DISCORDANT
from factaudit.audit.core.result_rows import (
    CONSTANT_EVALUATOR,
    FEW_CLUSTERS,
    MACRO_MEAN,
    Row,
    average_dataset_rows,
    drop_row_intervals,
    explain_undefined_dataset_means,
)
from factaudit.signature import hash_texts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.permutation import studentised_permutation_p
from factaudit.text.display_text import join_reasons

COMPARED_FIGURES = ("bacc", "bias")


def compute_evaluator_differences(
    judgements: Judgements, *, pairs: Mapping[str, str] | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """Per dataset and pair of evaluators, ``difference`` = figure of a - figure of b, for BAcc and for bias.

    pairs: from each evaluator_a to its evaluator_b; by default every two evaluators.

    Each figure is over what its evaluator scored, as in `rates` and `quantification`, so that the difference is that of
    the two printed figures; n labelled claims were scored by both (n_unscored: labelled, not scored by both). ``_min``
    and ``_max`` say what the difference could be, whatever the missing predictions. With intervals: ``_low`` and
    ``_high`` are paired, from the claims that only one of the two judges rightly, and p_permutation is the two-sided
    p-value of a studentised permutation test (`factaudit.stats.permutation`). Dataset ``__macro__`` is the mean
    over the datasets where the difference is defined; it has no p-value.
    """
    datasets = judgements.make_groups("claim")
    names = judgements.dataset_names
    rows: list[Row] = []
    means: list[Row] = []
    for a, b in pairs_of(judgements.evaluators, pairs):
        contrast = EvaluatorContrast.of(judgements, datasets, a, b, None if intervals is None else intervals.confidence)
        pair: Row = {"evaluator_a": judgements.evaluators[a], "evaluator_b": judgements.evaluators[b]}
        for key in COMPARED_FIGURES:
            for at, name in enumerate(names):
                n = int(contrast.counts[at].sum())
                row: Row = {"dataset": name, **pair, "key": key, "n": n, "n_unscored": int(contrast.labelled[at]) - n}
                row |= {"n_datasets": 1, **contrast.difference_row(at, key)}
                if intervals is not None and contrast.clusters is not None:
                    row["p_permutation"] = _evaluator_difference_permutation_p(
                        contrast.clusters, at, key, name, intervals
                    )
                rows.append(row | {"reason": _explain_difference_row(contrast.counts[at], row)})
            if all(is_constant_evaluator(name) for name in pair.values()):
                drop_row_intervals(rows[-len(names) :], CONSTANT_EVALUATOR, "difference")
            means.append(_average_evaluator_differences(pair, key, rows[-len(names) :]))
    rows.sort(key=lambda row: row["dataset"])
    return rows + means


def _evaluator_difference_permutation_p(
    clusters: ClusterCounts, dataset_position: int, figure: str, dataset: str, intervals: ClusterBootstrap
) -> float | None:
    """Two-sided p-value of equal BAcc, or equal bias, on the claims that both scored; None where it is undefined."""
    inside = clusters.group == dataset_position
    counts, times = clusters.counts[inside].reshape(-1, 2, 2, 2), clusters.times[inside]
    gains = counts[:, :, 1, 0] - counts[:, :, 0, 1]  # by label: a says 1 and b says 0, less the reverse
    sizes = counts.sum((2, 3))
    weights = np.array([-0.5, 0.5])
    if figure == "bias":
        gains, sizes, weights = gains.sum(1, keepdims=True), sizes.sum(1, keepdims=True), np.array([-1.0])
    seed = (intervals.seed, int(hash_texts(dataset, figure, "permutation"), 16))
    return studentised_permutation_p(gains, sizes, weights, seed, intervals.replicates, times)


def _average_evaluator_differences(evaluator_pair: Row, figure: str, dataset_rows: list[Row]) -> Row:
    row: Row = {"dataset": MACRO_MEAN, **evaluator_pair, "key": figure}
    row |= average_dataset_rows(dataset_rows, ["difference"], ("n", "n_unscored", "n_datasets"))
    why = explain_undefined_dataset_means(dataset_rows, ["difference"])
    if "p_permutation" in dataset_rows[0]:
        row["p_permutation"] = None
        why.append("the permutation test is for one data set")
    return row | {"reason": join_reasons(why)}


def _explain_difference_row(counts: np.ndarray, row: Row) -> str | None:
    if not counts.sum():
        return "no labelled claim is scored by both"
    if row["key"] == "bacc" and not counts.sum((1, 2)).all():
        return "only one class among the labelled claims that both scored"
    if row.get("difference_low", 0) is None:
        return f"no interval: {FEW_CLUSTERS}{' of a class' if row['key'] == 'bacc' else ''}"
    return None


# --------------------------------------------------------------------------------------------------------- declaration

_DIFFERENCE_DESCRIPTION = "figure of a − figure of b, each over the claims that it scored (the interval is paired)"

AUDIT = Audit(
    name="differences",
    after="rates",
    title="Differences between evaluators",
    question="Is one evaluator better than another on the same claims?",
    formula=(
        "Difference = figure of the first evaluator − figure of the second, each over the claims that it "
        "scored, with a paired interval. The CSV also has the p-value of a permutation test, which is a "
        "different test from the one behind the interval."
    ),
    text=(
        "The comparison is paired. Since both evaluators judge the same claims, a difference can be significant "
        "although the intervals of the two overlap."
    ),
    remedy=(
        "If the interval contains 0, choose by cost or by the kind of mistake that matters to you, or label more"
        " claims. Half the width needs four times as many labels."
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
        **pick_shared_columns("evaluator_a", "evaluator_b", "n", "n_unscored", "reason", "n_datasets"),
        "difference": Column(
            "difference",
            "points",
            _DIFFERENCE_DESCRIPTION + " (the interval is paired)",
            bounds=True,
            interval=DISCORDANT,
        ),
        "p_permutation": Column(
            "p permutation",
            "p",
            (
                "two-sided p-value of a studentised permutation test, which swaps the predictions of the two evaluators"
                " cluster by cluster; it tests whether the figures are equal, not whether the predictions are. Null for"
                " `__macro__`. Only in the CSV, since the interval rests on another test"
            ),
            shown=False,
        ),
    },
    options={"pairs": "each evaluator_a with the evaluator_b to compare it with; by default all pairs"},
    compute=compute_evaluator_differences,
)
