"""Figures of commands, which are of no audit: labels to plan for, what passes a triage, versions of a judge, dates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path, PurePath

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.result_rows import Row
from factaudit.report.plots import panel_layout
from factaudit.report.plots.figure_files import write_report_figure_files
from factaudit.report.plots.figure_style import (
    COLUMN_WIDTH,
    PlotSeriesStyle,
    choose_plot_series_style,
    compute_plot_axis_limits,
    measure_text_width,
    use_report_style,
    wrap_figure_label,
)
from factaudit.report.plots.panel_layout import PanelPointWithInterval, PlotPanel, set_title
from factaudit.report.plots.plot_data import list_unique

#: Groups of a triage that are drawn, at the most.
MAX_PANELS = 12
#: What is drawn of a judge and of a system over dates, and how it reads.
_DRIFT_FIGURES = {"tpr": "TPR", "tnr": "TNR", "ppr": "PPR", "error_rate": "error rate"}
#: Inches of a panel's title, and of what is under it.
_HEAD, _FOOT = 0.25, 0.12
_DASHES = (0, (4, 2))


def write_command_figure(figure: Figure, path: Path, title: str) -> None:
    """Write a figure as SVG, whatever the suffix of its path."""
    write_report_figure_files(panel_layout.DrawnAuditFigure(figure), path.with_suffix(""), title)


def draw_version_curve(versions: Sequence[Row]) -> Figure:
    """The rows of `factaudit.run_versions.compare_run_versions`: a colour per evaluator, with each run's interval.

    Lines join two runs whose levels differ by the changes on the claims of both: levels on other claims, labels or
    (some lack) verdicts differ without any change of an evaluator.
    """
    with use_report_style():
        figure = Figure(figsize=(COLUMN_WIDTH, 2.4), layout="constrained")
        ax = figure.subplots()
        runs = {row["place"]: row["run"] for row in versions}
        series = _chain_evaluators_of_versions([row for row in versions if row["bacc"] is not None])
        cut = {
            row["place"]
            for rows in series
            for old, row in pairwise(rows)
            if row["change"] is None or abs(row["bacc"] - old["bacc"] - row["change"]) > _LEAST_SHARE_SHOWN
        }
        for at, rows in enumerate(series):
            colour, marker = choose_plot_series_style(at)
            label = " → ".join(list_unique(row["evaluator"] for row in rows))
            ax.plot([], [], color=colour, marker=marker, ms=4, lw=1, label=label)
            ax.plot([row["place"] for row in rows], [100 * row["bacc"] for row in rows], marker, color=colour, ms=4)
            for old, row in pairwise(rows):
                if row["place"] not in cut:
                    ax.plot([old["place"], row["place"]], [100 * old["bacc"], 100 * row["bacc"]], color=colour, lw=1)
            for row in rows:
                if row["bacc_low"] is not None:
                    ax.plot([row["place"]] * 2, [100 * row["bacc_low"], 100 * row["bacc_high"]], color=colour, lw=1)
        ax.set_xticks([*runs], _shorten_run_names([*runs.values()]), rotation=30 if len(runs) > 4 else 0)
        ax.set(xlim=(-0.5, len(runs) - 0.5), ylabel="balanced accuracy (%)")
        if cut:
            ax.set_xlabel("no line: levels on other claims, labels or verdicts")
        if len(series) > 1:
            ax.legend()
        return figure


#: Half of the last digit of a level in print.
_LEAST_SHARE_SHOWN = 0.0005


def _chain_evaluators_of_versions(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each evaluator over runs, also where it has another name in the next run."""
    chains: list[list[Row]] = []
    for row in rows:
        name = row.get("evaluator_before") or row["evaluator"]
        mine = [one for one in chains if one[-1]["evaluator"] == name and one[-1]["place"] < row["place"]]
        if mine:
            mine[0].append(row)
        else:
            chains.append([row])
    return chains


def _shorten_run_names(runs: Sequence[str]) -> list[str]:
    """The last parts of paths, as many as tell the runs apart.

    >>> _shorten_run_names(["ci/one/run", "ci/two/run"]), _shorten_run_names(["runs/a", "runs/b"])
    (['one/run', 'two/run'], ['a', 'b'])
    """
    parts = [PurePath(run).parts for run in runs]
    for size in range(1, max(map(len, parts), default=1) + 1):
        names = ["/".join(each[-size:]) for each in parts]
        if len(set(names)) == len(set(runs)):
            return names
    return list(runs)


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
                set_title(ax, group)
        axes[0].legend(loc="upper left")
        return figure


#: Lays a panel out: its number, its top, its left edge and its width in inches, and whether it is the last.
_PanelPlacer = Callable[[int, float, float, float, bool], PlotPanel]


def _draw_stacked_panels(
    n_panels: int, looks: Sequence[PlotSeriesStyle], panel_height: float, foot: float, place_panel: _PanelPlacer
) -> Figure:
    """Panels below each other, under one legend. foot: inches below the last of them."""
    legend = panel_layout.lay_out_figure_legend(looks, COLUMN_WIDTH)
    pitch = panel_height + _HEAD + _FOOT
    left = 0.2 + measure_text_width("100") / 72 + panel_layout.PAD
    panels = [
        place_panel(at, legend.height + at * pitch + _HEAD, left, COLUMN_WIDTH - left - 0.12, at == n_panels - 1)
        for at in range(n_panels)
    ]
    height = legend.height + pitch * n_panels + foot
    return panel_layout.FigureLayout(COLUMN_WIDTH, height, panels, legend).draw().figure


def _set_panel_title(ax: Axes, title: str, width: float) -> None:
    set_title(ax, wrap_figure_label(title, width * 72, bold=True, max_lines=1)[0])


def draw_label_plan_plot(plan_rows: Sequence[Row], target_width: float) -> Figure:
    """The rows of `factaudit.estimate.label_plan`: mean width over systems against labels, a panel per dataset.

    Areas: the range that a pilot leaves open; dashes: the width that is aimed at.
    """
    with use_report_style():
        mean = [row for row in plan_rows if row["system"] == "__mean__" and row["width"] is not None]
        datasets = list_unique(row["dataset"] for row in mean)
        methods = list_unique(row["method"] for row in mean)
        looks = [
            PlotSeriesStyle(name, name, *choose_plot_series_style(at), size=3.6) for at, name in enumerate(methods)
        ]
        budgets = sorted({row["n_labels"] for row in mean})

        def place_panel(at: int, top: float, left: float, width: float, is_last: bool) -> PlotPanel:
            rows = {one: [r for r in mean if r["dataset"] == datasets[at] and r["method"] == one.key] for one in looks}
            highs = [100 * row["width_high"] for mine in rows.values() for row in mine]
            margin = (budgets[-1] / budgets[0]) ** 0.05 if len(budgets) > 1 else 1.6

            def draw(ax: Axes) -> None:
                limit = compute_plot_axis_limits([0.0, *highs, 100 * target_width])[1]
                panel_layout.set_panel_number_axis(ax, "y", (0.0, limit))
                ax.set_xscale("log")
                limits = budgets[0] / margin, budgets[-1] * margin
                ax.set(xlim=limits, xlabel="labels in all", ylabel="width (points)")
                ax.set_xticks(budgets, [f"{n:,}" for n in budgets])
                ax.xaxis.set_minor_locator(NullLocator())
                ax.xaxis.grid(False)
                _set_panel_title(ax, datasets[at], width)
                for one, mine in rows.items():
                    labels = [row["n_labels"] for row in mine]
                    low, middle, high = ([100 * row[f"width{end}"] for row in mine] for end in ("_low", "", "_high"))
                    ax.fill_between(labels, low, high, color=one.colour, alpha=0.15, lw=0)
                    ax.plot(labels, middle, color=one.colour, lw=0.9)
                ax.axhline(100 * target_width, color=rcParams["text.color"], lw=0.7, ls=_DASHES)

            points = [
                PanelPointWithInterval(one, row["n_labels"], 100 * row["width"])
                for one, mine in rows.items()
                for row in mine
            ]
            return PlotPanel(datasets[at], left, top, width, 1.7, draw, points, has_bottom_labels=is_last)

        return _draw_stacked_panels(len(datasets), looks, 1.7, 0.32, place_panel)


def draw_run_drift_plot(judge_rows: Sequence[Row], system_rows: Sequence[Row]) -> Figure:
    """The rows of `factaudit.run_drift.RunDrift`: a panel for each judge and system; a dashed line where it moved."""
    with use_report_style():
        parts = [
            (f"{what} {name or ''}".strip(), [row for row in rows if row[key] == name])
            for what, key, rows in (("judge", "evaluator", judge_rows), ("system", "system", system_rows))
            for name in list_unique(row[key] for row in rows)
        ]
        dates = list_unique(row["date"] for _, rows in parts for row in rows)
        used = [key for key in _DRIFT_FIGURES if any(_is_drift_figure_drawn(key, rows) for _, rows in parts)]
        looks = [
            PlotSeriesStyle(key, _DRIFT_FIGURES[key], *choose_plot_series_style(at), size=3.2)
            for at, key in enumerate(used)
        ]

        def place_panel(at: int, top: float, left: float, width: float, is_last: bool) -> PlotPanel:
            title, rows = parts[at]
            shown = [one for one in looks if _is_drift_figure_drawn(one.key, rows)]
            drawn = {
                one: [(dates.index(row["date"]), row) for row in rows if row[one.key] is not None] for one in shown
            }
            since = [dates.index(row["since"]) for row in rows if row["since"] is not None]
            step = -(-len(dates) // max(1, int(72 * width / 12)))

            def draw(ax: Axes) -> None:
                ax.set(xlim=(-0.5, len(dates) - 0.5), ylim=(-4, 104), yticks=range(0, 101, 25), ylabel="%")
                ax.set_xticks(range(0, len(dates), step), dates[::step], rotation=90)
                ax.xaxis.grid(False)
                _set_panel_title(ax, title, width)
                for one, points in drawn.items():
                    ax.plot([x for x, _ in points], [100 * row[one.key] for _, row in points], color=one.colour, lw=0.9)
                if since:
                    ax.axvline(since[0], color=rcParams["text.color"], lw=0.7, ls=_DASHES)

            points = []
            for one, placed in drawn.items():
                for x, row in placed:
                    low, high = row.get(f"{one.key}_low"), row.get(f"{one.key}_high")
                    interval = [] if low is None or high is None else [((x, 100 * low), (x, 100 * high))]
                    points.append(PanelPointWithInterval(one, x, 100 * row[one.key], interval))
            return PlotPanel(title, left, top, width, 1.4, draw, points, has_bottom_labels=is_last)

        foot = 0.25 + measure_text_width(max(dates, key=len)) / 72
        return _draw_stacked_panels(len(parts), looks, 1.4, foot, place_panel)


def _is_drift_figure_drawn(key: str, rows: Sequence[Row]) -> bool:
    """PPR is drawn of judges whose anchors have no labels."""
    if key == "ppr" and any(row.get(one) is not None for row in rows for one in ("tpr", "tnr")):
        return False
    return any(row.get(key) is not None for row in rows)
