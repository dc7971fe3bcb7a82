"""How is the figure of an audit drawn? As intervals by group, as one figure against another, or as
lines over bins.

Thin lines are intervals (``_low``, ``_high``); pale bars are the bounds that unscored claims leave
(``_min``, ``_max``). Undefined figures are not drawn. In a report, a marker links to the claims
behind it.
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
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from factaudit.audit.core.audit_declaration import (
    AnyPlot,
    Column,
    LinePlot,
    PlotSpec,
    ScatterPlot,
    list_declared_columns,
)
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_total_key
from factaudit.audit.core.wording import format_audit_figure, format_heading_with_unit
from factaudit.errors import UsageError
from factaudit.report.plots.groups import drop_floor_rows, format_group_label, list_group_columns
from factaudit.report.plots.style import PAGE_WIDTH, SeriesStyle, choose_series_styles, wrap_label

#: In a scatter plot, points have intervals only up to this number of points; more intervals would
#: hide each other.
_MAX_CROSSES = 24
#: The areas of markers in square points: for a figure, and for the data sets behind a mean.
_SIZE, _SMALL_SIZE = 18.0, 7.0
#: The style of intervals and of guide lines.
_INTERVAL: dict[str, Any] = {"elinewidth": 0.8, "alpha": 0.55, "zorder": 2}
_GUIDE: dict[str, Any] = {"lw": 0.8, "ls": (0, (4, 2)), "zorder": 1}
#: In inches: the height of a line of text, the free space at the right and between panels, and the
#: space for the numbers of an axis.
_LINE, _MARGIN, _GAP, _NUMBERS = 0.15, 0.16, 0.25, 0.24
#: Markers of a series link to their claims only up to this number; more links would make the report
#: too large.
_MAX_LINKS = 100
#: The prefix of the address of the claims behind a marker.
CLAIMS_ADDRESS = "../report.html#claims?"


@dataclass
class DrawnFigure:
    """A figure, and a description of each marker by the address of its claims."""

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
    """Draw rows of one audit (and of one level, if they have levels) in the style that is currently
    set.

    ``columns`` are the columns that the audit declares. ``evaluators`` fixes their order, so that
    an evaluator looks the same in every figure. ``floors`` are the baselines that other evaluators
    are measured by. ``ax``: existing axes to draw into instead of a new figure. Raises `UsageError`
    if the figure has several panels, because these do not fit into one pair of axes.
    """
    rows = drop_floor_rows(plot, rows, floors)
    if isinstance(plot, ScatterPlot):  # a total among systems would look like one more of them
        rows = [row for row in rows if not is_total_key(row.get("system"))] or rows
    present = {**columns, **list_declared_columns(columns, rows)}
    names = list(dict.fromkeys(str(row[plot.series]) for row in rows))
    order, lines = (evaluators, floors) if plot.series == "evaluator" else ((), frozenset[str]())
    labels = {
        name: str(format_audit_figure(present[plot.series], name)) for name in [*order, *names]
    }
    chart = _Chart(plot, rows, present, choose_series_styles(names, order, labels, lines), ax)
    if isinstance(plot, ScatterPlot):
        _draw_scatter(chart, plot)
    elif isinstance(plot, LinePlot):
        _draw_lines(chart, plot)
    else:
        _draw_intervals(chart, plot, list_group_columns(plot, columns, present, rows))
    return DrawnFigure(chart.figure, chart.titles)


@dataclass
class _Chart:
    """The rows to draw, and the axes to draw them on."""

    plot: AnyPlot
    rows: list[Row]
    columns: Mapping[str, Column]
    series: list[SeriesStyle]
    ax: Axes | None
    titles: dict[str, str] = field(default_factory=dict)
    figure: Figure = field(init=False)

    def make_panels(
        self,
        shape: tuple[int, int],
        height: float,
        left: float,
        bottom: float = _NUMBERS,
        title_lines: int = 0,
        legend: Sequence[Line2D] = (),
        width: float = PAGE_WIDTH,
        **options: Any,
    ) -> Any:
        """Rows and columns of axes in a new figure, or the user's axes, with a legend of the series
        and of ``legend``.

        All sizes are in inches: the height of a panel, the space left of and below all panels, and
        the width of the figure. The space around panels is computed beforehand, because
        matplotlib's own layouts draw a figure twice to measure it.
        """
        handles = [
            Line2D([], [], label=wrap_label(one.label, 60, 1), **one.line_style())
            for one in self.series
        ]
        handles += legend
        n_rows, n_columns = shape
        if self.ax is None:
            longest = max(len(str(one.get_label())) for one in handles)
            n_legend_columns = max(1, min(len(handles), 100 // (longest + 6)))
            n_legend_rows = -(-len(handles) // n_legend_columns)
            head = title_lines * _LINE + 0.06
            top = n_legend_rows * _LINE + 0.08 + head
            total = top + bottom + n_rows * height + (n_rows - 1) * (head + _MARGIN)
            room = (width - left - _MARGIN - (n_columns - 1) * _GAP) / n_columns
            grid = {"left": left / width, "right": 1 - _MARGIN / width, "wspace": _GAP / room}
            grid |= {
                "top": 1 - top / total,
                "bottom": bottom / total,
                "hspace": (head + _MARGIN) / height,
            }
            self.figure = Figure(figsize=(width, total))
            self.figure.legend(
                handles=handles, loc="upper left", bbox_to_anchor=(0, 1), ncols=n_legend_columns
            )
            return self.figure.subplots(
                n_rows, n_columns, squeeze=False, gridspec_kw=grid, **options
            )
        if n_rows * n_columns > 1:
            raise UsageError(
                f"ax: this figure has {n_rows * n_columns} panels; name one of"
                f" {', '.join(self.plot.keys)} with panel=..., or select rows (evaluator=...,"
                " dataset=...)"
            )
        self.ax.legend(handles=handles)
        figure = self.ax.get_figure(root=True)
        assert figure is not None
        self.figure = figure
        return np.array([[self.ax]])

    def scale(self, key: str) -> int:
        """The factor that converts a figure to the unit in which it is drawn."""
        return 100 if self.columns[key].unit in ("percent", "points") else 1

    def read(self, rows: Sequence[Row], key: str, end: str = "") -> np.ndarray:
        """A figure, or one end of its interval, for each row in its unit; NaN where it is
        undefined."""
        values = [np.nan if row.get(key + end) is None else row[key + end] for row in rows]
        return self.scale(key) * np.array(values, dtype=float)

    def select(self, look: SeriesStyle, *keys: str) -> list[Row]:
        """The rows of a series in which these figures are defined."""
        mine = [row for row in self.rows if str(row[self.plot.series]) == look.name]
        return [row for row in mine if all(row.get(key) is not None for key in keys)]

    def errors(self, rows: Sequence[Row], key: str) -> np.ndarray:
        """The distances from a figure to the ends of its intervals, as `Axes.errorbar` expects
        them."""
        point = self.read(rows, key)
        return np.fmax(
            0,
            np.array([point - self.read(rows, key, "_low"), self.read(rows, key, "_high") - point]),
        )

    def mark(
        self,
        ax: Axes,
        rows: Sequence[Row],
        x: np.ndarray,
        y: np.ndarray,
        key: str,
        look: SeriesStyle,
        **more: Any,
    ) -> None:
        """Draw markers that link to the claims behind the figure ``key`` of each row."""
        markers = ax.scatter(
            x, y, **{"s": _SIZE, "color": look.colour, "marker": look.marker, "zorder": 3, **more}
        )
        if len(rows) > _MAX_LINKS:
            return
        addresses = [self._make_address(row, key) for row in rows]
        markers.set_urls(addresses)
        for address, row in zip(addresses, rows, strict=True):
            if address is not None:
                self.titles.setdefault(address, self._describe(row, key))

    def _make_address(self, row: Row, key: str) -> str | None:
        """The address of the claims that a row is about, as precisely as the claim browser can
        select them."""
        if not row.get("evaluator"):
            return None
        given = {name: row.get(name) for name in ("evaluator", "dataset", "system")}
        asked = {
            name: value
            for name, value in given.items()
            if isinstance(value, str) and not is_total_key(value)
        }
        return f"{CLAIMS_ADDRESS}{urlencode(asked | {'kind': self.columns[key].claims})}"

    def _describe(self, row: Row, key: str) -> str:
        """What a marker stands for, with its figures."""
        names = [str(row[name]) for name in ("evaluator", "dataset", "system") if row.get(name)]
        figures = self.plot.keys if isinstance(self.plot, ScatterPlot) else (key,)
        shown = [
            f"{format_heading_with_unit(self.columns[one])}"
            f" {format_audit_figure(self.columns[one], row.get(one))}"
            for one in sorted(figures, key=key.__ne__)
        ]
        return f"{', '.join(name for name in names if not is_total_key(name))}: {', '.join(shown)}"


# --- groups down the side
# ------------------------------------------------------------


def _draw_intervals(chart: _Chart, plot: PlotSpec, by: Sequence[str]) -> None:
    labels = [format_group_label(row, by, chart.columns) for row in chart.rows]
    totals = {
        label
        for row, label in zip(chart.rows, labels, strict=True)
        if is_total_key(row.get("dataset"))
    }
    groups = sorted(dict.fromkeys(labels), key=totals.__contains__)
    places = {id(row): groups.index(label) for row, label in zip(chart.rows, labels, strict=True)}
    names = [wrap_label(group, 30 if len(plot.keys) == 1 else 24) for group in groups]
    n_marked = sum(look.dashes is None for look in chart.series)
    n_lines = 1 + max(name.count("\n") for name in names)
    height = max(0.066 * n_marked + 0.08, 0.14 * n_lines + 0.05, 0.2) * len(groups)
    headings = [
        plot.labels.get(key, format_heading_with_unit(chart.columns[key])) for key in plot.keys
    ]
    titles = [wrap_label(heading, 84 // (len(plot.keys) + 1)) for heading in headings]
    references = []
    if plot.reference and any(row.get(plot.reference) is not None for row in chart.rows):
        line = {"color": rcParams["text.color"], "marker": "|", "ls": "none", "ms": 9.0}
        references.append(Line2D([], [], label=chart.columns[plot.reference].heading, **line))
    panels = chart.make_panels(
        (1, len(plot.keys)),
        height,
        _measure_width(names) + 0.12,
        title_lines=1 + max(title.count("\n") for title in titles),
        legend=references,
        sharey=True,
    )[0]
    for key, title, ax in zip(plot.keys, titles, panels, strict=True):
        _set_group_axis(
            ax, names, len(totals), has_names=chart.ax is not None or key == plot.keys[0]
        )
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.set_title(title, x=0, ha="left")
        if (guide := plot.guides.get(key)) is not None:
            ax.axvline(guide * chart.scale(key), color=rcParams["axes.edgecolor"], **_GUIDE)
        if plot.reference and key == plot.keys[0]:
            known = [row for row in chart.rows if row.get(plot.reference) is not None]
            x = chart.scale(key) * np.array([row[plot.reference] for row in known], dtype=float)
            _draw_across(ax, x, _find_places(places, known), color=rcParams["text.color"])
        for number, look in enumerate(chart.series):
            mine = chart.select(look, key)
            x, y = chart.read(mine, key), _find_places(places, mine)
            if look.dashes is not None:
                _draw_across(ax, x, y, color=look.colour, ls=look.dashes)
                continue
            y += (number - (n_marked - 1) / 2) * 0.76 / n_marked
            if len(set(y)) == len(y):  # rows that share a position are drawn without intervals
                bounded = [_has_bounds(row, key) for row in mine]
                ends = [chart.read(mine, key, end)[bounded] for end in ("_min", "_max")]
                ax.hlines(y[bounded], *ends, color=look.colour, lw=3.0, alpha=0.25, zorder=2)
                ax.errorbar(
                    x, y, xerr=chart.errors(mine, key), fmt="none", ecolor=look.colour, **_INTERVAL
                )
            chart.mark(ax, mine, x, y, key, look)
        _set_limits(ax, chart, plot, key)


def _measure_width(names: Sequence[str]) -> float:
    """The width in inches of the widest of some names, in bold type."""
    font = FontProperties(size=rcParams["ytick.labelsize"], weight="bold")
    lines = [line for name in names for line in name.split("\n")]
    return (
        max(text_to_path.get_text_width_height_descent(line, font, False)[0] for line in lines) / 72
    )


def _find_places(places: Mapping[int, int], rows: Sequence[Row]) -> np.ndarray:
    return np.array([places[id(row)] for row in rows], dtype=float)


def _set_group_axis(ax: Axes, names: Sequence[str], n_totals: int, *, has_names: bool) -> None:
    """Put the names on the vertical axis, the first at the top and without ticks. Totals stand in
    bold below a line; pale bands guide the eye."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelleft=has_names)
    ax.yaxis.grid(False)
    grey = rcParams["axes.edgecolor"]
    for label in ax.get_yticklabels()[len(names) - n_totals :]:
        label.set_fontweight("bold")
    if 0 < n_totals < len(names):
        ax.axhline(len(names) - n_totals - 0.5, color=grey, lw=0.6, zorder=1)
    for even in range(0, len(names), 2):
        ax.axhspan(even - 0.5, even + 0.5, color=grey, alpha=0.08, lw=0, zorder=0.5)


def _set_limits(ax: Axes, chart: _Chart, plot: PlotSpec, key: str) -> None:
    """Set the limits that the audit declares. Otherwise shares and counts start at 0. If nothing is
    defined, the axes say so."""
    known = chart.read([row for row in chart.rows if row.get(key) is not None], key)
    if not known.size:
        ax.text(0.5, 0.5, "undefined", transform=ax.transAxes, ha="center", va="center")
    if key in plot.limits:
        low, high = (chart.scale(key) * end for end in plot.limits[key])
        ax.set_xlim(low - 0.025 * (high - low), high + 0.025 * (high - low))
    elif known.size and known.min() >= 0:
        high = max(ax.get_xlim()[1], 1.03 * known.max()) if known.max() > 0 else 5.0
        ax.set_xlim(-0.025 * high, high)


def _has_bounds(row: Row, key: str) -> bool:
    """Whether a row's figure has a bar: only if the missing predictions could change it."""
    low, high = row.get(f"{key}_min"), row.get(f"{key}_max")
    # A rounding error of a sum is no bound.
    return low is not None and high is not None and high - low > 1e-9


def _draw_across(ax: Axes, x: np.ndarray, y: np.ndarray, **look: Any) -> None:
    """Draw a line at the value of each group, across the group."""
    ax.vlines(x, y - 0.4, y + 0.4, lw=1.2, zorder=2, **look)


# --- one figure against another
# ------------------------------------------------------------


def _draw_scatter(chart: _Chart, plot: ScatterPlot) -> None:
    side = 0.65 * PAGE_WIDTH
    room = _NUMBERS + _LINE + 0.1
    ax = chart.make_panels((1, 1), side, room + 0.05, room, width=side + room + 0.05 + _MARGIN)[
        0, 0
    ]
    has_means = any(row.get("dataset") == MACRO_MEAN for row in chart.rows)
    total = sum(len(chart.select(look, *plot.keys)) for look in chart.series)
    for look in chart.series:
        rows = chart.select(look, *plot.keys)
        main = [row for row in rows if not has_means or row.get("dataset") == MACRO_MEAN]
        small = [row for row in rows if has_means and row.get("dataset") != MACRO_MEAN]
        crowd = {"alpha": 0.6} if total > _MAX_LINKS else {}
        for mine, more in ((small, {"s": _SMALL_SIZE, "alpha": 0.45}), (main, crowd)):
            x, y = chart.read(mine, plot.x), chart.read(mine, plot.y)
            if mine is main and (has_means or total <= _MAX_CROSSES):
                errors = {"xerr": chart.errors(mine, plot.x), "yerr": chart.errors(mine, plot.y)}
                ax.errorbar(x, y, fmt="none", ecolor=look.colour, **errors, **_INTERVAL)
            chart.mark(ax, mine, x, y, plot.y, look, **more)
    # Both axes share one range, which contains all points and intervals.
    values = np.concatenate(
        [chart.read(chart.rows, key, end) for key in plot.keys for end in ("", "_low", "_high")]
    )
    known = values[~np.isnan(values)]
    low, high = (
        (max(-3.0, known.min() - 4), min(103.0, known.max() + 4)) if known.size else (0.0, 100.0)
    )
    if plot.lines == "diagonal":
        ax.axline((0, 0), slope=1, color=rcParams["axes.edgecolor"], **_GUIDE)
    else:
        _draw_equal_bacc_lines(ax, low, high)
    headings = [format_heading_with_unit(chart.columns[key]) for key in plot.keys]
    ax.set(
        xlim=(low, high), ylim=(low, high), aspect="equal", xlabel=headings[0], ylabel=headings[1]
    )


def _draw_equal_bacc_lines(ax: Axes, low: float, high: float) -> None:
    """Draw the lines on which balanced accuracy, the mean of both axes, is 50, 60, ... %. Each line
    is labelled at its upper end."""
    grey = rcParams["axes.edgecolor"]
    text = {
        "fontsize": rcParams["xtick.labelsize"],
        "color": grey,
        "rotation": -45,
        "rotation_mode": "anchor",
    }
    for bacc in range(50, 100, 10):
        start, end = max(low, 2 * bacc - high), min(high, 2 * bacc - low)
        if end - start > 10:
            ax.plot(
                [start, end],
                [2 * bacc - start, 2 * bacc - end],
                color=grey,
                alpha=0.4,
                lw=0.6,
                zorder=1,
            )
            ax.text(
                start,
                2 * bacc - start,
                f"   BAcc {bacc} %",
                ha="left",
                va="bottom",
                zorder=1,
                **text,
            )


# --- lines over bins
# ------------------------------------------------------------


def _draw_lines(chart: _Chart, plot: LinePlot) -> None:
    places = list(dict.fromkeys(row[plot.rows] for row in chart.rows))
    shape = len(places), len(plot.keys)
    panels = chart.make_panels(
        shape,
        1.2,
        _NUMBERS + 0.1,
        _NUMBERS + _LINE + 0.06,
        title_lines=2,
        sharex=True,
        sharey="row",
    )
    bins = sorted({row[plot.x] for row in chart.rows})
    for place, line in zip(places, panels, strict=True):
        for key, ax in zip(plot.keys, line, strict=True):
            for number, look in enumerate(chart.series):
                mine = [row for row in chart.select(look, key) if row[plot.rows] == place]
                mine.sort(key=lambda row: row[plot.x])
                shift = (number - (len(chart.series) - 1) / 2) * 0.5 / len(chart.series)
                x = np.array([row[plot.x] for row in mine], dtype=float) + shift
                y, errors = chart.read(mine, key), chart.errors(mine, key)
                ax.errorbar(
                    x,
                    y,
                    yerr=errors,
                    color=look.colour,
                    lw=1.0,
                    elinewidth=0.8,
                    alpha=0.7,
                    zorder=2,
                )
                chart.mark(ax, mine, x, y, key, look)
            title = f"{format_audit_figure(chart.columns[plot.rows], place)}: "
            title += format_heading_with_unit(chart.columns[key])
            ax.set_title(wrap_label(title, 84 // (len(plot.keys) + 1)), x=0, ha="left")
            ax.set(ylim=(-3, 103), xticks=bins)
    for ax in panels[-1]:
        ax.set_xlabel(f"{chart.columns[plot.x].heading} of {plot.what_is_binned}")
