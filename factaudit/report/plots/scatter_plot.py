"""How is a scatter plot drawn? One figure against another, with the diagonal on which they are equal."""

from __future__ import annotations

import math
from dataclasses import replace

from matplotlib import rcParams
from matplotlib.axes import Axes

from factaudit.audit.core.figure_formatting import format_heading_with_unit
from factaudit.audit.core.plot_specs import ScatterPlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.report.plots import panel_layout
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    PlotSeriesStyle,
    choose_plot_series_style,
    compute_plot_axis_limits,
    line_height,
    measure_text_width,
    wrap_figure_label,
)
from factaudit.report.plots.plot_data import PlotFigureData, list_unique
from factaudit.report.plots.plot_groups import (
    MAX_POINTS_WITH_INTERVALS,
    count_largest_scatter_panel_points,
    drop_total_rows,
)

#: Inches under a panel, for the labels of its ticks.
_FOOT = 0.27


def lay_out_scatter_plot(plot: ScatterPlotSpec, frame: PlotFigureData) -> panel_layout.FigureLayout:
    """A panel for each group with evaluators by colour, or a panel for each value of ``plot.panels``."""
    shown = drop_total_rows(plot, frame.rows)
    groups = list_unique(map(frame.label_group, shown))
    if plot.panels is None:
        names, series = groups, frame.list_series("evaluator")
    else:
        names = frame.list_values(plot.panels)
        series = [PlotSeriesStyle(group, group, *choose_plot_series_style(i)) for i, group in enumerate(groups)]
    crowded = count_largest_scatter_panel_points(plot, frame.rows, frame.group_columns) > MAX_POINTS_WITH_INTERVALS
    if crowded:
        series = [replace(one, size=2.4) for one in series]

    def panel_and_series(row: Row) -> tuple[str, str]:
        group = frame.label_group(row)
        return (group, str(row["evaluator"])) if plot.panels is None else (str(row[plot.panels]), group)

    n_columns = 4 if len(names) == 4 else min(3, len(names))
    width = COLUMN_WIDTH if n_columns == 1 else PAGE_WIDTH
    beside = measure_text_width("100") / 72 + panel_layout.PAD + 0.1
    side = (width - 0.28) / n_columns - beside
    titles = ["\n".join(wrap_figure_label(name, (side + 0.1) * 72, bold=True)) for name in names]
    head = 0.08 + line_height(max(title.count("\n") + 1 for title in titles))
    legend = panel_layout.lay_out_figure_legend(series, width)

    def place_panel(number: int, name: str, title: str) -> panel_layout.PlotPanel:
        found = []
        for row in shown:
            x, y = frame.make_point(row, plot.x), frame.make_point(row, plot.y)
            panel, key = panel_and_series(row)
            if panel == name and x.value is not None and y.value is not None:
                found.append((key, x, y))
        ends = [end for _, x, y in found for p in (x, y) for end in p.list_ends()]
        limits = compute_plot_axis_limits(ends, frame.unit_scale(plot.y))

        def draw(ax: Axes) -> None:
            panel_layout.set_panel_number_axis(ax, "x", limits)
            panel_layout.set_panel_number_axis(ax, "y", limits)
            panel_layout.set_title(ax, title, pad=4)
            ax.axline((0, 0), slope=1, color=rcParams["axes.edgecolor"], alpha=0.8, lw=0.7, ls=(0, (4, 2)), zorder=1)
            if not found:
                panel_layout.draw_undefined_panel_text(ax)

        points = [
            panel_layout.PanelPointWithInterval(one, x.value, y.value)
            if crowded
            else y.place_over(one, x.value, across=x)
            for one in series
            for key, x, y in found
            if key == one.key and x.value is not None and y.value is not None
        ]
        line, column = divmod(number, n_columns)
        left, top = 0.2 + column * (side + beside) + beside, legend.height + line * (head + side + _FOOT) + head
        return panel_layout.PlotPanel(name, left, top, side, side, draw, points)

    panels = [place_panel(number, *each) for number, each in enumerate(zip(names, titles, strict=True))]
    height = legend.height + math.ceil(len(names) / n_columns) * (head + side + _FOOT) + 0.17
    labels = [format_heading_with_unit(frame.columns[key]) for key in (plot.x, plot.y)]
    return panel_layout.FigureLayout(
        width, height, panels, legend, *(label[:1].upper() + label[1:] for label in labels)
    )
