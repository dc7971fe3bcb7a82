"""Statistics of arrays, usable alone: nothing here knows claims, evaluators or rows. One file for
each method.

Arguments and results are numpy arrays; docstrings give their shapes: n units, C clusters, k rows of
counts, G groups, S systems, B or b replicates. A figure that is undefined is NaN.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def none_if_undefined(value: Any) -> float | None:
    """A figure as a Python float, None where it is NaN (undefined).

    >>> none_if_undefined(np.float64(0.5)), none_if_undefined(np.nan)
    (0.5, None)
    """
    value = float(value)
    return None if np.isnan(value) else value


def name_ends(
    key: str, ends: Iterable[Any], names: Iterable[str] = ("low", "high")
) -> dict[str, float | None]:
    """The two ends of a figure's interval by name, None where undefined; or its bounds, by other
    names.

    >>> name_ends("bias", (-0.5, np.nan))
    {'bias_low': -0.5, 'bias_high': None}
    """
    return {f"{key}_{name}": none_if_undefined(end) for name, end in zip(names, ends, strict=True)}


def name_figure(key: str, point: Any, ends: Iterable[Any] | None = None) -> dict[str, float | None]:
    """A figure and the two ends of its interval by name, None where undefined. ends: None if no
    intervals are wanted.

    >>> name_figure("bias", 0.25, (0.125, np.nan))
    {'bias': 0.25, 'bias_low': 0.125, 'bias_high': None}
    """
    named = {key: none_if_undefined(point)}
    return named if ends is None else named | name_ends(key, ends)


def divide_or_undefined(numerator: ArrayLike, denominator: ArrayLike) -> np.ndarray:
    """``numerator / denominator`` elementwise, NaN where the denominator is 0 or NaN.

    >>> divide_or_undefined([1, 1], [2, 0]).tolist()
    [0.5, nan]
    """
    below = np.asarray(denominator)
    return np.asarray(np.divide(numerator, np.where(below == 0, np.nan, below)))


@contextmanager
def use_one_blas_thread() -> Iterator[None]:
    """Let numpy's and scipy's linear algebra use one thread, also as a decorator.

    Products of draws and counts are too small for more: a second thread mostly waits, busily, which
    takes as much CPU again; where another program has its core, all wait for it. Figures are the
    same.
    """
    # A library comes with the first module that needs it: while none is new, those that were found
    # are all there are.
    with _find_thread_pools(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _find_thread_pools(n_modules: int) -> ThreadpoolController:
    """The libraries that are loaded; to look them up takes longer than most audits of a small
    table."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
