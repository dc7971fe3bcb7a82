"""Where are the panels of a figure? In a figure of ours, or in axes that a user brings.

Places are computed from the widths of texts before anything is drawn, in inches from the upper left corner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from factaudit.errors import UsageError, suggest_known_name
from factaudit.report.plots.figure_style import PlotSeriesStyle, line_height, measure_text_width, shorten_figure_label

#: Two points of a panel, of which a coordinate may be undefined.
Segment = tuple[tuple[float | None, float | None], tuple[float | None, float | None]]
#: Inches from a panel to the labels of its ticks.
PAD = 6 / 72


@dataclass(frozen=True)
class PlotPoint:
    """A figure of a row with its interval and its bounds; of which panel, group and series."""

    panel: str
    group: str
    series: str
    value: float | None
    low: float | None = None
    high: float | None = None
    lower_bound: float | None = None
    upper_bound: float | None = None
    is_total: bool = False
    #: What the claim browser is asked for the claims behind it, as a query, and what the point is, in words.
    claim_query: str = ""
    title: str = ""

    def list_ends(self) -> list[float]:
        return [v for v in (self.value, self.low, self.high, self.lower_bound, self.upper_bound) if v is not None]


@dataclass(frozen=True)
class PlacedPoint:
    """A point of a defined value at a height of a panel, and how its series looks."""

    series: PlotSeriesStyle
    y: float
    point: PlotPoint


@dataclass(frozen=True)
class PlotPanel:
    """One panel: its name (as users call it), its place in inches, what draws it, and its points."""

    name: str
    left: float
    top: float
    width: float
    height: float
    draw: Callable[[Axes], None]
    points: Sequence[PlacedPoint] = ()
    #: In a figure of ours, whether the panel has the names at its left and the labels below, or a neighbour has them.
    has_left_labels: bool = True
    has_bottom_labels: bool = True


@dataclass(frozen=True)
class FigureLegend:
    """The series above the panels, in columns; ``height``: inches that it takes."""

    series: Sequence[PlotSeriesStyle]
    labels: Sequence[str]
    n_columns: int
    height: float

    def draw(self, owner: Figure | Axes) -> None:
        """Put it at the top of a figure, or where there is room in a user's axes."""
        handles = [
            Line2D([], [], **one.line_style(None if one.dashes is not None else max(4.2, one.size)))
            for one in self.series
        ]
        if isinstance(owner, Figure):
            inch = 1 / owner.get_figheight()
            area = (0, 0, 1, 1 - 0.02 * inch)
            owner.legend(handles, self.labels, loc="upper left", bbox_to_anchor=area, ncols=self.n_columns)
        else:
            owner.legend(handles, self.labels)


def lay_out_figure_legend(series: Sequence[PlotSeriesStyle], width: float) -> FigureLegend:
    """The legend of a figure that is so many inches wide."""
    labels = [shorten_figure_label(one.label, (width - 0.5) * 72) for one in series]
    if not labels:
        return FigureLegend([], [], 1, 0.0)
    widest = max(map(measure_text_width, labels)) / 72
    n_columns = max(1, min(len(labels), int((width - 0.1) / (widest + 0.42))))
    return FigureLegend(series, labels, n_columns, 0.1 + 1.1 * line_height(-(-len(labels) // n_columns)))


@dataclass
class DrawnAuditFigure:
    """A drawn figure, and its points that lead to claims, with their axes."""

    figure: Figure
    points: list[tuple[Axes, PlacedPoint]] = field(default_factory=list)


@dataclass(frozen=True)
class FigureLayout:
    """A figure before it is drawn: its size in inches, its panels and its legend."""

    width: float
    height: float
    panels: Sequence[PlotPanel]
    legend: FigureLegend

    def draw(self, axes: Axes | Mapping[str, Axes] | None = None) -> DrawnAuditFigure:
        """Draw all panels in a new figure; or in ``axes``: those of the one panel, or of some panels by name."""
        if axes is not None:
            return self._draw_in_axes(axes)
        figure = Figure(figsize=(self.width, self.height))
        drawn = DrawnAuditFigure(figure)
        for panel in self.panels:
            bottom = self.height - panel.top - panel.height
            place = panel.left / self.width, bottom / self.height, panel.width / self.width, panel.height / self.height
            ax = figure.add_axes(place)
            self._draw_panel(panel, ax, drawn)
            ax.tick_params(labelleft=panel.has_left_labels, labelbottom=panel.has_bottom_labels)
            if not panel.has_bottom_labels:
                ax.set_xlabel("")
            # Ticks are made here, in this style: those of another range will be made like them.
            ax.xaxis.get_major_ticks()
            ax.yaxis.get_major_ticks()
        if self.legend.series:
            self.legend.draw(figure)
        return drawn

    def _draw_in_axes(self, axes: Axes | Mapping[str, Axes]) -> DrawnAuditFigure:
        known = {panel.name: panel for panel in self.panels}
        if isinstance(axes, Axes):
            if len(known) > 1:
                raise UsageError(f"ax: this figure has the panels {', '.join(known)}; give axes={{PANEL: ax}}")
            axes = {next(iter(known)): axes}
        if unknown := [name for name in axes if name not in known]:
            raise UsageError(f"axes: no panel {unknown[0]!r}{suggest_known_name(unknown[0], list(known))}")
        if not axes:
            raise UsageError("axes: expected {PANEL: ax}, found no panel")
        figures = [ax.get_figure(root=True) for ax in axes.values()]
        assert figures[0] is not None
        drawn = DrawnAuditFigure(figures[0])
        for name, ax in axes.items():
            self._draw_panel(known[name], ax, drawn)
        if self.legend.series:
            self.legend.draw(next(iter(axes.values())))
        return drawn

    @staticmethod
    def _draw_panel(panel: PlotPanel, ax: Axes, drawn: DrawnAuditFigure) -> None:
        panel.draw(ax)
        _draw_panel_points(ax, panel.points)
        drawn.points += [(ax, one) for one in panel.points if one.point.claim_query]


def _draw_panel_points(ax: Axes, points: Sequence[PlacedPoint]) -> None:
    """Bounds (broad and pale), intervals (thin), and the markers of each series as one line with its label."""
    bounds = [(p.series.colour, ((p.point.lower_bound, p.y), (p.point.upper_bound, p.y))) for p in points]
    intervals = [(p.series.colour, ((p.point.low, p.y), (p.point.high, p.y))) for p in points]
    draw_panel_segments(ax, bounds, 3.0, 0.25, 1.5)
    draw_panel_segments(ax, intervals, 0.8, 0.55, 2)
    for one in dict.fromkeys(p.series for p in points):
        places = [(p.point.value, p.y) for p in points if p.series == one]
        ax.plot(*zip(*places, strict=True), **one.line_style(), zorder=3, label=one.label)


def draw_panel_segments(
    ax: Axes, segments: Sequence[tuple[str, Segment]], width: float, alpha: float, zorder: float, dashes: object = "-"
) -> None:
    """Lines of one look, each with its colour, as one collection; those with an undefined end are left out."""
    whole = [(colour, ends) for colour, ends in segments if not any(v is None for end in ends for v in end)]
    if whole:
        look = {"linewidths": width, "alpha": alpha, "zorder": zorder, "linestyles": dashes}
        ends = [ends for _, ends in whole]
        ax.add_collection(LineCollection(ends, colors=[c for c, _ in whole], **look), autolim=False)  # type: ignore[arg-type]


def set_title(ax: Axes, title: str, pad: float | None = None) -> None:
    """The title at the left of the panel."""
    ax.set_title(title, x=0, ha="left", pad=pad)


def set_panel_number_axis(ax: Axes, limits: tuple[float, float]) -> None:
    """An axis of numbers with a few round ticks, which follow where the user changes the limits."""
    ax.set_xlim(limits)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter("{x:g}")


def set_panel_name_axis(ax: Axes, names: Sequence[str], bold: Sequence[int] = ()) -> None:
    """Names down the side, the first above, without ticks; pale bands that lead the eye."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.yaxis.grid(False)
    for position in bold:
        ax.get_yticklabels()[position].set_fontweight("bold")
    for even in range(0, len(names), 2):
        ax.axhspan(even - 0.5, even + 0.5, color=rcParams["axes.edgecolor"], alpha=0.08, lw=0, zorder=0.5)


def draw_guide(ax: Axes, x: float) -> None:
    """A dashed line to measure by."""
    ax.axvline(x, color=rcParams["axes.edgecolor"], alpha=0.8, lw=0.7, ls=(0, (4, 2)), zorder=1)


def draw_undefined_panel_text(ax: Axes) -> None:
    """Say that a panel has nothing to draw."""
    ax.text(
        0.5, 0.5, "undefined", transform=ax.transAxes, ha="center", va="center", fontsize=rcParams["ytick.labelsize"]
    )
