"""Random numbers that several figures use again, held in memory up to a bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

#: So many bytes in all.
_MOST_CACHED_BYTES = 1 << 28
_cached_arrays: dict[Hashable, np.ndarray] = {}


def can_cache_random_numbers(n_bytes: int) -> bool:
    """Whether an array of ``n_bytes`` is cached at all: at most a quarter of the whole bound of 256 MB.

    >>> can_cache_random_numbers(1 << 20), can_cache_random_numbers(1 << 30)
    (True, False)
    """
    return n_bytes <= _MOST_CACHED_BYTES // 4


def cache_random_numbers(key: Hashable, draw: Callable[[], np.ndarray], least_length: int = 0) -> np.ndarray:
    """The array that ``draw`` gives, drawn once for each key, and again where fewer than ``least_length`` are held.

    The oldest arrays go first where the bound is reached.

    >>> key = ("example", 0)
    >>> first = cache_random_numbers(key, lambda: np.random.default_rng(0).random(3))
    >>> first is cache_random_numbers(key, lambda: np.random.default_rng(0).random(3))
    True
    """
    if (found := _cached_arrays.get(key)) is not None and len(found) >= least_length:
        return found
    _cached_arrays.pop(key, None)
    made = draw()
    if can_cache_random_numbers(made.nbytes):
        while (
            _cached_arrays and sum(each.nbytes for each in _cached_arrays.values()) + made.nbytes > _MOST_CACHED_BYTES
        ):
            del _cached_arrays[next(iter(_cached_arrays))]
        _cached_arrays[key] = made
    return made
