"""How is the figure of an audit drawn? Intervals by group, one figure against another, or lines over bins.

Thin lines are intervals (``_low``, ``_high``), pale bars the bounds that unscored claims leave (``_min``, ``_max``).
Undefined figures are not drawn. A marker leads to the claims behind it where the figure stands in a report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.figure_formatting import format_audit_figure, format_heading_with_unit
from factaudit.audit.core.plot_specs import AnyPlot, LinePlot, PlotSpec, ScatterPlot
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_total_key
from factaudit.errors import UsageError
from factaudit.report.plots.groups import drop_floor_rows, format_group_label, list_group_columns
from factaudit.report.plots.style import (
    PAGE_WIDTH,
    SeriesStyle,
    choose_series_styles,
    wrap_label,
)

#: Of so many points each has its interval in a figure of one rate against another; of more they would hide each other.
_MAX_CROSSES = 24
#: Areas of markers in square points: of a figure, and of the data sets behind a mean.
_SIZE, _SMALL_SIZE = 18.0, 7.0
#: What begins the address of the claims behind a marker.
CLAIMS_ADDRESS = "../report.html#claims?"


@dataclass
class DrawnFigure:
    """A figure, and what its markers are, in words, by the address of their claims."""

    figure: Figure
    titles: dict[str, str] = field(default_factory=dict)


def draw_audit_plot(
    plot: AnyPlot,
    rows: Sequence[Row],
    columns: Mapping[str, Column],
    evaluators: Sequence[str] = (),
    floors: Set[str] = frozenset(),
    ax: Axes | None = None,
) -> DrawnFigure:
    """The figure of rows of one audit (of one level, where they have levels), in the style that is set.

    ``columns`` as the audit declares them; ``evaluators`` fixes the order, so that one looks the same in every figure.
    ``floors``: evaluators that others are measured by. ``ax``: axes to draw into, in place of a new figure. Raises
    `UsageError` where the figure has several panels, which do not go into one.
    """
    rows = drop_floor_rows(plot, rows, floors)
    chart = _Chart(plot, rows, {**columns, **list_declared_columns(columns, rows)}, columns, ax)
    is_of_evaluators = plot.series == "evaluator"
    names = list(dict.fromkeys(str(row[plot.series]) for row in rows))
    order = list(evaluators) if is_of_evaluators else []
    labels = {name: str(format_audit_figure(chart.columns[plot.series], name)) for name in [*order, *names]}
    chart.series = choose_series_styles(names, order, labels, floors if is_of_evaluators else frozenset())
    if isinstance(plot, ScatterPlot):
        _draw_scatter(chart, plot)
    elif isinstance(plot, LinePlot):
        _draw_lines(chart, plot)
    else:
        _draw_intervals(chart, plot)
    return DrawnFigure(chart.figure, chart.titles)


@dataclass
class _Chart:
    """What is drawn, and where."""

    plot: AnyPlot
    rows: list[Row]
    columns: Mapping[str, Column]
    #: Without what the rows have besides.
    declared: Mapping[str, Column]
    ax: Axes | None
    series: list[SeriesStyle] = field(default_factory=list)
    titles: dict[str, str] = field(default_factory=dict)
    figure: Figure = field(init=False)

    def make_panels(self, n_rows: int, n_columns: int, size: tuple[float, float], **options: Any) -> Any:
        """Axes of a new figure in rows and columns, or the user's; size: of the figure, in inches."""
        if self.ax is None:
            self.figure = Figure(figsize=size, layout="constrained")
            return self.figure.subplots(n_rows, n_columns, squeeze=False, **options)
        if n_rows * n_columns > 1:
            raise UsageError(
                f"ax: this figure has {n_rows * n_columns} panels; name one of {', '.join(self.plot.keys)} with"
                " panel=..., or select rows (evaluator=..., dataset=...)"
            )
        figure = self.ax.get_figure(root=True)
        assert figure is not None
        self.figure = figure
        return np.array([[self.ax]])

    def scale(self, key: str) -> int:
        """What a figure is multiplied by to be drawn in its unit."""
        return 100 if self.columns[key].unit in ("percent", "points") else 1

    def read(self, rows: Sequence[Row], key: str, of: str = "") -> np.ndarray:
        """A figure, or an end of it, of each row in the unit of the figure ``of``; NaN where it is undefined."""
        values = [np.nan if row.get(key) is None else row[key] for row in rows]
        return self.scale(of or key) * np.array(values, dtype=float)

    def select(self, look: SeriesStyle, *keys: str) -> list[Row]:
        """The rows of a series in which these figures are defined."""
        mine = [row for row in self.rows if str(row[self.plot.series]) == look.name]
        return [row for row in mine if all(row.get(key) is not None for key in keys)]

    def errors(self, rows: Sequence[Row], key: str) -> np.ndarray:
        """How far the ends of the intervals are from a figure, as `Axes.errorbar` takes them."""
        ends = self.read(rows, f"{key}_low", key), self.read(rows, f"{key}_high", key)
        point = self.read(rows, key)
        return np.fmax(0, np.array([point - ends[0], ends[1] - point]))

    def mark(
        self, ax: Axes, rows: Sequence[Row], x: np.ndarray, y: np.ndarray, key: str, look: SeriesStyle, **more: Any
    ) -> None:
        """Markers that lead to the claims behind the figure ``key`` of each row."""
        shape: dict[str, Any] = {"s": _SIZE, "color": look.colour, "marker": look.marker, "zorder": 3}
        markers = ax.scatter(x, y, **(shape | more))
        addresses = [self._make_address(row, key) for row in rows]
        markers.set_urls(addresses)
        told = [(address, self._describe(row, key)) for address, row in zip(addresses, rows, strict=True) if address]
        self.titles |= {address: text for address, text in told if address not in self.titles}

    def _make_address(self, row: Row, key: str) -> str | None:
        """Where the claims that a row is about are, as far as the claim browser can tell them apart."""
        given = {name: row.get(name) for name in ("evaluator", "dataset", "system")}
        asked = {name: value for name, value in given.items() if isinstance(value, str) and not is_total_key(value)}
        if not row.get("evaluator"):
            return None
        return f"{CLAIMS_ADDRESS}{urlencode(asked | {'kind': self.columns[key].claims})}"

    def _describe(self, row: Row, key: str) -> str:
        """What a marker is of, and its figures."""
        names = [str(row[name]) for name in ("evaluator", "dataset", "system") if row.get(name)]
        told = ", ".join(name for name in names if not is_total_key(name))
        figures = dict.fromkeys([key, *(self.plot.keys if isinstance(self.plot, ScatterPlot) else ())])
        shown = [
            f"{format_heading_with_unit(self.columns[one])} {format_audit_figure(self.columns[one], row.get(one))}"
            for one in figures
        ]
        return f"{told}: {', '.join(shown)}"

    def add_legend(self, more: Sequence[Line2D] = ()) -> None:
        """A legend above the figure, or in the user's axes."""
        handles = [Line2D([], [], label=wrap_label(one.label, 60, 1), **one.line_style()) for one in self.series]
        handles += more
        if not handles:
            return
        if self.ax is not None:
            self.ax.legend(handles=handles)
            return
        longest = max(len(str(one.get_label())) for one in handles)
        n_columns = max(1, min(len(handles), 100 // (longest + 6)))
        self.figure.legend(handles=handles, loc="outside upper left", ncols=n_columns)


# --- groups down the side -------------------------------------------------------------------------------------------


def _draw_intervals(chart: _Chart, plot: PlotSpec) -> None:
    by = list_group_columns(plot, chart.declared, chart.columns, chart.rows)
    labels = [format_group_label(row, by, chart.columns) for row in chart.rows]
    totals = {label for row, label in zip(chart.rows, labels, strict=True) if is_total_key(row.get("dataset"))}
    groups = sorted(dict.fromkeys(labels), key=lambda label: label in totals)
    place = {id(row): groups.index(label) for row, label in zip(chart.rows, labels, strict=True)}
    marked = [look for look in chart.series if look.dashes is None]
    names = [wrap_label(group, 30 if len(plot.keys) == 1 else 24) for group in groups]
    n_lines = 1 + max(name.count("\n") for name in names)
    height = max(0.066 * len(marked) + 0.08, 0.14 * n_lines + 0.05, 0.2) * len(groups)
    panels = chart.make_panels(1, len(plot.keys), (PAGE_WIDTH, height + 0.9), sharey=True)[0]
    for key, ax in zip(plot.keys, panels, strict=True):
        _set_group_axis(ax, names, len(totals), is_own=chart.ax is None)
        if key in plot.limits:
            low, high = (chart.scale(key) * end for end in plot.limits[key])
            ax.set_xlim(low - 0.025 * (high - low), high + 0.025 * (high - low))
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        title = plot.labels.get(key, format_heading_with_unit(chart.columns[key]))
        ax.set_title(wrap_label(title, 84 // (len(plot.keys) + 1)), x=0, ha="left")
        if (guide := plot.guides.get(key)) is not None:
            ax.axvline(guide * chart.scale(key), color=rcParams["axes.edgecolor"], lw=0.7, ls=(0, (4, 2)), zorder=1)
        if plot.reference and key == plot.keys[0]:
            known = [row for row in chart.rows if row.get(plot.reference) is not None]
            at = np.array([place[id(row)] for row in known], dtype=float)
            _draw_lines_across(ax, chart.read(known, plot.reference, key), at, color=rcParams["text.color"])
        for number, look in enumerate(chart.series):
            mine = chart.select(look, key)
            at = np.array([place[id(row)] for row in mine], dtype=float)
            x = chart.read(mine, key)
            if look.dashes is not None:
                _draw_lines_across(ax, x, at, color=look.colour, ls=look.dashes)
                continue
            at += (number - (len(marked) - 1) / 2) * 0.76 / len(marked)
            if len(set(at)) == len(at):  # rows that share a place have no intervals
                bounded = [_has_bounds(row, key, chart.columns[key]) for row in mine]
                ends = [chart.read(mine, f"{key}{end}", key)[bounded] for end in ("_min", "_max")]
                ax.hlines(at[bounded], *ends, color=look.colour, lw=3.0, alpha=0.25, zorder=2)
                errors = chart.errors(mine, key)
                ax.errorbar(x, at, xerr=errors, fmt="none", ecolor=look.colour, elinewidth=0.8, alpha=0.55, zorder=2)
            chart.mark(ax, mine, x, at, key, look)
        known = [row for row in chart.rows if row.get(key) is not None]
        values = chart.read(known, key)
        if known and key not in plot.limits and values.min() >= 0:  # shares and counts start at 0
            high = ax.get_xlim()[1] if values.max() > 0 else 5.0
            ax.set_xlim(-0.025 * high, high)
        if not known:
            ax.text(0.5, 0.5, "undefined", transform=ax.transAxes, ha="center", va="center")
    handles = []
    if plot.reference and any(row.get(plot.reference) is not None for row in chart.rows):
        line = {"color": rcParams["text.color"], "marker": "|", "ls": "none", "ms": 9.0}
        handles.append(Line2D([], [], label=chart.columns[plot.reference].heading, **line))
    chart.add_legend(handles)


def _set_group_axis(ax: Axes, names: Sequence[str], n_totals: int, *, is_own: bool) -> None:
    """Names down the side, the first above, without ticks; totals below a line and bold; bands that lead the eye."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelleft=not is_own or ax.get_subplotspec().is_first_col())  # type: ignore[union-attr]
    ax.yaxis.grid(False)
    grey = rcParams["axes.edgecolor"]
    for label in ax.get_yticklabels()[len(names) - n_totals :]:
        label.set_fontweight("bold")
    if 0 < n_totals < len(names):
        ax.axhline(len(names) - n_totals - 0.5, color=grey, lw=0.6, zorder=1)
    for even in range(0, len(names), 2):
        ax.axhspan(even - 0.5, even + 0.5, color=grey, alpha=0.08, lw=0, zorder=0.5)


def _has_bounds(row: Row, key: str, column: Column) -> bool:
    """Whether a point has a bar: not one that is undefined, nor one that nothing could change."""
    low, high = row.get(f"{key}_min"), row.get(f"{key}_max")
    if row.get(key) is None or low is None or high is None:
        return False
    if row.get("n_unscored"):
        return bool(low < high)
    return isinstance(column.bounds, str) and bool(high - low > 1e-9)  # what sums round off is no bound


def _draw_lines_across(ax: Axes, x: np.ndarray, at: np.ndarray, **look: Any) -> None:
    """A line across each group at its value."""
    ax.vlines(x, at - 0.4, at + 0.4, lw=1.2, zorder=2, **look)


# --- one figure against another -------------------------------------------------------------------------------------


def _draw_scatter(chart: _Chart, plot: ScatterPlot) -> None:
    ax = chart.make_panels(1, 1, (0.75 * PAGE_WIDTH, 0.72 * PAGE_WIDTH))[0, 0]
    means = {row.get("dataset") for row in chart.rows} & {MACRO_MEAN}
    total = sum(len(chart.select(look, *plot.keys)) for look in chart.series)
    for look in chart.series:
        rows = chart.select(look, *plot.keys)
        parts = [(row.get("dataset") == MACRO_MEAN or not means, row) for row in rows]
        for is_main in (False, True):
            mine = [row for is_large, row in parts if is_large == is_main]
            x, y = chart.read(mine, plot.x), chart.read(mine, plot.y)
            more = {} if is_main else {"s": _SMALL_SIZE, "alpha": 0.45}
            if is_main and (means or total <= _MAX_CROSSES):
                errors = {"xerr": chart.errors(mine, plot.x), "yerr": chart.errors(mine, plot.y)}
                ax.errorbar(x, y, fmt="none", ecolor=look.colour, elinewidth=0.8, alpha=0.55, zorder=2, **errors)
            chart.mark(ax, mine, x, y, plot.y, look, **more)
    low, high = _find_share_limits(chart, plot)
    if plot.lines == "diagonal":
        ax.axline((0, 0), slope=1, color=rcParams["axes.edgecolor"], lw=0.8, ls=(0, (4, 2)), zorder=1)
    else:
        _draw_equal_bacc_lines(ax, low, high)
    ax.set_xlim(low, high)
    ax.set_ylim(low, high)
    ax.set_aspect("equal")
    ax.set_xlabel(format_heading_with_unit(chart.columns[plot.x]))
    ax.set_ylabel(format_heading_with_unit(chart.columns[plot.y]))
    chart.add_legend()


def _find_share_limits(chart: _Chart, plot: ScatterPlot) -> tuple[float, float]:
    """One range of percentages for both axes, which holds all points and intervals."""
    ends = [f"{key}{end}" for key in plot.keys for end in ("", "_low", "_high")]
    values = np.concatenate([chart.read(chart.rows, end, plot.x) for end in ends])
    known = values[~np.isnan(values)]
    return (max(-3.0, known.min() - 4), min(103.0, known.max() + 4)) if known.size else (0.0, 100.0)


def _draw_equal_bacc_lines(ax: Axes, low: float, high: float) -> None:
    """Lines on which balanced accuracy, the mean of both axes, is 50, 60, ... %, each named at its upper end."""
    grey = rcParams["axes.edgecolor"]
    text = {"fontsize": rcParams["xtick.labelsize"], "color": grey, "rotation": -45, "rotation_mode": "anchor"}
    for bacc in range(50, 100, 10):
        start, end = max(low, 2 * bacc - high), min(high, 2 * bacc - low)
        if end - start > 10:
            ax.plot([start, end], [2 * bacc - start, 2 * bacc - end], color=grey, alpha=0.4, lw=0.6, zorder=1)
            ax.text(start, 2 * bacc - start, f"   BAcc {bacc} %", ha="left", va="bottom", zorder=1, **text)


# --- lines over bins ------------------------------------------------------------------------------------------------


def _draw_lines(chart: _Chart, plot: LinePlot) -> None:
    places = list(dict.fromkeys(row[plot.rows] for row in chart.rows))
    size = PAGE_WIDTH, 0.8 + 1.5 * len(places)
    panels = chart.make_panels(len(places), len(plot.keys), size, sharex=True, sharey="row")
    bins = sorted({row[plot.x] for row in chart.rows})
    for place, line in zip(places, panels, strict=True):
        for key, ax in zip(plot.keys, line, strict=True):
            for number, look in enumerate(chart.series):
                mine = sorted(chart.select(look, key), key=lambda row: row[plot.x])
                mine = [row for row in mine if row[plot.rows] == place]
                shift = (number - (len(chart.series) - 1) / 2) * 0.5 / max(1, len(chart.series))
                x = np.array([row[plot.x] for row in mine], dtype=float) + shift
                y, errors = chart.read(mine, key), chart.errors(mine, key)
                ax.errorbar(x, y, yerr=errors, color=look.colour, lw=1.0, elinewidth=0.8, alpha=0.7, zorder=2)
                chart.mark(ax, mine, x, y, key, look)
            name = format_audit_figure(chart.columns[plot.rows], place)
            title = f"{name}: {format_heading_with_unit(chart.columns[key])}"
            ax.set_title(wrap_label(title, 84 // (len(plot.keys) + 1)), x=0, ha="left")
            ax.set_ylim(-3, 103)
            ax.set_xticks(bins)
    for ax in panels[-1]:
        ax.set_xlabel(f"{chart.columns[plot.x].heading} of {plot.what_is_binned}")
    chart.add_legend()
