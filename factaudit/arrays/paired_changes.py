"""How the figures of one evaluator changed between two runs on the same claims, with paired intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    GroupClusterPairs,
    IntervalEnds,
    estimate_clustered_proportions,
)
from factaudit.stats.mover import discordant_difference_interval
from factaudit.stats.undefined_values import divide_or_undefined

#: float64 (G,) each: before, after, the change, and the ends of its interval; NaN where undefined.
FigureChange = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]

#: The change of a figure is a weighted sum of means: per mean the claims it is over, and each claim's value.
_Terms = Sequence[tuple[float, np.ndarray, np.ndarray]]


def average_repeated_predictions(judgements: Judgements, evaluator: str) -> np.ndarray:
    """float64 (n,): the share of an evaluator's repeats that predict 1; NaN where none is scored."""
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
    """The changes of bacc, tpr, tnr, ppr, bias, abs_bias and unscored in each of G groups of claims.

    label: int (n,), 1, 0 or -1. before, after: float64 (n,), the share of repeats that predict 1; NaN where a claim is
    unscored. groups: int (n,), 0..G-1; clusters: int (n,). Every figure but unscored is over the claims that both runs
    scored, so that a verdict that was lost neither raises nor lowers it. Rates are over labelled claims; where a group
    has none, ppr is over all. Clusters and rare changes are dealt with as in `discordant_difference_interval`.

    >>> label = np.repeat([1, 0], 50)
    >>> before, after = label.astype(float), label.astype(float)
    >>> after[:5] = 0
    >>> found = compute_paired_changes(label, before, after, np.zeros(100, dtype=int), 1, np.arange(100))
    >>> [round(each.item(), 3) for each in found["tpr"]]
    [1.0, 0.9, -0.1, -0.199, -0.001]
    """
    pairs = GroupClusterPairs.of(groups, clusters, n_groups)
    is_unlabelled = np.bincount(groups, label >= 0, n_groups) == 0
    runs = [
        _list_paired_terms(label, run, ~np.isnan(before) & ~np.isnan(after), groups, is_unlabelled)
        for run in (before, after)
    ]
    changes = {}
    for key in runs[0]:
        old, new = (_sum_means(run[key], groups, n_groups) for run in runs)
        steps = [
            (weight, inside, values - earlier)
            for (weight, inside, values), (*_, earlier) in zip(runs[1][key], runs[0][key], strict=True)
        ]
        low, high = _estimate_change_interval(steps, pairs, confidence)
        changes[key] = (old, new, new - old, np.maximum(low, -1), np.minimum(high, 1))
    return changes


def _list_paired_terms(
    label: np.ndarray, prediction: np.ndarray, scored: np.ndarray, groups: np.ndarray, is_unlabelled: np.ndarray
) -> dict[str, _Terms]:
    """Each figure of one run as a weighted sum of means; scored: by both runs."""
    correct, errors, labelled = (scored & which for which in (label == 1, label == 0, label >= 0))
    counted, excess = scored & ((label >= 0) | is_unlabelled[groups]), label - prediction
    bias = _sum_means([(1.0, labelled, excess)], groups, len(is_unlabelled))
    sign = np.where(bias < 0, -1.0, 1.0)[groups]
    return {
        "tpr": [(1.0, correct, prediction)],
        "tnr": [(1.0, errors, 1 - prediction)],
        "bacc": [(0.5, correct, prediction), (0.5, errors, 1 - prediction)],
        "ppr": [(1.0, counted, prediction)],
        "bias": [(1.0, labelled, excess)],
        "abs_bias": [(1.0, labelled, sign * excess)],
        "unscored": [(1.0, np.ones(len(label), dtype=bool), np.isnan(prediction).astype(float))],
    }


def _sum_means(terms: _Terms, groups: np.ndarray, n_groups: int) -> np.ndarray:
    found = np.zeros(n_groups)
    for weight, inside, values in terms:
        sums = np.bincount(groups[inside], values[inside], n_groups)
        found += weight * divide_or_undefined(sums, np.bincount(groups[inside], minlength=n_groups))
    return found


def compute_paired_flip_shares(
    before: np.ndarray,
    after: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
    clusters: np.ndarray,
    confidence: float = 0.95,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The share of changed predictions among the claims that both runs scored, and its interval: (G,) each.

    before, after: int (n,), -1 where unscored.
    """
    pairs = GroupClusterPairs.of(groups, clusters, n_groups)
    flips = _sum_by_cluster(pairs, (before >= 0) & (after >= 0), (before != after).astype(float))
    share = estimate_clustered_proportions(_make_cluster_counts(pairs), *flips)
    low, high = share.wilson_intervals(confidence)
    return share.point[:, 0], low[:, 0], high[:, 0]


def _estimate_change_interval(terms: _Terms, pairs: GroupClusterPairs, confidence: float) -> IntervalEnds:
    """The interval of a weighted sum of means: a mean is the share of what rose less that of what fell."""
    parts = [
        (sign * weight, *_sum_by_cluster(pairs, inside, np.maximum(sign * values, 0)))
        for weight, inside, values in terms
        for sign in (1.0, -1.0)
    ]
    weights, hits, sizes = zip(*parts, strict=True)
    shares = estimate_clustered_proportions(_make_cluster_counts(pairs), np.hstack(hits), np.hstack(sizes))
    return discordant_difference_interval(shares, np.array(weights), confidence)[1]


def _sum_by_cluster(pairs: GroupClusterPairs, inside: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of values, and how many they are, in each pair of a group and a cluster: (k, 1) each."""
    at, length = pairs.pair[inside], len(pairs.group)
    sums = np.bincount(at, values[inside], length)
    return sums[:, None], np.bincount(at, minlength=length)[:, None].astype(np.float64)


def _make_cluster_counts(pairs: GroupClusterPairs) -> ClusterCounts:
    length = len(pairs.group)
    return ClusterCounts(pairs.group, np.ones(length, dtype=np.int64), np.zeros((length, 0)), pairs.n_groups)
