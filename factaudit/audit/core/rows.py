"""What an audit gives: a list of flat rows. A figure in a row is a plain number, or None with a reason; never NaN."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Row = dict[str, Any]

#: Stands for "not split by this column" where a row is over all datasets or all systems.
ALL = "__all__"
#: The dataset of a row that is the unweighted mean over datasets.
MACRO = "__macro__"


def number(value: Any) -> float | None:
    """A figure as a Python float; None where it is NaN (undefined)."""
    value = float(value)
    return None if np.isnan(value) else value


def numbers(values: np.ndarray) -> list[Any]:
    """Figures as nested lists of Python floats, None where one is NaN."""
    found = values.astype(object)
    found[np.isnan(values)] = None
    listed: list[Any] = found.tolist()
    return listed


def ratio(numerator: ArrayLike, denominator: ArrayLike) -> np.ndarray:
    """``numerator / denominator`` elementwise, NaN where the denominator is 0."""
    below = np.asarray(denominator)
    out = np.full(np.broadcast_shapes(np.shape(numerator), below.shape), np.nan)
    return np.divide(numerator, below, out=out, where=(below != 0) & ~np.isnan(below))


def without_interval(row: Row) -> str:
    """Says which figures of a row are defined and yet have no interval; "" where there are none."""
    keys = [key.removesuffix("_low") for key, value in row.items() if key.endswith("_low") and value is None]
    lacking = [key for key in keys if row.get(key) is not None]
    return f"no interval for {', '.join(lacking)}: too few clusters to resample" if lacking else ""


def reasons(parts: Iterable[str]) -> str | None:
    """Several reasons as one text; None where there is none."""
    return "; ".join(dict.fromkeys(filter(None, parts))) or None


def is_total(value: Any) -> bool:
    """Whether a key's value stands for several others."""
    return value in (ALL, MACRO)


def repeats(row: Row) -> bool:
    """Whether a row is the mean over a single dataset, which has a row of its own."""
    return row.get("dataset") == MACRO and row.get("n_datasets") == 1
