"""Where figures are drawn: panels placed in inches from the upper left corner, on a matplotlib figure without axes.

Axes find their places by drawing everything once, and each tick, label and interval of theirs is an artist or several:
that took most of a report's time. Here widths of texts are known before (`style.text_width`), and all lines of a look
are one path. What is drawn are matplotlib's own artists, so that every format of its can be written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.transforms import Affine2D

from factaudit.report.plots.style import BASE, EDGE, GRID, INK, PALE, SMALL, Series, marker_of

#: Inches between the lines of a text, of a tick, and from a tick to its label.
LINE, TICK, PAD = 0.135, 2.5 / 72, 6 / 72

Place = tuple[float, float]
#: Two points, of which a coordinate may be undefined.
Span = tuple[tuple[float | None, float | None], tuple[float | None, float | None]]


class Stroke(NamedTuple):
    """How lines look. Lines of one look and colour are one path."""

    width: float
    zorder: float = 1.0
    alpha: float = 1.0
    dashes: Any = "solid"


_GRID, _FRAME = Stroke(0.5, 0.6), Stroke(0.6, 2.5)
#: A line to measure by: dashed, and of a group across its height.
GUIDE, ACROSS, RULE = Stroke(0.7, 1, dashes=(0, (4, 2))), Stroke(1.2, 2), Stroke(0.6, 1)
#: What a figure's interval and its bounds look like: thin, and broad and pale.
_INTERVAL, _BOUNDS = Stroke(0.8, 2, 0.55), Stroke(3.0, 1.5, 0.25)


class Canvas(Figure):
    """A figure with its panels. Call `finish` when all is on it."""

    def __init__(self, width: float, height: float) -> None:
        super().__init__(figsize=(width, height))
        self.panels: list[Panel] = []
        #: The points that lead to claims: x and y in inches, what is asked, and what the point is.
        self.links: list[tuple[float, float, str, str]] = []
        #: From inches to the right and down to the figure.
        self.inches = Affine2D().scale(1, -1).translate(0, height) + self.dpi_scale_trans
        self._lines: dict[tuple[Stroke, str], list[Sequence[Place]]] = {}
        self._bands: list[Sequence[Place]] = []
        self._marks: dict[tuple[Series, float], list[Place]] = {}

    def panel(self, *of: Any) -> Panel:
        """A new panel: ``left, top, width, height`` in inches, and what its sides stand for (`Panel`)."""
        self.panels.append(Panel(self, *of))
        return self.panels[-1]

    def line(self, stroke: Stroke, colour: str, *places: Place) -> None:
        """A line from place to place."""
        self._lines.setdefault((stroke, colour), []).append(places)

    def mark(self, one: Series, size: float, place: Place) -> None:
        """A marker of a series."""
        self._marks.setdefault((one, size), []).append(place)

    def write(self, place: Place, text: str, bold: bool = False, **look: Any) -> Text:
        """Text at a place; ``look`` as matplotlib's."""
        weight = "bold" if bold else "normal"
        return self.text(*place, text, **{"transform": self.inches, "fontsize": SMALL, "fontweight": weight, **look})

    def finish(self) -> Canvas:
        """Put the lines and markers on the figure."""
        for (stroke, colour), lines in self._lines.items():
            width, zorder, alpha, dashes = stroke
            look = {"lw": width, "zorder": zorder, "alpha": alpha, "ls": dashes}
            self.add_artist(PathPatch(_path(lines), fill=False, ec=colour, transform=self.inches, **look))
        if self._bands:
            self.add_artist(PathPatch(_path(self._bands), fc=PALE, lw=0, zorder=0.5, transform=self.inches))
        for (one, size), places in self._marks.items():
            x, y = zip(*places, strict=True)
            self.add_artist(Line2D(x, y, **marker_of(one, size), zorder=3, transform=self.inches))
        self._lines, self._bands, self._marks = {}, [], {}
        return self


def _path(lines: Sequence[Sequence[Place]]) -> Path:
    codes = [code for line in lines for code in (Path.MOVETO, *[Path.LINETO] * (len(line) - 1))]
    path = Path(np.array([place for line in lines for place in line]), codes)
    path.should_simplify = False  # the lines are apart
    return path


@dataclass(eq=False)
class Panel:
    """A part of a canvas with a scale of its own: ``x`` from left to right, ``y`` from its lower end to its upper."""

    canvas: Canvas
    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    title: str = ""

    def __post_init__(self) -> None:
        self.names: tuple[list[str], list[str]] = ([], [])

    @property
    def bottom(self) -> float:
        """Inches from the top."""
        return self.top + self.height

    def at(self, x: float, y: float) -> Place:
        """A point's place in inches."""
        across, up = (x - self.x[0]) / (self.x[1] - self.x[0]), (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * self.width, self.bottom - up * self.height

    def frame(self) -> None:
        """Lines on the left and below."""
        right = self.left + self.width
        places = (self.left, self.top), (self.left, self.bottom), (right, self.bottom)
        self.canvas.line(_FRAME, EDGE, *places)

    def head(self, title: str, pad: float = 5) -> None:
        """The title over the panel, which may have several lines; ``pad``: points between them and the panel."""
        self.title = title
        self.canvas.write((self.left, self.top - pad / 72), title, bold=True, fontsize=BASE, va="bottom")

    def ticks_x(self, ticks: Sequence[float], labels: Sequence[str] | None = None, grid: bool = True) -> None:
        """Ticks below (without ``labels`` no text), with lines through the panel."""
        for tick in ticks:
            x, bottom = self.at(tick, self.y[0])
            self.canvas.line(_FRAME, INK, (x, bottom), (x, bottom + TICK))
            if grid:
                self.canvas.line(_GRID, GRID, (x, self.top), (x, bottom))
        for tick, label in zip(ticks, labels or (), strict=False):
            self.canvas.write((self.at(tick, self.y[0])[0], self.bottom + PAD), label, ha="center", va="top")
        self.names[0][:] = labels or ()

    def ticks_y(self, ticks: Sequence[float], labels: Sequence[str] | None = None, grid: bool = True) -> None:
        """The same on the left."""
        for tick in ticks:
            left, y = self.at(self.x[0], tick)
            self.canvas.line(_FRAME, INK, (left, y), (left - TICK, y))
            if grid:
                self.canvas.line(_GRID, GRID, (left, y), (left + self.width, y))
        self.name(ticks, labels or ())

    def name(self, places: Sequence[float], labels: Sequence[str], bold: Collection[int] = ()) -> None:
        """Names down the left side, those at the positions ``bold`` in bold."""
        for number, (place, label) in enumerate(zip(places, labels, strict=False)):
            where = self.left - PAD, self.at(self.x[0], place)[1]
            self.canvas.write(where, label, number in bold, ha="right", va="center_baseline")
        self.names[1][:] = labels

    def band(self, low: float, high: float) -> None:
        """A pale band across the panel."""
        (left, first), (right, last) = self.at(self.x[0], low), self.at(self.x[1], high)
        corners = (left, first), (right, first), (right, last), (left, last), (left, first)
        self.canvas._bands.append(corners)

    def line(self, stroke: Stroke, colour: str, *points: Place) -> None:
        """A line from point to point, no further than the panel."""
        (left, right), (low, high) = sorted(self.x), sorted(self.y)
        inside = [(min(max(x, left), right), min(max(y, low), high)) for x, y in points]
        if len(set(inside)) > 1:
            self.canvas.line(stroke, colour, *(self.at(*point) for point in inside))

    def spans(self, one: Series, bounds: Span, interval: Span) -> None:
        """The bounds and the interval of a figure of a series, each from point to point; None where it has none."""
        for stroke, points in ((_BOUNDS, bounds), (_INTERVAL, interval)):
            if not any(value is None for point in points for value in point):
                self.line(stroke, one.colour, *points)  # type: ignore[arg-type]

    def mark(self, one: Series, size: float, x: float, y: float, asked: str = "", title: str = "") -> None:
        """A marker of a series, which leads to the claims behind it (``asked``, as the page's claim browser is)."""
        place = self.at(x, y)
        self.canvas.mark(one, size, place)
        if asked:
            self.canvas.links.append((*place, asked, title))

    def area(self, colour: str, points: Sequence[Place]) -> None:
        """A pale area within the line through these points."""
        look = {"fc": colour, "alpha": 0.15, "lw": 0, "zorder": 1, "transform": self.canvas.inches}
        self.canvas.add_artist(PathPatch(_path([[self.at(*point) for point in points]]), **look))

    def undefined(self) -> None:
        """Say that there is nothing to draw."""
        middle = self.left + self.width / 2, self.top + self.height / 2
        self.canvas.write(middle, "undefined", ha="center", va="center")

    def cells(self, colours: Sequence[tuple[float, float, Any]], hatch: str | None = None) -> None:
        """Squares of one unit: the left upper corner of each and its colour."""
        corners = [
            [self.at(x + across, y + down) for across, down in ((0, 0), (1, 0), (1, 1), (0, 1))] for x, y, _ in colours
        ]
        look: Any = {
            "facecolors": [colour for _, _, colour in colours],
            "edgecolors": "white",
            "lw": 0.8,
            "hatch": hatch,
        }
        self.canvas.add_artist(PolyCollection(corners, **look, transform=self.canvas.inches))
