"""How the figures of one evaluator changed between two runs on the same claims, with paired intervals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.stats.clustered_proportions import ClusterCounts, GroupClusterPairs, estimate_clustered_proportions
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
    unlabelled = np.bincount(groups, label >= 0, n_groups) == 0
    counted = (label >= 0) | unlabelled[groups]
    truth = np.where(label >= 0, label, np.nan)
    is_scored = [~np.isnan(one) for one in (before, after)]
    runs = [
        _compute_paired_run_figures(label, one, is_scored[0] & is_scored[1], counted, groups, n_groups)
        | {"unscored": divide_or_undefined(np.bincount(groups, ~scored, n_groups), np.bincount(groups, None, n_groups))}
        for one, scored in zip((before, after), is_scored, strict=True)
    ]
    step = after - before
    signs = [np.where(figures["bias"] < 0, -1.0, 1.0)[groups] for figures in runs]
    size = signs[1] * (truth - after) - signs[0] * (truth - before)
    lost = np.isnan(after).astype(float) - np.isnan(before)
    terms: dict[str, _Terms] = {
        "tpr": [(1.0, label == 1, step)],
        "tnr": [(1.0, label == 0, -step)],
        "bacc": [(0.5, label == 1, step), (0.5, label == 0, -step)],
        "ppr": [(1.0, counted, step)],
        "bias": [(1.0, label >= 0, -step)],
        "abs_bias": [(1.0, label >= 0, size)],
        "unscored": [(1.0, np.ones(len(label), dtype=bool), lost)],
    }
    pairs = GroupClusterPairs.of(groups, clusters, n_groups)
    found = {}
    for key, each in terms.items():
        old, new = (figures[key] for figures in runs)
        low, high = _sum_paired_discordant_means(each, pairs, confidence)[1]
        found[key] = (old, new, new - old, np.maximum(low, -1), np.minimum(high, 1))
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
    scored = (before >= 0) & (after >= 0)
    hits = np.where(scored, before != after, np.nan)
    pairs = GroupClusterPairs.of(groups, clusters, n_groups)
    share = estimate_clustered_proportions(
        _make_cluster_counts(pairs), *_sum_values_by_group_and_cluster(pairs, scored, hits)
    )
    low, high = share.wilson_intervals(confidence)
    return share.point[:, 0], low[:, 0], high[:, 0]


def _compute_paired_run_figures(
    label: np.ndarray,
    prediction: np.ndarray,
    scored: np.ndarray,
    counted: np.ndarray,
    groups: np.ndarray,
    n_groups: int,
) -> dict[str, np.ndarray]:
    """The figures of one run over the claims of ``scored``, which have a prediction."""

    def mean(inside: np.ndarray, values: np.ndarray) -> np.ndarray:
        sums = np.bincount(groups[inside], values[inside], n_groups)
        return divide_or_undefined(sums, np.bincount(groups[inside], minlength=n_groups))

    tpr, tnr = mean(scored & (label == 1), prediction), 1 - mean(scored & (label == 0), prediction)
    ppr = mean(scored & counted, prediction)
    bias = 1 - ppr - mean(scored & (label >= 0), 1.0 - label)
    return {"tpr": tpr, "tnr": tnr, "bacc": (tpr + tnr) / 2, "ppr": ppr, "bias": bias, "abs_bias": abs(bias)}


def _sum_paired_discordant_means(
    terms: _Terms, pairs: GroupClusterPairs, confidence: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The weighted sum of the means and its interval: a mean is the share of what rose less that of what fell."""
    hits, sizes, weights = [], [], []
    for weight, inside, values in terms:
        for sign in (1.0, -1.0):
            part, n = _sum_values_by_group_and_cluster(pairs, inside & ~np.isnan(values), np.maximum(sign * values, 0))
            hits.append(part)
            sizes.append(n)
            weights.append(sign * weight)
    proportions = estimate_clustered_proportions(_make_cluster_counts(pairs), np.hstack(hits), np.hstack(sizes))
    return discordant_difference_interval(proportions, np.array(weights), confidence)


def _sum_values_by_group_and_cluster(
    pairs: GroupClusterPairs, inside: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of values, and how many they are, in each pair of a group and a cluster: (k, 1) each."""
    at, length = pairs.pair[inside], len(pairs.group)
    sums = np.bincount(at, values[inside], length)
    return sums[:, None], np.bincount(at, minlength=length)[:, None].astype(np.float64)


def _make_cluster_counts(pairs: GroupClusterPairs) -> ClusterCounts:
    length = len(pairs.group)
    return ClusterCounts(pairs.group, np.ones(length, dtype=np.int64), np.zeros((length, 0)), pairs.n_groups)
