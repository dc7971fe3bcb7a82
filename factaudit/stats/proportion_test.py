"""The pooled two-proportion z-test: its p-values, its power, and how probably one rate is above another."""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.undefined_values import divide_or_undefined


def two_proportion_z_test(errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray) -> np.ndarray:
    """Two-sided p-values of the pooled two-proportion z-test, elementwise.

    1 where both rates are 0 or both are 1 (there is no difference to test); NaN where an n is 0. As statsmodels'
    `proportions_ztest`, for arrays of pairs.

    >>> two_proportion_z_test(np.array(30), np.array(100), np.array(45), np.array(100)).round(4).item()
    0.0285
    """
    z = _pooled_proportion_z(errors_a, n_a, errors_b, n_b)
    return 2 * scipy.special.ndtr(-np.abs(z))


def fisher_exact_p(errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray) -> np.ndarray:
    """Two-sided p-values of Fisher's exact test of two proportions, as scipy's `fisher_exact`: int (k,) each, to (k,).

    >>> fisher_exact_p(*np.array([[6, 3], [6, 9], [1, 3], [7, 9]])).round(4).tolist()
    [0.0047, 1.0]
    """
    # Many pairs have the same numbers: each is computed once.
    numbers, place = np.unique(np.stack([errors_a, n_a, errors_b, n_b], axis=1), axis=0, return_inverse=True)
    first, n_first, second, n_second = numbers.T[:, :, None]
    total, errors = n_first + n_second, first + second
    least, most = np.maximum(0, errors - n_second), np.minimum(errors, n_first)
    drawn = least + np.arange(int((most - least).max(initial=0)) + 1)
    possible = drawn <= most
    drawn = np.minimum(drawn, most)

    def log_ways(n: np.ndarray, k: np.ndarray) -> np.ndarray:
        found: np.ndarray = (
            scipy.special.gammaln(n + 1) - scipy.special.gammaln(k + 1) - scipy.special.gammaln(n - k + 1)
        )
        return found

    probability = np.exp(log_ways(n_first, drawn) + log_ways(n_second, errors - drawn) - log_ways(total, errors))
    seen = np.take_along_axis(probability, first - least, axis=1)
    p = np.minimum(np.where(possible & (probability <= seen * (1 + 1e-7)), probability, 0.0).sum(1), 1.0)
    return np.asarray(p[place.reshape(-1)])


def two_proportion_power(
    rate: np.ndarray, difference: float | np.ndarray, n_a: np.ndarray, n_b: np.ndarray, alpha: float | np.ndarray = 0.05
) -> np.ndarray:
    """How probably the two-sided pooled z-test finds a true ``difference`` between two rates: (...), in [0, 1].

    Normal approximation (statsmodels' `power_proportions_2indep`), for rates ``difference`` apart around ``rate``, or
    beside it where that would leave [0, 1]. NaN where an n is 0.

    >>> two_proportion_power(np.array(0.3), 0.1, np.array(300), np.array(300)).round(3).item()
    0.763
    """
    low = np.clip(rate - difference / 2, 0, 1 - difference)
    high = low + difference
    middle = divide_or_undefined(low * n_a + high * n_b, n_a + n_b)
    null = np.sqrt(middle * (1 - middle) * (divide_or_undefined(1, n_a) + divide_or_undefined(1, n_b)))
    true = np.sqrt(divide_or_undefined(low * (1 - low), n_a) + divide_or_undefined(high * (1 - high), n_b))
    critical = -scipy.special.ndtri(alpha / 2) * null
    return scipy.special.ndtr(divide_or_undefined(difference - critical, true)) + scipy.special.ndtr(
        divide_or_undefined(-difference - critical, true)
    )


def _pooled_proportion_z(errors_a: np.ndarray, n_a: np.ndarray, errors_b: np.ndarray, n_b: np.ndarray) -> np.ndarray:
    """The difference of two rates in pooled standard errors; 0 where the rates are equal, NaN where an n is 0."""
    pooled = divide_or_undefined(errors_a + errors_b, n_a + n_b)
    variance = pooled * (1 - pooled) * (divide_or_undefined(1, n_a) + divide_or_undefined(1, n_b))
    difference = divide_or_undefined(errors_a, n_a) - divide_or_undefined(errors_b, n_b)
    return np.where(difference == 0, 0.0, divide_or_undefined(difference, np.sqrt(variance)))
