"""How is a dot plot drawn? Groups down the side, a panel for each figure, a marker for each series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes

from factaudit.audit.core.figure_formatting import format_heading_with_unit
from factaudit.audit.core.plot_specs import DotPlotSpec
from factaudit.report.plots import panel_layout
from factaudit.report.plots.figure_style import (
    PAGE_WIDTH,
    PlotSeriesStyle,
    compute_plot_axis_limits,
    line_height,
    measure_text_width,
    wrap_figure_label,
)
from factaudit.report.plots.plot_data import PlotFigureData, list_unique, scale_of_unit
from factaudit.report.plots.plot_groups import MAX_POINTS_PER_PLACE

#: Inches between panels, in which half a label of a tick has room; and under a panel, for the labels of its ticks.
_PANEL_GAP, _FOOT = 0.22, 0.27


@dataclass(frozen=True)
class DotPlotPanel:
    """What a panel shows; panels of one unit share their limits, where they have none of their own."""

    key: str
    label: str
    unit: str = ""
    limits: tuple[float, float] | None = None
    guide: float | None = None


def lay_out_dot_plot(plot: DotPlotSpec, frame: PlotFigureData) -> panel_layout.FigureLayout:
    """A panel for each key, a group's series side by side."""
    panels = []
    for key in plot.keys:
        guide, limits = plot.guides.get(key), plot.limits.get(key)
        panels.append(
            DotPlotPanel(
                key,
                plot.labels.get(key, format_heading_with_unit(frame.columns[key])),
                frame.columns[key].unit,
                None if limits is None else _widen_limits(limits, frame.unit_scale(key)),
                None if guide is None else guide * frame.unit_scale(key),
            )
        )
    points = [
        frame.make_point(row, key, key, frame.label_group(row), str(row[plot.series]))
        for row in frame.rows
        for key in plot.keys
    ]
    references = []
    if plot.reference is not None:
        of_group = {frame.label_group(row): row for row in frame.rows}
        references = [frame.make_point(row, plot.reference, plot.keys[0], group) for group, row in of_group.items()]
    label = "" if plot.reference is None else frame.columns[plot.reference].heading
    return _lay_out_dot_panels(points, panels, frame.list_series(plot.series), references, label)


def _compute_shared_dot_panel_limits(
    panels: Sequence[DotPlotPanel], points: Sequence[panel_layout.PlotPoint]
) -> dict[str, tuple[float, float]]:
    """The range of each panel: one for all panels of a unit, so that they can be compared."""
    found = {}
    for panel in panels:
        alike = {p.key for p in panels if p.limits is None and p.unit == panel.unit}
        ends = [end for p in points if p.panel in alike for end in p.list_ends()]
        found[panel.key] = panel.limits or compute_plot_axis_limits(ends, scale_of_unit(panel.unit))
    return found


def _merge_overlapping_dot_plot_points(points: Sequence[panel_layout.PlotPoint]) -> Sequence[panel_layout.PlotPoint]:
    """The points as they are; without intervals where several share a place, and of many their spread."""
    places: dict[tuple[str, str, str], list[panel_layout.PlotPoint]] = {}
    for point in points:
        if point.value is not None:
            places.setdefault((point.panel, point.group, point.series), []).append(point)
    fullest = max(map(len, places.values()), default=0)
    if fullest <= 1:
        return points
    if fullest <= MAX_POINTS_PER_PLACE:
        return [replace(p, low=None, high=None, lower_bound=None, upper_bound=None) for p in points]
    spread = []
    for found in places.values():
        least, low, median, high, most = np.quantile([point.value for point in found], (0, 0.25, 0.5, 0.75, 1)).tolist()
        spread.append(
            replace(found[0], value=median, low=low, high=high, lower_bound=least, upper_bound=most, claim_query="")
        )
    return spread


def _widen_limits(limits: tuple[float, float], scale: float) -> tuple[float, float]:
    air = 0.025 * (limits[1] - limits[0])
    return (limits[0] - air) * scale, (limits[1] + air) * scale


def _lay_out_dot_panels(
    points: Sequence[panel_layout.PlotPoint],
    panels: Sequence[DotPlotPanel],
    series: Sequence[PlotSeriesStyle],
    references: Sequence[panel_layout.PlotPoint],
    reference_label: str,
) -> panel_layout.FigureLayout:
    """Groups down the side, a panel per figure, a marker per series, series side by side within a group.

    references: lines across a group, which are the same for all series. Floors are such lines, too.
    """
    points = _merge_overlapping_dot_plot_points(points)
    named = {p.series for p in points}
    shown = {one.key: one for one in series if one.key in named}
    slots = [one.key for one in shown.values() if one.dashes is None]
    step = 0.76 / max(1, len(slots))
    shift = {slot: (i - (len(slots) - 1) / 2) * step for i, slot in enumerate(slots)}
    totals = {p.group for p in points if p.is_total}
    groups = list_unique(p.group for p in sorted(points, key=lambda p: p.group in totals))
    position = {group: i for i, group in enumerate(groups)}
    limits = _compute_shared_dot_panel_limits(panels, [*points, *references])

    names = [wrap_figure_label(group, 108, bold=group in totals) for group in groups]
    longest = max(
        measure_text_width(line, group in totals) for group, lines in zip(groups, names, strict=True) for line in lines
    )
    left = longest / 72 + panel_layout.PAD + 0.06
    width = (PAGE_WIDTH - left - 0.15 - _PANEL_GAP * (len(panels) - 1)) / len(panels)
    titles = ["\n".join(wrap_figure_label(panel.label, (width + 0.1) * 72, bold=True)) for panel in panels]
    group_height = max(0.066 * len(slots) + 0.08, line_height(max(map(len, names))) + 0.05, 0.2)
    head = 0.08 + line_height(max(title.count("\n") + 1 for title in titles))
    line = PlotSeriesStyle("", reference_label, rcParams["text.color"], "|", size=9.0)
    legend = panel_layout.lay_out_figure_legend(
        [*shown.values(), *([line] if any(p.value is not None for p in references) else [])], PAGE_WIDTH
    )

    def place_panel(number: int, panel: DotPlotPanel, title: str) -> panel_layout.PlotPanel:
        mine = [p for p in points if p.panel == panel.key and p.value is not None]
        lines: list[tuple[Any, float | None, str, str]] = [
            ("-", p.value, p.group, line.colour) for p in references if p.panel == panel.key
        ]
        lines += [(d, p.value, p.group, shown[p.series].colour) for p in mine if (d := shown[p.series].dashes)]

        def draw(ax: Axes) -> None:
            panel_layout.set_panel_number_axis(ax, limits[panel.key])
            panel_layout.set_panel_name_axis(
                ax, ["\n".join(lines) for lines in names], [position[group] for group in totals]
            )
            panel_layout.set_title(ax, title)
            if totals and len(totals) < len(groups):
                ax.axhline(len(groups) - len(totals) - 0.5, color=rcParams["axes.edgecolor"], lw=0.6, zorder=1)
            if panel.guide is not None:
                panel_layout.draw_guide(ax, panel.guide)
            for dashes in dict.fromkeys(look for look, *_ in lines):
                ends = [
                    (colour, ((x, position[group] - 0.4), (x, position[group] + 0.4)))
                    for look, x, group, colour in lines
                    if look == dashes
                ]
                panel_layout.draw_panel_segments(ax, ends, 1.2, 1, 2, dashes)
            if not mine and not lines:
                panel_layout.draw_undefined_panel_text(ax)

        placed = [
            panel_layout.PlacedPoint(one, position[p.group] + shift[one.key], p)
            for one in shown.values()
            for p in mine
            if p.series == one.key and one.dashes is None
        ]
        place = left + number * (width + _PANEL_GAP), legend.height + head, width, group_height * len(groups)
        return panel_layout.PlotPanel(panel.key, *place, draw, placed, has_left_labels=number == 0)

    placed_panels = [place_panel(number, *each) for number, each in enumerate(zip(panels, titles, strict=True))]
    height = legend.height + head + group_height * len(groups) + _FOOT
    return panel_layout.FigureLayout(PAGE_WIDTH, height, placed_panels, legend)
