"""Judges and systems over dates: shares with their intervals, and since when something moved."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from factaudit.audit.core.result_rows import Row
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PlotSeriesStyle,
    choose_plot_series_style,
    measure_text_width,
    use_report_style,
    wrap_figure_label,
)
from factaudit.report.plots.panel_layout import (
    PAD,
    FigureLayout,
    PanelPointWithInterval,
    PlotPanel,
    Segment,
    lay_out_figure_legend,
    set_title,
)
from factaudit.report.plots.plot_data import list_unique

#: Inches of a panel, of its title, and of what is under it.
_PANEL_HEIGHT, _HEAD, _FOOT = 1.4, 0.25, 0.12
#: What is drawn of a judge and of a system, and how it reads.
_FIGURES = {"tpr": "TPR", "tnr": "TNR", "ppr": "PPR", "error_rate": "error rate"}


def draw_run_drift_plot(judge_rows: Sequence[Row], system_rows: Sequence[Row]) -> Figure:
    """The rows of `factaudit.run_drift.RunDrift`: a panel for each judge and system; a dashed line where it moved."""
    with use_report_style():
        parts = [
            (f"{what} {name or ''}".strip(), [row for row in rows if row[key] == name])
            for what, key, rows in (("judge", "evaluator", judge_rows), ("system", "system", system_rows))
            for name in list_unique(row[key] for row in rows)
        ]
        dates = list_unique(row["date"] for _, rows in parts for row in rows)
        used = [key for key in _FIGURES if any(_is_drift_figure_drawn(key, rows) for _, rows in parts)]
        looks = [
            PlotSeriesStyle(key, _FIGURES[key], *choose_plot_series_style(at), size=3.2) for at, key in enumerate(used)
        ]
        legend = lay_out_figure_legend(looks, COLUMN_WIDTH)
        pitch = _PANEL_HEIGHT + _HEAD + _FOOT
        panels = [
            _lay_out_drift_plot_panel(
                title, rows, dates, looks, legend.height + at * pitch + _HEAD, at == len(parts) - 1
            )
            for at, (title, rows) in enumerate(parts)
        ]
        foot = 0.25 + measure_text_width(max(dates, key=len)) / 72
        return FigureLayout(COLUMN_WIDTH, legend.height + pitch * len(parts) + foot, panels, legend).draw().figure


def _is_drift_figure_drawn(key: str, rows: Sequence[Row]) -> bool:
    """PPR is drawn of judges whose anchors have no labels."""
    if key == "ppr" and any(row.get(one) is not None for row in rows for one in ("tpr", "tnr")):
        return False
    return any(row.get(key) is not None for row in rows)


def _lay_out_drift_plot_panel(
    title: str, rows: list[Row], dates: list[str], looks: list[PlotSeriesStyle], top: float, is_last: bool
) -> PlotPanel:
    left = 0.2 + measure_text_width("100") / 72 + PAD
    width = COLUMN_WIDTH - left - 0.12
    shown = [one for one in looks if _is_drift_figure_drawn(one.key, rows)]
    drawn = {one: [(dates.index(row["date"]), row) for row in rows if row[one.key] is not None] for one in shown}
    since = [dates.index(row["since"]) for row in rows if row["since"] is not None]
    step = -(-len(dates) // max(1, int(72 * width / 12)))

    def draw(ax: Axes) -> None:
        ax.set(xlim=(-0.5, len(dates) - 0.5), ylim=(-4, 104), yticks=range(0, 101, 25), ylabel="%")
        ax.set_xticks(range(0, len(dates), step), dates[::step], rotation=90)
        ax.xaxis.grid(False)
        set_title(ax, wrap_figure_label(title, width * 72, bold=True, max_lines=1)[0])
        for one, points in drawn.items():
            ax.plot([x for x, _ in points], [100 * row[one.key] for _, row in points], color=one.colour, lw=0.9)
        if since:
            ax.axvline(since[0], color=rcParams["text.color"], lw=0.7, ls=(0, (4, 2)))

    points = [
        PanelPointWithInterval(one, x, 100 * row[one.key], _list_drift_interval(row, one.key, x))
        for one, placed in drawn.items()
        for x, row in placed
    ]
    return PlotPanel(title, left, top, width, _PANEL_HEIGHT, draw, points, has_bottom_labels=is_last)


def _list_drift_interval(row: Row, key: str, x: float) -> list[Segment]:
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return [] if low is None or high is None else [((x, 100 * low), (x, 100 * high))]
