"""What tells the groups of a figure apart, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from factaudit.audit.core.declare import Column
from factaudit.audit.core.plot import DotPlot, Lines, Plot
from factaudit.audit.core.rows import ALL, Row
from factaudit.audit.core.words import figure


def group_columns(
    plot: Plot, declared: Mapping[str, Column], columns: Mapping[str, Column], rows: Sequence[Row]
) -> list[str]:
    """What tells the groups of a figure apart: ``plot.groups`` or the dataset, and what the rows are grouped ``by``.

    The dataset is left out where it is all datasets and another column tells the rows apart.
    """
    by = [key for key, column in columns.items() if column.key and key not in declared and key != "dataset"]
    own = list(plot.groups) or [key for key in ("dataset",) if key in columns]
    if by and own == ["dataset"] and all(row.get("dataset") in (None, ALL) for row in rows):
        return by
    return own + by


def group_label(row: Row, by: Sequence[str], columns: Mapping[str, Column]) -> str:
    """One label for a row's group: ``MediaSum`` or ``MediaSum · numbers``."""
    return " · ".join(figure(columns[key], row.get(key)) for key in by)


def without_all(plot: Plot, rows: Sequence[Row]) -> list[Row]:
    """The rows that a plot draws: where panels of the same groups share a figure, none of all groups together."""
    if isinstance(plot, DotPlot) and plot.families:
        (column,) = plot.groups
        return [row for row in rows if row.get(column) not in (None, ALL)]
    return list(rows)


def without_floors(plot: Plot, rows: Sequence[Row], floors: Set[str]) -> list[Row]:
    """The rows that a plot draws: without those of floors, where it has no line for them; all, if these are all."""
    if isinstance(plot, Lines) or (isinstance(plot, DotPlot) and "evaluator" == plot.series != plot.panels):
        return list(rows)
    names = ("evaluator", "evaluator_a", "evaluator_b", "chunked_evaluator")
    return [row for row in rows if not any(row.get(name) in floors for name in names)] or list(rows)
