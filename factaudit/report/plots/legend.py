"""The legend of a figure: its series above the panels, in columns as broad as their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factaudit.report.plots.canvas import Canvas, Stroke
from factaudit.report.plots.style import Series, shorten, text_width

#: Inches of a line, of a series' marker, and from there to its name.
_LINE, _MARKER, _PAD = 0.155, 0.117, 0.04


@dataclass(frozen=True)
class Legend:
    """What stands in it, each series with its name and its place in inches; ``height``: inches that it takes."""

    entries: list[tuple[Series, str, float, float]]
    height: float

    def draw(self, figure: Canvas) -> None:
        """Put it at the top of a figure."""
        for one, name, left, y in self.entries:
            if one.line is None:
                figure.mark(one, max(4.2, one.size), (left + _MARKER / 2, y))
            else:
                figure.line(Stroke(1.1, 2, dashes=one.line), one.colour, (left, y), (left + _MARKER, y))
            figure.write((left + _MARKER + _PAD, y), name, va="center_baseline").set_label("legend")


def legend_of(series: Sequence[Series], width: float) -> Legend:
    """The legend of a figure that is so many inches wide."""
    names = [shorten(one.label, (width - 0.5) * 72) for one in series]
    if not names:
        return Legend([], 0.0)
    widths = [text_width(name) / 72 for name in names]
    ncols = max(1, min(len(series), int((width - 0.1) / (max(widths) + 0.42))))
    lines = -(-len(series) // ncols)
    entries, left = [], 0.08
    for first in range(0, len(series), lines):
        column = range(first, min(first + lines, len(series)))
        entries += [(series[at], names[at], left, 0.1 + _LINE * (at - first)) for at in column]
        left += _MARKER + _PAD + max(widths[at] for at in column) + 0.14
    return Legend(entries, _LINE * lines + 0.1)
