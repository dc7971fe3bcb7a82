"""How is a forest plot drawn? A line for each row with its interval, and its figure in print beside it."""

from __future__ import annotations

import math

from matplotlib import rcParams
from matplotlib.axes import Axes

from factaudit.audit.core.figure_formatting import format_audit_figure, format_figure_range, format_heading_with_unit
from factaudit.audit.core.plot_specs import ForestPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.report.plots import panel_layout
from factaudit.report.plots.figure_style import (
    PAGE_WIDTH,
    PlotSeriesStyle,
    compute_plot_axis_limits,
    measure_text_width,
    wrap_figure_label,
)
from factaudit.report.plots.plot_data import PlotFigureData

#: Inches of a line, and of a panel's title and of what is under it.
_LINE, _HEAD, _FOOT = 0.19, 0.24, 0.1


def lay_out_forest_plot(plot: ForestPlotSpec, frame: PlotFigureData) -> panel_layout.FigureLayout:
    """One panel for each group, one below the other."""
    column = frame.columns[plot.key]
    series = frame.list_series(plot.series) if plot.series else [PlotSeriesStyle("", "", rcParams["text.color"], "s")]
    looks = {one.key: one for one in series}

    def print_figure(row: Row) -> str:
        low, high = row.get(f"{plot.key}_low"), row.get(f"{plot.key}_high")
        text = format_audit_figure(column, row.get(plot.key))
        return text if low is None or high is None else f"{text} ({format_figure_range(column, low, high)})"

    def name_row(row: Row) -> str:
        name = " · ".join(format_audit_figure(frame.columns[key], row.get(key)) for key in plot.labels)
        return wrap_figure_label(name, 150, max_lines=1)[0]

    groups = {group: [row for row in frame.rows if frame.label_group(row) == group] for group in frame.list_groups()}
    guide = None if plot.guide is None else plot.guide * frame.unit_scale(plot.key)
    ends = [end for row in frame.rows for end in frame.make_point(row, plot.key).list_ends()]
    true_values = {}
    if plot.truth in frame.columns:
        true_values = {frame.label_group(row): frame.make_point(row, str(plot.truth)).value for row in frame.rows}
    known = [value for value in true_values.values() if value is not None]
    drawn = [*ends, *known, *([] if guide is None else [guide])]
    limits = compute_plot_axis_limits(drawn, frame.unit_scale(plot.key), plot.has_zero)
    left = max((measure_text_width(name_row(row)) for row in frame.rows), default=0) / 72 + panel_layout.PAD + 0.06
    beside = max((measure_text_width(print_figure(row)) for row in frame.rows), default=0) / 72 + 0.12
    named = [one for one in series if one.label and plot.series not in plot.labels]  # else their lines have the names
    if known:
        heading = frame.columns[str(plot.truth)].heading
        named.append(PlotSeriesStyle("", heading, rcParams["text.color"], "|", size=9.0))
    legend = panel_layout.lay_out_figure_legend(named, PAGE_WIDTH)

    def place_panel(group: str, rows: list[Row], top: float, is_last: bool) -> panel_layout.PlotPanel:
        def draw(ax: Axes) -> None:
            panel_layout.set_panel_number_axis(ax, limits)
            panel_layout.set_panel_name_axis(ax, list(map(name_row, rows)))
            panel_layout.set_title(
                ax, "\n".join(wrap_figure_label(group, (PAGE_WIDTH - left) * 72, bold=True, max_lines=1)), pad=4
            )
            ax.set_xlabel(format_heading_with_unit(column))
            for position, row in enumerate(rows):
                ax.annotate(
                    print_figure(row),
                    (1, position),
                    xycoords=ax.get_yaxis_transform(),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center_baseline",
                    fontsize=rcParams["ytick.labelsize"],
                )
            if guide is not None:
                panel_layout.draw_guide(ax, guide)
            if (true_value := true_values.get(group)) is not None:
                ends = ((true_value, -0.5), (true_value, len(rows) - 0.5))
                panel_layout.draw_panel_segments(ax, [(rcParams["text.color"], ends)], 1.2, 1, 2)

        points = [
            panel_layout.PlacedPoint(looks[str(row[plot.series]) if plot.series else ""], position, point)
            for position, row in enumerate(rows)
            for point in [frame.make_point(row, plot.key)]
            if point.value is not None and not math.isnan(point.value)
        ]
        place = left, top, PAGE_WIDTH - left - beside, _LINE * len(rows)
        return panel_layout.PlotPanel(group, *place, draw, points, has_bottom_labels=is_last)

    panels, top = [], legend.height
    for number, (group, rows) in enumerate(groups.items(), start=1):
        panels.append(place_panel(group, rows, top + _HEAD, number == len(groups)))
        top += _HEAD + _LINE * len(rows) + _FOOT
    return panel_layout.FigureLayout(PAGE_WIDTH, top + 0.32, panels, legend)
