"""The order of systems by their error rates: tests of two proportions, their power, and correlations over systems."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from factaudit.audit.core.rows import ratio
from factaudit.errors import UsageError

Correction = Literal["none", "holm"]


def proportion_test(errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray) -> np.ndarray:
    """Two-sided p-values of the pooled two-proportion z-test (statsmodels' `proportions_ztest`), elementwise.

    1 where both rates are 0 or both are 1 (there is no difference to test); NaN where an n is 0.
    """
    pooled = ratio(errors_a + errors_b, n_a + n_b)
    variance = pooled * (1 - pooled) * (ratio(1, n_a) + ratio(1, n_b))
    difference = np.abs(ratio(errors_a, n_a) - ratio(errors_b, n_b))
    z = np.where(difference == 0, 0.0, ratio(difference, np.sqrt(variance)))
    return np.where(np.isnan(difference), np.nan, 2 * ndtr(-z))


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values along the last axis (Holm 1979)."""
    order = np.argsort(p, axis=-1, kind="stable")
    factors = np.arange(p.shape[-1], 0, -1)
    adjusted = np.minimum(np.maximum.accumulate(np.take_along_axis(p, order, -1) * factors, axis=-1), 1)
    out = np.empty_like(p)
    np.put_along_axis(out, order, adjusted, -1)
    return out


def power(rate: np.ndarray, difference: float, n_a: np.ndarray, n_b: np.ndarray, alpha: float = 0.05) -> np.ndarray:
    """How probably the two-sided pooled z-test finds a true ``difference`` between two error rates.

    Normal approximation (statsmodels' `power_proportions_2indep`), for rates ``difference`` apart around ``rate``, or
    beside it where that would leave [0, 1]. NaN where an n is 0.
    """
    low = np.clip(rate - difference / 2, 0, 1 - difference)
    high = low + difference
    middle = ratio(low * n_a + high * n_b, n_a + n_b)
    null = np.sqrt(middle * (1 - middle) * (ratio(1, n_a) + ratio(1, n_b)))
    true = np.sqrt(ratio(low * (1 - low), n_a) + ratio(high * (1 - high), n_b))
    critical = ndtri(1 - alpha / 2) * null
    return ndtr(ratio(difference - critical, true)) + ndtr(ratio(-difference - critical, true))


def kendall_tau(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Kendall's tau-b along the last axis (scipy's `kendalltau`); NaN where x or y is constant."""
    a, b = np.triu_indices(x.shape[-1], 1)
    first, second = np.sign(x[..., a] - x[..., b]), np.sign(y[..., a] - y[..., b])
    return ratio((first * second).sum(-1), np.sqrt(np.abs(first).sum(-1) * np.abs(second).sum(-1)))


def pearson_r(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pearson's r along the last axis (scipy's `pearsonr`); NaN where x or y is constant."""
    if x.shape[-1] < 2:
        return np.full(x.shape[:-1], np.nan)
    first, second = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    # Asked of the values: the deviations of equal ones from their rounded mean need not be 0.
    varies = (np.ptp(x, axis=-1) > 0) & (np.ptp(y, axis=-1) > 0)
    scale = np.sqrt((first**2).sum(-1) * (second**2).sum(-1))
    return np.clip(ratio((first * second).sum(-1), np.where(varies, scale, 0)), -1, 1)


def compare(counts: np.ndarray, alpha: float = 0.05, correction: Correction = "none") -> dict[str, np.ndarray]:
    """p_labelled, p_predicted, labelled_order and predicted_order (-1, 0, 1; NaN where undefined) of all pairs.

    counts: (..., S, 3, 3) per system, as in `factaudit.audit.core.counts`. Gives (..., S (S - 1) / 2), pairs a < b.
    """
    n, labelled, predicted = errors_of(counts)
    found = {}
    for kind, errors in (("labelled", labelled), ("predicted", predicted)):
        found[f"p_{kind}"], found[f"{kind}_order"] = orders(errors, n, alpha, correction)
    return found


def orders(
    errors: np.ndarray, n: np.ndarray, alpha: float = 0.05, correction: Correction = "none"
) -> tuple[np.ndarray, np.ndarray]:
    """p-values and orders (-1: a has the lower error rate, 0: no significant difference, 1) of all pairs a < b.

    errors, n: (..., S) numbers of errors and of claims per system. Raises `UsageError` for an unknown correction.
    """
    if correction not in ("none", "holm"):
        raise UsageError(f"ranking: expected correction none or holm, found {correction!r}")
    a, b = np.triu_indices(n.shape[-1], 1)
    p = proportion_test(errors[..., a], n[..., a], errors[..., b], n[..., b])
    if correction == "holm":
        p = holm(p)
    rates = ratio(errors, n)
    order = np.where(p < alpha, np.sign(rates[..., a] - rates[..., b]), 0.0)
    return p, np.where(np.isnan(p), np.nan, order)


def errors_of(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(..., S) numbers of labelled and scored claims, of labelled and of predicted errors among them."""
    both = counts[..., :2, :2]
    return both.sum((-1, -2)), both[..., 0, :].sum(-1), both[..., 0].sum(-1)
