"""Dot plots: groups down the side, a panel for each figure, a marker for each series."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from factaudit.audit.core.plot import DotPlot, Flips
from factaudit.audit.core.words import figure as in_words
from factaudit.audit.core.words import heading
from factaudit.report.plots.canvas import ACROSS, GUIDE, LINE, PAD, RULE, Canvas
from factaudit.report.plots.legend import legend_of
from factaudit.report.plots.marks import Frame, Point, unique
from factaudit.report.plots.style import GUIDES, INK, Series, in_print, limits_of, look_of, text_width, ticks_of, wrap

#: Inches between panels, in which half a label of a tick has room.
_GAP = 0.22
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


def draw_dots(plot: DotPlot, frame: Frame) -> Canvas:
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


def _panel_per_value(plot: DotPlot, column: str, frame: Frame) -> Canvas:
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


def draw_flips(plot: Flips, frame: Frame) -> Canvas:
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
) -> Canvas:
    """Groups down the side, a panel per figure, a marker per series, series side by side within a group.

    The series ``centre`` is drawn across the whole group.
    """
    named = {p.series for p in points}
    shown = [one for one in series if one.key in named]
    slots = unique(one.slot or one.key for one in shown if one.key != centre and one.line is None)
    step = 0.76 / max(1, len(slots))
    shift = {slot: (i - (len(slots) - 1) / 2) * step for i, slot in enumerate(slots)}
    totals = {p.group for p in points if p.total}
    groups = unique(p.group for p in points if p.group not in totals) + unique(p.group for p in points if p.total)
    at = {group: i for i, group in enumerate(groups)}
    bold = [at[group] for group in totals]

    labels = [wrap(group, 62 if frame.narrow else 108, bold=group in totals) for group in groups]
    longest = max(
        text_width(line, group in totals) for group, lines in zip(groups, labels, strict=True) for line in lines
    )
    ncols = 1 if frame.narrow else ncols or len(panels)
    nrows = math.ceil(len(panels) / ncols)
    left = longest / 72 + PAD + 0.06
    width = (frame.width - left - 0.1 - _GAP * (ncols - 1)) / ncols
    titles = [
        "\n".join(line for part in panel.label.split("\n") for line in wrap(part, (width + 0.1) * 72, bold=True))
        for panel in panels
    ]
    line_height = max(0.066 * len(slots) + 0.08, LINE * max(map(len, labels)) + 0.05, 0.2)
    head, body = 0.08 + 0.145 * max(title.count("\n") + 1 for title in titles), line_height * len(groups)
    legend = legend_of(shown, frame.width)
    figure = Canvas(frame.width, legend.height + nrows * (head + body + 0.27))
    looks = {one.key: one for one in shown}
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        line, column = divmod(number, ncols)
        mine = [p for p in points if p.panel == panel.key]
        limits = panel.limits or limits_of([end for p in mine for end in p.ends()])
        top = legend.height + line * (head + body + 0.27) + head
        place = left + column * (width + _GAP), top, width, body
        drawn = figure.panel(*place, limits, (len(groups) - 0.5, -0.5))
        for even in range(0, len(groups), 2):
            drawn.band(even - 0.5, even + 0.5)
        if totals and len(totals) < len(groups):
            rule = len(groups) - len(totals) - 0.5
            drawn.line(RULE, GUIDES, (limits[0], rule), (limits[1], rule))
        if panel.line is not None:
            drawn.line(GUIDE, GUIDES, (panel.line, -0.5), (panel.line, len(groups) - 0.5))
        for p in sorted(mine, key=lambda p: list(looks).index(p.series)):
            if p.value is None:
                continue
            one, y = looks[p.series], at[p.group]
            if one.key == centre or one.line is not None:
                stroke = ACROSS if one.line is None else ACROSS._replace(dashes=one.line)
                drawn.line(stroke, one.colour, (p.value, y - 0.4), (p.value, y + 0.4))
                continue
            v = y + shift[one.slot or one.key]
            drawn.spans(one, ((p.least, v), (p.greatest, v)), ((p.low, v), (p.high, v)))
            drawn.mark(one, one.size, p.value, v, p.asked, p.title)
        if all(p.value is None for p in mine):
            drawn.undefined()
        ticks = ticks_of(*limits)
        drawn.frame()
        drawn.ticks_x(ticks, list(map(in_print, ticks)))
        drawn.head(title)
        if column == 0:
            drawn.name(range(len(groups)), ["\n".join(lines) for lines in labels], bold)
    legend.draw(figure)
    return figure.finish()
