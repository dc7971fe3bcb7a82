"""The jackknife over clusters: intervals of a slope, and a test of a mean over pairs, that hold with few clusters."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import ClusterCounts, IntervalEnds, student_t_quantile
from factaudit.stats.slope_moments import least_squares_slope
from factaudit.stats.undefined_values import divide_or_undefined

#: A jackknife of fewer clusters says too little of how sure it is itself.
MIN_JACKKNIFE_CLUSTERS = 20


def jackknife_slope_interval(moments_by_cluster: ClusterCounts, confidence: float) -> IntervalEnds:
    """The interval of each group's least-squares slope, by leaving out one cluster at a time: (G,) each, with Student's
    t.

    moments_by_cluster: as `slope_moments_by_cluster` gives it, counts (k, 5) being each cluster's sums of 1, x, y, xy,
    xx. NaN with fewer than `MIN_JACKKNIFE_CLUSTERS` clusters, and where all y are equal: then the line is flat whatever
    is left out, which says nothing of the next cluster. Source: CR3, MacKinnon, Nielsen & Webb 2023.

    >>> from factaudit.stats.slope_moments import slope_moments_by_cluster
    >>> x = np.linspace(0, 1, 60)
    >>> is_right = (np.sin(37 * x) + x > 0.5).astype(int)
    >>> moments = slope_moments_by_cluster(x, is_right, np.zeros(60, dtype=int), np.arange(60) % 20, 1)
    >>> low, high = jackknife_slope_interval(moments, 0.95)
    >>> round(low.item(), 2), round(high.item(), 2)
    (-0.33, 0.53)
    """
    total = moments_by_cluster.sum_by_group(moments_by_cluster.counts)
    point = least_squares_slope(total)
    n_clusters = moments_by_cluster.sum_by_group(np.ones(len(moments_by_cluster.group)))
    left = least_squares_slope(total[moments_by_cluster.group] - moments_by_cluster.counts)
    # Where all but this cluster have one x, there is no slope without it: it counts as if it made none.
    apart = np.where(np.isnan(left), point[moments_by_cluster.group], left - point[moments_by_cluster.group])
    variance = divide_or_undefined(n_clusters - 1, n_clusters - 2) * moments_by_cluster.sum_by_group(apart * apart)
    usable = (n_clusters >= MIN_JACKKNIFE_CLUSTERS) & (total[:, 2] > 0) & (total[:, 2] < total[:, 0])
    half = np.where(usable, student_t_quantile(n_clusters - 2, confidence) * np.sqrt(variance), np.nan)
    return point - half, point + half


def jackknife_pair_mean_p(values: np.ndarray, first: np.ndarray, second: np.ndarray, stratum: np.ndarray) -> float:
    """The one-sided p-value of a mean that is not above 0, of values of pairs of units, which share units.

    values: (n,); first, second: (n,), the units of each pair, which are of one stratum: (n,). The variance is that of
    the means without one unit at a time, both as first and as second one, within strata: how far strata are apart is
    no error. Where a stratum has fewer than three units, all are taken for one. Student's t, with Satterthwaite's
    degrees of freedom. NaN where there are fewer than three units, or nothing varies. Source: Efron & Stein 1981.

    >>> first, second = np.nonzero(~np.eye(4, dtype=bool))  # each two of four units
    >>> values, stratum = 0.1 + 0.02 * first - 0.01 * second, np.zeros(12)
    >>> f"{jackknife_pair_mean_p(values, first, second, stratum):.4f}"
    '0.0002'
    """
    _, strata = np.unique(stratum, return_inverse=True)
    # A unit of two strata is two units.
    _, codes = np.unique(np.concatenate([first, second]).astype(str), return_inverse=True)
    one, other = codes.reshape(2, -1) + strata * (codes.max() + 1)
    of_units = [np.unique(np.concatenate([one[strata == at], other[strata == at]])) for at in range(strata.max() + 1)]
    if min(map(len, of_units)) < 3:
        of_units, strata = [np.concatenate(of_units)], np.zeros_like(strata)
    variance = freedom = 0.0
    for at, units in enumerate(of_units):
        mine, a, b = values[strata == at], one[strata == at], other[strata == at]
        is_of_unit = [(a == unit) | (b == unit) for unit in units]
        left = divide_or_undefined(
            np.array([mine.sum() - mine[of_unit].sum() for of_unit in is_of_unit]),
            np.array([len(mine) - of_unit.sum() for of_unit in is_of_unit]),
        )
        part = (len(mine) / len(values)) ** 2 * (len(units) - 1) / len(units) * ((left - left.mean()) ** 2).sum()
        variance, freedom = variance + part, freedom + part**2 / (len(units) - 1)
    if min(map(len, of_units)) < 3 or not variance > 0:
        return np.nan
    return float(scipy.special.stdtr(variance**2 / freedom, -values.mean() / np.sqrt(variance)))
