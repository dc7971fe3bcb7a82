"""Line plots: shares over an ordered column, a panel for each group and share."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from factaudit.audit.core.plot import Lines
from factaudit.audit.core.words import heading
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import COLUMN, figure_with_legend, marker_of, segments, wrap


def draw_lines(plot: Lines, frame: Frame) -> Figure:
    """`Lines` of shares (percent)."""
    groups, series = frame.groups(), frame.series("evaluator")
    below = len(plot.keys) * (len(groups) if frame.narrow else 1)
    width = COLUMN if len(groups) == 1 else frame.width
    figure, legend = figure_with_legend(width, 1.8 * below, series)
    axes = figure.subplots(below, len(groups) * len(plot.keys) // below, sharex=True, sharey=True, squeeze=False)
    if frame.narrow:  # groups below each other
        axes = axes.reshape(len(groups), len(plot.keys)).T
    places = sorted({row[plot.x] for row in frame.rows})
    side = (width - 0.5) / (1 if frame.narrow else len(groups))
    for column, group in enumerate(groups):
        for line, key in enumerate(plot.keys):
            axis: Axes = axes[line][column]
            for position, one in enumerate(series):
                floor = one.line is not None
                shift = 0 if floor else (position - (len(series) - 1) / 2) * 0.06
                mine = [r for r in frame.rows if str(r["evaluator"]) == one.key and frame.group(r) == group]
                mine.sort(key=lambda row: row[plot.x])
                drawn = [(row[plot.x] + shift, frame.point(row, key)) for row in mine]
                drawn = [(x, p) for x, p in drawn if p.value is not None]
                look = marker_of(one, 3.6)
                if not floor:
                    segments(axis, one, [((x, p.least), (x, p.greatest)) for x, p in drawn], bounds=True)
                    segments(axis, one, [((x, p.low), (x, p.high)) for x, p in drawn])
                    look |= {"ls": "-", "lw": 0.9}
                axis.plot([x for x, _ in drawn], [p.value for _, p in drawn if p.value is not None], **look, zorder=3)
            axis.set_ylim(-4, 104)
            axis.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])
            axis.set_xticks(places, [str(place) for place in places])
            axis.grid(True, axis="y")
            if line == 0:
                axis.set_title("\n".join(wrap(group, (side - 0.1) * 72, bold=True)), loc="left", pad=4)
            if column == 0 or frame.narrow:
                axis.set_ylabel(heading(frame.columns[key]))
    figure.supxlabel(plot.x_label)
    legend()
    return figure
