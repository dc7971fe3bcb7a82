"""Python's collector of garbage, told to look less often."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: New objects between two looks: each walks all that there is, which at Python's own threshold
#: takes a fifth of the CPU of 1,000 calls under way, and a tenth of a report's.
_RARE_COLLECTION_THRESHOLD = 100_000


@contextmanager
def collect_garbage_rarely() -> Iterator[None]:
    """Let Python's collector look less often; where somebody has set it so, or turned it off,
    nothing changes."""
    before = gc.get_threshold()
    if not 0 < before[0] < _RARE_COLLECTION_THRESHOLD:
        yield
        return
    gc.set_threshold(_RARE_COLLECTION_THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
