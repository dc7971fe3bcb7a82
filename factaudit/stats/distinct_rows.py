"""Equal rows of whole numbers merged to one, with the number of times that it occurs, in an order
of their own.

A million clusters are some thousand distinct rows of counts. Their order follows from the counts
alone, so that sums over rows are the same to the last bit in whatever order the clusters came.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Codes below this are exact, also as float64.
_LARGEST_CODE = 1 << 53


def count_distinct_rows(
    rows: np.ndarray, times: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of numbers (C, K), sorted, and how often each occurs: (U, K), int64 (U,).

    times: int (C,), how often each of the given rows occurs; None: once. As `numpy.unique` with
    ``axis=0``, many times as fast on whole numbers.

    >>> rows, times = count_distinct_rows(np.array([[1, 2], [0, 2], [1, 2]]))
    >>> rows.tolist(), times.tolist()
    ([[0, 2], [1, 2]], [1, 2])
    """
    distinct, place = rank_distinct_rows(rows)
    return distinct, np.bincount(place, times, len(distinct)).astype(np.int64)


def rank_distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows of numbers (C, K), sorted, and the place of each of the C among them: (U,
    K), int64 (C,).

    >>> distinct, places = rank_distinct_rows(np.array([[1, 2], [0, 2], [1, 2]]))
    >>> distinct.tolist(), places.tolist()
    ([[0, 2], [1, 2]], [1, 0, 1])
    """
    least = rows.min(0, initial=0)
    sizes = (rows.max(0, initial=0) - least + 1).astype(np.float64)
    if rows.dtype.kind not in "iu" or sizes.prod() >= _LARGEST_CODE:
        distinct, place = np.unique(rows, axis=0, return_inverse=True)
        return distinct, place.reshape(-1)
    # A number for each row, which sorts as the rows do: its columns as the digits.
    digit_values = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.int64)
    codes, place = rank_distinct_integers((rows - least) @ digit_values)
    first = np.empty(len(codes), dtype=np.int64)
    first[place[::-1]] = np.arange(len(rows))[::-1]
    return rows[first], place


def rank_distinct_integers(integers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct whole numbers of (n,), ascending, and the place of each of the n among them.

    As `numpy.unique` with ``return_inverse``, many times as fast: by a table where the numbers lie
    close, else by a hash.

    >>> names, places = rank_distinct_integers(np.array([7, 3, 7]))
    >>> names.tolist(), places.tolist()
    ([3, 7], [1, 0, 1])
    """
    least, most = (int(integers.min()), int(integers.max())) if len(integers) else (0, 0)
    if most - least > 4 * len(integers):
        places, found = pd.factorize(integers, sort=True)
        return found, places
    # Numbers that lie close are looked up in a table, which is much faster than by a hash.
    there = np.zeros(most - least + 1, dtype=bool)
    there[integers - least] = True
    return np.flatnonzero(there) + least, (np.cumsum(there) - 1)[integers - least]


def encode_distinct_integer_pairs(
    first: np.ndarray, second: np.ndarray, n_second: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of codes that occur, as ``first * n_second + second`` in ascending order, and each
    row's place among them.

    first, second: int (n,); n_second: the number of codes of ``second``. There are never more pairs
    than rows.

    >>> pairs, places = encode_distinct_integer_pairs(np.array([0, 1, 0]), np.array([2, 0, 2]), 3)
    >>> pairs.tolist(), places.tolist()
    ([2, 3], [0, 1, 0])
    """
    return rank_distinct_integers(first * n_second + second)
