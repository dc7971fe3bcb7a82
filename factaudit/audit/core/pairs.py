"""Orders of systems: how sure a comparison of each pair is, by the labels and by the predictions."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from factaudit.audit.core.rows import ratio
from factaudit.audit.core.shares import Limits

#: Below so many systems a correlation says nothing (VC §3.5 uses six).
MIN_SYSTEMS = 3


def p_worse(errors: np.ndarray, n: np.ndarray) -> np.ndarray:
    """How confidently system a has more errors than b, for all pairs a < b: (..., S) -> (..., S (S - 1) / 2).

    One minus the one-sided p-value of the pooled two-proportion z-test: 0.5 where the rates are equal.
    """
    a, b = np.triu_indices(errors.shape[-1], 1)
    pooled = ratio(errors[..., a] + errors[..., b], n[..., a] + n[..., b])
    deviation = np.sqrt(pooled * (1 - pooled) * (ratio(1, n[..., a]) + ratio(1, n[..., b])))
    difference = ratio(errors[..., a], n[..., a]) - ratio(errors[..., b], n[..., b])
    return ndtr(np.where(difference == 0, 0.0, ratio(difference, deviation)))


def soft_pairwise_accuracy(labelled: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """1 - the mean over pairs of |p_labelled - p_predicted| of `p_worse`, along the last axis.

    Thompson, Mathur, Deutsch & Khayrallah 2024 (WMT): being unsure where the labels are unsure is right, too. What a
    constant evaluator gets is that of ``predicted`` 0.5 everywhere.
    """
    return 1 - np.abs(labelled - predicted).mean(-1)


def tau_limits(drawn_x: np.ndarray, drawn_y: np.ndarray, confidence: float) -> tuple[float, float]:
    """The interval of Kendall's tau-a between two rates of S systems: what the orders that data leave open allow.

    drawn_x, drawn_y: (B, S) bootstrap replicates of both rates. A pair's order is open in a rate where its interval (of
    this confidence) holds no difference. Pairs that are open in either rate may be concordant or not, so the interval
    is conservative where few pairs are. The percentiles of tau over replicates would not do: they hold the true tau in
    2 to 99 %, since noise pulls tau towards 0 and the bootstrap adds noise again.
    """
    a, b = np.triu_indices(drawn_x.shape[-1], 1)
    signs = []
    for drawn in (drawn_x, drawn_y):
        difference = drawn[:, a] - drawn[:, b]
        tail = (1 - confidence) / 2
        above, below = (difference > 0).mean(0), (difference < 0).mean(0)
        signs.append((1 - above < tail).astype(int) - (1 - below < tail))
    product = signs[0] * signs[1]
    settled, left = product.sum(), (product == 0).sum()
    return float((settled - left) / len(a)), float((settled + left) / len(a))


def fisher_limits(r: np.ndarray, n: np.ndarray, confidence: float) -> Limits:
    """Fisher's z interval of Pearson's r over n systems, elementwise; NaN below four systems, and where |r| is 1."""
    usable = (n > 3) & (np.abs(r) < 1)
    half = ndtri(0.5 + confidence / 2) / np.sqrt(np.where(usable, n - 3, np.nan))
    z = np.arctanh(np.where(usable, r, np.nan))
    return np.tanh(z - half), np.tanh(z + half)
