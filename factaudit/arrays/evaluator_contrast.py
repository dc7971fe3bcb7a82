"""Two evaluators on the same claims: the difference of their BAccs and of their biases, by data
set, paired."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, Figures, compute_rates, share_errors
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.mover import discordant_difference_interval


@dataclass(frozen=True)
class EvaluatorContrast:
    """Figure of a - figure of b for the keys ``bacc`` and ``bias``, by group of claims.

    figures: each over what its evaluator scored, with bounds; NaN where both have not scored both
    classes; with intervals those of the claims that both scored. both: int64 (G, 2, 2, 2), these
    claims by label, a's and b's prediction; clusters: the same (kinds, 8). n_labelled: int64 (G,),
    all labelled ones.
    """

    figures: Figures
    both: np.ndarray
    clusters: ClusterCounts
    n_labelled: np.ndarray


def compare_evaluators(
    judgements: Judgements, groups: ClaimGroups, a: int, b: int, confidence: float | None
) -> EvaluatorContrast:
    """The evaluators at the places ``a`` and ``b``; confidence None: without intervals."""
    tallies = [judgements.tally(groups, LABEL, place) for place in (a, b)]
    accuracies = [compute_rates(tally, None)["bacc"] for tally in tallies]
    biases = [share_errors(tally, None).sum({0: -1, 1: 1}) for tally in tallies]
    every = judgements.tally(groups, LABEL, a, b)
    clusters = _keep_complete_cells(every.clusters)
    both = every.cells[:, :2, :2, :2]
    counts = clusters.counts.reshape(-1, 2, 2, 2)
    by_label = counts.sum((2, 3))
    right = np.stack(
        [counts[:, 1, 1, 0], counts[:, 1, 0, 1], counts[:, 0, 0, 1], counts[:, 0, 1, 0]], 1
    )
    accuracy = right, np.repeat(by_label[:, ::-1], 2, axis=1), np.array([0.5, -0.5, 0.5, -0.5])
    errors = np.stack([counts[:, :, 0, 1].sum(1), counts[:, :, 1, 0].sum(1)], 1)
    bias = errors, np.repeat(by_label.sum(1, keepdims=True), 2, axis=1), np.array([1.0, -1.0])
    scored = both.sum((2, 3))
    figures = {}
    for key, (first, second), (hits, of, weights), known in (
        ("bacc", accuracies, accuracy, scored.all(1)),
        ("bias", biases, bias, scored.any(1)),
    ):
        figure = _subtract(first, second, known)
        if confidence is not None:
            shares = estimate_clustered_proportions(clusters, hits, of)
            point, (low, high) = discordant_difference_interval(shares, weights, confidence)
            moved = figure.point - point
            figure = replace(
                figure, interval=(np.maximum(low + moved, -1), np.minimum(high + moved, 1))
            )
        figures[key] = figure
    return EvaluatorContrast(figures, both, clusters, every.cells[:, :2].sum((1, 2, 3)))


def _subtract(a: Figure, b: Figure, known: np.ndarray) -> Figure:
    """The predictions that a lacks are free of those that b lacks."""
    (a_min, a_max), (b_min, b_max) = a.limits, b.limits
    return Figure(np.where(known, a.point - b.point, np.nan), (a_min - b_max, a_max - b_min))


def _keep_complete_cells(clusters: ClusterCounts) -> ClusterCounts:
    """Of claims by label and two predictions those of which none is missing: counts (kinds, 8)."""
    counts = clusters.counts.reshape(-1, 3, 3, 3)[:, :2, :2, :2].reshape(-1, 8)
    some = counts.any(1)
    return ClusterCounts.collapse_equal_clusters(
        clusters.group[some], counts[some], clusters.n_groups, clusters.times[some]
    )
