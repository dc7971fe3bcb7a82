"""How long will judging still take? A bar on a terminal, elsewhere a line a minute."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

from factaudit.text.progress_lines import ProgressLines


class JudgingProgressBar:
    """Counts claims as they are judged, and says on stderr how many are left and for how long.

    total, todo: all claims, and those of them that are still to be judged. shown: False says nothing.
    """

    def __init__(self, name: str, total: int, todo: int, *, shown: bool) -> None:
        self._done, self._total = total - todo, total
        # None: on a terminal only.
        self._bar = tqdm(total=total, initial=self._done, desc=name, unit="claim", disable=None if shown else True)
        self._lines = ProgressLines(name, "claims", self._done, shown=shown)

    def count_judged_claim(self) -> None:
        """One more claim is judged."""
        self._done += 1
        self._bar.update()
        self._lines.show(self._done, self._total)

    def __enter__(self) -> JudgingProgressBar:
        return self

    def __exit__(self, *_: Any) -> None:
        self._bar.close()
