"""How is a line plot drawn? Shares over an ordered column, a panel for each group and share."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes

from factaudit.audit.core.figure_formatting import format_heading_with_unit
from factaudit.audit.core.plot_specs import LinePlotSpec
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PAGE_WIDTH,
    PlotSeriesStyle,
    line_height,
    measure_text_width,
    wrap_figure_label,
)
from factaudit.report.plots.panel_layout import PAD, FigureLayout, PlotPanel, lay_out_figure_legend, set_title
from factaudit.report.plots.plot_data import PlotFigureData, PlotPoint

#: Inches between panels, under a panel, and of a panel.
_PANEL_GAP, _FOOT, _PANEL_HEIGHT = 0.12, 0.1, 1.45


def lay_out_line_plot(plot: LinePlotSpec, frame: PlotFigureData) -> FigureLayout:
    """Shares (percent): a column of panels for each group, a row for each key; narrow, one group below the other."""
    groups, series = frame.list_groups(), frame.list_series(plot.series)
    width = COLUMN_WIDTH if len(groups) == 1 else PAGE_WIDTH
    n_columns = len(groups)
    left = 0.2 + measure_text_width("100") / 72 + PAD  # the name of the figure stands upright beside the ticks
    side = (width - left - 0.1 - _PANEL_GAP * (n_columns - 1)) / n_columns
    titles = {group: "\n".join(wrap_figure_label(group, side * 72, bold=True)) for group in groups}
    head = 0.08 + line_height(max(title.count("\n") + 1 for title in titles.values()))
    places = sorted({row[plot.x] for row in frame.rows})
    # Series stand beside each other at a place, within its share of the axis, and inside the panel at its ends.
    step = min((b - a for a, b in pairwise(places)), default=1)
    shift = step * min(0.06, 0.8 / len(series))
    margin = max(0.05 * (places[-1] - places[0]) or 0.5, (len(series) + 1) / 2 * shift)
    n_labels = max(1, int(72 * side / (max(measure_text_width(str(place)) for place in places) + 6)))
    legend = lay_out_figure_legend(series, width)

    def place_panel(group: str, key: str, left: float, top: float, is_first: bool, is_last: bool) -> PlotPanel:
        mine = sorted((r for r in frame.rows if frame.label_group(r) == group), key=lambda row: row[plot.x])

        def list_points(one: PlotSeriesStyle, aside: float) -> list[tuple[float, PlotPoint]]:
            rows = [row for row in mine if str(row[plot.series]) == one.key]
            points = [(row[plot.x] + aside, frame.make_point(row, key)) for row in rows]
            return [(x, point) for x, point in points if point.value is not None]

        middle = (len(series) - 1) / 2
        found = [
            (one, list_points(one, 0 if one.dashes is not None else (at - middle) * shift))
            for at, one in enumerate(series)
        ]

        def draw(ax: Axes) -> None:
            ax.set(xlim=(places[0] - margin, places[-1] + margin), ylim=(-4, 104), yticks=range(0, 101, 25))
            ax.set_xticks(places[:: -(-len(places) // n_labels)])
            ax.xaxis.set_major_formatter("{x:g}")
            ax.xaxis.grid(False)
            if key == plot.keys[0]:
                set_title(ax, titles[group], pad=4)
            ax.set_ylabel(format_heading_with_unit(frame.columns[key]))
            for one, points in found:
                values = [point.value or 0.0 for _, point in points]
                look = {"ls": one.dashes, "lw": 1.1} if one.dashes is not None else {"lw": 0.9}
                if len(points) > 1:
                    ax.plot([x for x, _ in points], values, color=one.colour, zorder=2.5, **look)

        placed = [point.place_over(one, x) for one, points in found if one.dashes is None for x, point in points]
        name = " · ".join(filter(None, (group if len(groups) > 1 else "", key if len(plot.keys) > 1 else "")))
        return PlotPanel(name or key, left, top, side, _PANEL_HEIGHT, draw, placed, is_first, is_last)

    panels, top = [], legend.height
    # A row of panels for each key; where groups stand below each other, each group with its title.
    rows = (
        [([group], key) for group in groups for key in plot.keys]
        if n_columns == 1
        else [(groups, k) for k in plot.keys]
    )
    for number, (members, key) in enumerate(rows):
        top += head if key == plot.keys[0] else 0.0
        for column, group in enumerate(members):
            place = left + column * (side + _PANEL_GAP), top
            panels.append(place_panel(group, key, *place, column == 0, number == len(rows) - 1))
        top += _PANEL_HEIGHT + _FOOT
    return FigureLayout(width, top + 0.32, panels, legend, plot.x_label)
