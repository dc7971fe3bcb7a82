"""How do figures differ on the same claims? Those of two evaluators, or those of one evaluator in
two runs; with paired intervals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from factaudit.arrays.figures import (
    Figure,
    Figures,
    compute_rates,
    estimate_share,
    share_errors,
)
from factaudit.arrays.judgements import LABEL, ClaimGroups, Judgements
from factaudit.stats import divide_or_undefined
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    GroupClusterPairs,
    IntervalEnds,
    count_codes_by_cluster,
    estimate_clustered_proportions,
)
from factaudit.stats.mover import discordant_difference_interval

#: float64 (G,) each: the figure before, after, its change, and the ends of the change's interval;
#: NaN where undefined.
FigureChange = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def compare_evaluators(
    judgements: Judgements, groups: ClaimGroups, a: int, b: int, confidence: float | None
) -> Figures:
    """The figure of the evaluator at position ``a`` minus that of ``b``, for the keys ``bacc`` and
    ``bias``, in each group of claims.

    Each evaluator's figure is over what it scored, with bounds: the missing predictions of a and of
    b can be anything independently of each other. NaN if no claim (of a class, for bacc) is scored
    by both. The intervals are those of the claims that both scored. confidence None: no intervals.
    """
    tallies = [judgements.tally(groups, LABEL, place) for place in (a, b)]
    every = judgements.tally(groups, LABEL, a, b)
    scored = every.cells[:, :2, :2, :2].sum((2, 3)) > 0
    counts = every.clusters.counts.reshape(-1, 3, 3, 3)[:, :2, :2, :2]
    n = counts.sum((2, 3))
    # For each label, the claims that only one of the two flags.
    a_flags, b_flags = counts[:, :, 0, 1], counts[:, :, 1, 0]
    # On errors the one that flags is right, on other claims the one that passes.
    a_is_right = np.stack([a_flags[:, 0], b_flags[:, 1]], 1)
    b_is_right = np.stack([b_flags[:, 0], a_flags[:, 1]], 1)
    discordant = {
        "bacc": (a_is_right, b_is_right, n),
        "bias": (
            a_flags.sum(1, keepdims=True),
            b_flags.sum(1, keepdims=True),
            n.sum(1, keepdims=True),
        ),
    }
    is_known = {"bacc": scored.all(1), "bias": scored.any(1)}
    own = {
        "bacc": [compute_rates(tally, None)["bacc"] for tally in tallies],
        "bias": [share_errors(tally, None).sum({0: -1, 1: 1}) for tally in tallies],
    }
    figures = {}
    for key, (of_a, of_b) in own.items():
        point = np.where(is_known[key], of_a.point - of_b.point, np.nan)
        (a_min, a_max), (b_min, b_max) = of_a.limits, of_b.limits
        figures[key] = Figure(point, (a_min - b_max, a_max - b_min))
        if confidence is not None:
            ends = _difference_interval(every.clusters, *discordant[key], point, confidence)
            figures[key] = replace(figures[key], interval=ends)
    return figures


def _difference_interval(
    clusters: ClusterCounts,
    only_a: np.ndarray,
    only_b: np.ndarray,
    n: np.ndarray,
    difference: np.ndarray,
    confidence: float,
) -> IntervalEnds:
    """The interval of a mean of J differences of shares, moved to ``difference``, (G,), which may
    rest on more claims.

    only_a, only_b, n: (kinds of clusters, J), the claims that only a has, that only b has, and all.
    """
    shares = estimate_clustered_proportions(
        clusters, np.hstack([only_a, only_b]), np.hstack([n, n])
    )
    weights = np.repeat([1.0, -1.0], n.shape[1]) / n.shape[1]
    point, (low, high) = discordant_difference_interval(shares, weights, confidence)
    moved = difference - point
    return np.maximum(low + moved, -1), np.minimum(high + moved, 1)


# ---- two runs


def average_repeated_predictions(judgements: Judgements, evaluator: str) -> np.ndarray:
    """float64 (n,): the share of an evaluator's repeats that predict 1; NaN if none is scored."""
    at = judgements.evaluators.index(evaluator)
    asked = judgements.repeat_predictions
    predictions = judgements.prediction[None, at] if asked is None else asked[:, at]
    return divide_or_undefined((predictions == 1).sum(0), (predictions >= 0).sum(0))


def compute_paired_changes(
    label: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    clusters: np.ndarray,
    confidence: float = 0.95,
) -> dict[str, FigureChange]:
    """The changes of bacc, tpr, tnr, ppr, bias, abs_bias and unscored in each of G groups of
    claims.

    label: int (n,), 1, 0 or -1. before, after: float64 (n,), the share of repeats that predict 1,
    NaN if a claim is unscored. groups: int (n,), 0..G-1. clusters: int (n,). Every figure but
    ``unscored`` uses the claims that both runs scored, so that a lost verdict neither raises nor
    lowers it. Rates use labelled claims; if a group has none, ppr uses all claims. Clusters and
    rare changes are handled as in `discordant_difference_interval`.

    >>> label = np.repeat([1, 0], 50)
    >>> before, after = label.astype(float), label.astype(float)
    >>> after[:5] = 0
    >>> groups, clusters = np.zeros(100, dtype=int), np.arange(100)
    >>> found = compute_paired_changes(label, before, after, groups, 1, clusters)
    >>> [round(each.item(), 3) for each in found["tpr"]]
    [1.0, 0.9, -0.1, -0.199, -0.001]
    """
    pairs = GroupClusterPairs.of(groups, clusters, n_groups)
    kinds = len(pairs.group)
    counts = ClusterCounts(pairs.group, np.ones(kinds, int), np.zeros((kinds, 0)), n_groups)

    def sum_by_cluster(values: np.ndarray) -> np.ndarray:
        return np.bincount(pairs.pair, values, kinds)

    is_labelled, scored = label >= 0, ~np.isnan(before) & ~np.isnan(after)
    is_unlabelled = np.bincount(groups, is_labelled, n_groups) == 0
    labelled = scored & is_labelled
    counted = scored & (is_labelled | is_unlabelled[groups])
    # |bias| is the bias with its sign turned in groups where too few errors are predicted.
    excess = [label - prediction for prediction in (before, after)]
    signs = [
        np.where(np.bincount(groups[labelled], each[labelled], n_groups) < 0, -1.0, 1.0)[groups]
        for each in excess
    ]
    everywhere, lost = np.ones(len(label), dtype=bool), [np.isnan(before), np.isnan(after)]
    # The means that figures are made of: the claims that they are over, and their values before
    # and after.
    means = {
        "tpr": (scored & (label == 1), before, after),
        "tnr": (scored & (label == 0), 1 - before, 1 - after),
        "ppr": (counted, before, after),
        "bias": (labelled, *excess),
        "abs_bias": (labelled, signs[0] * excess[0], signs[1] * excess[1]),
        "unscored": (everywhere, *(each.astype(float) for each in lost)),
    }
    figures = {key: {key: 1.0} for key in means} | {"bacc": {"tpr": 0.5, "tnr": 0.5}}
    # Of each mean in each cluster: how much it rises, how much it falls, the sums before and after,
    # and the number of claims.
    sums = {}
    for key, (inside, old, new) in means.items():
        change = new - old
        terms = (np.maximum(change, 0), np.maximum(-change, 0), old, new, np.ones(len(label)))
        sums[key] = [sum_by_cluster(np.where(inside, term, 0)) for term in terms]
    changes = {}
    for key, weights in figures.items():
        averages = []
        for at in (2, 3):
            shares = [
                weight
                * divide_or_undefined(*map(counts.sum_by_group, (sums[one][at], sums[one][4])))
                for one, weight in weights.items()
            ]
            averages.append(np.sum(shares, axis=0))
        # The change of a mean is the share of values that rose minus the share of values that fell.
        hits = np.stack([sums[one][at] for one in weights for at in (0, 1)], axis=1)
        sizes = np.stack([sums[one][4] for one in weights for _ in (0, 1)], axis=1)
        signed = np.array([sign * weight for weight in weights.values() for sign in (1, -1)])
        estimate = estimate_clustered_proportions(counts, hits, sizes)
        low, high = discordant_difference_interval(estimate, signed, confidence)[1]
        old, new = averages
        changes[key] = (old, new, new - old, np.maximum(low, -1), np.minimum(high, 1))
    return changes


def compute_paired_flip_shares(
    before: np.ndarray,
    after: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    clusters: np.ndarray,
    confidence: float = 0.95,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share of changed predictions among the claims that both runs scored, and its interval:
    (G,) each.

    before, after: int (n,), -1 if unscored.
    """
    flips = np.where((before >= 0) & (after >= 0), before != after, -1)
    counts = count_codes_by_cluster(clusters, groups, n_groups, flips, 2)
    share = estimate_share(counts, counts.counts[:, 1], counts.counts.sum(1), confidence)
    return share.point, *share.ends
