"""Forest plots: a line for each row with its interval, and its figure in print beside it."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from factaudit.audit.core.plot import Forest
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import figure as in_words
from factaudit.audit.core.words import heading, span
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import (
    INK,
    PALE,
    SMALL,
    Series,
    figure_with_legend,
    limits_of,
    marker_of,
    segments,
    text_width,
    ticks_of,
    wrap,
)

_LINE = 0.19


def draw_forest(plot: Forest, frame: Frame) -> Figure:
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
    shown = [one for one in series if one.label]
    height = sum(_LINE * len(rows) + 0.3 for rows in groups.values()) + 0.3
    drawing, legend = figure_with_legend(frame.width, height, shown)
    ratios = [_LINE * len(rows) + 0.3 for rows in groups.values()]
    axes = drawing.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=ratios).ravel()
    every = [frame.point(row, plot.key) for row in frame.rows]
    guide = None if plot.guide is None else plot.guide * frame.scale(plot.key)
    limits = limits_of([end for p in every for end in p.ends()] + ([] if guide is None else [guide]))
    widest = max((text_width(printed(row)) for row in frame.rows), default=0) / 72
    for axis, (group, rows) in zip(axes, groups.items(), strict=True):
        for place, row in enumerate(rows):
            one = look[str(row[plot.series]) if plot.series else ""]
            point = frame.point(row, plot.key)
            if place % 2 == 0:
                axis.axhspan(place - 0.5, place + 0.5, color=PALE, lw=0, zorder=0)
            segments(axis, one, [((point.least, place), (point.greatest, place))], bounds=True)
            segments(axis, one, [((point.low, place), (point.high, place))])
            if point.value is not None and not math.isnan(point.value):
                axis.plot([point.value], [place], **marker_of(one, 4.2), zorder=3)
            axis.annotate(
                printed(row),
                (1, place),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
                annotation_clip=False,
            )
        if guide is not None:
            axis.axvline(guide, color="#888888", lw=0.7, ls=(0, (4, 2)), zorder=1)
        axis.set(xlim=limits, ylim=(len(rows) - 0.5, -0.5))
        axis.set_yticks(
            range(len(rows)), ["\n".join(wrap(line_of(row), 75 if frame.narrow else 150, lines=1)) for row in rows]
        )
        axis.tick_params(axis="y", length=0)
        axis.set_xticks(ticks_of(*limits), [f"{tick:g}".replace("-", "−") for tick in ticks_of(*limits)])
        axis.grid(True, axis="x")
        axis.set_axisbelow(True)
        axis.set_title("\n".join(wrap(group, max(1.0, frame.width - widest - 2.2) * 72, bold=True)), loc="left", pad=4)
    axes[-1].set_xlabel(heading(column))
    legend()
    return drawing
