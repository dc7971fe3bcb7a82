"""Intervals of means, slopes, AUC, κ, α and ρ in clustered data, by the influence of each unit.

The influence of a unit is what a figure changes by with the unit's weight (Jaeckel 1972; Efron
1982). Summed over clusters (documents) it gives the variance of any smooth figure; a cluster counts
for what the figure moves by when it is left out. The interval takes Student's t, with fewer degrees
of freedom where clusters are unequal, or where few of them decide the figure. 95 % intervals cover
93 to 98 % from 10 clusters on (``tests/validity``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import rank_distinct_integers, wilson_interval

#: An interval of a slope or of a coefficient from fewer clusters says too little of how sure it is
#: itself.
MIN_CLUSTERS = 20

#: Where an interval is symmetric. ``log``: figures above 0; ``logit``: in (0, 1); ``fisher``: in
#: (-1, 1).
Scale = Literal["identity", "log", "logit", "fisher"]


@dataclass(frozen=True)
class Statistic:
    """A figure of n units. point: NaN where undefined; influence: float64 (n,), with sum 0."""

    point: float
    influence: np.ndarray

    @classmethod
    def undefined(cls, n: int) -> Statistic:
        return cls(np.nan, np.zeros(n))


def interval(
    statistic: Statistic,
    cluster: np.ndarray,
    scale: Scale = "identity",
    confidence: float = 0.95,
    *,
    min_clusters: int = 2,
    telling: np.ndarray | None = None,
) -> tuple[float, float]:
    """The low and the high end of a figure's interval.

    cluster: int (n,), equal for units that go together; telling: bool (n,), the units that say how
    large differences are, where others only say that there is none. (NaN, NaN) with fewer than
    ``min_clusters`` clusters, at an end of the scale (an AUC of 1), and where nothing varies: then
    nothing says how further units would.

    >>> low, high = interval(mean(np.array([0.2, 0.4, 0.6, 0.8])), cluster=np.arange(4))
    >>> round(low, 2), round(high, 2)
    (-0.05, 1.05)
    """
    point = statistic.point
    inside = {
        "identity": True,
        "log": point > 0,
        "logit": 0 < point < 1,
        "fisher": abs(point) < 1 - 1e-12,
    }[scale]
    names, place = rank_distinct_integers(cluster)
    n, sizes = len(names), np.bincount(place)
    if not inside or np.isnan(point) or n < min_clusters:
        return np.nan, np.nan
    moved = np.bincount(place, statistic.influence) / (1 - sizes / len(cluster))
    squares = float(moved @ moved)
    if not squares > (1e-12 * max(abs(point), 1e-3)) ** 2:
        return np.nan, np.nan
    # The equal clusters that so unequal ones are worth (Kish 1965), or that moves of so unequal
    # size are: a variance has 2 / (kurtosis - 1) times the clusters for its degrees of freedom.
    kurtosis = n * float((moved**4).sum()) / squares**2
    worth = min(
        len(cluster) ** 2 / float(sizes.astype(np.float64) @ sizes), 2 * n / max(kurtosis - 1, 1e-9)
    )
    if telling is not None:
        worth *= len(np.unique(place[telling])) / n
    freedom = max(worth - 1, 1.0)
    half = float(
        scipy.special.stdtrit(freedom, 0.5 + confidence / 2)
        * np.sqrt((freedom + 1) / freedom * squares)
    )
    ends = np.array([-half, half])
    if scale == "log":
        ends = point * np.exp(ends / point)
    elif scale == "logit":
        ends = scipy.special.expit(scipy.special.logit(point) + ends / (point * (1 - point)))
    elif scale == "fisher":
        ends = np.tanh(np.arctanh(point) + ends / (1 - point**2))
    else:
        ends = point + ends
    return float(ends[0]), float(ends[1])


def mean(values: np.ndarray) -> Statistic:
    """The mean of float (n,) values; of paired scores give the differences."""
    if not len(values):
        return Statistic.undefined(0)
    point = values.mean()
    return Statistic(float(point), (values - point) / len(values))


def slope(x: np.ndarray, y: np.ndarray) -> Statistic:
    """The least-squares slope of y on x, float (n,) each; undefined where all x are equal.

    >>> slope(np.array([0.0, 1, 2]), np.array([1.0, 3, 5])).point
    2.0
    """
    centred = x - x.mean() if len(x) else x
    spread = float(centred @ centred)
    if not spread > 1e-9 * float(x @ x):
        return Statistic.undefined(len(x))
    point = float(centred @ y) / spread
    return Statistic(point, centred * (y - y.mean() - point * centred) / spread)


def slope_bounds(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The least and the greatest slope of y, 1 or 0, on x, whatever the missing y (NaN) had been;
    float (n,) each.

    A slope rises with an outcome where x is above its mean: each end takes 1 on one side of it and
    0 on the other.

    >>> slope_bounds(np.array([0.0, 1.0]), np.array([0, np.nan]))
    (0.0, 1.0)
    """
    above = np.where(x > x.mean(), 1.0, 0.0)
    ends = [slope(x, np.where(np.isnan(y), free, y)).point for free in (1 - above, above)]
    return ends[0], ends[1]


# ---- AUC


def auc_statistic(label: np.ndarray, score: np.ndarray) -> Statistic:
    """AUC of n units: how probably a unit of label 1 scores above one of label 0, a tie counting
    half (DeLong, DeLong & Clarke-Pearson 1988; Obuchowski 1997 for clusters).

    label: int (n,), 1 or 0; score: float (n,). Undefined where a class is missing.

    >>> auc_statistic(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8])).point
    0.75
    """
    n = np.bincount(label, minlength=2)
    if not n.all():
        return Statistic.undefined(len(label))
    # How many units of the other class score lower, a tie counting half.
    below = scipy.stats.rankdata(score)
    for one in (0, 1):
        below[label == one] -= scipy.stats.rankdata(score[label == one])
    # The share of the other class that a unit is on the right side of.
    right = np.where(label == 1, below / n[0], 1 - below / n[1])
    auc = float(right[label == 1].mean())
    return Statistic(auc, (right - auc) / n[label])


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


# ---- means of few values in [0, 1], such as responses' scores, and of their changes
# A percentile bootstrap of 10 to 20 responses holds the mean score in 83 to 93 % of samples; these
# in 93 to 98 % (``tests/validity/influence.py``). Values that may be alike, such as the scores of
# several systems on one topic, are named as a cluster.


def bounded_mean_interval(
    values: np.ndarray, confidence: float = 0.95, cluster: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """An interval of the mean of n values in [0, 1]: float (n,).

    cluster: int (n,), equal for values that may be alike; None: all are independent. Clopper and
    Pearson's interval of a share, of as many independent units as the variance between clusters
    leaves, with Student's t at one degree of freedom less than clusters. (None, None) of fewer than
    two clusters, and where all values are equal: nothing says how others would vary. Source: Korn &
    Graubard 1998.

    >>> low, high = bounded_mean_interval(np.array([1.0, 0.9, 1.0, 0.6, 1.0]))
    >>> round(low, 2), round(high, 2)
    (0.48, 1.0)
    >>> bounded_mean_interval(np.array([1.0, 1.0]))
    (None, None)
    """
    names, place = rank_distinct_integers(np.arange(len(values)) if cluster is None else cluster)
    n = len(names)
    if n < 2 or np.ptp(values) < 1e-12:
        return None, None
    point, tail = float(values.mean()), (1 - confidence) / 2
    sums = np.bincount(place, values - point) / len(values)
    # Clusters that happen to be equal to each other say no more than if their values were
    # independent.
    variance = max(n / (n - 1) * float(sums @ sums), float(values.var(ddof=1)) / len(values))
    shrunk = (scipy.special.ndtri(tail) / scipy.special.stdtrit(n - 1, tail)) ** 2
    units = shrunk * point * (1 - point) / variance
    low = scipy.special.betaincinv(point * units, (1 - point) * units + 1, tail)
    high = scipy.special.betaincinv(point * units + 1, (1 - point) * units, 1 - tail)
    return float(low), float(high)


def bounded_change_interval(
    values: np.ndarray, confidence: float = 0.95, cluster: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """An interval of the mean of n changes in [-1, 1], such as a response's score less another of
    it: float (n,).

    Student's t interval. Where all changes have one direction, many of them are 0, and few large
    ones decide the mean: there it is widened to hold that of `bounded_mean_interval`. (None, None)
    as there.

    >>> low, high = bounded_change_interval(np.array([0.0, 0.0, 0.3, 0.0, 0.1]))
    >>> round(low, 2), round(high, 2)
    (-0.12, 0.4)
    """
    if len(values) < 2 or np.ptp(values) < 1e-12:
        return None, None
    places = np.arange(len(values)) if cluster is None else cluster
    ends = [*interval(mean(values), places, confidence=confidence)]
    for sign in (1, -1):
        if (sign * values >= 0).all():
            ends += [
                sign * end
                for end in bounded_mean_interval(sign * values, confidence, cluster)
                if end is not None
            ]
    if np.isnan(ends).any():
        return None, None
    return max(min(ends), -1.0), min(max(ends), 1.0)
