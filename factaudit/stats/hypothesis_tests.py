"""Two-sided tests of equal proportions, of independent units and of clusters."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import ClusteredProportions
from factaudit.stats.undefined_values import divide_or_undefined

#: With fewer errors, or fewer other units, expected of one system, the exact test is asked as well.
FEWEST_EXPECTED_FOR_T_TEST = 5


def two_proportion_p(
    errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray
) -> np.ndarray:
    """p-values of the pooled two-proportion z-test, elementwise, as statsmodels'
    `proportions_ztest`.

    1 where both rates are 0 or both are 1 (there is no difference to test); NaN where an n is 0.

    >>> two_proportion_p(np.array(30), np.array(100), np.array(45), np.array(100)).round(4).item()
    0.0285
    """
    t = _pooled_t(divide_or_undefined(errors_a, n_a), n_a, divide_or_undefined(errors_b, n_b), n_b)[
        1
    ]
    return 2 * scipy.special.ndtr(-t)


def two_proportion_power(
    rate: np.ndarray,
    difference: float | np.ndarray,
    n_a: np.ndarray,
    n_b: np.ndarray,
    alpha: float | np.ndarray = 0.05,
) -> np.ndarray:
    """How probably the pooled z-test finds a true ``difference`` between two rates: (...), in [0,
    1]; NaN where n is 0.

    Normal approximation (statsmodels' `power_proportions_2indep`), for rates ``difference`` apart
    around ``rate``, or beside it where that would leave [0, 1].

    >>> two_proportion_power(np.array(0.3), 0.1, np.array(300), np.array(300)).round(3).item()
    0.763
    """
    low = np.clip(rate - difference / 2, 0, 1 - difference)
    high = low + difference
    middle = divide_or_undefined(low * n_a + high * n_b, n_a + n_b)
    null = np.sqrt(
        middle * (1 - middle) * (divide_or_undefined(1, n_a) + divide_or_undefined(1, n_b))
    )
    true = np.sqrt(
        divide_or_undefined(low * (1 - low), n_a) + divide_or_undefined(high * (1 - high), n_b)
    )
    critical = -scipy.special.ndtri(alpha / 2) * null
    above, below = (divide_or_undefined(sign * difference - critical, true) for sign in (1, -1))
    return scipy.special.ndtr(above) + scipy.special.ndtr(below)


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
    # Hypergeometric; scipy.stats has it, too, and takes a second to import.
    errors, other = first + second, n_first + n_second - first - second
    log_ways = _log_choose(errors, possible) + _log_choose(other, n_first - possible)
    probability = np.exp(log_ways - _log_choose(n_first + n_second, n_first))
    seen = np.take_along_axis(probability, first, axis=1)
    p = np.where(probability <= seen * (1 + 1e-7), probability, 0.0).sum(1)
    return np.minimum(p, 1.0)[place.reshape(-1)]


def _log_choose(n: np.ndarray, k: np.ndarray) -> np.ndarray:
    """log of n over k; -inf where k is below 0 or above n."""
    return (
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(k + 1)
        - scipy.special.gammaln(n - k + 1)
    )


def pair_p_values(proportions: ClusteredProportions, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """p-values of equal proportions, of pairs of the S proportions of one group: (k,).

    a, b: int (k,), the places of both of each pair.

    The pooled two-proportion test on effective numbers of units, against Student's t. What shared
    clusters do to both proportions alike is not made use of. Where either has few units of a kind,
    Fisher's exact test of the effective numbers, if that is less significant. 1 where a proportion
    is undefined or of one cluster.

    >>> from factaudit.stats.clustered_proportions import (
    ...     ClusterCounts,
    ...     estimate_clustered_proportions,
    ... )
    >>> hits = np.array([[3, 1], [2, 0]])  # of two systems, in each cluster of 10 claims a system
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([15, 15]), hits, n_groups=1)
    >>> found = estimate_clustered_proportions(counts, hits, np.full((2, 2), 10))
    >>> pair_p_values(found, *np.triu_indices(2, 1)).round(4).tolist()
    [0.0]
    """
    n, rate, clusters = proportions.effective_n[0], proportions.point[0], proportions.n_clusters[0]
    pooled, t = _pooled_t(rate[a], n[a], rate[b], n[b])
    p = 2 * scipy.special.stdtr(np.maximum(np.minimum(clusters[a], clusters[b]) - 1, 1), -t)
    few = np.minimum(pooled, 1 - pooled) * np.minimum(n[a], n[b]) < FEWEST_EXPECTED_FOR_T_TEST
    few = np.flatnonzero(few & ~np.isnan(p))
    numbers = []
    for one in (a[few], b[few]):
        # Whole, but not below what only rounding makes less: 149.999... independent claims are 150.
        size = np.maximum(1, np.floor(n[one] + 1e-6).astype(np.int64))
        numbers += [np.rint(size * rate[one]).astype(np.int64), size]
    p[few] = np.maximum(p[few], fisher_exact_p(*numbers))
    return np.where(np.isnan(p), 1.0, p)


def _pooled_t(
    rate_a: np.ndarray, n_a: np.ndarray, rate_b: np.ndarray, n_b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pooled rate, and the distance of two rates in pooled standard errors: 0 where equal, NaN
    where an n is 0."""
    pooled = divide_or_undefined(n_a * rate_a + n_b * rate_b, n_a + n_b)
    variance = pooled * (1 - pooled) * (divide_or_undefined(1, n_a) + divide_or_undefined(1, n_b))
    distance = np.abs(rate_a - rate_b)
    return pooled, np.where(distance == 0, 0.0, divide_or_undefined(distance, np.sqrt(variance)))
