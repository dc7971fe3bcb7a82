"""Equal rows of counts collapsed to one row with the number of times that it occurs, in an order of their own.

A million clusters of claims are some thousands of kinds. Their order follows from the counts alone, so that sums over
kinds are the same to the last bit whoever counted, and in whatever order.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Codes below this stay exact as int64.
_LARGEST = 1 << 62


def distinct(rows: np.ndarray, times: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of numbers (C, K), sorted, and how often each occurs.

    times: int (C,), how often each of the given rows occurs; None: once.
    """
    codes, size = np.zeros(len(rows), dtype=np.int64), 1
    for column in rows.T:
        if not len(column):
            break
        whole = column.dtype.kind in "iu"
        least, width = (int(column.min()), int(np.ptp(column)) + 1) if whole else (0, _LARGEST)
        if size * width >= _LARGEST:  # ranks in the place of codes: they sort alike
            (codes, size), (column, width), least = _ranks(codes), _ranks(column), 0
        codes, size = codes * width + (column - least), size * width
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return rows[first], np.bincount(place, times, len(first)).astype(np.int64)


def tally(clusters: np.ndarray, codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct clusters, as counts of codes (U, size), and how often each occurs (U,).

    ``clusters`` and ``codes``: int (n,), of each member its cluster and its code 0..size-1.
    """
    found, names = pd.factorize(clusters)
    if len(names) == len(clusters):  # each member is its own cluster: a kind is a code
        times = np.bincount(codes, minlength=size)
        return np.eye(size, dtype=np.int64)[times > 0], times[times > 0]
    return distinct(np.bincount(found * size + codes, minlength=len(names) * size).reshape(-1, size))


def _ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    found, place = np.unique(values, return_inverse=True)
    return place, len(found)
