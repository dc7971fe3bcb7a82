"""How long judging will still take: a bar on a terminal, elsewhere a line a minute."""

from __future__ import annotations

import sys
import time
from typing import Any

from tqdm import tqdm

#: Seconds between the lines where there is no terminal, and so the first one after that.
EVERY = 60.0


class Waiting:
    """Counts claims as they are judged, and says on stderr how many are left and for how long.

    total, todo: all claims, and those of them that are still to be judged. shown: False says nothing.
    """

    def __init__(self, name: str, total: int, todo: int, *, shown: bool) -> None:
        self._name, self._total, self._todo = name, total, todo
        self._lines = shown and not sys.stderr.isatty()
        # None: on a terminal only.
        self._bar = tqdm(total=total, initial=total - todo, desc=name, unit="claim", disable=None if shown else True)
        self._began = self._told = time.monotonic()
        self._done = 0

    def judged(self) -> None:
        """One more claim is judged."""
        self._done += 1
        self._bar.update()
        now = time.monotonic()
        if self._lines and now - self._told >= EVERY:
            self._told = now
            seconds = (now - self._began) * (self._todo - self._done) / self._done
            left = f"{seconds / 60:,.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"
            so_far = self._total - self._todo + self._done
            print(f"{self._name}: {so_far:,} of {self._total:,} claims, about {left} left", file=sys.stderr, flush=True)

    def __enter__(self) -> Waiting:
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()
