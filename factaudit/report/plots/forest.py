"""Forest plots: a line for each row with its interval, and its figure in print beside it."""

from __future__ import annotations

import math

from factaudit.audit.core.plot import Forest
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import figure as in_words
from factaudit.audit.core.words import heading, span
from factaudit.report.plots.canvas import GUIDE, PAD, Canvas
from factaudit.report.plots.legend import legend_of
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import (
    BASE,
    GUIDES,
    INK,
    Series,
    in_print,
    limits_of,
    text_width,
    ticks_of,
    wrap,
)

#: Inches of a line, and of a panel's title and of what is under it.
_LINE, _HEAD, _FOOT = 0.19, 0.24, 0.1


def draw_forest(plot: Forest, frame: Frame) -> Canvas:
    """A `Forest`: one panel for each group, one below the other."""
    column = frame.columns[plot.key]
    series = frame.series(plot.series) if plot.series else [Series("", "", INK, "s")]
    look = {one.key: one for one in series}

    def line_of(row: Row) -> str:
        return " · ".join(in_words(frame.columns[key], row.get(key)) for key in plot.labels)

    def printed(row: Row) -> str:
        low, high = row.get(f"{plot.key}_low"), row.get(f"{plot.key}_high")
        text = in_words(column, row.get(plot.key))
        return text if low is None or high is None else f"{text} ({span(column, low, high)})"

    groups = {group: [row for row in frame.rows if frame.group(row) == group] for group in frame.groups()}
    every = [frame.point(row, plot.key) for row in frame.rows]
    guide = None if plot.guide is None else plot.guide * frame.scale(plot.key)
    limits = limits_of([end for p in every for end in p.ends()] + ([] if guide is None else [guide]))
    ticks = ticks_of(*limits)
    most = 75 if frame.narrow else 150
    names = {group: [wrap(line_of(row), most, lines=1)[0] for row in rows] for group, rows in groups.items()}
    left = max((text_width(name) for lines in names.values() for name in lines), default=0) / 72 + PAD + 0.06
    beside = max((text_width(printed(row)) for row in frame.rows), default=0) / 72 + 0.12
    width = frame.width - left - beside

    legend = legend_of([one for one in series if one.label], frame.width)
    figure = Canvas(
        frame.width, legend.height + sum(_LINE * len(rows) + _HEAD + _FOOT for rows in groups.values()) + 0.32
    )
    top = legend.height
    for group, rows in groups.items():
        height = _LINE * len(rows)
        panel = figure.panel(left, top + _HEAD, width, height, limits, (len(rows) - 0.5, -0.5))
        top += _HEAD + height + _FOOT
        for place, row in enumerate(rows):
            one = look[str(row[plot.series]) if plot.series else ""]
            point = frame.point(row, plot.key)
            if place % 2 == 0:
                panel.band(place - 0.5, place + 0.5)
            panel.spans(one, ((point.least, place), (point.greatest, place)), ((point.low, place), (point.high, place)))
            if point.value is not None and not math.isnan(point.value):
                panel.mark(one, 4.2, point.value, place)
            figure.write((left + width + 4 / 72, panel.at(0, place)[1]), printed(row), va="center_baseline")
        if guide is not None:
            panel.line(GUIDE, GUIDES, (guide, -0.5), (guide, len(rows) - 0.5))
        panel.frame()
        panel.name(range(len(rows)), names[group])
        last = len(figure.panels) == len(groups)
        panel.ticks_x(ticks, list(map(in_print, ticks)) if last else None)
        panel.head("\n".join(wrap(group, (frame.width - left) * 72, bold=True, lines=1)), pad=4)
    middle = left + width / 2, figure.panels[-1].bottom + PAD + 0.14
    figure.write(middle, heading(column), ha="center", va="top", fontsize=BASE)
    legend.draw(figure)
    return figure.finish()
