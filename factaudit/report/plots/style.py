"""What all figures of the report have in common: the look, limits and ticks, text that fits.

Figures are of a column's (3.3 in) or a page's (6.8 in) width. Colours are Okabe & Ito's, and a marker always goes with
a colour, so that a figure survives colour blindness and a grey printer. Undefined figures (null) are not drawn. Thin
lines are intervals (``_low``, ``_high``); pale bars are the bounds that unscored claims leave (``_min``, ``_max``).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import matplotlib
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

#: Widths in inches of a figure over one column and over a page.
COLUMN, PAGE = 3.3, 6.8

# Okabe & Ito (2008), their yellow replaced by grey: it does not show on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
INK, PALE, GRID, EDGE, GUIDES = "#222222", "#f3f3f3", "#d9d9d9", "#666666", "#888888"
SMALL, BASE = 7.0, 7.5
#: Floors are lines in grey, told apart by their dashes.
FLOOR = "#777777"
FLOOR_LINES = ((0, ()), (0, (3, 1.5)), (0, (1, 1)))

# Any: matplotlib's stubs want the keys as literals.
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": BASE,
    "figure.labelsize": BASE,
    "text.color": INK,
    # A name with two dollar signs is a name, not mathematics.
    "text.parse_math": False,
    # The same rows give the same bytes; text as paths looks the same everywhere.
    "svg.hashsalt": "factaudit",
    "svg.fonttype": "path",
    # Fonts that journals take.
    "pdf.fonttype": 42,
}

_P = ParamSpec("_P")
_R = TypeVar("_R")


def styled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Draw a figure in the report's style: a decorator."""

    @functools.wraps(function)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with matplotlib.rc_context(STYLE):
            return function(*args, **kwargs)

    return drawn


@dataclass(frozen=True)
class Series:
    key: str
    label: str
    colour: str
    marker: str
    filled: bool = True
    size: float = 4.2
    #: Series of the same slot share a line of the plot; by default each has its own.
    slot: str = ""
    #: The dashes of a series that is a line (of a floor); None where it has markers.
    line: tuple[float, tuple[float, ...]] | None = None


def look_of(position: int) -> tuple[str, str]:
    """A colour and a marker: the pair is distinct for the first 88."""
    return COLOURS[position % len(COLOURS)], MARKERS[position % len(MARKERS)]


def marker_of(one: Series, size: float) -> dict[str, Any]:
    if one.line is not None:
        return {"color": one.colour, "ls": one.line, "lw": 1.1, "marker": ""}
    face = one.colour if one.filled else "white"
    return {
        "color": one.colour,
        "marker": one.marker,
        "ms": size,
        "mfc": face,
        "mec": one.colour,
        "mew": 0.7,
        "ls": "none",
    }


def limits_of(values: Sequence[float]) -> tuple[float, float]:
    """A range of percentages that holds all values with a little air, from 0 where that is not far."""
    if not values:
        return -2.0, 102.0
    low, high = min(values), max(values)
    span = max(high - low, 5.0)
    low = 0.0 if 0 <= low <= 0.6 * high else low
    air = 0.04 * max(high - low, span)
    return low - air, high + air


def ticks_of(low: float, high: float) -> list[float]:
    """Three to six round numbers within the range."""
    # Coefficients of few claims may be in the thousands.
    wider = (digit * 10**power for power in itertools.count(2) for digit in (1, 2, 5))
    steps = itertools.chain((0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50), wider)
    step = next(step for step in steps if (high - low) / step <= 5.5)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 6) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def in_print(tick: float) -> str:
    """A tick's label."""
    return f"{tick:g}".replace("-", "−")


@functools.lru_cache(maxsize=4096)
def text_width(text: str, bold: bool = False) -> float:
    """The width of one line of text in points, at the size of labels."""
    font = FontProperties(family="DejaVu Sans", size=BASE if bold else SMALL, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def shorten(text: str, width: float, bold: bool = False) -> str:
    """One line of at most ``width`` points: the middle gives way to an ellipsis, for names differ at their ends."""
    text = " ".join(text.split())
    if text_width(text, bold) <= width:
        return text
    for keep in range(len(text) - 1, 1, -1):
        short = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
        if text_width(short, bold) <= width:
            return short
    return "…"


def wrap(text: str, width: float, bold: bool = False, lines: int = 2) -> list[str]:
    """At most ``lines`` lines of at most ``width`` points, broken after a space or punctuation where there is one."""
    text = " ".join(text.split())
    if text_width(text, bold) <= width or lines == 1:
        return [shorten(text, width, bold)]
    fits = [k for k in range(1, len(text)) if text_width(text[:k].rstrip(), bold) <= width]
    if not fits:
        return [shorten(text, width, bold)]
    soft = [k for k in fits if text[k - 1] in " -_/:,·.=" and k >= fits[-1] * 0.45]
    cut = (soft or fits)[-1]
    return [text[:cut].rstrip(), *wrap(text[cut:], width, bold, lines - 1)]
