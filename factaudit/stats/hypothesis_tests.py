"""Two-sided tests: of equal proportions, by intervals, and by signs; and corrections for their
number."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

from factaudit.stats import divide_or_undefined
from factaudit.stats.clustered_proportions import ClusteredProportions

#: With fewer errors, or fewer other units, expected of one system, the exact test is asked as well.
FEWEST_EXPECTED_FOR_T_TEST = 5
#: How two systems are compared: by a test that uses clusters, or by VC's z-test, which treats
#: claims as independent.
SystemPairTest = Literal["clustered", "z"]
MultiplicityCorrection = Literal["holm", "none"]


def fisher_exact_p(
    errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray
) -> np.ndarray:
    """p-values of Fisher's exact test, as SciPy's `fisher_exact`, of many pairs at once: int (k,)
    each, to (k,).

    >>> fisher_exact_p(*np.array([[6, 3], [6, 9], [1, 3], [7, 9]])).round(4).tolist()
    [0.0047, 1.0]
    """
    numbers, place = np.unique(
        np.stack([errors_a, n_a, errors_b, n_b], axis=1), axis=0, return_inverse=True
    )
    first, n_first, second, n_second = numbers.T[:, :, None]
    possible = np.arange(int(n_first.max(initial=0)) + 1)
    probability = scipy.stats.hypergeom.pmf(possible, n_first + n_second, first + second, n_first)
    seen = np.take_along_axis(probability, first, axis=1)
    p = np.where(probability <= seen * (1 + 1e-7), probability, 0.0).sum(1)
    return np.minimum(p, 1.0)[place.reshape(-1)]


def pair_p_values(
    proportions: ClusteredProportions,
    first: tuple[np.ndarray, int],
    second: tuple[np.ndarray, int],
    test: SystemPairTest = "clustered",
) -> np.ndarray:
    """Two-sided p-values of equal proportions, of k pairs: (k,); NaN where one has no unit.

    first, second: the groups, int (k,), and the column of both proportions of each pair.

    ``z``: the pooled z-test of independent units, as statsmodels' `proportions_ztest`; 1 where both
    proportions are 0 or both are 1. ``clustered``: the same on effective numbers of units, against
    Student's t. What shared clusters do to both proportions alike is not made use of. Where either
    has few units of a kind, Fisher's exact test of the effective numbers, if that is less
    significant; 1 where a proportion is of one cluster.

    >>> from factaudit.stats.clustered_proportions import (
    ...     ClusterCounts,
    ...     estimate_clustered_proportions,
    ... )
    >>> # Errors in each of 15 + 15 clusters of 10 claims, of two groups.
    >>> groups, errors = np.array([0, 0, 1, 1]), np.array([[3], [2], [1], [0]])
    >>> counts = ClusterCounts(groups, np.full(4, 15), errors, n_groups=2)
    >>> found = estimate_clustered_proportions(counts, errors, np.full((4, 1), 10))
    >>> pair_p_values(found, (np.array([0]), 0), (np.array([1]), 0)).round(4).tolist()
    [0.0]
    """
    size = proportions.n if test == "z" else proportions.effective_n
    (rate_a, n_a), (rate_b, n_b) = ((proportions.point[at], size[at]) for at in (first, second))
    pooled = divide_or_undefined(n_a * rate_a + n_b * rate_b, n_a + n_b)
    variance = pooled * (1 - pooled) * (divide_or_undefined(1, n_a) + divide_or_undefined(1, n_b))
    distance = np.abs(rate_a - rate_b)
    t = np.where(distance == 0, 0.0, divide_or_undefined(distance, np.sqrt(variance)))
    if test == "z":
        return 2 * scipy.special.ndtr(-t)
    clusters = np.minimum(proportions.n_clusters[first], proportions.n_clusters[second])
    p = 2 * scipy.special.stdtr(np.maximum(clusters - 1, 1), -t)
    few = np.minimum(pooled, 1 - pooled) * np.minimum(n_a, n_b) < FEWEST_EXPECTED_FOR_T_TEST
    few = np.flatnonzero(few & (clusters > 1))
    numbers = []
    for rate, n in ((rate_a[few], n_a[few]), (rate_b[few], n_b[few])):
        # Whole, but not below what only rounding makes less: 149.999... independent claims are 150.
        whole = np.maximum(1, np.floor(n + 1e-6).astype(np.int64))
        numbers += [np.rint(whole * rate).astype(np.int64), whole]
    p[few] = np.maximum(p[few], fisher_exact_p(*numbers))
    return np.where(clusters > 1, p, np.where(clusters > 0, 1.0, np.nan))


# ---- many tests, and the p-value that an interval implies


def holm_adjusted_p(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values along the last axis (Holm 1979).

    The chance of one false rejection or more, whichever hypotheses are true and however the tests
    depend on each other, is at most the level. As statsmodels' `multipletests`, for many rows at
    once and without the second and a half that its import takes.

    >>> holm_adjusted_p(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, axis=-1, kind="stable")
    factors = np.arange(p_values.shape[-1], 0, -1)
    adjusted = np.minimum(
        np.maximum.accumulate(np.take_along_axis(p_values, order, -1) * factors, axis=-1), 1
    )
    out = np.empty_like(p_values)
    np.put_along_axis(out, order, adjusted, -1)
    return out


def select_rejectable_tests(least_p_values: np.ndarray, level: float) -> np.ndarray:
    """Which of many discrete tests to make, by the least p-value that each can have (Tarone 1990);
    booleans.

    The smallest number k such that no more than k tests can have a p-value below ``level`` / k:
    these tests. The choice rests on no outcome, so a correction for their number alone holds the
    level.

    >>> select_rejectable_tests(np.array([0.03, 0.03, 0.03, 0.002]), 0.05).tolist()
    [False, False, False, True]
    """
    can_reject = least_p_values[:, None] < level / np.arange(1, len(least_p_values) + 1)
    fits = can_reject.sum(0) <= np.arange(1, len(least_p_values) + 1)
    return can_reject[:, np.argmax(fits)] if len(fits) else np.zeros(0, dtype=bool)


def p_value_of_interval(
    distance: np.ndarray, half_width: np.ndarray, degrees_of_freedom: np.ndarray, confidence: float
) -> np.ndarray:
    """The two-sided p-value of a limit that lies ``distance`` from a figure, by the figure's own
    interval; elementwise.

    half_width: from the figure to the end of its interval on the limit's side, of which Student's t
    makes a standard error. 1 where the distance is not above 0; NaN without a degree of freedom.

    >>> distance, half_width, df = np.array([0.1, 0.2]), np.array([0.1, 0.1]), np.array([1e6, 1e6])
    >>> p_value_of_interval(distance, half_width, df, 0.95).round(5).tolist()
    [0.05, 9e-05]
    """
    freedom = np.where(degrees_of_freedom > 0, degrees_of_freedom, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = distance / half_width * scipy.special.stdtrit(freedom, 0.5 + confidence / 2)
        p = 2 * scipy.special.stdtr(freedom, -np.abs(t))
    return np.where(distance > 0, p, np.where(np.isnan(freedom), np.nan, 1.0))


def sign_test_p(n_above: np.ndarray, n_below: np.ndarray) -> np.ndarray:
    """The exact two-sided p-value of as many clusters above as below (a sign test, without ties);
    elementwise.

    >>> sign_test_p(np.array([6, 5, 0]), np.array([0, 1, 0])).round(5).tolist()
    [0.03125, 0.21875, 1.0]
    """
    n_above, n_below = np.asarray(n_above), np.asarray(n_below)
    return np.minimum(
        2 * scipy.special.bdtr(np.minimum(n_above, n_below), (n_above + n_below).astype(int), 0.5),
        1.0,
    )
