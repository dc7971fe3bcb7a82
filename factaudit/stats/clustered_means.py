"""Means of real-valued scores in clustered data, with intervals by a jackknife over clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.clustered_proportions import student_t_quantile
from factaudit.stats.distinct_rows import rank_distinct_integers


@dataclass(frozen=True)
class ClusteredMean:
    """A mean with its interval, in the unit of the scores.

    low, high: NaN where there are fewer than two clusters to leave out, or leaving out any of them changes nothing, so
    that nothing says how the scores vary.
    """

    point: float
    low: float
    high: float
    n_clusters: int


def clustered_mean(values: np.ndarray, cluster: np.ndarray, confidence: float = 0.95) -> ClusteredMean:
    """The mean of real values over n units, with its interval.

    values: float (n,), NaN left out; cluster: int (n,), equal for units that go together. Of paired scores give the
    differences. Source: the jackknife over clusters with Student's t at clusters - 1 degrees of freedom (CV3;
    MacKinnon, Nielsen & Webb 2023).

    >>> found = clustered_mean(np.array([0.2, 0.4, 0.6, 0.8]), np.array([0, 0, 1, 1]))
    >>> round(found.point, 3), round(found.low, 2), round(found.high, 2)
    (0.5, -2.04, 3.04)
    """
    known = ~np.isnan(values)
    names, place = rank_distinct_integers(cluster[known])
    point, left_out = _jackknife_clustered_means(values[known], place, len(names))
    return _jackknife_mean_interval(point, left_out - point, values[known], len(names), confidence)


def clustered_positive_mean(values: np.ndarray, cluster: np.ndarray, confidence: float = 0.95) -> ClusteredMean:
    """The mean of real values that are never below 0, such as absolute errors: `clustered_mean` of its logarithm.

    Few values far from 0 decide such a mean, so that it can lie farther above what was seen than below. No interval
    where the values of one cluster alone are above 0.

    >>> found = clustered_positive_mean(np.array([0.2, 0.4, 0.6, 0.8, 0.3, 0.5]), np.arange(6))
    >>> round(found.point, 3), round(found.low, 3), round(found.high, 3)
    (0.467, 0.284, 0.766)
    """
    known = ~np.isnan(values)
    names, place = rank_distinct_integers(cluster[known])
    point, left_out = _jackknife_clustered_means(values[known], place, len(names))
    if not point > 0 or not (left_out > 0).all():
        return ClusteredMean(point, np.nan, np.nan, len(names))
    found = _jackknife_mean_interval(np.log(point), np.log(left_out / point), np.ones(1), len(names), confidence)
    return ClusteredMean(point, float(np.exp(found.low)), float(np.exp(found.high)), len(names))


def _jackknife_clustered_means(values: np.ndarray, place: np.ndarray, n_clusters: int) -> tuple[float, np.ndarray]:
    """The mean, and the mean without each cluster: (n_clusters,), NaN where that is nothing."""
    n = np.bincount(place, minlength=n_clusters)
    sums = np.bincount(place, values, n_clusters)
    left = np.full(n_clusters, np.nan)
    rest = len(values) - n
    np.divide(sums.sum() - sums, rest, out=left, where=rest > 0)
    return float(values.mean()) if len(values) else np.nan, left


def _jackknife_mean_interval(
    point: float, changes: np.ndarray, values: np.ndarray, n_clusters: int, confidence: float
) -> ClusteredMean:
    """changes: what leaving out each cluster does to the point; values: whose rounding is no change."""
    if n_clusters < 2 or np.abs(changes).max() <= 1e-12 * np.abs(values).max():
        return ClusteredMean(point, np.nan, np.nan, n_clusters)
    variance = (n_clusters - 1) / n_clusters * float((changes**2).sum())
    half = float(student_t_quantile(np.array(n_clusters - 1), confidence)) * variance**0.5
    return ClusteredMean(point, point - half, point + half, n_clusters)
