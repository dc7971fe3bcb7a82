"""How is the figure of an audit drawn? Groups down the side, a panel for each figure, a marker for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.figure_formatting import format_audit_figure, format_heading_with_unit
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.errors import UsageError, suggest_known_name
from factaudit.report.plots.figure_style import (
    FLOOR_DASHES,
    PAGE_WIDTH,
    PlotSeriesStyle,
    choose_plot_series_style,
    compute_plot_axis_limits,
    line_height,
    measure_text_width,
    shorten_figure_label,
    wrap_figure_label,
)
from factaudit.report.plots.plot_groups import (
    drop_floor_evaluator_plot_rows,
    format_group_label,
    has_drawn_bounds,
    list_plot_group_columns,
)

#: Inches from a panel to the labels of its groups; between panels, in which half a label of a tick has room; at the
#: right; and under a panel, for the labels of its ticks.
_PAD, _PANEL_GAP, _RIGHT, _FOOT = 6 / 72 + 0.06, 0.22, 0.15, 0.27


@dataclass(frozen=True)
class DrawnPoint:
    """A marker of a panel, what the claim browser is asked for the claims behind it, and what it is, in words."""

    ax: Axes
    x: float
    y: float
    claim_query: str
    title: str


@dataclass
class DrawnAuditFigure:
    """A drawn figure, and its points that lead to claims."""

    figure: Figure
    points: list[DrawnPoint] = field(default_factory=list)


@dataclass(frozen=True)
class PlotContent:
    """What a figure shows: rows with the group of each, and the groups from the top down, those that are totals
    last."""

    plot: PlotSpec
    rows: Sequence[Row]
    columns: Mapping[str, Column]
    row_groups: Sequence[str]
    groups: Sequence[str]
    totals: Set[str]
    series: Sequence[PlotSeriesStyle]

    def scale(self, key: str) -> int:
        """What a figure is multiplied by to be drawn in its unit."""
        return 100 if self.columns[key].unit in ("percent", "points") else 1

    def select(self, key: str, series: str | None = None) -> list[tuple[Row, int]]:
        """The rows that have a figure, with the places of their groups."""
        place = {group: at for at, group in enumerate(self.groups)}
        return [
            (row, place[group])
            for row, group in zip(self.rows, self.row_groups, strict=True)
            if row.get(key) is not None and series in (None, str(row[self.plot.series]))
        ]

    @property
    def has_overlaps(self) -> bool:
        """Whether rows share a place: then they have no intervals."""
        places = [(group, str(row[self.plot.series])) for row, group in zip(self.rows, self.row_groups, strict=True)]
        return len(set(places)) < len(places)


def draw_audit_plot(
    plot: PlotSpec,
    rows: Sequence[Row],
    columns: Mapping[str, Column],
    evaluators: Sequence[str] = (),
    floors: Set[str] = frozenset(),
    axes: Axes | Mapping[str, Axes] | None = None,
) -> DrawnAuditFigure:
    """The figure of rows of one audit (of one level, where they have levels), in the style that is set.

    ``columns`` as the audit declares them; ``evaluators`` fixes the order, so that one looks the same in every figure.
    ``floors``: evaluators that others are measured by, drawn as lines; `drop_floor_evaluator_plot_rows` leaves them out
    where a figure has no such line. ``axes``: to draw into, in place of a new figure; those of the one panel, or of
    panels by name. Raises `UsageError` where there is no such panel.
    """
    content = _read_plot_content(plot, rows, columns, evaluators, floors)
    legend = list(content.series)
    if plot.reference in content.columns and content.select(str(plot.reference)):
        heading = content.columns[str(plot.reference)].heading
        legend.append(PlotSeriesStyle("", heading, rcParams["text.color"], "|", size=9.0))
    side = 150 if len(plot.keys) == 1 and axes is None else 108
    names = ["\n".join(wrap_figure_label(group, side, bold=group in content.totals)) for group in content.groups]
    headings = {key: plot.labels.get(key, format_heading_with_unit(content.columns[key])) for key in plot.keys}
    places: Mapping[str, Axes]
    if axes is None:
        places, titles = _make_plot_figure(content, names, headings, legend)
    else:
        places, titles = _find_users_panels(plot.keys, axes), headings
    figure = next(iter(places.values())).get_figure(root=True)
    assert figure is not None
    drawn = DrawnAuditFigure(figure)
    for key, ax in places.items():
        _set_name_axis(ax, names, [at for at, group in enumerate(content.groups) if group in content.totals])
        ax.set_xlim(_compute_panel_limits(content, key))
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.set_title(titles[key], x=0, ha="left")
        if (guide := plot.guides.get(key)) is not None:
            look = {"color": rcParams["axes.edgecolor"], "alpha": 0.8, "lw": 0.7, "ls": (0, (4, 2))}
            ax.axvline(guide * content.scale(key), zorder=1, **look)
        drawn.points += _draw_panel(ax, content, key)
        if axes is None:
            ax.tick_params(labelleft=key == plot.keys[0])
            # Ticks are made here, in this style: those of another range will be made like them.
            ax.xaxis.get_major_ticks()
            ax.yaxis.get_major_ticks()
    if legend and axes is not None:
        handles = [Line2D([], [], **one.line_style()) for one in legend]
        next(iter(places.values())).legend(handles, [one.label for one in legend])
    return drawn


def _read_plot_content(
    plot: PlotSpec, rows: Sequence[Row], columns: Mapping[str, Column], evaluators: Sequence[str], floors: Set[str]
) -> PlotContent:
    rows = drop_floor_evaluator_plot_rows(plot, rows, floors)
    present = list_declared_columns(columns, rows)
    every = {**columns, **present}
    by = list_plot_group_columns(plot, columns, present, rows)
    row_groups = [format_group_label(row, by, every) for row in rows]
    totals = {group for row, group in zip(rows, row_groups, strict=True) if is_total_key(row.get("dataset"))}
    groups = sorted(dict.fromkeys(row_groups), key=lambda group: group in totals)
    return PlotContent(
        plot, rows, every, row_groups, groups, totals, _list_series(plot, rows, every, evaluators, floors)
    )


def _list_series(
    plot: PlotSpec, rows: Sequence[Row], columns: Mapping[str, Column], evaluators: Sequence[str], floors: Set[str]
) -> list[PlotSeriesStyle]:
    """A look for each value of the column of the series.

    Looks follow the report's order, so that an evaluator missing here leaves a gap and not another's colour.
    """
    names = list(dict.fromkeys(str(row[plot.series]) for row in rows))
    is_of_evaluators = plot.series == "evaluator"
    order = list(dict.fromkeys([*(evaluators if is_of_evaluators else ()), *names]))
    lines = [name for name in order if is_of_evaluators and name in floors and name in names]
    marked = [name for name in order if name not in lines and not (is_of_evaluators and name in floors)]
    if not set(marked) & set(names):  # nothing but floors: they are what the figure is of
        lines, marked = [], lines
    looks = [
        PlotSeriesStyle(name, format_audit_figure(columns[plot.series], name), *choose_plot_series_style(at))
        for at, name in enumerate(marked)
        if name in names
    ]
    grey = rcParams["axes.edgecolor"]
    return looks + [
        PlotSeriesStyle(name, f"{name} (a floor)", grey, "", dashes=FLOOR_DASHES[at % len(FLOOR_DASHES)])
        for at, name in enumerate(lines)
    ]


def _compute_panel_limits(content: PlotContent, key: str) -> tuple[float, float]:
    """The range of a panel: its own where it is declared, else one for all panels of a unit, so that they compare."""
    plot, scale, unit = content.plot, content.scale(key), content.columns[key].unit
    if key in plot.limits:
        low, high = plot.limits[key]
        air = 0.025 * (high - low)
        return (low - air) * scale, (high + air) * scale
    alike = [one for one in plot.keys if one not in plot.limits and content.columns[one].unit == unit]
    ends = [f"{one}{end}" for one in alike for end in ("", "_low", "_high")]
    values = [row[end] for row in content.rows for end in ends if row.get(end) is not None]
    for one in alike:
        bounded = [row for row in content.rows if has_drawn_bounds(row, one, content.columns[one])]
        values += [row[f"{one}{end}"] for row in bounded for end in ("_min", "_max")]
    if plot.reference and plot.keys[0] in alike:
        values += [row[plot.reference] for row in content.rows if row.get(plot.reference) is not None]
    return compute_plot_axis_limits([float(value) * scale for value in values], scale, plot.has_zero)


def _make_plot_figure(
    content: PlotContent, names: Sequence[str], headings: Mapping[str, str], legend: Sequence[PlotSeriesStyle]
) -> tuple[dict[str, Axes], dict[str, str]]:
    """The panels of a new figure, side by side, and their titles in lines that fit; sizes are in inches."""
    longest = max(
        measure_text_width(line, group in content.totals)
        for group, name in zip(content.groups, names, strict=True)
        for line in name.split("\n")
    )
    left = longest / 72 + _PAD
    width = (PAGE_WIDTH - left - _RIGHT - _PANEL_GAP * (len(headings) - 1)) / len(headings)
    titles = {
        key: "\n".join(wrap_figure_label(heading, (width + 0.1) * 72, bold=True)) for key, heading in headings.items()
    }
    slots = sum(one.dashes is None for one in content.series)
    group_height = max(0.066 * slots + 0.08, line_height(1 + max(name.count("\n") for name in names)) + 0.05, 0.2)
    labels = [shorten_figure_label(one.label, (PAGE_WIDTH - 0.5) * 72) for one in legend]
    widest = max(map(measure_text_width, labels), default=0.0) / 72
    n_columns = max(1, min(len(labels), int((PAGE_WIDTH - 0.1) / (widest + 0.42))))
    head = 0.08 + line_height(1 + max(title.count("\n") for title in titles.values()))
    head += 0.1 + 1.1 * line_height(-(-len(labels) // n_columns)) if labels else 0.0
    height = head + group_height * len(names) + _FOOT
    figure = Figure(figsize=(PAGE_WIDTH, height))
    panels = figure.subplots(1, len(headings), squeeze=False)
    figure.subplots_adjust(
        left=left / PAGE_WIDTH,
        right=1 - _RIGHT / PAGE_WIDTH,
        bottom=_FOOT / height,
        top=1 - head / height,
        wspace=_PANEL_GAP / width,
    )
    if labels:
        handles = [Line2D([], [], **one.line_style()) for one in legend]
        area = (0, 0, 1, 1 - 0.02 / height)
        figure.legend(handles, labels, loc="upper left", bbox_to_anchor=area, ncols=n_columns)
    return dict(zip(headings, panels[0], strict=True)), titles


def _find_users_panels(keys: Sequence[str], axes: Axes | Mapping[str, Axes]) -> Mapping[str, Axes]:
    if isinstance(axes, Axes):
        if len(keys) > 1:
            raise UsageError(f"ax: this figure has the panels {', '.join(keys)}; give axes={{PANEL: ax}}")
        return {keys[0]: axes}
    if unknown := [name for name in axes if name not in keys]:
        raise UsageError(f"axes: no panel {unknown[0]!r}{suggest_known_name(unknown[0], list(keys))}")
    if not axes:
        raise UsageError("axes: expected {PANEL: ax}, found no panel")
    return axes


def _draw_panel(ax: Axes, content: PlotContent, key: str) -> list[DrawnPoint]:
    """Bounds (broad and pale), intervals (thin) and markers, series side by side within a group; floors and references
    are lines across it. Returns the points that lead to claims."""
    scale, column = content.scale(key), content.columns[key]
    marked = [one for one in content.series if one.dashes is None]
    step = 0.76 / max(1, len(marked))
    if content.totals and len(content.totals) < len(content.groups):
        ax.axhline(len(content.groups) - len(content.totals) - 0.5, color=rcParams["axes.edgecolor"], lw=0.6, zorder=1)
    reference = content.plot.reference
    if reference and key == content.plot.keys[0]:
        # The same for all series of a group.
        values = {at: scale * row[reference] for row, at in content.select(reference)}
        _draw_lines_across(ax, values, rcParams["text.color"], (0, ()))
    points = []
    for number, look in enumerate(content.series):
        mine = content.select(key, look.key)
        if look.dashes is not None:
            _draw_lines_across(ax, {at: scale * row[key] for row, at in mine}, look.colour, look.dashes)
            continue
        offset = (number - (len(marked) - 1) / 2) * step
        if not content.has_overlaps:
            bounded = [(row, at + offset) for row, at in mine if has_drawn_bounds(row, key, column)]
            _draw_ranges(ax, look.colour, bounded, (f"{key}_min", f"{key}_max"), scale, lw=3.0, alpha=0.25)
            lined = [(row, at + offset) for row, at in mine]
            _draw_ranges(ax, look.colour, lined, (f"{key}_low", f"{key}_high"), scale, lw=0.8, alpha=0.55)
        xs, ys = [scale * float(row[key]) for row, _ in mine], [at + offset for _, at in mine]
        if mine:
            ax.plot(xs, ys, **look.line_style(), zorder=3, label=look.label)
        for (row, _), x, y in zip(mine, xs, ys, strict=True):
            if row.get("evaluator"):
                query = urlencode({**_make_claim_query(row), "kind": column.claims})
                points.append(DrawnPoint(ax, x, y, query, _describe_point(content, row, key)))
    if not content.select(key):
        size = rcParams["ytick.labelsize"]
        ax.text(0.5, 0.5, "undefined", transform=ax.transAxes, ha="center", va="center", fontsize=size)
    return points


def _draw_ranges(
    ax: Axes, colour: str, placed_rows: Sequence[tuple[Row, float]], ends: tuple[str, str], scale: int, **look: Any
) -> None:
    """A line from one figure of a row to another, where both are defined."""
    whole = [(row, y) for row, y in placed_rows if None not in (row.get(ends[0]), row.get(ends[1]))]
    if whole:
        lows, highs = ([scale * row[end] for row, _ in whole] for end in ends)
        ax.hlines([y for _, y in whole], lows, highs, color=colour, zorder=2, **look)


def _draw_lines_across(ax: Axes, values: Mapping[int, float], colour: str, dashes: Any) -> None:
    """A line across each group at its value."""
    if values:
        places = list(values)
        starts, ends = [at - 0.4 for at in places], [at + 0.4 for at in places]
        ax.vlines(list(values.values()), starts, ends, color=colour, lw=1.2, ls=dashes, zorder=2)


def _make_claim_query(row: Row) -> dict[str, str]:
    """Which claims a row is about, as far as the claim browser can tell them apart."""
    given = {key: row.get(key) for key in ("evaluator", "dataset", "system")}
    return {key: value for key, value in given.items() if isinstance(value, str) and not is_total_key(value)}


def _describe_point(content: PlotContent, row: Row, key: str) -> str:
    """What a point is of: its evaluator, data set and system, and what else tells it from the figure's others."""
    names = list(_make_claim_query(row).values())
    for one, column in content.columns.items():
        value = row.get(one)
        if not column.key or value is None or value in names or is_total_key(value):
            continue
        if len({str(other.get(one)) for other in content.rows}) > 1:
            named = format_audit_figure(column, value)
            names.append(named if isinstance(value, str) else f"{column.heading} {named}")
    column = content.columns[key]
    return f"{', '.join(names)}: {format_heading_with_unit(column)} {format_audit_figure(column, row[key])}"


def _set_name_axis(ax: Axes, names: Sequence[str], bold: Sequence[int]) -> None:
    """Names down the side, the first above, without ticks; pale bands that lead the eye."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.yaxis.grid(False)
    for position in bold:
        ax.get_yticklabels()[position].set_fontweight("bold")
    for even in range(0, len(names), 2):
        ax.axhspan(even - 0.5, even + 0.5, color=rcParams["axes.edgecolor"], alpha=0.08, lw=0, zorder=0.5)
