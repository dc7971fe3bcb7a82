"""Is one system's error rate above another's? A test of each two proportions that knows clusters, exact where few."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import ClusteredProportions
from factaudit.stats.proportion_test import fisher_exact_p
from factaudit.stats.undefined_values import divide_or_undefined

#: With fewer errors, or fewer other units, expected of one system, the exact test is asked as well.
FEWEST_EXPECTED_FOR_T_TEST = 5


def clustered_pair_p_values(proportions: ClusteredProportions) -> np.ndarray:
    """Two-sided p-values of equal proportions, of each two a < b of the S proportions of one group: (S (S - 1) / 2,).

    The pooled two-proportion test on effective numbers of units, against Student's t. What shared clusters do to both
    proportions alike is not made use of. Where either has few units of a kind, Fisher's exact test of the effective
    numbers, if that is less significant. 1 where a proportion is undefined or of one cluster.

    >>> from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
    >>> hits = np.array([[3, 1], [2, 0]])  # of two systems, in each cluster of 10 claims a system
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([15, 15]), hits, n_groups=1)
    >>> found = estimate_clustered_proportions(counts, hits, np.full((2, 2), 10))
    >>> clustered_pair_p_values(found).round(4).tolist()
    [0.0]
    """
    a, b = np.triu_indices(proportions.point.shape[1], 1)
    n, rate, clusters = proportions.effective_n[0], proportions.point[0], proportions.n_clusters[0]
    pooled = divide_or_undefined(n[a] * rate[a] + n[b] * rate[b], n[a] + n[b])
    variance = pooled * (1 - pooled) * (divide_or_undefined(1, n[a]) + divide_or_undefined(1, n[b]))
    difference = np.abs(rate[a] - rate[b])
    t = np.where(difference == 0, 0.0, divide_or_undefined(difference, np.sqrt(variance)))
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
