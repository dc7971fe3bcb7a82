"""Scatter plots: one figure against another, with the diagonal on which they are equal."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from factaudit.audit.core.plot import Scatter
from factaudit.audit.core.rows import is_total
from factaudit.audit.core.words import heading
from factaudit.report.plots.marks import Frame
from factaudit.report.plots.style import (
    COLUMN,
    Series,
    figure_with_legend,
    limits_of,
    link_point,
    look_of,
    marker_of,
    segments,
    ticks_of,
    wrap,
)


def draw_scatter(plot: Scatter, frame: Frame) -> Figure:
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
    side = (width - 0.45) / ncols
    figure, legend = figure_with_legend(width, nrows * (side + (0.02 if ncols > 1 else -0.25)) + 0.25, series)
    axes = figure.subplots(nrows, ncols, squeeze=False).ravel()
    for axis, title in zip(axes, titles, strict=False):
        seen: list[float] = []
        for one in series:
            mine = [row for row in shown if panel_of(row) == title and series_of(row) == one.key]
            pairs = [(frame.point(row, plot.x), frame.point(row, plot.y)) for row in mine]
            pairs = [(x, y) for x, y in pairs if x.value is not None and y.value is not None]
            segments(axis, one, [((x.value, y.least), (x.value, y.greatest)) for x, y in pairs], bounds=True)
            segments(axis, one, [((x.value, y.low), (x.value, y.high)) for x, y in pairs])
            segments(axis, one, [((x.low, y.value), (x.high, y.value)) for x, y in pairs])
            axis.plot([x.value for x, _ in pairs], [y.value for _, y in pairs], **marker_of(one, 4.2), zorder=3)
            for x, y in pairs:
                link_point(axis, x.value, y.value, y.asked, y.title)  # type: ignore[arg-type]
            seen += [end for pair in pairs for p in pair for end in p.ends()]
        low, high = limits_of(seen)
        axis.plot([low, high], [low, high], color="#888888", lw=0.8, ls=(0, (4, 2)), zorder=1)
        axis.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ticks = ticks_of(low, high)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.grid(True)
        axis.set_title("\n".join(wrap(title, (side - 0.35) * 72, bold=True)), loc="left", pad=4)
        if not seen:
            axis.text(0.5, 0.5, "undefined", ha="center", va="center", transform=axis.transAxes)
    for axis in axes[len(titles) :]:
        axis.set_visible(False)
    figure.supxlabel(_capital(heading(frame.columns[plot.x])))
    figure.supylabel(_capital(heading(frame.columns[plot.y])))
    legend()
    return figure


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
