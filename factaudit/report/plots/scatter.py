"""Scatter plots: one figure against another, with the diagonal on which they are equal."""

from __future__ import annotations

import math

from factaudit.audit.core.plot import Scatter
from factaudit.audit.core.rows import is_total
from factaudit.audit.core.words import heading
from factaudit.report.plots.canvas import GUIDE, PAD, Canvas
from factaudit.report.plots.legend import legend_of
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import (
    COLUMN,
    GUIDES,
    Series,
    in_print,
    limits_of,
    look_of,
    text_width,
    ticks_of,
    wrap,
)

#: Inches of the labels of ticks beside a panel and under it.
_TICKS = text_width("100") / 72 + PAD + 0.1, 0.27


def draw_scatter(plot: Scatter, frame: Frame) -> Canvas:
    """A `Scatter`: a panel for each group with evaluators by colour, or a panel for each value of ``plot.panels``."""
    shown = [row for row in frame.rows if not is_total(row.get(plot.per))] or list(frame.rows)
    if plot.panels is None:
        titles, series = list(dict.fromkeys(map(frame.group, shown))), frame.series("evaluator")
    else:
        titles = frame.named(plot.panels)
        series = [Series(group, group, *look_of(i)) for i, group in enumerate(dict.fromkeys(map(frame.group, shown)))]

    def panel_of(row: dict[str, object]) -> str:
        return frame.group(row) if plot.panels is None else str(row[plot.panels])

    def series_of(row: dict[str, object]) -> str:
        return str(row["evaluator"]) if plot.panels is None else frame.group(row)

    ncols = min(2, len(titles)) if frame.narrow else 4 if len(titles) == 4 else min(3, len(titles))
    width = COLUMN if ncols == 1 else frame.width
    nrows = math.ceil(len(titles) / ncols)
    beside, under = _TICKS
    side = (width - 0.28) / ncols - beside
    heads = ["\n".join(wrap(title, (side + 0.1) * 72, bold=True)) for title in titles]
    head = 0.08 + 0.145 * max(text.count("\n") + 1 for text in heads)
    legend = legend_of(series, width)
    figure = Canvas(width, legend.height + nrows * (head + side + under) + 0.17)
    for number, (title, text) in enumerate(zip(titles, heads, strict=True)):
        mine = [row for row in shown if panel_of(row) == title]
        pairs = [(row, frame.point(row, plot.x), frame.point(row, plot.y)) for row in mine]
        pairs = [(row, x, y) for row, x, y in pairs if x.value is not None and y.value is not None]
        low, high = limits_of([end for _, x, y in pairs for p in (x, y) for end in p.ends()])
        line, column = divmod(number, ncols)
        left, top = 0.2 + column * (side + beside) + beside, legend.height + line * (head + side + under) + head
        panel = figure.panel(left, top, side, side, (low, high), (low, high))
        for one in series:
            for row, x, y in pairs:
                if series_of(row) == one.key and x.value is not None and y.value is not None:
                    panel.spans(one, ((x.value, y.least), (x.value, y.greatest)), ((x.value, y.low), (x.value, y.high)))
                    panel.spans(one, ((None, None), (None, None)), ((x.low, y.value), (x.high, y.value)))
                    panel.mark(one, 4.2, x.value, y.value, y.asked, y.title)
        panel.line(GUIDE, GUIDES, (low, low), (high, high))
        ticks = ticks_of(low, high)
        panel.frame()
        panel.ticks_x(ticks, list(map(in_print, ticks)))
        panel.ticks_y(ticks, list(map(in_print, ticks)))
        panel.head(text, pad=4)
        if not pairs:
            panel.undefined()
    height = figure.get_figheight()
    figure.supxlabel(_capital(heading(frame.columns[plot.x])), x=0.5 + 0.15 / width, y=0.04 / height)
    figure.supylabel(_capital(heading(frame.columns[plot.y])), x=0.04 / width, y=0.5 * (1 - legend.height / height))
    legend.draw(figure)
    return figure.finish()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
