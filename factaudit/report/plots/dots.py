"""Dot plots: groups down the side, a panel for each figure, a marker for each series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.figure import Figure

from factaudit.audit.core.plot import DotPlot, Flips
from factaudit.audit.core.words import figure as in_words
from factaudit.audit.core.words import heading
from factaudit.report.plots.marks import Frame, Point, unique
from factaudit.report.plots.style import (
    INK,
    PALE,
    SMALL,
    Series,
    figure_with_legend,
    limits_of,
    link_point,
    look_of,
    marker_of,
    n_lines,
    segments,
    ticks_of,
    wrap,
)

#: What is the same for all series of a group.
_REFERENCE = Series("\0reference", "", INK, "|", size=9.0)


@dataclass(frozen=True)
class Panel:
    key: str
    label: str
    #: Panels of one unit share their limits, where they have none of their own.
    unit: str = ""
    limits: tuple[float, float] | None = None
    line: float | None = None


def draw_dots(plot: DotPlot, frame: Frame) -> Figure:
    """A `DotPlot`."""
    if plot.panels is not None:
        return _panel_per_value(plot, plot.panels, frame)
    panels = []
    for key in plot.keys:
        guide, limits = plot.guides.get(key), plot.limits.get(key)
        panels.append(
            Panel(
                key,
                plot.labels.get(key, heading(frame.columns[key])),
                frame.columns[key].unit,
                None if limits is None else _with_air(limits, frame.scale(key)),
                None if guide is None else guide * frame.scale(key),
            )
        )
    points = [
        frame.point(row, key, key, frame.group(row), str(row[plot.series])) for row in frame.rows for key in plot.keys
    ]
    series = frame.series(plot.series)
    if plot.reference is None:
        return _dot_plot(points, _shared_limits(panels, points), series, frame)
    of_group = {frame.group(row): row for row in frame.rows}
    points += [frame.point(row, plot.reference, plot.keys[0], group, _REFERENCE.key) for group, row in of_group.items()]
    series.append(replace(_REFERENCE, label=frame.columns[plot.reference].heading))
    return _dot_plot(points, _shared_limits(panels, points), series, frame, centre=_REFERENCE.key)


def _panel_per_value(plot: DotPlot, column: str, frame: Frame) -> Figure:
    key = plot.keys[0]
    label = plot.labels.get(key, heading(frame.columns[key]))
    panels = [
        Panel(value, f"{in_words(frame.columns[column], value)}\n{label}", frame.columns[key].unit)
        for value in frame.named(column)
    ]
    series = frame.series(plot.series)
    points: list[Point] = []
    for row in frame.rows:
        place = (str(row[column]), frame.group(row))
        first = frame.point(row, key, *place, str(row[plot.series]))
        if plot.beyond is not None and row.get("evaluator") not in frame.floors:
            last = frame.point(row, plot.beyond, *place, f"{row[plot.series]}\0beyond")
            # The line runs from the one to the other.
            points += [replace(first, low=first.value, high=last.value), replace(last, low=None, high=None)]
        else:
            points.append(first)
        if plot.reference is not None:
            points.append(frame.point(row, plot.reference, *place, _REFERENCE.key))
    points = list({(p.panel, p.group, p.series): p for p in points}.values())
    if plot.beyond is not None:
        word = plot.labels.get(plot.beyond, frame.columns[plot.beyond].heading)
        series = [
            each
            for one in series
            for each in (
                one,
                replace(one, key=f"{one.key}\0beyond", label=f"{one.label}, {word}", filled=False, slot=one.key),
            )
            if one.line is None or each is one
        ]
    if plot.reference is not None:
        series.append(replace(_REFERENCE, label=frame.columns[plot.reference].heading))
    ncols = 2 if len(panels) == 4 else min(3, len(panels))
    return _dot_plot(points, _shared_limits(panels, points), series, frame, ncols=ncols, centre=_REFERENCE.key)


def draw_flips(plot: Flips, frame: Frame) -> Figure:
    """`Flips`: the first value of ``by`` is hollow, the others are filled."""
    panels = [Panel(key, heading(frame.columns[key]), frame.columns[key].unit) for key in plot.keys]
    first, second = plot.pair

    def pair(row: dict[str, object]) -> str:
        return f"{row[first]} → {row[second]}"

    points = [
        frame.point(row, key, key, frame.group(row), f"{pair(row)}, {row[plot.by]}")
        for row in frame.rows
        for key in plot.keys
    ]
    series = [
        Series(f"{each}, {value}", f"{each}, {word}", *look_of(position), filled=number > 0)
        for position, each in enumerate(unique(pair(row) for row in frame.rows))
        for number, (value, word) in enumerate(plot.values.items())
    ]
    return _dot_plot(points, _shared_limits(panels, points), series, frame)


def _shared_limits(panels: Sequence[Panel], points: Sequence[Point]) -> list[Panel]:
    """The panels with one common range for each unit, so that they can be compared."""
    found = []
    for panel in panels:
        alike = {p.key for p in panels if p.limits is None and p.unit == panel.unit}
        common = limits_of([end for p in points if p.panel in alike for end in p.ends()])
        found.append(panel if panel.limits else replace(panel, limits=common))
    return found


def _with_air(limits: tuple[float, float], scale: float) -> tuple[float, float]:
    air = 0.025 * (limits[1] - limits[0])
    return (limits[0] - air) * scale, (limits[1] + air) * scale


def _dot_plot(
    points: Sequence[Point],
    panels: Sequence[Panel],
    series: Sequence[Series],
    frame: Frame,
    ncols: int | None = None,
    centre: str | None = None,
) -> Figure:
    """Groups down the side, a panel per figure, a marker per series, series side by side within a group.

    The series ``centre`` is drawn across the whole group.
    """
    shown = [one for one in series if any(p.series == one.key for p in points)]
    slots = unique(one.slot or one.key for one in shown if one.key != centre and one.line is None)
    place = {slot: i for i, slot in enumerate(slots)}
    groups = unique(p.group for p in points if not p.total) + unique(p.group for p in points if p.total)
    at = {group: i for i, group in enumerate(groups)}
    totals = {p.group for p in points if p.total}
    step = 0.76 / max(1, len(slots))

    labels = [wrap(group, 62 if frame.narrow else 108, bold=group in totals) for group in groups]
    line_height = max(0.066 * len(slots) + 0.08, 0.135 * max(map(len, labels)) + 0.05, 0.2)
    ncols = 1 if frame.narrow else ncols or len(panels)
    nrows = math.ceil(len(panels) / ncols)
    titles = max(n_lines(panel.label) for panel in panels)
    height = nrows * (line_height * len(groups) + 0.2 + 0.16 * titles + 0.1)
    figure, legend = figure_with_legend(frame.width, height, shown)
    axes = figure.subplots(nrows, ncols, squeeze=False).ravel()
    width = (frame.width - (1.0 if frame.narrow else 1.6)) / ncols
    for number, (axis, panel) in enumerate(zip(axes, panels, strict=False)):
        mine = [p for p in points if p.panel == panel.key]
        for group in groups:
            if at[group] % 2 == 0:
                axis.axhspan(at[group] - 0.5, at[group] + 0.5, color=PALE, lw=0, zorder=0)
        if totals and len(totals) < len(groups):
            axis.axhline(len(groups) - len(totals) - 0.5, color="#888888", lw=0.6, zorder=1)
        if panel.line is not None:
            axis.axvline(panel.line, color="#888888", lw=0.7, ls=(0, (4, 2)), zorder=1)
        for one in shown:
            drawn = [p for p in mine if p.series == one.key and p.value is not None]
            across = one.key == centre or one.line is not None
            shift = 0.0 if across else (place[one.slot or one.key] - (len(slots) - 1) / 2) * step
            y = [at[p.group] + shift for p in drawn]
            if across:
                ends = [v - 0.4 for v in y], [v + 0.4 for v in y]
                axis.vlines([p.value for p in drawn], *ends, one.colour, lw=1.2, linestyles=[one.line or "solid"])
                continue
            for p, v in zip(drawn, y, strict=True):
                link_point(axis, p.value, v, p.asked, p.title)  # type: ignore[arg-type]
            segments(axis, one, [((p.least, v), (p.greatest, v)) for p, v in zip(drawn, y, strict=True)], bounds=True)
            segments(axis, one, [((p.low, v), (p.high, v)) for p, v in zip(drawn, y, strict=True)])
            axis.plot([p.value for p in drawn], y, **marker_of(one, one.size), zorder=3)
        if all(p.value is None for p in mine):
            axis.text(0.5, 0.5, "undefined", ha="center", va="center", transform=axis.transAxes, fontsize=SMALL)
        limits = panel.limits or limits_of([end for p in mine for end in p.ends()])
        axis.set(xlim=limits, ylim=(len(groups) - 0.5, -0.5))
        ticks = ticks_of(*limits)
        axis.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        axis.grid(True, axis="x")
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
        label = "\n".join(line for part in panel.label.split("\n") for line in wrap(part, width * 72, bold=True))
        axis.set_title(label, loc="left", pad=5)
        axis.set_yticks([])
        if number % ncols == 0:
            axis.set_yticks(range(len(groups)), ["\n".join(lines) for lines in labels])
            for tick, group in zip(axis.get_yticklabels(), groups, strict=False):
                tick.set_fontweight("bold" if group in totals else "normal")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    legend()
    return figure
