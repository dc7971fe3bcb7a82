"""How do two evaluators differ on the same claims? The paired differences of their balanced
accuracies and of their biases, for each data set."""

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
    """The figure of a minus the figure of b, for the keys ``bacc`` and ``bias``, in each group of
    claims.

    figures: each evaluator's figure is over what it scored, with bounds; NaN if one of them has not
    scored both classes. The intervals are those of the claims that both scored. both: int64 (G, 2,
    2, 2), these claims by label, a's prediction and b's prediction. n_labelled: int64 (G,), all
    labelled claims.
    """

    figures: Figures
    both: np.ndarray
    n_labelled: np.ndarray


def compare_evaluators(
    judgements: Judgements, groups: ClaimGroups, a: int, b: int, confidence: float | None
) -> EvaluatorContrast:
    """Compare the evaluators at the positions ``a`` and ``b``. confidence None: no intervals."""
    tallies = [judgements.tally(groups, LABEL, place) for place in (a, b)]
    accuracies = [compute_rates(tally, None)["bacc"] for tally in tallies]
    biases = [share_errors(tally, None).sum({0: -1, 1: 1}) for tally in tallies]
    every = judgements.tally(groups, LABEL, a, b)
    both = every.cells[:, :2, :2, :2]
    scored = both.sum((2, 3))
    counts = every.clusters.counts.reshape(-1, 3, 3, 3)[:, :2, :2, :2]
    errors, others = counts[:, 0], counts[:, 1]
    n_errors, n_others = errors.sum((1, 2)), others.sum((1, 2))
    # For each label, the claims that only one of the two judges correctly: how many, and out of how
    # many.
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
    """The difference, with bounds: the missing predictions of a and of b can be anything
    independently of each other."""
    (a_min, a_max), (b_min, b_max) = a.limits, b.limits
    return Figure(np.where(known, a.point - b.point, np.nan), (a_min - b_max, a_max - b_min))
