"""The Rao-Scott homogeneity test: do several systems share one rate? With the difference that it would have missed.

A correction by one system's rates supposes that all systems share them. A test of that is worth as much as its power:
with few labels it never rejects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import ClusteredProportions

#: A difference counts as one that the test would have shown where it shows it this often.
HOMOGENEITY_POWER = 0.8


def noncentral_chi2_tail(value: float, degrees_of_freedom: float, noncentrality: float) -> float:
    """P(X > value) of a noncentral chi-squared: `scipy.special.chndtr`, which imports no `scipy.stats`.

    >>> round(noncentral_chi2_tail(3.84, 1, 7.85), 3)
    0.8
    """
    return float(1 - scipy.special.chndtr(value, degrees_of_freedom, noncentrality))


@dataclass(frozen=True)
class HomogeneityTest:
    """The test that S systems share one rate.

    p: its p-value. missable_difference: the largest difference of one system from the others that it would have missed
    more than once in five times, whichever system it is. spread: the largest observed difference between two systems.
    """

    p: float
    missable_difference: float
    spread: float
    _scale: float
    _freedom: float
    _information: np.ndarray
    _alpha: float

    def power(self, difference: float) -> float:
        """How probably the test finds one system that is ``difference`` off the others, if it is the hardest to see."""
        shift = difference**2 * self._information.min() / self._scale
        return noncentral_chi2_tail(float(scipy.special.chdtri(self._freedom, self._alpha)), self._freedom, shift)


def rao_scott_homogeneity_test(
    proportions: ClusteredProportions, group: int, alpha: float = 0.05
) -> HomogeneityTest | None:
    """Test whether the S proportions (columns) of one group are equal.

    None where fewer than two are defined, and where all err alike in every cluster: nothing says then how their
    difference varies.

    Pearson's X² with effective numbers of units, its distribution corrected for what clusters shared by systems do to
    it (Rao & Scott 1984, second order), against F for the clusters that the variances come from.

    >>> from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
    >>> hits = np.array([[8, 7], [10, 5]])  # of two systems, in each cluster of 10 claims a system
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([15, 15]), hits, n_groups=1)
    >>> test = rao_scott_homogeneity_test(estimate_clustered_proportions(counts, hits, np.full((2, 2), 10)), group=0)
    >>> test.p < 0.001, round(test.spread, 3), round(test.missable_difference, 3)
    (True, 0.3, 0.15)
    """
    from scipy.optimize import brentq  # slow to import: only where something is computed

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
    information = np.diag(weight)
    critical = float(scipy.special.chdtri(freedom, alpha))
    needed = brentq(lambda shift: noncentral_chi2_tail(critical, freedom, shift) - HOMOGENEITY_POWER, 1e-6, 1e3)
    return HomogeneityTest(
        p=float(scipy.special.fdtrc(freedom, max(clusters - 1, 1), statistic / freedom)),
        missable_difference=float(min(1.0, np.sqrt(needed * scale / information.min()))),
        spread=float(np.ptp(point)),
        _scale=scale,
        _freedom=freedom,
        _information=information,
        _alpha=alpha,
    )
