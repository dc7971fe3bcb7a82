"""How far do raters, scores or orders of systems agree? κ, α, ρ and r with intervals by the
influence of units, and Kendall's τ."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats import divide_or_undefined
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, interval


def correlation_interval(
    statistic: Statistic, cluster: np.ndarray, confidence: float, telling: np.ndarray | None = None
) -> tuple[float, float]:
    """The interval of κ, α, ρ or r on Fisher's scale; (NaN, NaN) of fewer than `MIN_CLUSTERS`
    clusters.

    cluster, telling: as `factaudit.stats.influence.interval` takes them; of κ the units on which
    raters differ tell.
    """
    return interval(
        statistic, cluster, "fisher", confidence, min_clusters=MIN_CLUSTERS, telling=telling
    )


def weighted_kappa(a: np.ndarray, b: np.ndarray) -> Statistic:
    """Cohen's κ with quadratic weights of two raters' grades: 1 - mean (a - b)² / what chance makes
    of it.

    a, b: float (n,), on one scale. Of whole grades it is Cohen 1968's, of labels 1 and 0 Cohen
    1960's, of any numbers Lin's concordance correlation (1989). Undefined where both raters give
    one and the same grade.

    >>> round(weighted_kappa(np.array([1.0, 2, 3, 3]), np.array([1.0, 2, 2, 3])).point, 3)
    0.8
    """
    if not len(a):
        return Statistic.undefined(0)
    a, b = a - a.mean(), b - a.mean()
    apart, cross = (a - b) ** 2, a * b.mean() + b * a.mean()
    expected = a**2 + b**2 - 2 * cross + 2 * a.mean() * b.mean()
    if not expected.sum() > 1e-9 * (a @ a + b @ b):
        return Statistic.undefined(len(a))
    ratio = apart.sum() / expected.sum()
    return Statistic(float(1 - ratio), (ratio * expected - apart) / expected.sum())


def pearson(x: np.ndarray, y: np.ndarray) -> Statistic:
    """Pearson's r of float (n,) each; undefined where x or y is the same everywhere.

    The influence is by leaving out each unit: of skewed scores the infinitesimal one gives
    intervals that are too narrow (88 % of 20 pairs; these cover 95 to 97).

    >>> round(pearson(np.array([1.0, 2, 3]), np.array([2.0, 4, 7])).point, 3)
    0.993
    """
    n = len(x)
    if not n or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Statistic.undefined(n)
    x, y = x - x.mean(), y - y.mean()
    point = min(max(float(x @ y / np.sqrt((x @ x) * (y @ y))), -1.0), 1.0)
    more = n / max(n - 1, 1)
    left = divide_or_undefined(
        x @ y - more * x * y,
        np.sqrt(np.maximum((x @ x - more * x * x) * (y @ y - more * y * y), 0)),
    )
    # Where all others are alike there is no r without this unit: it counts as if it changed
    # nothing.
    return Statistic(point, (point - np.where(np.isnan(left), point, left)) / more)


def spearman(x: np.ndarray, y: np.ndarray) -> Statistic:
    """Spearman's ρ: Pearson's r of the midranks. float (n,) each.

    That ranks are estimated, too, hardly matters: intervals cover 94 to 98 % of 20, 50 and 200
    pairs (``tests/validity/influence.py``).

    >>> round(spearman(np.array([1.0, 2, 3, 4]), np.array([10.0, 30, 20, 40])).point, 3)
    0.8
    """
    return pearson(scipy.stats.rankdata(x), scipy.stats.rankdata(y))


def krippendorff_alpha(values: np.ndarray, unit: np.ndarray, n_units: int) -> Statistic:
    """Krippendorff's α (2011): 1 - observed / expected disagreement; the influence is that of each
    unit, (n_units,).

    values: (r,), all that raters gave; unit: int (r,), 0..n_units-1, what each was given to. A unit
    with one value does not count. Two values disagree by their squared difference: of labels 1 and
    0 this is the nominal α, of other numbers the interval α. Undefined where no unit has two
    values, or all values are equal.

    >>> values, units = np.array([1, 1, 0, 1, 0, 0]), np.array([0, 0, 1, 1, 2, 2])
    >>> round(krippendorff_alpha(values, units, 3).point, 3)
    0.444
    """
    counts = np.bincount(unit, minlength=n_units)
    paired = counts[unit] > 1
    values, unit = values[paired], unit[paired]
    n = len(values)
    if not n or np.ptp(values) == 0:
        return Statistic.undefined(n_units)
    means = np.bincount(unit, values, n_units) / np.maximum(counts, 1)
    from_all, from_unit = values - values.mean(), values - means[unit]
    pairs = counts / np.maximum(counts - 1, 1)
    observed = pairs * np.bincount(unit, from_unit**2, n_units)
    expected = np.bincount(unit, from_all**2, n_units)
    ratio, scale = observed.sum() / expected.sum(), (n - 1) / n / expected.sum()
    return Statistic(float(1 - (n - 1) / n * ratio), -scale * (observed - ratio * expected))


# ---- systems

#: Below so many systems a correlation says nothing (VC §3.5 uses six).
MIN_CORRELATED_SYSTEMS = 3


def fisher_z_interval(r: float, n: int, confidence: float) -> tuple[float, float]:
    """Fisher's z interval of Pearson's r over n systems; NaN below four systems, and where |r| is
    1.

    >>> low, high = fisher_z_interval(0.8, 10, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.343, 0.951)
    """
    if n < 4 or not abs(r) < 1:
        return np.nan, np.nan
    half = scipy.special.ndtri(0.5 + confidence / 2) / np.sqrt(n - 3)
    return float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


def kendall_tau(x: np.ndarray, y: np.ndarray) -> float:
    """Kendall's tau-b of two rates of S systems: (S,) each; NaN where x or y is constant, or S is
    below 2.

    >>> round(kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])), 3)
    0.667
    """
    return float(scipy.stats.kendalltau(x, y).statistic) if len(x) > 1 else np.nan
