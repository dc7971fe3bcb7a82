"""What all figures of the report have in common: the look, text that fits, legends, and files.

Figures are of a column's (3.3 in) or a page's (6.8 in) width. Colours are Okabe & Ito's, and a marker always goes with
a colour, so that a figure survives colour blindness and a grey printer. Undefined figures (null) are not drawn. Thin
lines are intervals (``_low``, ``_high``); pale bars are the bounds that unscored claims leave (``_min``, ``_max``).
"""

from __future__ import annotations

import functools
import io
import itertools
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec
from weakref import WeakKeyDictionary
from xml.sax.saxutils import escape, quoteattr

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from factaudit.files import atomic, write_text
from factaudit.text.printable import printable

#: Widths in inches of a figure over one column and over a page.
COLUMN, PAGE = 3.3, 6.8

# Okabe & Ito (2008), their yellow replaced by grey: it does not show on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
INK, PALE, GRID = "#222222", "#f3f3f3", "#d9d9d9"
SMALL, BASE = 7.0, 7.5
#: Floors are lines in grey, told apart by their dashes.
FLOOR = "#777777"
FLOOR_LINES = ((0, ()), (0, (3, 1.5)), (0, (1, 1)))

# Any: matplotlib's stubs want the keys as literals.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": BASE,
    "axes.titlesize": BASE,
    "axes.titleweight": "bold",
    "axes.labelsize": BASE,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "figure.labelsize": BASE,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    # A name with two dollar signs is a name, not mathematics.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 1.2,
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.05,
    # The same rows give the same bytes; text as paths looks the same everywhere.
    "svg.hashsalt": "factaudit",
    "svg.fonttype": "path",
    # Fonts that journals take.
    "pdf.fonttype": 42,
}

_P = ParamSpec("_P")


def styled(function: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw a figure in the report's style: a decorator, also for the figures of the engines."""

    @functools.wraps(function)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with matplotlib.rc_context(_STYLE):
            return function(*args, **kwargs)

    return drawn


def save_figure(figure: Figure, stem: Path, title: str, kinds: Sequence[str] = ("svg",)) -> list[Path]:
    """Write ``stem.KIND`` for each of ``kinds`` atomically, the same bytes for the same figure; returns the paths.

    kinds: svg (text as shapes), pdf (fonts inside) and png (200 dpi).
    """
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in kinds]
    with matplotlib.rc_context(_STYLE):
        _settle(figure)
        for kind, path in zip(kinds, paths, strict=True):
            if kind == "svg":
                drawn = io.StringIO()
                about: Any = {"Title": title, "Creator": "factaudit", "Date": None}
                figure.savefig(drawn, format="svg", metadata=about, facecolor="white")
                whole, end, _ = _compact(drawn.getvalue()).rpartition("</svg>")
                write_text(path, f"{whole}{_anchors(figure)}{end}\n")
                continue
            about = {"Title": title, "Software": "factaudit"}
            if kind == "pdf":
                about = {"Title": title, "Creator": "factaudit", "CreationDate": None}
            with atomic(path) as temporary:
                figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


def _compact(svg: str) -> str:
    """A drawing with coordinates to a hundredth of a point (a scale is kept as it is), and without indentation.

    Markers and clips, which matplotlib names by a digest of all digits of their coordinates, are numbered: the layout
    differs in the last digit from one drawing to the next.
    """
    names: dict[str, str] = {}

    def short(number: re.Match[str]) -> str:
        text = number[0]
        return text if text.startswith("scale") else f"{float(text):.2f}".rstrip("0").rstrip(".")

    def numbered(name: re.Match[str]) -> str:
        return names.setdefault(name[0], f"{name[0][0]}{len(names)}")

    svg = re.sub(r"scale\([^)]*\)|-?\d+\.\d{3,}", short, svg)
    return re.sub(r"\n\s+", "\n", re.sub(r'(?<=["#])[mp][0-9a-f]{10}(?=[")])', numbered, svg))


def _settle(figure: Figure) -> None:
    """Lay the figure out once, at rounded places: the last bits of a layout differ from run to run."""
    engine = figure.get_layout_engine()
    if engine is None:  # settled before
        return
    engine.execute(figure)
    figure.set_layout_engine(None)  # "none" would have each file drawn twice
    for axes in figure.axes:
        axes.set_position(tuple(round(length, 6) for length in axes.get_position(original=True).bounds))


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


def figure_with_legend(width: float, height: float, series: Sequence[Series]) -> tuple[Figure, Callable[[], None]]:
    """A figure with room for a legend above; call what is returned second once the axes stand."""
    labels = [shorten(one.label, (width - 0.5) * 72) for one in series]
    if not series:
        return Figure(figsize=(width, height), layout="constrained"), lambda: None
    widest = max(map(text_width, labels)) / 72 + 0.42
    ncols = max(1, min(len(series), int((width - 0.1) / widest)))
    lines = math.ceil(len(series) / ncols)
    figure = Figure(figsize=(width, height + 0.155 * lines + 0.12), layout="constrained")

    def legend() -> None:
        handles = [Line2D([], [], **marker_of(one, max(4.2, one.size))) for one in series]
        figure.legend(handles, labels, loc="outside upper left", ncols=ncols, borderaxespad=0.2, labelspacing=0.35)

    return figure, legend


#: The points of a figure that lead to claims: axes, x, y, what is asked, and what the point is.
_LINKS: WeakKeyDictionary[Figure, list[tuple[Axes, float, float, str, str]]] = WeakKeyDictionary()


def link_point(axis: Axes, x: float, y: float, asked: str, title: str) -> None:
    """Let a point of a figure lead to the claims behind it (``asked``, as the page's claim browser is asked)."""
    if asked:
        _LINKS.setdefault(axis.get_figure(root=True), []).append((axis, x, y, asked, title))  # type: ignore[arg-type]


def _anchors(figure: Figure) -> str:
    """The links of a figure's points, as SVG: transparent discs that lead into the report beside the folder."""
    found = []
    height = figure.get_figheight() * 72
    for axis, x, y, asked, title in _LINKS.get(figure, ()):
        across, up = axis.transData.transform((x, y)) * 72 / figure.dpi
        place = f'cx="{across:.1f}" cy="{height - up:.1f}" r="4"'
        found.append(
            f"<a href={quoteattr(f'../report.html#claims?{asked}')}><title>{escape(printable(title))}</title>"
            f'<circle {place} fill-opacity="0"/></a>\n'
        )
    return "".join(found)


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


def n_lines(text: str) -> int:
    return text.count("\n") + 1


def segments(
    axis: Axes,
    one: Series,
    segments: Sequence[tuple[tuple[float | None, float | None], tuple[float | None, float | None]]],
    bounds: bool = False,
) -> None:
    """Lines from (x, y) to (x, y) in a series' colour: thin for intervals, broad and pale for bounds."""
    whole: Any = [pair for pair in segments if None not in pair[0] and None not in pair[1] and pair[0] != pair[1]]
    look = {"alpha": 0.25, "lw": 3.0, "zorder": 1.5} if bounds else {"alpha": 0.55, "lw": 0.8, "zorder": 2}
    if whole:
        axis.add_collection(LineCollection(whole, colors=one.colour, **look), autolim=False)
