"""How far long work is where there is no terminal, and so no bar: a line a minute."""

from __future__ import annotations

import sys
import time

#: Seconds between the lines, and before the first one.
SECONDS_BETWEEN_LINES = 60.0


class ProgressLines:
    """Says on stderr how much is done and how long the rest will take; on a terminal, where bars are, nothing.

    name: of the work; unit: what is counted, as a plural noun; done: what was done before it began.
    """

    def __init__(self, name: str, unit: str, done: float = 0, *, shown: bool) -> None:
        self._name, self._unit, self._before = name, unit, done
        self._shown = shown and not sys.stderr.isatty()
        self._began = self._told = time.monotonic()

    def show(self, done: float, total: float | None) -> None:
        """So much of all is done now. total: None where nobody knows it."""
        now = time.monotonic()
        if not self._shown or now - self._told < SECONDS_BETWEEN_LINES:
            return
        self._told = now
        text = f"{self._name}: {done:,.0f}" + ("" if total is None else f" of {total:,.0f}") + f" {self._unit}"
        if total is not None and done > self._before:
            seconds = (now - self._began) * (total - done) / (done - self._before)
            text += (
                f", about {seconds / 60:,.0f} minutes left" if seconds >= 90 else f", about {seconds:.0f} seconds left"
            )
        print(text, file=sys.stderr, flush=True)
