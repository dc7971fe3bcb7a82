"""p-values adjusted for the number of tests, and the p-value that an interval implies."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy

MultiplicityCorrection = Literal["holm", "none"]


def holm_adjusted_p(p_values: np.ndarray) -> np.ndarray:
    """Holm's step-down adjusted p-values along the last axis (Holm 1979).

    The chance of one false rejection or more, whichever hypotheses are true and however the tests
    depend on each other, is at most the level. As statsmodels' `multipletests`, for many rows at
    once and without the second and a half that its import takes.

    >>> holm_adjusted_p(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, axis=-1, kind="stable")
    factors = np.arange(p_values.shape[-1], 0, -1)
    adjusted = np.minimum(
        np.maximum.accumulate(np.take_along_axis(p_values, order, -1) * factors, axis=-1), 1
    )
    out = np.empty_like(p_values)
    np.put_along_axis(out, order, adjusted, -1)
    return out


def select_rejectable_tests(least_p_values: np.ndarray, level: float) -> np.ndarray:
    """Which of many discrete tests to make, by the least p-value that each can have (Tarone 1990);
    booleans.

    The smallest number k such that no more than k tests can have a p-value below ``level`` / k:
    these tests. The choice rests on no outcome, so a correction for their number alone holds the
    level.

    >>> select_rejectable_tests(np.array([0.03, 0.03, 0.03, 0.002]), 0.05).tolist()
    [False, False, False, True]
    """
    can_reject = least_p_values[:, None] < level / np.arange(1, len(least_p_values) + 1)
    fits = can_reject.sum(0) <= np.arange(1, len(least_p_values) + 1)
    return can_reject[:, np.argmax(fits)] if len(fits) else np.zeros(0, dtype=bool)


def p_value_of_interval(
    distance: np.ndarray, half_width: np.ndarray, degrees_of_freedom: np.ndarray, confidence: float
) -> np.ndarray:
    """The two-sided p-value of a limit that lies ``distance`` from a figure, by the figure's own
    interval; elementwise.

    half_width: from the figure to the end of its interval on the limit's side, of which Student's t
    makes a standard error. 1 where the distance is not above 0; NaN without a degree of freedom.

    >>> distance, half_width, df = np.array([0.1, 0.2]), np.array([0.1, 0.1]), np.array([1e6, 1e6])
    >>> p_value_of_interval(distance, half_width, df, 0.95).round(5).tolist()
    [0.05, 9e-05]
    """
    freedom = np.where(degrees_of_freedom > 0, degrees_of_freedom, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = distance / half_width * scipy.special.stdtrit(freedom, 0.5 + confidence / 2)
        p = 2 * scipy.special.stdtr(freedom, -np.abs(t))
    return np.where(distance > 0, p, np.where(np.isnan(freedom), np.nan, 1.0))


def sign_test_p(n_above: np.ndarray, n_below: np.ndarray) -> np.ndarray:
    """The exact two-sided p-value of as many clusters above as below (a sign test, without ties);
    elementwise.

    >>> sign_test_p(np.array([6, 0]), np.array([0, 0])).tolist()
    [0.03125, 1.0]
    """
    n_above, n_below = np.asarray(n_above), np.asarray(n_below)
    return np.minimum(
        2 * scipy.special.bdtr(np.minimum(n_above, n_below), (n_above + n_below).astype(int), 0.5),
        1.0,
    )
