"""Does what one system's labels say of an evaluator hold for the others? The condition of every correction.

A correction by one system's TPR and TNR supposes that the evaluator has the same TPR and TNR on all systems. The test
of that is worth as much as its power: with few labels it never rejects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, fdtrc, gammaln, xlogy

from factaudit.audit.core.shares import Shares

#: A difference counts as one that the test would have shown where it shows it this often.
POWER = 0.8


def shifted_chi2(value: float, freedom: float, shift: float) -> float:
    """P(X > value) of a noncentral χ², which is a Poisson mixture of central ones.

    As `scipy.stats.ncx2.sf` to 12 digits; importing `scipy.stats` takes longer than most runs compute.
    """
    if shift > 1e6 and value < shift / 2:
        return 1.0
    mean = shift / 2
    terms = np.arange(int(mean + 12 * np.sqrt(mean) + 40))
    weights = np.exp(xlogy(terms, mean) - mean - gammaln(terms + 1))
    return min(1.0, float(weights @ chdtrc(freedom + 2 * terms, value)))


@dataclass(frozen=True)
class Homogeneity:
    """The test that S systems share one rate.

    p: its p-value. missable: the largest difference of one system from the others that it would have missed more than
    once in five times, whichever system it is. spread: the observed largest difference between two systems.
    """

    p: float
    missable: float
    spread: float
    _scale: float
    _freedom: float
    _information: np.ndarray
    _alpha: float

    def power(self, difference: float) -> float:
        """How probably the test finds that one system is ``difference`` off the others, for the worst one to see."""
        shift = difference**2 * self._information.min() / self._scale
        return shifted_chi2(float(chdtri(self._freedom, self._alpha)), self._freedom, shift)


def homogeneity(shares: Shares, group: int, alpha: float = 0.05) -> Homogeneity | None:
    """Test whether the shares of one group (of S systems, a column each) are equal; None where fewer than two have one.

    Pearson's X² with effective numbers of claims, its distribution corrected for what documents shared by systems do to
    it (Rao & Scott 1984, second order), against F for the clusters that the variances come from.
    """
    from scipy.optimize import brentq  # slow to import: only where something is computed

    effective = shares.effective_n[group]
    used = np.flatnonzero(~np.isnan(effective) & ~np.isnan(shares.point[group]))
    if len(used) < 2:
        return None
    n, point = effective[used], shares.point[group, used]
    pooled = float((n * point).sum() / n.sum())
    # Where no claim is (or all are) judged wrongly, one more of either keeps a variance.
    pooled = float(np.clip(pooled, 0.5 / (n.sum() + 1), 1 - 0.5 / (n.sum() + 1)))
    weight = (np.diag(n) - np.outer(n, n) / n.sum()) / (pooled * (1 - pooled))
    deviation = np.sqrt(pooled * (1 - pooled) / n)
    covariance = shares.correlation[group][np.ix_(used, used)] * np.outer(deviation, deviation)
    product = weight @ covariance
    first, second = float(np.trace(product)), float(np.trace(product @ product))
    scale, freedom = second / first, first * first / second
    statistic = max(0.0, float(point @ weight @ point) / scale)
    clusters = float(shares.n_clusters[group, used].max())
    information = np.diag(weight)
    critical = float(chdtri(freedom, alpha))
    needed = brentq(lambda shift: shifted_chi2(critical, freedom, shift) - POWER, 1e-6, 1e3)
    return Homogeneity(
        p=float(fdtrc(freedom, max(clusters - 1, 1), statistic / freedom)),
        missable=float(min(1.0, np.sqrt(needed * scale / information.min()))),
        spread=float(np.ptp(point)),
        _scale=scale,
        _freedom=freedom,
        _information=information,
        _alpha=alpha,
    )
