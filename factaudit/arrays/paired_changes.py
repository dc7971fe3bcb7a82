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
    a_is_right, b_is_right = (
        np.stack([one[:, 0], other[:, 1]], 1)
        for one, other in ((a_flags, b_flags), (b_flags, a_flags))
    )
    figures = {}
    for key, whole, hits, of, is_known in (
        (
            "bacc",
            [compute_rates(tally, None)["bacc"] for tally in tallies],
            np.hstack([a_is_right, b_is_right]),
            np.hstack([n, n]),
            scored.all(1),
        ),
        (
            "bias",
            [share_errors(tally, None).sum({0: -1, 1: 1}) for tally in tallies],
            np.stack([a_flags.sum(1), b_flags.sum(1)], 1),
            np.repeat(n.sum(1, keepdims=True), 2, 1),
            scored.any(1),
        ),
    ):
        (a_min, a_max), (b_min, b_max) = (figure.limits for figure in whole)
        difference = np.where(is_known, whole[0].point - whole[1].point, np.nan)
        figures[key] = Figure(difference, (a_min - b_max, a_max - b_min))
        if confidence is not None:
            terms = hits.shape[1] // 2
            weights = np.repeat([1.0, -1.0], terms) / terms
            shares = estimate_clustered_proportions(every.clusters, hits, of)
            point, (low, high) = discordant_difference_interval(shares, weights, confidence)
            moved = difference - point
            ends = np.maximum(low + moved, -1), np.minimum(high + moved, 1)
            figures[key] = replace(figures[key], interval=ends)
    return figures


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
    is_labelled, scored = label >= 0, ~np.isnan(before) & ~np.isnan(after)
    is_unlabelled = np.bincount(groups, is_labelled, n_groups) == 0
    correct, errors, labelled = (scored & which for which in (label == 1, label == 0, is_labelled))
    counted = scored & (is_labelled | is_unlabelled[groups])

    def average(inside: np.ndarray, values: np.ndarray) -> np.ndarray:
        sums = np.bincount(groups[inside], values[inside], n_groups)
        return divide_or_undefined(sums, np.bincount(groups[inside], minlength=n_groups))

    def measure_bias(prediction: np.ndarray) -> np.ndarray:
        """What each claim contributes to |bias|: its excess of predicted errors, with the sign
        reversed if too few errors are predicted."""
        excess = label - prediction
        return np.where(average(labelled, excess) < 0, -1.0, 1.0)[groups] * excess

    of_correct, of_errors = (correct, before, after), (errors, 1 - before, 1 - after)
    # Each figure is a weighted sum of means. For each mean: the claims that it is over, and their
    # values before and after.
    figures = {
        "tpr": [(1.0, *of_correct)],
        "tnr": [(1.0, *of_errors)],
        "bacc": [(0.5, *of_correct), (0.5, *of_errors)],
        "ppr": [(1.0, counted, before, after)],
        "bias": [(1.0, labelled, label - before, label - after)],
        "abs_bias": [(1.0, labelled, measure_bias(before), measure_bias(after))],
        "unscored": [
            (1.0, np.ones(len(label), dtype=bool), np.isnan(before) * 1.0, np.isnan(after) * 1.0)
        ],
    }
    changes = {}
    for key, terms in figures.items():
        old = np.sum(
            [weight * average(inside, values) for weight, inside, values, _ in terms], axis=0
        )
        new = np.sum(
            [weight * average(inside, values) for weight, inside, _, values in terms], axis=0
        )
        # The change of a mean is the share of values that rose minus the share of values that fell.
        weights, hits, sizes = [], [], []
        for weight, inside, earlier, later in terms:
            for sign in (1.0, -1.0):
                weights.append(sign * weight)
                some, of = _sum_by_cluster(pairs, inside, np.maximum(sign * (later - earlier), 0))
                hits.append(some)
                sizes.append(of)
        shares = estimate_clustered_proportions(
            _make_cluster_counts(pairs), np.hstack(hits), np.hstack(sizes)
        )
        low, high = discordant_difference_interval(shares, np.array(weights), confidence)[1]
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


def _sum_by_cluster(
    pairs: GroupClusterPairs, inside: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The sum and the number of the values for each pair of a group and a cluster: (k, 1) each."""
    at, length = pairs.pair[inside], len(pairs.group)
    sums = np.bincount(at, values[inside], length)
    return sums[:, None], np.bincount(at, minlength=length)[:, None].astype(np.float64)


def _make_cluster_counts(pairs: GroupClusterPairs) -> ClusterCounts:
    length = len(pairs.group)
    return ClusterCounts(
        pairs.group, np.ones(length, dtype=np.int64), np.zeros((length, 0)), pairs.n_groups
    )
