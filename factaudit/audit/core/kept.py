"""Random numbers that many ask for again, kept up to a bound."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

#: So many bytes in all.
_BYTES = 1 << 28
_kept: dict[Hashable, np.ndarray] = {}


def fits(n_bytes: int) -> bool:
    """Whether so much is kept at all: at most a quarter of everything."""
    return n_bytes <= _BYTES // 4


def kept(key: Hashable, make: Callable[[], np.ndarray], length: int = 0) -> np.ndarray:
    """What ``make`` gives, made once for each key and again where less than ``length`` is kept; the oldest go first."""
    if (found := _kept.get(key)) is not None and len(found) >= length:
        return found
    _kept.pop(key, None)
    made = make()
    if fits(made.nbytes):
        while _kept and sum(each.nbytes for each in _kept.values()) + made.nbytes > _BYTES:
            del _kept[next(iter(_kept))]
        _kept[key] = made
    return made
