"""How wide intervals will be by the number of labels, with the range that a pilot leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from factaudit.audit.core.result_rows import Row
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PlotSeriesStyle,
    choose_plot_series_style,
    compute_plot_axis_limits,
    measure_text_width,
    use_report_style,
    wrap_figure_label,
)
from factaudit.report.plots.panel_layout import (
    PAD,
    FigureLayout,
    PanelPointWithInterval,
    PlotPanel,
    lay_out_figure_legend,
    set_panel_number_axis,
    set_title,
)
from factaudit.report.plots.plot_data import list_unique

#: Inches of a panel, of its title, and of what is under it.
_PANEL_HEIGHT, _HEAD, _FOOT = 1.7, 0.25, 0.12


def draw_label_plan_plot(plan_rows: Sequence[Row], target_width: float) -> Figure:
    """The rows of `factaudit.estimate.label_plan`: mean width over systems against labels, a panel per dataset."""
    with use_report_style():
        mean = [row for row in plan_rows if row["system"] == "__mean__" and row["width"] is not None]
        datasets = list_unique(row["dataset"] for row in mean)
        methods = list_unique(row["method"] for row in mean)
        looks = [
            PlotSeriesStyle(name, name, *choose_plot_series_style(at), size=3.6) for at, name in enumerate(methods)
        ]
        legend = lay_out_figure_legend(looks, COLUMN_WIDTH)
        pitch = _PANEL_HEIGHT + _HEAD + _FOOT
        panels = [
            _place_label_plan_panel(
                mean, dataset, looks, target_width, legend.height + at * pitch + _HEAD, dataset == datasets[-1]
            )
            for at, dataset in enumerate(datasets)
        ]
        return FigureLayout(COLUMN_WIDTH, legend.height + pitch * len(datasets) + 0.32, panels, legend).draw().figure


def _place_label_plan_panel(
    mean: list[Row], dataset: str, looks: list[PlotSeriesStyle], target_width: float, top: float, is_last: bool
) -> PlotPanel:
    budgets = sorted({row["n_labels"] for row in mean})
    rows = {one: [r for r in mean if r["dataset"] == dataset and r["method"] == one.key] for one in looks}
    highs = [100 * row["width_high"] for mine in rows.values() for row in mine]
    left = 0.2 + measure_text_width("100") / 72 + PAD
    width = COLUMN_WIDTH - left - 0.12
    margin = (budgets[-1] / budgets[0]) ** 0.05 if len(budgets) > 1 else 1.6

    def draw(ax: Axes) -> None:
        set_panel_number_axis(ax, "y", (0.0, compute_plot_axis_limits([0.0, *highs, 100 * target_width])[1]))
        ax.set_xscale("log")
        ax.set(xlim=(budgets[0] / margin, budgets[-1] * margin), xlabel="labels in all", ylabel="width (points)")
        ax.set_xticks(budgets, [f"{n:,}" for n in budgets])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.grid(False)
        set_title(ax, wrap_figure_label(dataset, width * 72, bold=True, max_lines=1)[0])
        for one, mine in rows.items():
            labels = [row["n_labels"] for row in mine]
            low, middle, high = ([100 * row[f"width{end}"] for row in mine] for end in ("_low", "", "_high"))
            ax.fill_between(labels, low, high, color=one.colour, alpha=0.15, lw=0)
            ax.plot(labels, middle, color=one.colour, lw=0.9)
        ax.axhline(100 * target_width, color=rcParams["text.color"], lw=0.7, ls=(0, (4, 2)))

    points = [
        PanelPointWithInterval(one, row["n_labels"], 100 * row["width"]) for one, mine in rows.items() for row in mine
    ]
    return PlotPanel(dataset, left, top, width, _PANEL_HEIGHT, draw, points, has_bottom_labels=is_last)
