"""What a figure draws, read from rows: points with their intervals and bounds, groups, series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from factaudit.audit.core.declare import Column
from factaudit.audit.core.rows import Row, is_total
from factaudit.audit.core.words import figure, heading
from factaudit.report.plots.groups import group_label
from factaudit.report.plots.style import FLOOR, FLOOR_LINES, PAGE, Series, look_of


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
    #: What the claim browser is asked for the claims behind it, as a query, and what the point is, in words.
    asked: str = ""
    title: str = ""

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
    #: The evaluators that read nothing, which others are measured by: lines, no markers.
    floors: Set[str] = frozenset()
    #: Inches: of a page, or of one of its columns (where panels stand below each other).
    width: float = PAGE

    @property
    def narrow(self) -> bool:
        """Whether the figure goes over one column."""
        return self.width < PAGE

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
        said = row.get(key)
        title = (
            f"{', '.join(self._asked(row).values())}: {heading(self.columns[key])} {figure(self.columns[key], said)}"
        )
        return Point(
            *(panel, group, series, read(), low, high, least, greatest, is_total(row.get("dataset"))),
            asked=urlencode({**self._asked(row), "kind": self.columns[key].claims}) if row.get("evaluator") else "",
            title=title,
        )

    @staticmethod
    def _asked(row: Row) -> dict[str, str]:
        """Which claims a row is about, as far as the claim browser can tell them apart."""
        given = {key: row.get(key) for key in ("evaluator", "dataset", "system")}
        return {key: value for key, value in given.items() if isinstance(value, str) and not is_total(value)}

    def named(self, key: str) -> list[str]:
        """The values of a column: evaluators in their order, others in order of first appearance."""
        names = unique(str(row[key]) for row in self.rows)
        return ordered(names, self.evaluators) if key == "evaluator" else names

    def series(self, key: str) -> list[Series]:
        """A look for each value of a column."""
        names = self.named(key)
        # Looks follow the report's order, so that an evaluator missing here leaves a gap and not another's colour.
        order = unique([*(self.evaluators if key == "evaluator" else ()), *names])
        floors = [each for each in order if key == "evaluator" and each in self.floors and each in names]
        others = [each for each in order if key != "evaluator" or each not in self.floors]
        if not set(others) & set(names):  # nothing but floors: they are what the figure is of
            floors, others = [], floors
        return [
            *(
                Series(each, figure(self.columns[key], each), *look_of(i))
                for i, each in enumerate(others)
                if each in names
            ),
            *(
                Series(each, f"{each} (a floor)", FLOOR, "", line=FLOOR_LINES[i % len(FLOOR_LINES)])
                for i, each in enumerate(floors)
            ),
        ]


def unique(values: Any) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))


def ordered(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """The names in this order; then those that are not in it."""
    return [name for name in order if name in names] + [name for name in names if name not in order]
