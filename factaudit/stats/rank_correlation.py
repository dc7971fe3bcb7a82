"""Kendall's τ and Pearson's r of the rates of several systems, and their intervals."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import IntervalEnds
from factaudit.stats.undefined_values import divide_or_undefined

#: Below so many systems a correlation says nothing (VC §3.5 uses six).
MIN_CORRELATED_SYSTEMS = 3


def kendall_tau_interval(replicates_x: np.ndarray, replicates_y: np.ndarray, confidence: float) -> tuple[float, float]:
    """The interval of Kendall's tau-a between two rates of S systems: what the orders that the data leave open allow.

    replicates_x, replicates_y: (B, S) bootstrap replicates of both rates. A pair's order is open in a rate where its
    interval (of this confidence) holds no difference. Pairs that are open in either rate may be concordant or not, so
    the interval is conservative where few pairs are settled. The percentiles of tau over replicates would not do: they
    hold the true tau in 2 to 99 % of simulations, since noise pulls tau towards 0 and the bootstrap adds noise again.

    >>> x = np.array([[0.1, 0.2, 0.4], [0.22, 0.21, 0.43], [0.08, 0.19, 0.38]])
    >>> y = np.tile([0.1, 0.2, 0.3], (3, 1))  # x leaves the order of the first two systems open
    >>> low, high = kendall_tau_interval(x, y, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.333, 1.0)
    """
    tail = (1 - confidence) / 2
    product = _significant_pair_orders(replicates_x, tail) * _significant_pair_orders(replicates_y, tail)
    settled, left, pairs = product.sum(), (product == 0).sum(), len(product)
    return float((settled - left) / pairs), float((settled + left) / pairs)


def _significant_pair_orders(replicates: np.ndarray, tail: float) -> np.ndarray:
    """Of each two systems a < b, from (B, S) replicates: 1 where a's rate is above b's for sure, -1 below, 0 open."""
    rates, n = np.ascontiguousarray(replicates.T), len(replicates)
    # System by system: the differences of all pairs at once would be hundreds of times as many numbers.
    above, below = (
        np.concatenate([np.count_nonzero(compare(one, rates[at + 1 :]), axis=1) for at, one in enumerate(rates)]) / n
        for compare in (np.greater, np.less)
    )
    return (1 - above < tail).astype(int) - (1 - below < tail)


def fisher_z_interval(r: np.ndarray, n: np.ndarray, confidence: float) -> IntervalEnds:
    """Fisher's z interval of Pearson's r over n systems, elementwise: (...) each; NaN below four systems, and where |r|
    is 1.

    >>> low, high = fisher_z_interval(np.array(0.8), np.array(10), 0.95)
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.343, 0.951)
    """
    usable = (n > 3) & (np.abs(r) < 1)
    half = scipy.special.ndtri(0.5 + confidence / 2) / np.sqrt(np.where(usable, n - 3, np.nan))
    z = np.arctanh(np.where(usable, r, np.nan))
    return np.tanh(z - half), np.tanh(z + half)


def kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b along the last axis: (..., S) -> (...); NaN where x or y is constant.

    As `scipy.stats.kendalltau`, for many rows at once: 2,000 replicates of 10 systems in 2 ms, not in 400.

    >>> kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])).round(3).item()
    0.667
    """
    a, b = np.triu_indices(x.shape[-1], 1)
    first, second = np.sign(x[..., a] - x[..., b]), np.sign(y[..., a] - y[..., b])
    return divide_or_undefined((first * second).sum(-1), np.sqrt(np.abs(first).sum(-1) * np.abs(second).sum(-1)))
