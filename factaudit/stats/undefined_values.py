"""Undefined figures: NaN in arrays, None in what people and JSON read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike


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


def divide_or_undefined(numerator: ArrayLike, denominator: ArrayLike) -> np.ndarray:
    """``numerator / denominator`` elementwise, NaN where the denominator is 0 or NaN.

    >>> divide_or_undefined([1, 1], [2, 0]).tolist()
    [0.5, nan]
    """
    below = np.asarray(denominator)
    return np.asarray(np.divide(numerator, np.where(below == 0, np.nan, below)))
