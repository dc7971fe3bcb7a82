"""Kendall's τ of the rates of several systems, and the interval of their Pearson's r."""

from __future__ import annotations

import numpy as np
import scipy

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
    """Kendall's tau-b of two rates of S systems: (S,) each; NaN where x or y is constant.

    As `scipy.stats.kendalltau`, without the second that its import takes.

    >>> round(kendall_tau(np.array([1, 2, 3, 4]), np.array([1, 2, 4, 3])), 3)
    0.667
    """
    a, b = np.triu_indices(len(x), 1)
    first, second = np.sign(x[a] - x[b]), np.sign(y[a] - y[b])
    n_untied = np.abs(first).sum() * np.abs(second).sum()
    return float((first * second).sum() / np.sqrt(n_untied)) if n_untied > 0 else np.nan
