"""What does `factaudit triage` draw? The share of claims that passes and the errors among them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib import rcParams
from matplotlib.figure import Figure

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.result_rows import Row
from factaudit.report.plots.figure_files import write_report_figure_files
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    choose_plot_series_style,
    use_report_style,
)
from factaudit.report.plots.plot_data import DrawnAuditFigure, list_unique

#: Groups of a triage that are drawn, at the most.
MAX_PANELS = 12
_DASHES = (0, (4, 2))


def write_command_figure(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as SVG, whatever the suffix of its path."""
    write_report_figure_files(DrawnAuditFigure(figure), path.with_suffix(""), title)


def draw_triage_curve(curve_rows: Sequence[Row], max_error: float | None) -> Figure:
    """The rows of `factaudit.estimate.triage.TriageResults.curve`, a panel per group.

    Line: the share of errors among the labels that pass; area: up to its upper confidence limit, threshold by
    threshold; dot: the rule; dashes: the promise.
    """
    with use_report_style():
        groups = list_unique(row["group"] for row in curve_rows)[:MAX_PANELS]
        figure = Figure(figsize=(COLUMN_WIDTH, 0.15 + 2.1 * max(1, len(groups))), layout="constrained")
        axes = figure.subplots(max(1, len(groups)), 1, squeeze=False)[:, 0]
        colour, marker = choose_plot_series_style(0)
        for ax, group in zip(axes, groups, strict=False):
            rows = [row for row in curve_rows if row["group"] == group and row["error_share"] is not None]
            passing, share, high = (
                [100 * row[key] for row in rows] for key in ("share_passing", "error_share", "error_share_high")
            )
            label = "up to the upper limit of each threshold alone"
            ax.fill_between(passing, share, high, color=colour, alpha=0.15, lw=0, label=label)
            ax.plot(passing, share, color=colour, lw=1.0)
            for row in rows:
                if row["is_rule"]:
                    ax.plot(100 * row["share_passing"], 100 * row["error_share"], marker, color=colour, ms=4.5)
            if max_error is not None:
                ax.axhline(100 * max_error, color=rcParams["text.color"], lw=0.7, ls=_DASHES)
            top = max([share[-1] if share else 0.0, 300 * (max_error or 0.0), 5.0])
            ax.set(xlim=(0, 100), ylim=(0, min(100, 1.2 * top)))
            ax.set(xlabel="claims that pass without review (%)", ylabel="errors among them (%)")
            if group != ALL_TOGETHER:
                ax.set_title(group, x=0, ha="left")
        axes[0].legend(loc="upper left")
        return figure
