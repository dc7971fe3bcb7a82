"""Line plots: shares over an ordered column, a panel for each group and share."""

from __future__ import annotations

import math
from itertools import pairwise

from factaudit.audit.core.plot import Lines
from factaudit.audit.core.words import heading
from factaudit.report.plots.canvas import PAD, Canvas, Stroke
from factaudit.report.plots.legend import legend_of
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import BASE, COLUMN, SMALL, text_width, wrap

#: Inches between panels, of a title's line, and of what is under a panel.
_GAP, _TITLE, _FOOT = 0.12, 0.145, 0.1
_TICKS = (0, 25, 50, 75, 100)


def draw_lines(plot: Lines, frame: Frame) -> Canvas:
    """`Lines` of shares (percent)."""
    groups, series = frame.groups(), frame.series("evaluator")
    width = COLUMN if len(groups) == 1 else frame.width
    ncols = 1 if frame.narrow else len(groups)
    left = 0.2 + text_width("100") / 72 + PAD  # the name of the figure stands upright beside the ticks
    side = (width - left - 0.1 - _GAP * (ncols - 1)) / ncols
    titles = {group: "\n".join(wrap(group, side * 72, bold=True)) for group in groups}
    head = 0.08 + _TITLE * max(title.count("\n") + 1 for title in titles.values())
    places = sorted({row[plot.x] for row in frame.rows})
    # As many have labels as there is room for.
    steps = (places[-1] - places[0]) / min((b - a for a, b in pairwise(places)), default=1)
    widest = max(text_width(str(place)) for place in places) + 4
    every = math.ceil(widest * max(1, steps) / (72 * side))
    labels = ["" if at % every else str(place) for at, place in enumerate(places)]
    air = 0.05 * (places[-1] - places[0]) or 0.5
    legend, tall = legend_of(series, width), 1.45
    # A line of panels for each key; where groups stand below each other, each with its title.
    lines = [(group, key) for group in groups for key in plot.keys] if ncols == 1 else [("", key) for key in plot.keys]
    heads = [head if not group or key == plot.keys[0] else 0.0 for group, key in lines]
    if ncols > 1:
        heads[1:] = [0.0] * (len(heads) - 1)
    figure = Canvas(width, legend.height + sum(heads) + (tall + _FOOT) * len(lines) + 0.32)
    top = legend.height
    for number, (first, key) in enumerate(lines):
        top += heads[number]
        for column, group in enumerate([first] if ncols == 1 else groups):
            place = left + column * (side + _GAP), top, side, tall
            panel = figure.panel(*place, (places[0] - air, places[-1] + air), (-4, 104))
            for position, one in enumerate(series):
                floor = one.line is not None
                shift = 0 if floor else (position - (len(series) - 1) / 2) * 0.06
                mine = [r for r in frame.rows if str(r["evaluator"]) == one.key and frame.group(r) == group]
                mine.sort(key=lambda row: row[plot.x])
                points = [(row[plot.x] + shift, frame.point(row, key)) for row in mine]
                seen = [(x, p.value) for x, p in points if p.value is not None]
                if len(seen) > 1:
                    stroke = Stroke(1.1, 3, dashes=one.line) if floor else Stroke(0.9, 3)
                    panel.line(stroke, one.colour, *seen)
                for x, p in [] if floor else points:
                    if p.value is not None:
                        panel.spans(one, ((x, p.least), (x, p.greatest)), ((x, p.low), (x, p.high)))
                        panel.mark(one, 3.6, x, p.value)
            panel.frame()
            panel.ticks_y(_TICKS, list(map(str, _TICKS)) if column == 0 else None)
            panel.ticks_x(places, labels if number == len(lines) - 1 else None, grid=False)
            if heads[number]:
                panel.head(titles[group], pad=4)
            if column == 0:
                middle = 0.1, top + tall / 2
                figure.write(middle, heading(frame.columns[key]), ha="center", va="center", rotation=90, fontsize=BASE)
        top += tall + _FOOT
    # Under the middle of the panels, where it does not reach over the edge so.
    half = text_width(plot.x_label) * BASE / SMALL / 144 + 0.04
    centre = max(width / 2, min((left + width) / 2, width - half))
    figure.supxlabel(plot.x_label, x=centre / width, y=0.05 / figure.get_figheight())
    legend.draw(figure)
    return figure.finish()
