"""How do result rows become tables? As CSV files with everything, and as short tables to read."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.wording import (
    format_audit_figure,
    format_figure_range,
    format_heading_with_unit,
)
from factaudit.files import write_text
from factaudit.text.spreadsheet_cells import escape_spreadsheet_cell

#: The largest number of rows in a table of the report; its CSV file has all rows.
MAX_TABLE_ROWS = 8
#: For tables that no audit declares.
_PLAIN_COLUMN = Column("")


@dataclass(frozen=True)
class ReportTable:
    """A table to read. ``numeric_columns[i]``: column i holds figures. ``total``: the number of
    rows that exist; ``rows`` may be fewer."""

    caption: str
    columns: list[str]
    numeric_columns: list[bool]
    rows: list[list[str]]
    total: int


def build_report_table(
    rows: Sequence[Row], declared: Mapping[str, Column], caption: str
) -> ReportTable:
    """The rows of an audit as a table to read: keys first, then figures, each with its interval in
    brackets. Means over all data sets come first."""
    rows = sorted(rows, key=lambda row: not is_total_key(row.get("dataset")))
    shown = {
        key: column
        for key, column in list_declared_columns(declared, rows).items()
        if column.shown is True or (column.shown == "any" and any(row.get(key) for row in rows))
    }
    # A number of claims comes before the figure that is computed from it.
    columns = sorted(
        shown, key=lambda key: (not shown[key].key, not (key == "n" or key[:2] == "n_"))
    )
    numeric = [shown[key].unit != "text" for key in columns]
    body = [
        [_format_cell(row, key, shown[key]) for key in columns] for row in rows[:MAX_TABLE_ROWS]
    ]
    return ReportTable(
        caption, [format_heading_with_unit(shown[key]) for key in columns], numeric, body, len(rows)
    )


def build_plain_report_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    caption: str,
    max_rows: int = MAX_TABLE_ROWS,
) -> ReportTable:
    """A table of plain values in a given order of columns."""
    body = [[format_audit_figure(_PLAIN_COLUMN, value) for value in row] for row in rows[:max_rows]]
    numeric = [
        any(isinstance(row[i], int | float) for row in rows)
        and not any(isinstance(row[i], str) for row in rows)
        for i in range(len(columns))
    ]
    return ReportTable(caption, list(columns), numeric, body, len(rows))


def _format_cell(row: Row, key: str, column: Column) -> str:
    text = format_audit_figure(column, row.get(key))
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return (
        text
        if low is None or high is None
        else f"{text} ({format_figure_range(column, low, high)})"
    )


def write_report_csv_table(rows: Sequence[Row], path: Path, columns: Sequence[str] = ()) -> Path:
    """Write all rows and columns as CSV: UTF-8, null as an empty field, nested values as JSON,
    ``columns`` first. Text that a spreadsheet would run as a formula is escaped
    (`factaudit.text.spreadsheet_cells`)."""
    names = list(dict.fromkeys([*columns, *(key for row in rows for key in row)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(escape_spreadsheet_cell, names))
    for row in rows:
        writer.writerow([_format_csv_value(row.get(key)) for key in names])
    write_text(path, text.getvalue())
    return path


#: The same names appear in many rows.
_escape_cached_cell = functools.lru_cache(maxsize=4096)(escape_spreadsheet_cell)


def _format_csv_value(value: object) -> object:
    if isinstance(value, str):
        return _escape_cached_cell(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
