"""The balanced accuracy of a judge by version: its dev curve."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from matplotlib.figure import Figure

from factaudit.audit.core.result_rows import Row
from factaudit.report.plots.figure_style import COLUMN_WIDTH, choose_plot_series_style, use_report_style
from factaudit.report.plots.plot_data import list_unique

_HEIGHT = 2.4


def draw_version_curve(versions: Sequence[Row]) -> Figure:
    """Rows with run, evaluator, bacc, bacc_low and bacc_high: a line per evaluator, with the interval of each run."""
    with use_report_style():
        figure = Figure(figsize=(COLUMN_WIDTH, _HEIGHT), layout="constrained")
        ax = figure.subplots()
        runs = list_unique(row["run"] for row in versions)
        evaluators = list_unique(row["evaluator"] for row in versions if row["bacc"] is not None)
        for at, evaluator in enumerate(evaluators):
            colour, marker = choose_plot_series_style(at)
            rows = [row for row in versions if row["evaluator"] == evaluator and row["bacc"] is not None]
            place = [runs.index(row["run"]) for row in rows]
            ax.plot(
                place, [100 * row["bacc"] for row in rows], color=colour, marker=marker, ms=4, lw=1, label=evaluator
            )
            for x, row in zip(place, rows, strict=True):
                if row["bacc_low"] is not None:
                    ax.plot([x, x], [100 * row["bacc_low"], 100 * row["bacc_high"]], color=colour, lw=1)
        ax.set_xticks(range(len(runs)), [PurePath(run).name for run in runs], rotation=30 if len(runs) > 4 else 0)
        ax.set(xlim=(-0.5, len(runs) - 0.5), ylabel="balanced accuracy (%)")
        if len(evaluators) > 1:
            ax.legend()
        return figure
