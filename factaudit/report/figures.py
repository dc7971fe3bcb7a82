"""Figures that a paper could print, from result rows.

Every function takes rows of one audit (as in ``results.json``) and returns a matplotlib ``Figure`` of a column's
(3.3 in) or a page's (6.8 in) width. Colours are Okabe & Ito's, and a marker always goes with a colour, so that a figure
survives colour blindness and a grey printer. Undefined figures (null) are not drawn. Thin lines are intervals
(``_low``, ``_high``); pale bars are the bounds that unscored claims leave (``_min``, ``_max``).

``evaluators`` fixes the order, so that an evaluator looks the same in every figure of a report.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec

import matplotlib
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.textpath import text_to_path

from factaudit.files import atomic
from factaudit.report.labels import Row, group_columns, group_label, is_total, name, unique

#: Widths in inches of a figure over one column and over a page.
COLUMN, PAGE = 3.3, 6.8

# Okabe & Ito (2008), their yellow replaced by grey: it does not show on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "p")
_INK, _PALE, _GRID = "#222222", "#f3f3f3", "#d9d9d9"
_SMALL, _BASE = 7.0, 7.5

# Any: matplotlib's stubs want the keys as literals.
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": _BASE,
    "axes.titlesize": _BASE,
    "axes.titleweight": "bold",
    "axes.labelsize": _BASE,
    "xtick.labelsize": _SMALL,
    "ytick.labelsize": _SMALL,
    "legend.fontsize": _SMALL,
    "figure.labelsize": _BASE,
    "axes.edgecolor": "#666666",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.color": _GRID,
    "grid.linewidth": 0.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    # A name with two dollar signs is a name, not mathematics.
    "text.parse_math": False,
    "axes.unicode_minus": True,
    "legend.frameon": False,
    "legend.handletextpad": 0.4,
    "legend.columnspacing": 1.4,
    "legend.handlelength": 1.2,
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.05,
    # The same rows give the same bytes; text as paths looks the same everywhere.
    "svg.hashsalt": "factaudit",
    "svg.fonttype": "path",
}

_P = ParamSpec("_P")


def styled(function: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Draw a figure in the report's style: a decorator, also for the figures of the engines."""

    @functools.wraps(function)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with matplotlib.rc_context(_STYLE):
            return function(*args, **kwargs)

    return drawn


def save_figure(figure: Figure, stem: Path, title: str) -> list[Path]:
    """Write ``stem.svg`` and ``stem.png`` (200 dpi) atomically, the same bytes for the same figure; returns both."""
    paths = [stem.with_name(f"{stem.name}.{kind}") for kind in ("svg", "png")]
    metadata: list[dict[str, Any]] = [
        {"Title": title, "Creator": "factaudit", "Date": None},
        {"Title": title, "Software": "factaudit"},
    ]
    with matplotlib.rc_context(_STYLE):
        for path, about in zip(paths, metadata, strict=True):
            with atomic(path) as temporary:
                figure.savefig(temporary, dpi=200, metadata=about, facecolor="white")
    return paths


# --- the figures -----------------------------------------------------------------------------------------------------


@styled
def rates_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """TPR, TNR and BAcc of evaluators across datasets (VC Fig. 3): rows of `rates` or `chunking_rates`."""
    panels = [_Panel("tpr", "TPR (%)"), _Panel("tnr", "TNR (%)"), _Panel("bacc", "BAcc (%)", line=50)]
    columns = group_columns(rows, ("evaluator",))
    points = [_point(row, p.key, p.key, group_label(row, columns), row["evaluator"]) for row in rows for p in panels]
    return _dot_plot(points, _same_limits(panels, points), _evaluator_series(rows, evaluators))


@styled
def consistency_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """Pairwise IoU of what evaluators predict attributable, and unattributable (VC Figs. 2, 9, 10)."""
    names = _ordered(unique([row["evaluator_a"] for row in rows] + [row["evaluator_b"] for row in rows]), evaluators)
    columns = group_columns(rows, ("evaluator_a", "evaluator_b", "class"))
    classes = unique(row["class"] for row in rows)
    at = {other: position for position, other in enumerate(names)}
    grids: dict[tuple[str, str], list[list[float | None]]] = {}
    for group in unique(group_label(row, columns) for row in rows):
        for kind in classes:
            grids[group, kind] = [[None] * (len(names) - 1) for _ in names[1:]]
    drawn = set()
    for row in rows:
        low, high = sorted((at[row["evaluator_a"]], at[row["evaluator_b"]]))
        if low != high:
            grids[group_label(row, columns), row["class"]][high - 1][low] = row["iou"]
            drawn.add((high - 1, low))
    maps = [
        _HeatMap(
            group,
            f"predicted {kind}",
            values=grid,
            texts=[
                [("–" if v is None else f"{v:.2f}") if (i, j) in drawn else "" for j, v in enumerate(line)]
                for i, line in enumerate(grid)
            ],
        )
        for (group, kind), grid in grids.items()
    ]
    return _heat_maps(maps, names[1:], names[:-1], step=len(classes))


@styled
def quantification_figure(
    rows: Sequence[Row], evaluators: Sequence[str] | None = None, panel: str = "dataset"
) -> Figure:
    """Predicted against labelled error rates of systems (VC Figs. 4, 7, 8), a point per system and evaluator.

    ``rows``: `quantification` rows of one level. ``panel``: ``dataset`` (one per dataset, evaluators by colour) or
    ``evaluator`` (one per evaluator, datasets by colour). On the line the evaluator is right; below it, it sees too
    few errors.
    """
    columns = group_columns(rows, ("evaluator", "system", "level"))
    shown = [row for row in rows if not is_total(row.get("system"))] or list(rows)
    series = _evaluator_series(rows, evaluators)

    def group_of(row: Row) -> str:
        return group_label(row, columns)

    def evaluator_of(row: Row) -> str:
        return str(row["evaluator"])

    panel_of, series_of = (group_of, evaluator_of) if panel == "dataset" else (evaluator_of, group_of)
    titles = unique(panel_of(row) for row in shown)
    if panel == "evaluator":
        titles = _ordered(titles, evaluators)
        series = [_Series(group, group, *_look(i)) for i, group in enumerate(unique(group_of(row) for row in shown))]
    ncols = 4 if len(titles) == 4 else min(3, len(titles))
    width = COLUMN if ncols == 1 else PAGE
    nrows = math.ceil(len(titles) / ncols)
    side = (width - 0.45) / ncols
    figure, legend = _figure(width, nrows * (side + (0.02 if ncols > 1 else -0.25)) + 0.25, series)
    axes = figure.subplots(nrows, ncols, squeeze=False).ravel()
    for axis, title in zip(axes, titles, strict=False):
        seen: list[float] = []
        for one in series:
            mine = [row for row in shown if panel_of(row) == title and series_of(row) == one.key]
            pairs = [tuple(_point(row, f"{kind}_error_rate") for kind in ("labelled", "predicted")) for row in mine]
            pairs = [(x, y) for x, y in pairs if x.value is not None and y.value is not None]
            _segments(axis, one, [((x.value, y.least), (x.value, y.greatest)) for x, y in pairs], bounds=True)
            _segments(axis, one, [((x.value, y.low), (x.value, y.high)) for x, y in pairs])
            _segments(axis, one, [((x.low, y.value), (x.high, y.value)) for x, y in pairs])
            axis.plot([x.value for x, _ in pairs], [y.value for _, y in pairs], **_marker(one, 4.2), zorder=3)
            seen += [end for pair in pairs for p in pair for end in p.ends()]
        low, high = _limits(seen)
        axis.plot([low, high], [low, high], color="#888888", lw=0.8, ls=(0, (4, 2)), zorder=1)
        axis.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        ticks = _ticks(low, high)
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.grid(True)
        axis.set_title("\n".join(_wrap(title, (side - 0.35) * 72, bold=True)), loc="left", pad=4)
        if not seen:
            axis.text(0.5, 0.5, "undefined", ha="center", va="center", transform=axis.transAxes)
    for axis in axes[len(titles) :]:
        axis.set_visible(False)
    figure.supxlabel("Labelled error rate (%)")
    figure.supylabel("Predicted error rate (%)")
    legend()
    return figure


@styled
def headroom_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """The lowest error rate among systems, labelled and as evaluators predict it (VC §3.4); one level's rows."""
    columns = group_columns(rows, ("evaluator", "level", "group"))
    panels = [
        _Panel(str(group), f"{name('group', group)}\nlowest error rate (%)")
        for group in unique(r["group"] for r in rows)
    ]
    labelled = _Series("\0labelled", "labelled", _INK, "|", size=9.0)
    points = []
    for row in rows:
        place = (str(row["group"]), group_label(row, columns))
        points.append(_point(row, "predicted", *place, row["evaluator"]))
        points.append(_point(row, "labelled", *place, labelled.key))
    points = list({(p.panel, p.group, p.series): p for p in points}.values())
    series = [*_evaluator_series(rows, evaluators), labelled]
    return _dot_plot(points, _same_limits(panels, points), series, centre=labelled.key)


@styled
def ranking_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """How evaluators order systems (VC §3.5): wrong and reversed orders, τ-b and r; one level's rows."""
    panels = [
        _Panel("error_rate", "wrong orders (%)"),
        _Panel("major_error_rate", "major errors (%)"),
        _Panel("kendall_tau", "Kendall τ-b", scale=1, limits=(-1.05, 1.05), line=0),
        _Panel("pearson_r", "Pearson r", scale=1, limits=(-1.05, 1.05), line=0),
    ]
    columns = group_columns(rows, ("evaluator", "level"))
    points = [
        _point(row, p.key, p.key, group_label(row, columns), row["evaluator"], p.scale) for row in rows for p in panels
    ]
    panels = [*_same_limits(panels[:2], points), *panels[2:]]
    return _dot_plot(points, panels, _evaluator_series(rows, evaluators))


@styled
def orders_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """Labelled against predicted order of system pairs, 3 × 3 counts per evaluator over all rows of `ranking_pairs`."""
    orders = ["<", "=", ">"]
    maps = []
    for evaluator in _ordered(unique(row["evaluator"] for row in rows), evaluators):
        counts = [[0] * 3 for _ in orders]
        for row in rows:
            if row["evaluator"] == evaluator and None not in (row["labelled_order"], row["predicted_order"]):
                counts[orders.index(row["labelled_order"])][orders.index(row["predicted_order"])] += 1
        total = sum(map(sum, counts))
        shares: list[list[float | None]] = [[n / total if total else None for n in line] for line in counts]
        maps.append(_HeatMap(evaluator, f"{total} pairs", shares, [[str(n) for n in line] for line in counts]))
    return _heat_maps(
        maps, orders, orders, axes=("labelled order", "predicted order"), rotate=False, cell=0.36, minimum=1.5
    )


@styled
def surface_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """TPR and TNR over bins of ROUGE-2 precision, by task group (VC Fig. 5): rows of `surface_bias`."""
    columns = ["task", *(c for c in group_columns(rows, ("evaluator", "task")) if c != "dataset")]
    groups = unique(group_label(row, columns) for row in rows)
    series = _evaluator_series(rows, evaluators)
    figure, legend = _figure(COLUMN if len(groups) == 1 else PAGE, 3.6, series)
    axes = figure.subplots(2, len(groups), sharex=True, sharey=True, squeeze=False)
    bins = sorted({row["bin"] for row in rows})
    side = (figure.get_figwidth() - 0.5) / len(groups)
    for column, group in enumerate(groups):
        for line, key in enumerate(("tpr", "tnr")):
            axis: Axes = axes[line][column]
            for position, one in enumerate(series):
                shift = (position - (len(series) - 1) / 2) * 0.06
                mine = [r for r in rows if r["evaluator"] == one.key and group_label(r, columns) == group]
                drawn = [(r["bin"] + shift, _point(r, key)) for r in sorted(mine, key=lambda r: r["bin"])]
                drawn = [(x, p) for x, p in drawn if p.value is not None]
                _segments(axis, one, [((x, p.least), (x, p.greatest)) for x, p in drawn], bounds=True)
                _segments(axis, one, [((x, p.low), (x, p.high)) for x, p in drawn])
                look = _marker(one, 3.6) | {"ls": "-", "lw": 0.9}
                axis.plot([x for x, _ in drawn], [p.value for _, p in drawn if p.value is not None], **look, zorder=3)
            axis.set_ylim(-4, 104)
            axis.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])
            axis.set_xticks(bins, [str(b) for b in bins])
            axis.grid(True, axis="y")
            if line == 0:
                axis.set_title("\n".join(_wrap(group, (side - 0.1) * 72, bold=True)), loc="left", pad=4)
            if column == 0:
                axis.set_ylabel(f"{key.upper()} (%)")
    figure.supxlabel("ROUGE-2 precision bin (1 = least overlap with the document)")
    legend()
    return figure


@styled
def chunking_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """How many predictions chunking flips, where R2-diff is 0 (hollow) and where it is above (VC Fig. 6)."""
    panels = [_Panel("flip_1_to_0", "flips 1 → 0 (%)"), _Panel("flip_0_to_1", "flips 0 → 1 (%)")]
    columns = group_columns(rows, ("evaluator", "chunked_evaluator", "r2_diff"))

    def pair(row: Row) -> str:
        return f"{row['evaluator']} → {row['chunked_evaluator']}, R2-diff"

    points = [
        _point(row, p.key, p.key, group_label(row, columns), f"{pair(row)} {row['r2_diff']}")
        for row in rows
        for p in panels
    ]
    series = []
    for position, each in enumerate(unique(pair(row) for row in rows)):
        series.append(_Series(f"{each} zero", f"{each} = 0", *_look(position), filled=False))
        series.append(_Series(f"{each} positive", f"{each} > 0", *_look(position)))
    return _dot_plot(points, _same_limits(panels, points), series)


@styled
def adjustment_figure(rows: Sequence[Row], evaluators: Sequence[str] | None = None) -> Figure:
    """Mean (filled) and worst (hollow) |bias| of held-out systems by method, each calibrating in turn (VC §5)."""
    rows = [row for row in rows if row.get("calibration_system") == "__cv__"] or list(rows)
    names = _ordered(unique(row["evaluator"] for row in rows), evaluators)
    columns = group_columns(rows, ("evaluator", "level", "method", "calibration_system"))
    panels = [_Panel(each, f"{each}\n|bias| (points)") for each in names]
    series: list[_Series] = []
    points: list[_Point] = []
    for position, method in enumerate(unique(row["method"] for row in rows)):
        one = _Series(method, name("method", method), *_look(position))
        series += [one, replace(one, key=f"{method}, worst", label=f"{one.label}, worst", filled=False, slot=method)]
    for row in rows:
        place = (row["evaluator"], group_label(row, columns))
        mean = _point(row, "mean_abs_bias", *place, row["method"])
        worst = _point(row, "worst_abs_bias", *place, f"{row['method']}, worst")
        # The line runs from the mean to the worst.
        points += [replace(mean, low=mean.value, high=worst.value), replace(worst, low=None, high=None)]
    ncols = 2 if len(panels) == 4 else min(3, len(panels))
    return _dot_plot(points, _same_limits(panels, points), series, ncols=ncols)


#: The figure of each audit that has one.
FIGURES: dict[str, Callable[[Sequence[Row], Sequence[str] | None], Figure]] = {
    "rates": rates_figure,
    "chunking_rates": rates_figure,
    "consistency": consistency_figure,
    "quantification": quantification_figure,
    "headroom": headroom_figure,
    "ranking": ranking_figure,
    "ranking_pairs": orders_figure,
    "surface_bias": surface_figure,
    "chunking": chunking_figure,
    "adjustment": adjustment_figure,
}


# --- dot plots -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Point:
    panel: str
    group: str
    series: str
    value: float | None
    low: float | None = None
    high: float | None = None
    least: float | None = None
    greatest: float | None = None
    total: bool = False

    def ends(self) -> list[float]:
        return [v for v in (self.value, self.low, self.high, self.least, self.greatest) if v is not None]


@dataclass(frozen=True)
class _Panel:
    key: str
    label: str
    scale: float = 100
    limits: tuple[float, float] | None = None
    line: float | None = None


@dataclass(frozen=True)
class _Series:
    key: str
    label: str
    colour: str
    marker: str
    filled: bool = True
    size: float = 4.2
    #: Series of the same slot share a line of the plot; by default each has its own.
    slot: str = ""


def _point(row: Row, key: str, panel: str = "", group: str = "", series: str = "", scale: float = 100) -> _Point:
    def read(suffix: str = "") -> float | None:
        value = row.get(key + suffix)
        return None if value is None else float(value) * scale

    low, high = read("_low"), read("_high")
    least, greatest = (read("_min"), read("_max")) if row.get("n_unscored") else (None, None)
    return _Point(panel, group, series, read(), low, high, least, greatest, is_total(row.get("dataset")))


def _dot_plot(
    points: Sequence[_Point],
    panels: Sequence[_Panel],
    series: Sequence[_Series],
    ncols: int | None = None,
    centre: str | None = None,
) -> Figure:
    """Groups down the side, a panel per figure, a marker per series, series side by side within a group.

    The series ``centre`` is drawn across the whole group.
    """
    shown = [one for one in series if any(p.series == one.key for p in points)]
    slots = unique(one.slot or one.key for one in shown if one.key != centre)
    place = {slot: i for i, slot in enumerate(slots)}
    groups = unique(p.group for p in points if not p.total) + unique(p.group for p in points if p.total)
    at = {group: i for i, group in enumerate(groups)}
    totals = {p.group for p in points if p.total}
    step = 0.76 / max(1, len(slots))

    labels = [_wrap(group, 108, bold=group in totals) for group in groups]
    line_height = max(0.066 * len(slots) + 0.08, 0.135 * max(map(len, labels)) + 0.05, 0.2)
    ncols = ncols or len(panels)
    nrows = math.ceil(len(panels) / ncols)
    titles = max(_lines(panel.label) for panel in panels)
    height = nrows * (line_height * len(groups) + 0.2 + 0.16 * titles + 0.1)
    figure, legend = _figure(PAGE, height, shown)
    axes = figure.subplots(nrows, ncols, squeeze=False).ravel()
    width = (PAGE - 1.6) / ncols
    for number, (axis, panel) in enumerate(zip(axes, panels, strict=False)):
        mine = [p for p in points if p.panel == panel.key]
        for group in groups:
            if at[group] % 2 == 0:
                axis.axhspan(at[group] - 0.5, at[group] + 0.5, color=_PALE, lw=0, zorder=0)
        if totals and len(totals) < len(groups):
            axis.axhline(len(groups) - len(totals) - 0.5, color="#888888", lw=0.6, zorder=1)
        if panel.line is not None:
            axis.axvline(panel.line, color="#888888", lw=0.7, ls=(0, (4, 2)), zorder=1)
        for one in shown:
            drawn = [p for p in mine if p.series == one.key and p.value is not None]
            shift = 0.0 if one.key == centre else (place[one.slot or one.key] - (len(slots) - 1) / 2) * step
            y = [at[p.group] + shift for p in drawn]
            if one.key == centre:
                axis.vlines([p.value for p in drawn], [v - 0.4 for v in y], [v + 0.4 for v in y], one.colour, lw=1.2)
                continue
            _segments(axis, one, [((p.least, v), (p.greatest, v)) for p, v in zip(drawn, y, strict=True)], bounds=True)
            _segments(axis, one, [((p.low, v), (p.high, v)) for p, v in zip(drawn, y, strict=True)])
            axis.plot([p.value for p in drawn], y, **_marker(one, one.size), zorder=3)
        if all(p.value is None for p in mine):
            axis.text(0.5, 0.5, "undefined", ha="center", va="center", transform=axis.transAxes, fontsize=_SMALL)
        limits = panel.limits or _limits([end for p in mine for end in p.ends()])
        axis.set(xlim=limits, ylim=(len(groups) - 0.5, -0.5))
        ticks = _ticks(*limits)
        axis.set_xticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        axis.grid(True, axis="x")
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
        label = "\n".join(line for part in panel.label.split("\n") for line in _wrap(part, width * 72, bold=True))
        axis.set_title(label, loc="left", pad=5)
        axis.set_yticks([])
        if number % ncols == 0:
            axis.set_yticks(range(len(groups)), ["\n".join(lines) for lines in labels])
            for tick, group in zip(axis.get_yticklabels(), groups, strict=False):
                tick.set_fontweight("bold" if group in totals else "normal")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    legend()
    return figure


def _segments(
    axis: Axes,
    one: _Series,
    segments: Sequence[tuple[tuple[float | None, float | None], tuple[float | None, float | None]]],
    bounds: bool = False,
) -> None:
    """Lines from (x, y) to (x, y) in a series' colour: thin for intervals, broad and pale for bounds."""
    whole: Any = [pair for pair in segments if None not in pair[0] and None not in pair[1] and pair[0] != pair[1]]
    look = {"alpha": 0.25, "lw": 3.0, "zorder": 1.5} if bounds else {"alpha": 0.55, "lw": 0.8, "zorder": 2}
    if whole:
        axis.add_collection(LineCollection(whole, colors=one.colour, **look), autolim=False)


# --- heat maps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _HeatMap:
    title: str
    subtitle: str
    values: list[list[float | None]]
    #: What each cell says; an empty text means that there is no such cell.
    texts: list[list[str]]


def _heat_maps(
    maps: Sequence[_HeatMap],
    rows: Sequence[str],
    columns: Sequence[str],
    step: int = 1,
    axes: tuple[str, str] | None = None,
    rotate: bool = True,
    cell: float = 0.3,
    minimum: float = 1.3,
) -> Figure:
    """Annotated heat maps of shares in [0, 1], in lines that hold a multiple of ``step``; laid out in inches."""
    row_labels = [_wrap(label, 100) for label in rows]
    column_labels = [_wrap(label, 80) for label in columns]
    left = max(_width(line) for lines in row_labels for line in lines) / 72 + 0.12 + (0.2 if axes else 0)
    below = 0.22
    if rotate:
        # No longer than it takes to tell them apart.
        for longest in (80, 120, 160):
            column_labels = [[_shorten(label, longest)] for label in columns]
            if len({lines[0] for lines in column_labels}) == len(columns):
                break
        reach = max(_width(lines[0]) for lines in column_labels) / 72 * 0.72
        # A rotated label ends under its cell and reaches to the left.
        left, below = max(left, reach - cell / 2 + 0.05), reach + 0.25
    inner = (cell * len(columns), cell * len(rows))
    pitch = max(inner[0] + 0.15, minimum)
    fit = max(1, int((PAGE - left) // pitch))
    per_line = max(step, fit // step * step) if fit >= step else fit
    per_line = min(per_line, len(maps))
    titles = [_wrap(heat.title, (pitch - 0.1) * 72, bold=True) for heat in maps]
    subtitles = [_wrap(heat.subtitle, (pitch - 0.1) * 72) for heat in maps]
    under = 0.13 * max(map(len, subtitles))
    head = 0.135 * max(map(len, titles)) + under + 0.1
    count = math.ceil(len(maps) / per_line)
    # Only more evaluators than a page can hold make it wider than a page.
    width = max(COLUMN, left + per_line * pitch + 0.05)
    height = count * (head + inner[1]) + (count - 1) * 0.12 + below + (0.18 if axes else 0) + 0.05
    figure = Figure(figsize=(width, height))
    cmap = matplotlib.colormaps["Blues"]
    for position, heat in enumerate(maps):
        line, column = divmod(position, per_line)
        top = height - 0.02 - line * (head + inner[1] + 0.12) - head
        x = left + column * pitch
        axis = figure.add_axes((x / width, (top - inner[1]) / height, inner[0] / width, inner[1] / height))
        for i, (values, texts) in enumerate(zip(heat.values, heat.texts, strict=True)):
            for j, (value, text) in enumerate(zip(values, texts, strict=True)):
                if not text:
                    continue
                # The palest colour is not white, and the darkest leaves the text readable.
                colour = "#ffffff" if value is None else cmap(0.05 + 0.85 * value)
                axis.add_patch(
                    Rectangle(
                        (j, i),
                        1,
                        1,
                        facecolor=colour,
                        edgecolor="white",
                        lw=0.8,
                        hatch="////" if value is None else None,
                    )
                )
                red, green, blue = to_rgb(colour)
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55
                axis.text(
                    j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=_SMALL, color="white" if dark else _INK
                )
        axis.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
        axis.tick_params(length=0, pad=2)
        axis.spines[:].set_visible(False)
        axis.set_yticks([])
        axis.set_xticks([])
        if column == 0:
            axis.set_yticks([i + 0.5 for i in range(len(rows))], ["\n".join(lines) for lines in row_labels])
            if axes:
                axis.set_ylabel(axes[0])
        if line == count - 1:
            axis.set_xticks([j + 0.5 for j in range(len(columns))], ["\n".join(lines) for lines in column_labels])
            if rotate:
                for tick in axis.get_xticklabels():
                    tick.set(rotation=45, ha="right", rotation_mode="anchor")
            if axes:
                axis.set_xlabel(axes[1])
        titled: list[tuple[list[str], float, dict[str, Any]]] = [
            (titles[position], top + 0.06 + under, {"fontsize": _BASE, "fontweight": "bold"}),
            (subtitles[position], top + 0.05 + under, {"fontsize": _SMALL, "va": "top"}),
        ]
        for lines, y, look in titled:
            figure.text(x / width, y / height, "\n".join(lines), **{"va": "bottom", **look})
    return figure


# --- looks and layout ------------------------------------------------------------------------------------------------


def _look(position: int) -> tuple[str, str]:
    """A colour and a marker: the pair is distinct for the first 88."""
    return _COLOURS[position % len(_COLOURS)], _MARKERS[position % len(_MARKERS)]


def _marker(one: _Series, size: float) -> dict[str, Any]:
    face = one.colour if one.filled else "white"
    return {
        "color": one.colour,
        "marker": one.marker,
        "ms": size,
        "mfc": face,
        "mec": one.colour,
        "mew": 0.7,
        "ls": "none",
    }


def _ordered(names: Sequence[str], order: Sequence[str] | None) -> list[str]:
    return [n for n in order or () if n in names] + [n for n in names if n not in (order or ())]


def _evaluator_series(rows: Sequence[Row], evaluators: Sequence[str] | None) -> list[_Series]:
    names = unique(row["evaluator"] for row in rows)
    # Looks follow the report's order, so that an evaluator missing here leaves a gap and not another's colour.
    order = unique([*(evaluators or ()), *names])
    return [_Series(each, each, *_look(i)) for i, each in enumerate(order) if each in names]


def _figure(width: float, height: float, series: Sequence[_Series]) -> tuple[Figure, Callable[[], None]]:
    """A figure with room for a legend above; call what is returned second once the axes stand."""
    labels = [_shorten(one.label, (width - 0.5) * 72) for one in series]
    if not series:
        return Figure(figsize=(width, height), layout="constrained"), lambda: None
    widest = max(map(_width, labels)) / 72 + 0.42
    ncols = max(1, min(len(series), int((width - 0.1) / widest)))
    lines = math.ceil(len(series) / ncols)
    figure = Figure(figsize=(width, height + 0.155 * lines + 0.12), layout="constrained")

    def legend() -> None:
        handles = [Line2D([], [], **_marker(one, max(4.2, one.size))) for one in series]
        figure.legend(handles, labels, loc="outside upper left", ncols=ncols, borderaxespad=0.2, labelspacing=0.35)

    return figure, legend


def _same_limits(panels: Sequence[_Panel], points: Sequence[_Point]) -> list[_Panel]:
    """The panels with one common range, so that they can be compared."""
    keys = {panel.key for panel in panels}
    limits = _limits([end for p in points if p.panel in keys for end in p.ends()])
    return [_Panel(p.key, p.label, p.scale, limits, p.line) for p in panels]


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """A range of percentages that holds all values with a little air, from 0 where that is not far."""
    if not values:
        return -2.0, 102.0
    low, high = min(values), max(values)
    span = max(high - low, 5.0)
    low = 0.0 if 0 <= low <= 0.6 * high else low
    air = 0.04 * max(high - low, span)
    return low - air, high + air


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers within the range."""
    step = next(s for s in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 25, 50, 100, 200) if (high - low) / s <= 5.5)
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 6) for k in range(first, math.floor(high / step + 1e-9) + 1)]


@functools.lru_cache(maxsize=4096)
def _width(text: str, bold: bool = False) -> float:
    """The width of one line of text in points, at the size of labels."""
    font = FontProperties(family="DejaVu Sans", size=_BASE if bold else _SMALL, weight="bold" if bold else "normal")
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _shorten(text: str, width: float, bold: bool = False) -> str:
    """One line of at most ``width`` points: the middle gives way to an ellipsis, for names differ at their ends."""
    text = " ".join(text.split())
    if _width(text, bold) <= width:
        return text
    for keep in range(len(text) - 1, 1, -1):
        short = text[: (keep + 1) // 2] + "…" + text[len(text) - keep // 2 :]
        if _width(short, bold) <= width:
            return short
    return "…"


def _wrap(text: str, width: float, bold: bool = False, lines: int = 2) -> list[str]:
    """At most ``lines`` lines of at most ``width`` points, broken after a space or punctuation where there is one."""
    text = " ".join(text.split())
    if _width(text, bold) <= width or lines == 1:
        return [_shorten(text, width, bold)]
    fits = [k for k in range(1, len(text)) if _width(text[:k].rstrip(), bold) <= width]
    if not fits:
        return [_shorten(text, width, bold)]
    soft = [k for k in fits if text[k - 1] in " -_/:,·.=" and k >= fits[-1] * 0.45]
    cut = (soft or fits)[-1]
    return [text[:cut].rstrip(), *_wrap(text[cut:], width, bold, lines - 1)]


def _lines(text: str) -> int:
    return text.count("\n") + 1
