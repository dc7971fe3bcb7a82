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
    whole = rows.dtype.kind in "iu" and len(rows) > 0
    least = rows.min(0).tolist() if whole else [0] * rows.shape[1]
    most = rows.max(0).tolist() if whole else [_LARGEST] * rows.shape[1]
    for column, below, above in zip(rows.T, least, most, strict=True):
        width = above - below + 1
        if size * width >= _LARGEST:  # ranks in the place of codes: they sort alike
            (codes, size), (column, width), below = _ranks(codes), _ranks(column), 0
        codes *= width
        codes += column
        codes -= below
        size *= width
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    return rows[first], np.bincount(place, times, len(first)).astype(np.int64)


def tally(clusters: np.ndarray, codes: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct clusters, as counts of codes (U, size), and how often each occurs (U,).

    ``clusters`` and ``codes``: int (n,), of each member its cluster and its code 0..size-1.
    """
    names, found = dense(clusters)
    if len(names) == len(clusters):  # each member is its own cluster: a kind is a code
        times = np.bincount(codes, minlength=size)
        return np.eye(size, dtype=np.int64)[times > 0], times[times > 0]
    return distinct(np.bincount(found * size + codes, minlength=len(names) * size).reshape(-1, size))


def dense(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ones of whole numbers (n,), ascending, and the place of each of the n among them."""
    least, most = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
    if most - least > 4 * len(codes):
        places, found = pd.factorize(codes, sort=True)
        return found, places
    # Numbers that lie close are looked up in a table, which is much faster than by a hash.
    there = np.zeros(most - least + 1, dtype=bool)
    there[codes - least] = True
    return np.flatnonzero(there) + least, (np.cumsum(there) - 1)[codes - least]


def _ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    found, place = np.unique(values, return_inverse=True)
    return place, len(found)
