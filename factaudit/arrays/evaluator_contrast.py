"""Two evaluators on the same claims: the difference of their BAccs and of their biases, by data
set, paired."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure, Figures, compute_rates, share_errors
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.stats.clustered_proportions import estimate_clustered_proportions
from factaudit.stats.mover import discordant_difference_interval


@dataclass(frozen=True)
class EvaluatorContrast:
    """Figure of a - figure of b for the keys ``bacc`` and ``bias``, by group of claims.

    figures: each over what its evaluator scored, with bounds; NaN where both have not scored both
    classes; with intervals those of the claims that both scored. both: int64 (G, 2, 2, 2), these
    claims by label, a's and b's prediction. n_labelled: int64 (G,), all labelled ones.
    """

    figures: Figures
    both: np.ndarray
    n_labelled: np.ndarray


def compare_evaluators(
    judgements: Judgements, groups: ClaimGroups, a: int, b: int, confidence: float | None
) -> EvaluatorContrast:
    """The evaluators at the places ``a`` and ``b``; confidence None: without intervals."""
    tallies = [judgements.tally(groups, LABEL, place) for place in (a, b)]
    accuracies = [compute_rates(tally, None)["bacc"] for tally in tallies]
    biases = [share_errors(tally, None).sum({0: -1, 1: 1}) for tally in tallies]
    every = judgements.tally(groups, LABEL, a, b)
    both = every.cells[:, :2, :2, :2]
    scored = both.sum((2, 3))
    counts = every.clusters.counts.reshape(-1, 3, 3, 3)[:, :2, :2, :2]
    errors, others = counts[:, 0], counts[:, 1]
    n_errors, n_others = errors.sum((1, 2)), others.sum((1, 2))
    # Of each kind of claims that one of the two judges rightly: how many, of how many.
    a_alone_right = [(others[:, 1, 0], n_others), (errors[:, 0, 1], n_errors)]
    b_alone_right = [(others[:, 0, 1], n_others), (errors[:, 1, 0], n_errors)]
    n = n_errors + n_others
    a_alone_flags = [(errors[:, 0, 1] + others[:, 0, 1], n)]
    b_alone_flags = [(errors[:, 1, 0] + others[:, 1, 0], n)]
    figures = {}
    for key, (first, second), for_a, for_b, known in (
        ("bacc", accuracies, a_alone_right, b_alone_right, scored.all(1)),
        ("bias", biases, a_alone_flags, b_alone_flags, scored.any(1)),
    ):
        figure = _subtract(first, second, known)
        if confidence is not None:
            hits, of = (np.stack(parts, 1) for parts in zip(*for_a, *for_b, strict=True))
            weights = np.repeat([1.0, -1.0], len(for_a)) / len(for_a)
            shares = estimate_clustered_proportions(every.clusters, hits, of)
            point, (low, high) = discordant_difference_interval(shares, weights, confidence)
            moved = figure.point - point
            figure = replace(
                figure, interval=(np.maximum(low + moved, -1), np.minimum(high + moved, 1))
            )
        figures[key] = figure
    return EvaluatorContrast(figures, both, every.cells[:, :2].sum((1, 2, 3)))


def _subtract(a: Figure, b: Figure, known: np.ndarray) -> Figure:
    """The predictions that a lacks are free of those that b lacks."""
    (a_min, a_max), (b_min, b_max) = a.limits, b.limits
    return Figure(np.where(known, a.point - b.point, np.nan), (a_min - b_max, a_max - b_min))
