"""How far two series of grades agree: weighted κ, Krippendorff's ordinal α and Spearman's ρ, with intervals by cluster.

ρ and α come with their influence: the derivative by the weight of each unit, with ranks estimated anew (the
infinitesimal jackknife; Jaeckel 1972). κ is made of sums, which a jackknife leaves one cluster out of. Grades are
numbers of any scale, ordinal or continuous; ties count half in ranks. All is linear in the units but for sorting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.cluster_jackknife import MIN_JACKKNIFE_CLUSTERS
from factaudit.stats.clustered_proportions import student_t_quantile
from factaudit.stats.distinct_rows import rank_distinct_integers
from factaudit.stats.slope_moments import LEAST_RELATIVE_SPREAD
from factaudit.stats.undefined_values import divide_or_undefined


@dataclass(frozen=True)
class InfluenceStatistic:
    """point: NaN where undefined. influence: float64 (n,), what the point changes by the weight of each unit."""

    point: float
    influence: np.ndarray


def quadratic_weighted_kappa(a: np.ndarray, b: np.ndarray) -> float:
    """Cohen's κ with quadratic weights of two raters' grades on one scale: 1 - mean (a - b)² / what chance makes of it.

    a, b: float (n,). Of whole grades it is Cohen 1968's; of any grades Lin's concordance correlation (1989). NaN where
    both raters give one and the same grade.

    >>> quadratic_weighted_kappa(np.array([1.0, 2, 3, 3]), np.array([1.0, 2, 2, 3]))
    0.8
    """
    return float(_weighted_kappa_of_moments(_sum_kappa_moments(a, b, np.zeros(len(a), dtype=np.int64)).sum(0)))


def weighted_kappa_interval(
    a: np.ndarray, b: np.ndarray, cluster: np.ndarray, confidence: float
) -> tuple[float, float]:
    """The interval of `quadratic_weighted_kappa`: a jackknife over clusters of its Fisher transform, with Student's t.

    cluster: int (n,), equal for units that go together. NaN with fewer than `MIN_JACKKNIFE_CLUSTERS` clusters, for a κ
    of 1 or -1, and where nothing varies.

    >>> a = np.arange(40.0) % 5
    >>> low, high = weighted_kappa_interval(a, np.where(a % 3 == 0, 1, a), np.arange(40) // 2, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.529, 0.824)
    """
    names, place = rank_distinct_integers(cluster)
    moments = _sum_kappa_moments(a, b, place)
    point = _weighted_kappa_of_moments(moments.sum(0))
    if len(names) < MIN_JACKKNIFE_CLUSTERS or not abs(point) < 1 - 1e-12:
        return np.nan, np.nan
    z = np.arctanh(point)
    # Where the others agree wholly, or give one grade, this cluster counts as if it changed nothing.
    left = _weighted_kappa_of_moments(moments.sum(0) - moments)
    moved = np.arctanh(np.where(np.abs(left) < 1 - 1e-12, left, point)) - z
    # Clusters without a disagreement do not tell how large one is.
    half = _jackknife_interval_half_width(moved, np.bincount(place), confidence, float((moments[:, -1] > 0).mean()))
    return float(np.tanh(z - half)), float(np.tanh(z + half))


def _sum_kappa_moments(a: np.ndarray, b: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Each cluster's sums of 1, a, b, aa + bb and (a - b)², of grades around a's mean: (C, 5)."""
    middle = a.mean() if len(a) else 0.0
    a, b = a - middle, b - middle
    return np.stack([np.bincount(place, term) for term in (np.ones(len(a)), a, b, a * a + b * b, (a - b) ** 2)], 1)


def _weighted_kappa_of_moments(moments: np.ndarray) -> np.ndarray:
    n, a, b, squares, apart = np.moveaxis(moments, -1, 0)
    expected = squares - 2 * divide_or_undefined(a * b, n)  # n times the mean of (a - b)² of two units
    rounding = LEAST_RELATIVE_SPREAD * squares
    return 1 - divide_or_undefined(apart, np.where(expected > rounding, expected, 0.0))


def spearman_rank_correlation(a: np.ndarray, b: np.ndarray) -> InfluenceStatistic:
    """Spearman's ρ of two series of grades, each on a scale of its own: Pearson's r of midranks.

    a, b: float (n,). NaN where a or b is the same everywhere.

    >>> found = spearman_rank_correlation(np.array([1.0, 2, 3, 4]), np.array([10.0, 30, 20, 40]))
    >>> round(found.point, 3)
    0.8
    """
    if not len(a) or np.ptp(a) == 0 or np.ptp(b) == 0:
        return _undefined_statistic(len(a))
    (x, codes_x), (y, codes_y) = _compute_midranks(a), _compute_midranks(b)
    x, y = (each - each.mean() for each in (x, y))
    scale_x, scale_y = np.sqrt((x * x).mean()), np.sqrt((y * y).mean())
    x, y = x / scale_x, y / scale_y
    point = min(max(float((x * y).mean()), -1.0), 1.0)
    influence = x * y - point / 2 * (x * x + y * y)
    influence += _sum_influence_over_higher_grades((y - point * x) / scale_x, codes_x)
    influence += _sum_influence_over_higher_grades((x - point * y) / scale_y, codes_y)
    return InfluenceStatistic(point, influence / len(a))


def ordinal_krippendorff_alpha(grades: np.ndarray, unit: np.ndarray, n_units: int) -> InfluenceStatistic:
    """Krippendorff's α for ordinal data (Krippendorff 2011): 1 - observed / expected squared difference of midranks.

    grades: float (r,), all that raters gave; unit: int (r,), 0..n_units-1, what each was given to. A unit with one
    grade does not count. The influence is that of each unit. The squared difference of two midranks is the ordinal
    metric: the grades between the two, and half of those at both. NaN where no unit has two grades, or all are equal.

    >>> found = ordinal_krippendorff_alpha(np.array([1.0, 1, 2, 3, 3, 3]), np.array([0, 0, 1, 1, 2, 2]), 3)
    >>> round(found.point, 3)
    0.778
    """
    counts = np.bincount(unit, minlength=n_units)
    paired = counts[unit] > 1
    grades, unit = grades[paired], unit[paired]
    if not len(grades) or np.ptp(grades) == 0:
        return _undefined_statistic(n_units)
    n = len(grades)
    ranks, codes = _compute_midranks(grades)
    from_all = ranks - ranks.mean()
    from_unit = ranks - (np.bincount(unit, ranks, n_units) / np.maximum(counts, 1))[unit]
    pairs = 2 * counts / np.maximum(counts - 1, 1)
    observed = pairs * np.bincount(unit, from_unit**2, n_units)
    expected = 2 * np.bincount(unit, from_all**2, n_units)
    correction, chance = (n - 1) / n, expected.sum()
    ratio = observed.sum() / chance
    slope = 2 * pairs[unit] * from_unit - ratio * 4 * from_all
    moved = observed - ratio * expected + np.bincount(unit, _sum_influence_over_higher_grades(slope, codes), n_units)
    return InfluenceStatistic(float(1 - correction * ratio), -correction * moved / chance)


def correlation_influence_interval(
    statistic: InfluenceStatistic, cluster: np.ndarray, confidence: float
) -> tuple[float, float]:
    """The interval of a coefficient in (-1, 1): symmetric after Fisher's transformation, with Student's t.

    NaN with fewer than `MIN_JACKKNIFE_CLUSTERS` clusters, for a coefficient of 1 or -1, and where nothing varies.

    >>> a = np.arange(20.0)
    >>> found = spearman_rank_correlation(a, np.where(a % 4 == 0, a + 6, a))
    >>> low, high = correlation_influence_interval(found, np.arange(20), 0.95)
    >>> round(found.point, 3), round(low, 3), round(high, 3)
    (0.908, 0.816, 0.955)
    """
    low, high = difference_influence_interval(statistic, cluster, confidence)
    if np.isnan(low) or abs(statistic.point) >= 1 - 1e-12:
        return np.nan, np.nan
    half = (high - low) / 2 / (1 - statistic.point**2)
    z = np.arctanh(statistic.point)
    return float(np.tanh(z - half)), float(np.tanh(z + half))


def difference_influence_interval(
    statistic: InfluenceStatistic, cluster: np.ndarray, confidence: float
) -> tuple[float, float]:
    """The interval of a difference of two coefficients, whose influences were subtracted: symmetric, with Student's t.

    NaN as in `correlation_influence_interval`, but for a point of 1 or -1.

    >>> difference = InfluenceStatistic(0.1, np.tile([0.01, -0.01], 10))
    >>> low, high = difference_influence_interval(difference, np.arange(20), 0.95)
    >>> round(low, 3), round(high, 3)
    (0.004, 0.196)
    """
    names, place = rank_distinct_integers(cluster)
    if np.isnan(statistic.point) or len(names) < MIN_JACKKNIFE_CLUSTERS:
        return np.nan, np.nan
    sizes = np.bincount(place)
    # What a cluster moves the statistic by when it is left out is more than its influence where it is large.
    half = _jackknife_interval_half_width(
        np.bincount(place, statistic.influence) / (1 - sizes / len(cluster)), sizes, confidence
    )
    return statistic.point - half, statistic.point + half


def _jackknife_interval_half_width(
    moved: np.ndarray, sizes: np.ndarray, confidence: float, telling_share: float = 1.0
) -> float:
    """Half of the width of an interval, by what each cluster left out moves a figure by; NaN where none moves it.

    Degrees of freedom are 1 less than the number of equal clusters that units in so unequal ones are worth (Kish), or
    that moves of so unequal size are: where few clusters decide, the variance is itself hardly known. A variance has
    2 / (kurtosis - 1) times the clusters for its degrees of freedom. telling_share: of the clusters that can tell.
    """
    squares = float((moved**2).sum())
    if not squares > 1e-24:
        return np.nan
    n = len(moved)
    kurtosis = n * float((moved**4).sum()) / squares**2
    worth = min(float(sizes.sum() ** 2 / (sizes.astype(np.float64) ** 2).sum()), 2 * n / max(kurtosis - 1, 1e-9))
    t = float(student_t_quantile(np.array(max(worth * telling_share - 1, 1.0)), confidence))
    return t * ((n - 1) / n * squares) ** 0.5


def _undefined_statistic(n: int) -> InfluenceStatistic:
    return InfluenceStatistic(np.nan, np.zeros(n))


def _compute_midranks(grades: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The midrank of each grade, in (0, 1), and the place of each among the distinct ones."""
    _, codes, counts = np.unique(grades, return_inverse=True, return_counts=True)
    return ((np.cumsum(counts) - counts / 2) / len(grades))[codes], codes


def _sum_influence_over_higher_grades(slope: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """What one more unit of each grade changes by the ranks that it raises: those above it, and by half its equals'.

    slope: (n,), the derivative by each unit's rank; the mean over units.
    """
    sums = np.bincount(codes, slope)
    above = np.cumsum(sums[::-1])[::-1] - sums / 2
    return above[codes] / len(slope)
