"""The Rao-Scott homogeneity test: do several systems share one rate? With the difference that it would have missed.

A correction by one system's rates supposes that all systems share them. A test of that is worth as much as its power:
with few labels it never rejects.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import ClusteredProportions

#: A difference counts as one that the test would have shown where it shows it this often.
HOMOGENEITY_POWER = 0.8
#: Where fewer hits or misses than this are expected of a system, X² is not chi-squared (Cochran 1954).
_FEWEST_EXPECTED = 5
#: Draws of an exact p-value: more of them only where the first leave it small.
_PERMUTATIONS = (1_999, 99_999)
#: So many points stand for the distribution of what the other systems add to X².
_NODES = 64


@dataclass(frozen=True)
class HomogeneityTest:
    """The test that S systems share one rate.

    p: its p-value. missable_difference: the largest difference of one system from the others that it would have missed
    more than once in five times, whichever system it is; 1 where it misses any. spread: the largest observed difference
    between two systems.
    """

    p: float
    spread: float
    _scale: float
    _freedom: float
    _n: np.ndarray
    _pooled: float
    _alpha: float

    def power(self, difference: float) -> float:
        """How probably the test finds one system that is ``difference`` off the others, if it is the hardest to see.

        The others have the rate of all systems together, and the one is off towards 50 %, where rates vary most. Its
        own rate makes its variance: of rates near 100 % that of the others is next to nothing.
        """
        n, others, p = self._n, self._n.sum() - self._n, self._pooled
        own = float(np.clip(p + np.copysign(difference, 0.5 - p), 0, 1))
        mean = (n * own + others * p) / n.sum()
        among_all = mean * (1 - mean)  # the variance that X² supposes
        assumed = among_all * (1 / n + 1 / others) * self._scale
        actual = (own * (1 - own) / n + p * (1 - p) / others) * self._scale
        critical, middles = scipy.special.chdtri(self._freedom, self._alpha), (np.arange(_NODES) + 0.5) / _NODES
        rest = scipy.special.chdtri(self._freedom - 1, middles) if self._freedom > 1 else np.zeros(1)
        needed = np.sqrt(assumed[:, None] * np.maximum(critical - rest * (p * (1 - p) / among_all)[:, None], 0))
        deviation, off = np.sqrt(actual)[:, None], abs(own - p)
        found = scipy.special.ndtr((off - needed) / deviation) + scipy.special.ndtr((-off - needed) / deviation)
        return float(found.mean(1).min())

    @cached_property
    def missable_difference(self) -> float:
        from scipy.optimize import brentq  # slow to import: only where something is computed

        most = max(self._pooled, 1 - self._pooled)
        if self.power(most) < HOMOGENEITY_POWER:
            return 1.0
        return float(brentq(lambda difference: self.power(difference) - HOMOGENEITY_POWER, 0.0, most))


def permutation_homogeneity_p(hits: np.ndarray, n: np.ndarray) -> float:
    """The p-value of Pearson's X² of equal rates of S systems, by chance draws of which units are the hits.

    hits, n: whole (S,). Of how few units a system is, the p-value is right; clusters are not in it.

    >>> round(permutation_homogeneity_p(np.array([15, 4, 30, 1]), np.array([15, 4, 30, 2])), 2)  # 2 in 51
    0.04
    """
    order = np.argsort(n, kind="stable")  # whatever the systems are called, the draws are the same
    hits, n, total = hits[order], n[order], n.sum()
    share = hits.sum() / total
    observed = ((hits - n * share) ** 2 / n).sum()
    p = 1.0
    for draws in _PERMUTATIONS:
        drawn = np.random.default_rng(0).multivariate_hypergeometric(n, int(hits.sum()), size=draws)
        p = (1 + int((((drawn - n * share) ** 2 / n).sum(1) >= observed * (1 - 1e-9)).sum())) / (1 + draws)
        if p > 0.1:
            break
    return p


def rao_scott_homogeneity_test(
    proportions: ClusteredProportions, group: int, alpha: float = 0.05
) -> HomogeneityTest | None:
    """Test whether the S proportions (columns) of one group are equal.

    None where fewer than two are defined, and where all err alike in every cluster: nothing says then how their
    difference varies.

    Pearson's X² with effective numbers of units, its distribution corrected for what clusters shared by systems do to
    it (Rao & Scott 1984, second order), against F for the clusters that the variances come from. Where a system is
    expected to have few hits or misses that holds no more: then p is at least that of `permutation_homogeneity_p`.

    >>> from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
    >>> hits = np.array([[8, 7], [10, 5]])  # of two systems, in each cluster of 10 claims a system
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([15, 15]), hits, n_groups=1)
    >>> test = rao_scott_homogeneity_test(estimate_clustered_proportions(counts, hits, np.full((2, 2), 10)), group=0)
    >>> test.p < 0.001, round(test.spread, 3), round(test.missable_difference, 3)
    (True, 0.3, 0.162)
    """
    effective = proportions.effective_n[group]
    used = np.flatnonzero(~np.isnan(effective) & ~np.isnan(proportions.point[group]))
    if len(used) < 2:
        return None
    n, point = effective[used], proportions.point[group, used]
    pooled = float((n * point).sum() / n.sum())
    # Where no claim is (or all are) judged wrongly, one more of either keeps a variance.
    pooled = float(np.clip(pooled, 0.5 / (n.sum() + 1), 1 - 0.5 / (n.sum() + 1)))
    weight = (np.diag(n) - np.outer(n, n) / n.sum()) / (pooled * (1 - pooled))
    deviation = np.sqrt(pooled * (1 - pooled) / n)
    covariance = proportions.correlation[group][np.ix_(used, used)] * np.outer(deviation, deviation)
    product = weight @ covariance
    first, second = float(np.trace(product)), float(np.trace(product @ product))
    if first <= 1e-9:  # the systems err alike in every cluster: nothing says how their difference varies
        return None
    scale, freedom = second / first, first * first / second
    statistic = max(0.0, float(point @ weight @ point) / scale)
    clusters = float(proportions.n_clusters[group, used].max())
    p = float(scipy.special.fdtrc(freedom, max(clusters - 1, 1), statistic / freedom))
    units = proportions.n[group, used]
    if min(pooled, 1 - pooled) * units.min() < _FEWEST_EXPECTED:
        p = max(p, permutation_homogeneity_p(np.rint(units * point).astype(int), units.astype(int)))
    return HomogeneityTest(p, float(np.ptp(point)), scale, freedom, n, pooled, alpha)
