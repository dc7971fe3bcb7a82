"""How is the figure of an audit drawn? Groups down the side, a panel for each figure, a marker for each series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.figure_formatting import format_heading_with_unit
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError, suggest_known_name
from factaudit.report.plots.figure_style import (
    PAGE_WIDTH,
    PlotSeriesStyle,
    compute_plot_axis_limits,
    line_height,
    measure_text_width,
    shorten_figure_label,
    wrap_figure_label,
)
from factaudit.report.plots.plot_data import (
    DrawnAuditFigure,
    PlacedPoint,
    PlotFigureData,
    PlotPoint,
    list_unique,
    scale_of_unit,
)
from factaudit.report.plots.plot_groups import (
    drop_floor_evaluator_plot_rows,
    list_plot_group_columns,
)

#: Inches from a panel to the labels of its groups; between panels, in which half a label of a tick has room; at the
#: right; and under a panel, for the labels of its ticks.
_PAD, _PANEL_GAP, _RIGHT, _FOOT = 6 / 72 + 0.06, 0.22, 0.15, 0.27

#: Two points of a panel, of which a coordinate may be undefined.
Segment = tuple[tuple[float | None, float], tuple[float | None, float]]


@dataclass(frozen=True)
class PlotContent:
    """What a figure shows. ``references``: lines across a group, which are the same for all series."""

    points: Sequence[PlotPoint]
    references: Sequence[PlotPoint]
    series: Sequence[PlotSeriesStyle]
    #: The groups from the top down, those that are totals last.
    groups: Sequence[str]
    totals: Set[str]


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
    rows = drop_floor_evaluator_plot_rows(plot, rows, floors)
    present = list_declared_columns(columns, rows)
    groups = list_plot_group_columns(plot, columns, present, rows)
    frame = PlotFigureData(rows, {**columns, **present}, groups, list(evaluators), floors)
    content = _read_plot_content(plot, frame)
    legend = list(content.series)
    if any(point.value is not None for point in content.references):
        heading = frame.columns[str(plot.reference)].heading
        legend.append(PlotSeriesStyle("", heading, rcParams["text.color"], "|", size=9.0))
    side = 150 if len(plot.keys) == 1 and axes is None else 108
    names = ["\n".join(wrap_figure_label(group, side, bold=group in content.totals)) for group in content.groups]
    headings = {key: plot.labels.get(key, format_heading_with_unit(frame.columns[key])) for key in plot.keys}
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
        _set_number_axis(ax, _compute_panel_limits(plot, frame, content, key))
        ax.set_title(titles[key], x=0, ha="left")
        if (guide := plot.guides.get(key)) is not None:
            look = {"color": rcParams["axes.edgecolor"], "alpha": 0.8, "lw": 0.7, "ls": (0, (4, 2))}
            ax.axvline(guide * frame.unit_scale(key), zorder=1, **look)
        drawn.points += [(ax, one) for one in _draw_panel(ax, content, key) if one.point.claim_query]
        if axes is None:
            ax.tick_params(labelleft=key == plot.keys[0])
            # Ticks are made here, in this style: those of another range will be made like them.
            ax.xaxis.get_major_ticks()
            ax.yaxis.get_major_ticks()
    if legend and axes is not None:
        next(iter(places.values())).legend(*_list_legend_entries(legend))
    return drawn


def _read_plot_content(plot: PlotSpec, frame: PlotFigureData) -> PlotContent:
    points = _merge_overlapping_points(
        [
            frame.make_point(row, key, key, frame.label_group(row), str(row[plot.series]))
            for row in frame.rows
            for key in plot.keys
        ]
    )
    references = []
    if plot.reference in frame.columns:
        of_group = {frame.label_group(row): row for row in frame.rows}
        references = [
            frame.make_point(row, str(plot.reference), plot.keys[0], group) for group, row in of_group.items()
        ]
    named = {point.series for point in points}
    totals = {point.group for point in points if point.is_total}
    groups = list_unique(point.group for point in sorted(points, key=lambda point: point.group in totals))
    return PlotContent(
        points, references, [one for one in frame.list_series(plot.series) if one.key in named], groups, totals
    )


def _merge_overlapping_points(points: Sequence[PlotPoint]) -> Sequence[PlotPoint]:
    """The points as they are; without intervals where several share a place."""
    places = [(point.panel, point.group, point.series) for point in points if point.value is not None]
    if len(set(places)) == len(places):
        return points
    return [replace(point, low=None, high=None, lower_bound=None, upper_bound=None) for point in points]


def _compute_panel_limits(plot: PlotSpec, frame: PlotFigureData, content: PlotContent, key: str) -> tuple[float, float]:
    """The range of a panel: its own where it is declared, else one for all panels of a unit, so that they compare."""
    unit = frame.columns[key].unit
    scale = scale_of_unit(unit)
    if key in plot.limits:
        low, high = plot.limits[key]
        air = 0.025 * (high - low)
        return (low - air) * scale, (high + air) * scale
    alike = {one for one in plot.keys if one not in plot.limits and frame.columns[one].unit == unit}
    points = [point for point in (*content.points, *content.references) if point.panel in alike]
    return compute_plot_axis_limits([end for point in points for end in point.list_ends()], scale, plot.has_zero)


def _make_plot_figure(
    content: PlotContent, names: Sequence[str], headings: Mapping[str, str], legend: Sequence[PlotSeriesStyle]
) -> tuple[dict[str, Axes], dict[str, str]]:
    """The panels of a new figure beside each other, and their titles in lines that fit; places are in inches."""
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
    panels = figure.subplots(
        1,
        len(headings),
        squeeze=False,
        gridspec_kw={
            "left": left / PAGE_WIDTH,
            "right": 1 - _RIGHT / PAGE_WIDTH,
            "bottom": _FOOT / height,
            "top": 1 - head / height,
            "wspace": _PANEL_GAP / width,
        },
    )
    if labels:
        handles, _ = _list_legend_entries(legend)
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


def _list_legend_entries(legend: Sequence[PlotSeriesStyle]) -> tuple[list[Line2D], list[str]]:
    return [Line2D([], [], **one.line_style()) for one in legend], [one.label for one in legend]


def _draw_panel(ax: Axes, content: PlotContent, key: str) -> list[PlacedPoint]:
    """Bounds (broad and pale), intervals (thin) and markers, series side by side within a group; floors and references
    are lines across it. Returns the points that have markers."""
    place = {group: at for at, group in enumerate(content.groups)}
    mine = [point for point in content.points if point.panel == key and point.value is not None]
    marked = [one for one in content.series if one.dashes is None]
    step = 0.76 / max(1, len(marked))
    placed = [
        PlacedPoint(one, place[point.group] + (at - (len(marked) - 1) / 2) * step, point)
        for at, one in enumerate(marked)
        for point in mine
        if point.series == one.key
    ]
    if content.totals and len(content.totals) < len(place):
        ax.axhline(len(place) - len(content.totals) - 0.5, color=rcParams["axes.edgecolor"], lw=0.6, zorder=1)
    lined = [(PlotSeriesStyle("", "", rcParams["text.color"], "", dashes=(0, ())), content.references)]
    lined += [(one, [p for p in mine if p.series == one.key]) for one in content.series if one.dashes is not None]
    for look, points in lined:
        ends = [
            (look.colour, ((p.value, place[p.group] - 0.4), (p.value, place[p.group] + 0.4)))
            for p in points
            if p.panel == key
        ]
        _draw_segments(ax, ends, 1.2, 1, 2, look.dashes)
    bounds = [(p.series.colour, ((p.point.lower_bound, p.y), (p.point.upper_bound, p.y))) for p in placed]
    intervals = [(p.series.colour, ((p.point.low, p.y), (p.point.high, p.y))) for p in placed]
    _draw_segments(ax, bounds, 3.0, 0.25, 1.5)
    _draw_segments(ax, intervals, 0.8, 0.55, 2)
    for one in marked:
        at = [(p.point.value, p.y) for p in placed if p.series == one]
        if at:
            ax.plot(*zip(*at, strict=True), **one.line_style(), zorder=3, label=one.label)
    if not mine:
        size = rcParams["ytick.labelsize"]
        ax.text(0.5, 0.5, "undefined", transform=ax.transAxes, ha="center", va="center", fontsize=size)
    return placed


def _draw_segments(
    ax: Axes, segments: Sequence[tuple[str, Segment]], width: float, alpha: float, zorder: float, dashes: object = "-"
) -> None:
    """Lines of one look, each with its colour, as one collection; those with an undefined end are left out."""
    whole = [(colour, ends) for colour, ends in segments if None not in (ends[0][0], ends[1][0])]
    if whole:
        look = {"linewidths": width, "alpha": alpha, "zorder": zorder, "linestyles": dashes}
        ends = [ends for _, ends in whole]
        ax.add_collection(LineCollection(ends, colors=[c for c, _ in whole], **look), autolim=False)  # type: ignore[arg-type]


def _set_number_axis(ax: Axes, limits: tuple[float, float]) -> None:
    """An axis of numbers with a few round ticks, which follow where the user changes the limits."""
    ax.set_xlim(limits)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter("{x:g}")


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
