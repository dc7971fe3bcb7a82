"""What do all figures have in common? The style sheet, a look for each series, and names that fit.

A colour always goes with a marker of its own, so that a figure can be read by colour-blind people
and in grey print.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import rcParams

#: The width in inches of a figure that is as wide as a page.
PAGE_WIDTH = 6.8
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
#: Baselines are grey lines with different dashes.
_FLOOR_DASHES = ((0, ()), (0, (3, 1.5)), (0, (1, 1)))
_STYLE_SHEET = Path(__file__).with_name("factaudit.mplstyle")


@functools.cache
def _read_style_sheet() -> Any:  # matplotlib's type stubs expect literal keys
    """The parameters of the style sheet, and matplotlib's own defaults for all others."""
    parameters = matplotlib.rc_params_from_file(str(_STYLE_SHEET), use_default_template=True)
    return {
        key: value
        for key, value in parameters.items()
        if not key.startswith(("backend", "interactive"))
    }


@contextmanager
def use_report_style(*, in_own_axes: bool = False) -> Iterator[None]:
    """Draw or save in the style of the report, whatever style the user has set: the same rows give
    the same bytes. in_own_axes: the axes belong to the user, and so do fonts, frames and colours.
    """
    sheet = _read_style_sheet()
    with matplotlib.rc_context({"text.parse_math": False} if in_own_axes else sheet):
        yield


@dataclass(frozen=True)
class SeriesStyle:
    """How one series looks. ``dashes`` is set for a baseline, which is drawn as a line without
    markers."""

    name: str
    label: str
    colour: str
    marker: str
    dashes: tuple[float, tuple[float, ...]] | None = None

    def line_style(self) -> dict[str, Any]:
        """The properties of a `matplotlib.lines.Line2D` that stands for the series in a legend."""
        if self.dashes is not None:
            return {"color": self.colour, "ls": self.dashes, "lw": 1.2}
        return {"color": self.colour, "ls": "none", "marker": self.marker, "ms": 4.2}


def choose_series_styles(
    names: Sequence[str], order: Sequence[str], labels: Mapping[str, str], floors: Set[str]
) -> list[SeriesStyle]:
    """A look for each series that is drawn, by its position in ``order``, so that a missing series
    never gives its colour to another one. Baselines are grey lines, unless there is nothing else.
    """
    if set(names) <= floors:
        floors = frozenset()
    cycle = rcParams["axes.prop_cycle"].by_key()
    colours, markers = cycle.get("color", ["C0"]), cycle.get("marker", MARKERS)
    every = list(dict.fromkeys([*order, *names]))
    marked = [name for name in every if name not in floors]
    looks = [
        SeriesStyle(name, labels[name], colours[at % len(colours)], markers[at % len(markers)])
        for at, name in enumerate(marked)
        if name in names
    ]
    lines = [name for name in every if name in floors and name in names]
    for name, dashes in zip(lines, _FLOOR_DASHES * len(lines), strict=False):
        looks.append(
            SeriesStyle(name, f"{labels[name]} (a floor)", rcParams["axes.edgecolor"], "", dashes)
        )
    return looks


def wrap_label(text: str, width: int, max_lines: int = 2) -> str:
    """At most ``max_lines`` lines of about ``width`` letters. A longer text gets an ellipsis in its
    middle, because names usually differ at their ends.

    >>> wrap_label("a-very-long-name-of-a-model-by-somebody-v2", 12, 1)
    'a-ver…ody-v2'
    """
    text = " ".join(text.split())
    # Lines break before a word, so they are not full.
    most = max_lines * width - (max_lines > 1) * width // 4
    if len(text) > most:
        text = f"{text[: most // 2 - 1]}…{text[len(text) - most // 2 :]}"
    return "\n".join(textwrap.wrap(text, width)[:max_lines]) if max_lines > 1 else text
