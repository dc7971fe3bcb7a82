"""How far has long work got? A terminal shows a bar; a log gets one line a minute."""

from __future__ import annotations

import sys
from typing import Any

#: Seconds between the lines, and before the first one.
SECONDS_BETWEEN_LINES = 60.0
_LINE = "{desc}: {n_fmt} of {total_fmt} {unit}s, {remaining} left\n"
_LINE_WITHOUT_TOTAL = "{desc}: {n_fmt} {unit}s\n"


def progress_bar(
    name: str,
    unit: str,
    total: float | None = None,
    done: float = 0,
    *,
    of: Any = None,
    shown: bool = True,
) -> Any:
    """A `tqdm` bar: a context manager whose ``update`` is told how much more is done.

    name: of the work; unit: what is counted, in the singular; done: what was done before it began;
    of: an iterable whose items are counted.
    """
    from tqdm import tqdm

    options: dict[str, Any] = {"unit_scale": True}
    if not sys.stderr.isatty():
        seconds = SECONDS_BETWEEN_LINES
        line = _LINE_WITHOUT_TOTAL if total is None else _LINE
        options = {"mininterval": seconds, "delay": seconds, "miniters": 1, "bar_format": line}
        # Nothing is printed at the end, where the last line would be printed again.
        options["leave"] = False
    return tqdm(
        of,
        desc=name,
        unit=unit,
        total=total,
        initial=done,
        disable=not shown,
        **options,
    )
