"""AUC of scores in clustered data, with an interval on the scale of log odds."""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.influence import Statistic, interval


def auc_statistic(label: np.ndarray, score: np.ndarray) -> Statistic:
    """AUC of n units: how probably a unit of label 1 scores above one of label 0, a tie counting
    half (DeLong, DeLong & Clarke-Pearson 1988; Obuchowski 1997 for clusters).

    label: int (n,), 1 or 0; score: float (n,). Undefined where a class is missing.

    >>> auc_statistic(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])).point
    0.75
    """
    values, place = np.unique(score, return_inverse=True)
    counts = np.bincount(label * len(values) + place, minlength=2 * len(values)).reshape(2, -1)
    n = counts.sum(1)
    if not n.all():
        return Statistic.undefined(len(label))
    below = np.cumsum(counts, axis=1) - counts / 2
    # The share of the other class that a unit is on the right side of.
    right = np.stack([1 - below[1] / n[1], below[0] / n[0]])
    auc = float(counts[1] @ right[1] / n[1])
    return Statistic(auc, (right[label, place] - auc) / n[label])


def auc_interval(
    statistic: Statistic, label: np.ndarray, cluster: np.ndarray, confidence: float
) -> tuple[float, float]:
    """The interval of an AUC; Wilson's, of the rarer class, where nothing varied (an AUC of 1).

    (NaN, NaN) where a class is in fewer than two clusters.
    """
    n_clusters = min(len(np.unique(cluster[label == one])) for one in (0, 1))
    low, high = interval(statistic, cluster, "logit", confidence)
    if n_clusters < 2 or not np.isnan(low) or np.isnan(statistic.point):
        return (low, high) if n_clusters > 1 else (np.nan, np.nan)
    ends = wilson_interval(
        np.array(statistic.point), np.bincount(label).min(), np.array(n_clusters - 1), confidence
    )
    return float(ends[0]), float(ends[1])
