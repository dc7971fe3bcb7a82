"""Collects what is wrong with a table, by row and column, to report it all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import MAX_PROBLEMS, InputError, Problem
from factaudit.text.display_text import cut_text


class TableProblemCollector:
    """Collects what is wrong with one source: the first `MAX_PROBLEMS` in full, the rest as a
    count."""

    def __init__(
        self,
        source: str,
        unit: str = "row",
        positions: Sequence[int] | None = None,
        parts: Sequence[tuple[str, int]] = (),
        n_kept: int = MAX_PROBLEMS,
    ) -> None:
        """positions: the line of each row, if they are not 1, 2, ... parts: names and sizes of the
        tables of which the rows consist. n_kept: the number of problems that are kept in full."""
        self.source, self.unit, self.positions, self.parts, self.n_kept = (
            source,
            unit,
            positions,
            parts,
            n_kept,
        )
        self.problems: list[Problem] = []
        self.total = 0

    def add(
        self,
        message: str,
        row: int | None = None,
        column: str | None = None,
        unit: str | None = None,
    ) -> None:
        self.total += 1
        if len(self.problems) < self.n_kept:
            self.problems.append(Problem(message, row, column, unit or self.unit))

    def add_where(
        self, is_wrong: Any, column: str, message: str, values: pd.Series | None = None
    ) -> None:
        """Report each row in which ``is_wrong`` is true. With ``values`` the message quotes the
        value."""

        def said(row: int) -> str:
            return (
                message
                if values is None
                else f"{message}, found {_format_found_value(values.iloc[row])}"
            )

        self.add_rows(np.flatnonzero(np.asarray(is_wrong, dtype=bool)), column, said)

    def add_rows(self, rows: np.ndarray, column: str, message: Callable[[int], str]) -> None:
        """Report rows (numbers from 0), each with a message of its own."""
        for row in map(int, rows[:MAX_PROBLEMS]):
            unit, number = self._name_row(row)
            self.add(message(row), number, column, unit)
        self.total += max(0, len(rows) - MAX_PROBLEMS)

    def add_missing_columns(self, table: pd.DataFrame, required: Iterable[str]) -> None:
        for column in table.columns[table.columns.duplicated()].unique():
            self.add("the column is there twice", column=str(column))
        for column in required:
            if column not in table:
                near = [name for name in map(str, table.columns) if name.strip().lower() == column]
                present = ", ".join(map(repr, map(str, table.columns))) or "none"
                found = f"did you mean {near[0]!r}?" if near else f"columns found: {present}"
                self.add(f"the column is missing ({found})", column=column)

    def add_if_empty(self, table: pd.DataFrame) -> None:
        if len(table) == 0:
            self.add("the file has no rows")

    def add_duplicates(
        self, values: pd.Series, column: str, expected: str, remedy: str = ""
    ) -> None:
        again = values.duplicated() & values.notna()
        if not again.any():
            return
        first = values.drop_duplicates().reset_index().set_index(values.name or column)["index"]

        def said(row: int) -> str:
            before = " ".join(map(str, self._name_row(int(first[values.iloc[row]]))))
            return (
                f"expected {expected}, but {_format_found_value(values.iloc[row])} is also in"
                f" {before}{remedy}"
            )

        self.add_rows(np.flatnonzero(again), column, said)

    def _name_row(self, row: int) -> tuple[str, int]:
        """The unit of the row (with the name of its table, if there are several) and its number."""
        if self.parts:
            ends = list(accumulate(size for _, size in self.parts))
            part = bisect_right(ends, row)
            name, size = self.parts[part]
            return f"{name}, row", row - (ends[part] - size) + 1
        return self.unit, row + 1 if self.positions is None else self.positions[row]

    def raise_if_any(self) -> None:
        if self.total:
            raise InputError(self.source, self.problems, self.total)


def list_table_parts(
    tables: Sequence[pd.DataFrame], sources: Sequence[str]
) -> list[tuple[str, int]]:
    """The names and sizes of tables that were put under each other, for `TableProblemCollector`."""
    return (
        [(source, len(table)) for source, table in zip(sources, tables, strict=True)]
        if sources
        else []
    )


def _format_found_value(value: Any) -> str:
    return cut_text(repr(value.item() if isinstance(value, np.generic) else value), 60)
