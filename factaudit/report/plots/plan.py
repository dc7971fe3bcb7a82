"""How wide intervals will be by the number of labels, with the range that a pilot leaves open."""

from __future__ import annotations

import math
from collections.abc import Sequence

from factaudit.audit.core.rows import Row
from factaudit.report.plots.canvas import GUIDE, PAD, Canvas, Stroke
from factaudit.report.plots.legend import legend_of
from factaudit.report.plots.style import (
    BASE,
    COLUMN,
    INK,
    Series,
    in_print,
    limits_of,
    look_of,
    styled,
    text_width,
    ticks_of,
    wrap,
)

_TALL, _HEAD, _FOOT = 1.7, 0.25, 0.12


@styled
def draw_plan(rows: Sequence[Row], width: float) -> Canvas:
    """The rows of `factaudit.estimate.plan`: mean width over systems against labels, a panel per dataset."""
    mean = [row for row in rows if row["system"] == "__mean__" and row["width"] is not None]
    datasets = list(dict.fromkeys(row["dataset"] for row in mean))
    methods = list(dict.fromkeys(row["method"] for row in mean))
    looks = [Series(name, name, *look_of(at)) for at, name in enumerate(methods)]
    budgets = sorted({row["n_labels"] for row in mean})
    legend = legend_of(looks, COLUMN)
    figure = Canvas(COLUMN, legend.height + (_TALL + _HEAD + _FOOT) * len(datasets) + 0.32)
    left = 0.2 + text_width("100") / 72 + PAD
    air = 0.05 * math.log(budgets[-1] / budgets[0]) or 0.5 if budgets else 0.5
    for number, dataset in enumerate(datasets):
        mine = [row for row in mean if row["dataset"] == dataset]
        high = limits_of([0.0, *(100 * row["width_high"] for row in mine), 100 * width])[1]
        top = legend.height + number * (_TALL + _HEAD + _FOOT) + _HEAD
        sides = (math.log(budgets[0]) - air, math.log(budgets[-1]) + air), (0.0, high)
        panel = figure.panel(left, top, COLUMN - left - 0.12, _TALL, *sides)
        for one in looks:
            of = [row for row in mine if row["method"] == one.key]
            x = [math.log(row["n_labels"]) for row in of]
            ends = [[(at, 100 * row[f"width_{end}"]) for at, row in zip(x, of, strict=True)] for end in ("low", "high")]
            panel.area(one.colour, [*ends[0], *reversed(ends[1])])
            points = [(at, 100 * row["width"]) for at, row in zip(x, of, strict=True)]
            panel.line(Stroke(0.9, 3), one.colour, *points)
            for point in points:
                panel.mark(one, 3.6, *point)
        panel.line(GUIDE, INK, (sides[0][0], 100 * width), (sides[0][1], 100 * width))
        panel.frame()
        last = number == len(datasets) - 1
        panel.ticks_x(list(map(math.log, budgets)), [f"{n:,}" for n in budgets] if last else None, grid=False)
        ticks = ticks_of(0.0, high)
        panel.ticks_y(ticks, list(map(in_print, ticks)))
        panel.head("\n".join(wrap(dataset, panel.width * 72, bold=True, lines=1)))
        middle = 0.1, top + _TALL / 2
        figure.write(middle, "width (points)", ha="center", va="center", rotation=90, fontsize=BASE)
    middle = left + (COLUMN - left) / 2, figure.get_figheight() - 0.05
    figure.write(middle, "labels in all", ha="center", va="bottom", fontsize=BASE)
    legend.draw(figure)
    return figure.finish()
