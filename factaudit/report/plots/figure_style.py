"""What do all figures have in common? The style sheet, a look for each series, limits, text that fits.

Figures are of a column's (3.3 in) or a page's (6.8 in) width. A marker always goes with a colour, so that a figure
survives colour blindness and a grey printer. Undefined figures (null) are not drawn. Thin lines are intervals
(``_low``, ``_high``); pale bars are the bounds that unscored claims leave (``_min``, ``_max``).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import rcParams
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

#: Widths in inches of a figure over one column and over a page.
COLUMN_WIDTH, PAGE_WIDTH = 3.3, 6.8
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
#: Floors are grey lines that differ in their dashes.
FLOOR_DASHES = ((0, ()), (0, (3, 1.5)), (0, (1, 1)))
STYLE_SHEET = Path(__file__).with_name("factaudit.mplstyle")
#: What matplotlib says of letters that its fonts lack: figures then leave them to the reader's own fonts.
MISSING_GLYPH_WARNING = r"Glyph .* missing from"
#: What the style sheet says of figures in somebody else's axes, where text is theirs.
_DATA_PARAMETERS = ("axes.prop_cycle", "text.parse_math")


@functools.cache
def _read_style_sheet(with_defaults: bool = False) -> Any:  # matplotlib's stubs want the keys as literals
    """The parameters of the style sheet; ``with_defaults``: and matplotlib's own defaults of all others."""
    parameters = matplotlib.rc_params_from_file(str(STYLE_SHEET), use_default_template=with_defaults)
    return {key: value for key, value in parameters.items() if not key.startswith(("backend", "interactive"))}


@contextmanager
def use_report_style() -> Iterator[None]:
    """Draw (or save) in the report's style, whatever the user has set: the same rows give the same bytes."""
    with matplotlib.rc_context(_read_style_sheet(with_defaults=True)):
        yield


@contextmanager
def use_figure_style(style: Any = None, *, in_own_axes: bool = False) -> Iterator[None]:
    """Draw in the style sheet, but for what the user has set (an enclosing ``plt.style.context``), and in ``style``.

    style: as `matplotlib.style.use` takes it. in_own_axes: the axes are the user's, and so are fonts and frames.
    """
    sheet = _read_style_sheet()
    keys = _DATA_PARAMETERS if in_own_axes else tuple(sheet)
    now: Any = rcParams
    defaults: Any = matplotlib.rcParamsDefault
    untouched: Any = {key: sheet[key] for key in keys if now[key] == defaults[key]}
    with matplotlib.rc_context(untouched):
        if style is not None:
            from matplotlib import style as style_library  # reads all of matplotlib's own sheets

            style_library.use(style)
        yield


@dataclass(frozen=True)
class PlotSeriesStyle:
    key: str
    label: str
    colour: str
    marker: str
    size: float = 4.2
    #: The dashes of a series that is a line (of a floor); None where it has markers.
    dashes: tuple[float, tuple[float, ...]] | None = None

    def line_style(self, size: float | None = None) -> dict[str, Any]:
        """How matplotlib draws the series: properties of a `Line2D`."""
        if self.dashes is not None:
            return {"color": self.colour, "ls": self.dashes, "lw": 1.2, "marker": ""}
        marker = {"marker": self.marker, "ms": size or self.size, "mfc": self.colour, "mec": self.colour, "mew": 0.7}
        return {"color": self.colour, "ls": "none", **marker}


def choose_plot_series_style(position: int) -> tuple[str, str]:
    """A colour and a marker: the pair is distinct for the first 88. A style's own cycle comes first."""
    cycle = rcParams["axes.prop_cycle"].by_key()
    colours, markers = cycle.get("color", ["C0"]), cycle.get("marker", MARKERS)
    return colours[position % len(colours)], markers[position % len(markers)]


def compute_plot_axis_limits(values: Sequence[float], scale: float = 100, has_zero: bool = True) -> tuple[float, float]:
    """A range that holds all values with a little air, from 0 where that is not far; scale: that of a share in their
    unit, so that figures from 0 to 1 have the air that percentages have. has_zero: whether a value may be 0.
    """
    if not values:
        return -0.02 * scale, 1.02 * scale
    low, high = min(values), max(values)
    least = 0.05 * max(scale, *map(abs, values))
    high = least if low == high == 0 else high
    span = max(high - low, least)
    low = 0.0 if has_zero and 0 <= low <= 0.6 * high else low
    air = 0.04 * max(high - low, span)
    return low - air, high + air


def measure_text_width(text: str, bold: bool = False) -> float:
    """The width of one line of text in points, at the size of tick labels (bold: of titles)."""
    size = rcParams["axes.titlesize"] if bold else rcParams["ytick.labelsize"]
    return _measure_figure_label_width(
        text, bold, tuple(rcParams["font.family"]), FontProperties(size=size).get_size_in_points()
    )


@functools.lru_cache(maxsize=4096)
def _measure_figure_label_width(text: str, bold: bool, families: tuple[str, ...], size: float) -> float:
    font = FontProperties(family=list(families), size=size, weight="bold" if bold else "normal")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", MISSING_GLYPH_WARNING)
        return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def line_height(n_lines: int = 1) -> float:
    """Inches of lines of text."""
    return n_lines * 1.4 * FontProperties(size=rcParams["axes.titlesize"]).get_size_in_points() / 72


def shorten_figure_label(text: str, width: float, bold: bool = False) -> str:
    """One line of at most ``width`` points: the middle gives way to an ellipsis, for names differ at their ends."""
    text = " ".join(text.split())
    if measure_text_width(text, bold) <= width:
        return text
    for keep in range(len(text) - 1, 1, -1):
        short = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
        if measure_text_width(short, bold) <= width:
            return short
    return "…"


def wrap_figure_label(text: str, width: float, bold: bool = False, max_lines: int = 2) -> list[str]:
    """At most ``max_lines`` lines of at most ``width`` points, broken after a space or punctuation where possible."""
    text = " ".join(text.split())
    if measure_text_width(text, bold) <= width or max_lines == 1:
        return [shorten_figure_label(text, width, bold)]
    fits = [k for k in range(1, len(text)) if measure_text_width(text[:k].rstrip(), bold) <= width]
    if not fits:
        return [shorten_figure_label(text, width, bold)]
    soft = [k for k in fits if text[k - 1] in " -_/:,·.=" and k >= fits[-1] * 0.45]
    cut = (soft or fits)[-1]
    return [text[:cut].rstrip(), *wrap_figure_label(text[cut:], width, bold, max_lines - 1)]
