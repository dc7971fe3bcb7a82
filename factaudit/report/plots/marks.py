"""What a figure draws, read from rows: points with their intervals and bounds, groups, series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.audit.core.declare import Column
from factaudit.audit.core.rows import Row, is_total
from factaudit.audit.core.words import figure
from factaudit.report.plots.groups import group_label
from factaudit.report.plots.style import Series, look_of


@dataclass(frozen=True)
class Point:
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
class Frame:
    """The rows of one figure with what is declared of them. ``columns``: those that the rows have.

    ``evaluators`` fixes the order, so that an evaluator looks the same in every figure of a report.
    """

    rows: Sequence[Row]
    columns: Mapping[str, Column]
    by: Sequence[str]
    evaluators: Sequence[str]

    def group(self, row: Row) -> str:
        """One label for a row's group: ``MediaSum`` or ``MediaSum · numbers``."""
        return group_label(row, self.by, self.columns)

    def groups(self) -> list[str]:
        """The groups' labels, in order of first appearance."""
        return unique(self.group(row) for row in self.rows)

    def scale(self, key: str) -> float:
        """What a figure is multiplied by to be drawn in its unit."""
        return 100 if self.columns[key].unit in ("percent", "points") else 1

    def point(self, row: Row, key: str, panel: str = "", group: str = "", series: str = "") -> Point:
        """A row's figure with its interval, and with its bounds where something is unscored, in the column's unit."""
        scale = self.scale(key)

        def read(suffix: str = "") -> float | None:
            value = row.get(key + suffix)
            return None if value is None else float(value) * scale

        low, high = read("_low"), read("_high")
        least, greatest = (read("_min"), read("_max")) if row.get("n_unscored") else (None, None)
        return Point(panel, group, series, read(), low, high, least, greatest, is_total(row.get("dataset")))

    def named(self, key: str) -> list[str]:
        """The values of a column: evaluators in their order, others in order of first appearance."""
        names = unique(str(row[key]) for row in self.rows)
        return ordered(names, self.evaluators) if key == "evaluator" else names

    def series(self, key: str) -> list[Series]:
        """A look for each value of a column."""
        names = self.named(key)
        # Looks follow the report's order, so that an evaluator missing here leaves a gap and not another's colour.
        order = unique([*(self.evaluators if key == "evaluator" else ()), *names])
        return [
            Series(each, figure(self.columns[key], each), *look_of(i)) for i, each in enumerate(order) if each in names
        ]


def unique(values: Any) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))


def ordered(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """The names in this order; then those that are not in it."""
    return [name for name in order if name in names] + [name for name in names if name not in order]
