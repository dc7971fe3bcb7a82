"""What does a figure draw? Points with their intervals and bounds, groups and series, read from rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_audit_figure, format_heading_with_unit
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.report.plots.figure_style import FLOOR_DASHES, PlotSeriesStyle, choose_plot_series_style
from factaudit.report.plots.plot_groups import format_group_label, has_drawn_bounds


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


@dataclass
class DrawnAuditFigure:
    """A drawn figure, and its points that lead to claims, with their axes."""

    figure: Figure
    points: list[tuple[Axes, PlacedPoint]] = field(default_factory=list)


@dataclass(frozen=True)
class PlotFigureData:
    """The rows of one figure with what is declared of them. ``columns``: those that the rows have.

    ``evaluators`` fixes the order, so that an evaluator looks the same in every figure of a report.
    """

    rows: Sequence[Row]
    columns: Mapping[str, Column]
    group_columns: Sequence[str]
    evaluators: Sequence[str]
    #: The evaluators that read nothing, which others are measured by: lines, no markers.
    floors: Set[str] = frozenset()

    def label_group(self, row: Row) -> str:
        """One label for a row's group: ``MediaSum`` or ``MediaSum · numbers``."""
        return format_group_label(row, self.group_columns, self.columns)

    def unit_scale(self, key: str) -> float:
        """What a figure is multiplied by to be drawn in its unit."""
        return scale_of_unit(self.columns[key].unit)

    def make_point(self, row: Row, key: str, panel: str = "", group: str = "", series: str = "") -> PlotPoint:
        """A row's figure with its interval, and with its bounds where something is unscored, in the column's unit."""
        scale, column, query = self.unit_scale(key), self.columns[key], self._make_claim_query(row)

        def read(suffix: str = "") -> float | None:
            value = row.get(key + suffix)
            return None if value is None else float(value) * scale

        heading = format_heading_with_unit(column)
        bounds = (read("_min"), read("_max")) if has_drawn_bounds(row, key, column) else (None, None)
        return PlotPoint(
            *(panel, group, series, read(), read("_low"), read("_high"), *bounds, is_total_key(row.get("dataset"))),
            claim_query=urlencode({**query, "kind": column.claims}) if row.get("evaluator") else "",
            title=f"{', '.join(self._list_point_names(row))}: {heading} {format_audit_figure(column, row.get(key))}",
        )

    @staticmethod
    def _make_claim_query(row: Row) -> dict[str, str]:
        """Which claims a row is about, as far as the claim browser can tell them apart."""
        given = {key: row.get(key) for key in ("evaluator", "dataset", "system")}
        return {key: value for key, value in given.items() if isinstance(value, str) and not is_total_key(value)}

    @cached_property
    def _naming_keys(self) -> list[str]:
        """The columns that tell the figure's rows apart."""
        keys = [key for key, column in self.columns.items() if column.key]
        return [key for key in keys if len({str(row.get(key)) for row in self.rows}) > 1]

    def _list_point_names(self, row: Row) -> list[str]:
        """What a point is of: its evaluator, data set and system, and what else tells it from the figure's others."""
        names = list(self._make_claim_query(row).values())
        for key in self._naming_keys:
            column, value = self.columns[key], row.get(key)
            if value is not None and value not in names and not is_total_key(value):
                named = format_audit_figure(column, value)
                names.append(named if isinstance(value, str) else f"{column.heading} {named}")
        return names

    def list_values(self, key: str) -> list[str]:
        """The values of a column: evaluators in their order, others in order of first appearance."""
        names = list_unique(str(row[key]) for row in self.rows)
        return order_names(names, self.evaluators) if key == "evaluator" else names

    def list_series(self, key: str) -> list[PlotSeriesStyle]:
        """A look for each value of a column."""
        names = self.list_values(key)
        # Looks follow the report's order, so that an evaluator missing here leaves a gap and not another's colour.
        order = list_unique([*(self.evaluators if key == "evaluator" else ()), *names])
        floors = [each for each in order if key == "evaluator" and each in self.floors and each in names]
        others = [each for each in order if key != "evaluator" or each not in self.floors]
        if not set(others) & set(names):  # nothing but floors: they are what the figure is of
            floors, others = [], floors
        grey = rcParams["axes.edgecolor"]
        return [
            *(
                PlotSeriesStyle(each, format_audit_figure(self.columns[key], each), *choose_plot_series_style(i))
                for i, each in enumerate(others)
                if each in names
            ),
            *(
                PlotSeriesStyle(each, f"{each} (a floor)", grey, "", dashes=FLOOR_DASHES[i % len(FLOOR_DASHES)])
                for i, each in enumerate(floors)
            ),
        ]


def scale_of_unit(unit: str) -> int:
    """What a figure of a unit is multiplied by to be drawn."""
    return 100 if unit in ("percent", "points") else 1


def list_unique(values: Any) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))


def order_names(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """The names in this order; then those that are not in it."""
    return [name for name in order if name in names] + [name for name in names if name not in order]
