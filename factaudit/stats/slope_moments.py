"""Least-squares slopes from sums of moments: by group, by cluster, and bounded where outcomes are missing."""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import ClusterCounts
from factaudit.stats.distinct_rows import encode_distinct_integer_pairs
from factaudit.stats.undefined_values import divide_or_undefined

#: A spread of x under this share of its mean square is rounding, not a spread.
LEAST_RELATIVE_SPREAD = 1e-9


def least_squares_slope(moments: np.ndarray) -> np.ndarray:
    """The least-squares slope of y on x: float64 (...), NaN where all x are equal.

    moments: float (..., 5), the sums of 1, x, y, xy and xx (`compute_slope_moments`).

    >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([1.0, 3.0, 5.0])
    >>> least_squares_slope(np.array([3, x.sum(), y.sum(), (x * y).sum(), (x * x).sum()])).item()
    2.0
    """
    n, x, y, xy, xx = np.moveaxis(moments, -1, 0)
    spread = n * xx - x * x
    return divide_or_undefined(n * xy - x * y, np.where(spread > LEAST_RELATIVE_SPREAD * n * xx, spread, 0.0))


def compute_slope_moments(x: np.ndarray, outcome: np.ndarray, group: np.ndarray, n_groups: int) -> np.ndarray:
    """The sums of 1, x, y, xy and xx in each group: float64 (n_groups, 5).

    x: float (n,). outcome: int (n,), 1, 0 or -1 (missing: the row does not count). group: int (n,), 0..n_groups-1,
    -1 for none. The order of the rows does not change a bit of the sums.

    >>> compute_slope_moments(np.array([0.5, 1.0, 2.0]), np.array([1, 0, -1]), np.array([0, 0, 0]), 1).tolist()
    [[2.0, 1.5, 1.0, 0.5, 1.25]]
    """
    rows = _known_rows_by_rising_x(x, outcome, group)
    return np.stack([np.bincount(group[rows], term, n_groups) for term in _moment_terms(x, outcome, rows)], axis=1)


def slope_moments_by_cluster(
    x: np.ndarray, outcome: np.ndarray, group: np.ndarray, cluster: np.ndarray, n_groups: int
) -> ClusterCounts:
    """The same sums in each cluster of each group, for `jackknife_slope_interval`: counts (k, 5).

    Arguments as in `compute_slope_moments`; cluster: int (n,), 0 or more.

    >>> x, right, one_group = np.array([0.5, 1.0, 2.0]), np.array([1, 0, 1]), np.zeros(3, dtype=int)
    >>> slope_moments_by_cluster(x, right, one_group, np.array([7, 7, 8]), 1).counts[:, :3].tolist()
    [[2.0, 1.5, 1.0], [1.0, 2.0, 1.0]]
    """
    rows = _known_rows_by_rising_x(x, outcome, group)
    size = int(cluster.max(initial=-1)) + 1
    pairs, place = encode_distinct_integer_pairs(group[rows], cluster[rows], size)
    counts = np.stack([np.bincount(place, term, len(pairs)) for term in _moment_terms(x, outcome, rows)], axis=1)
    return ClusterCounts(pairs // max(size, 1), np.ones(len(pairs), dtype=np.int64), counts, n_groups)


def bound_slopes_over_missing(
    x: np.ndarray, outcome: np.ndarray, group: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest slope, whatever the missing outcomes had been: float64 (n_groups,) each.

    Arguments as in `compute_slope_moments`. A slope is linear in each outcome, and rises with it where x is above its
    mean: so each end takes 1 on one side of the mean and 0 on the other.

    >>> low, high = bound_slopes_over_missing(np.array([0.0, 1.0]), np.array([0, -1]), np.array([0, 0]), 1)
    >>> low.tolist(), high.tolist()
    ([0.0], [1.0])
    """
    low, high = np.full(n_groups, np.nan), np.full(n_groups, np.nan)
    for place in range(n_groups):
        rows = np.flatnonzero(group == place)
        rows = rows[np.argsort(x[rows], kind="stable")]
        if not len(rows):
            continue
        centred = x[rows] - x[rows].mean()
        spread = (centred * centred).sum()
        if spread <= LEAST_RELATIVE_SPREAD * (x[rows] ** 2).sum():
            continue
        known = (centred * (outcome[rows] == 1)).sum()
        free = centred[outcome[rows] < 0]
        low[place] = (known + np.minimum(free, 0).sum()) / spread
        high[place] = (known + np.maximum(free, 0).sum()) / spread
    return low, high


def _known_rows_by_rising_x(x: np.ndarray, outcome: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The rows that count, in an order that does not depend on that of the table."""
    rows = np.flatnonzero((group >= 0) & (outcome >= 0))
    return rows[np.argsort(x[rows], kind="stable")]


def _moment_terms(x: np.ndarray, outcome: np.ndarray, rows: np.ndarray) -> list[np.ndarray]:
    """What each row adds to the sums of 1, x, y, xy and xx."""
    x, y = x[rows], (outcome[rows] == 1).astype(np.float64)
    return [np.ones(len(rows)), x, y, x * y, x * x]
