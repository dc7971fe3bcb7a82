"""How do result rows become tables? CSV files with everything, and tables to read with what fits a page."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factaudit.audit.core.audit_declaration import Column, list_declared_columns
from factaudit.audit.core.figure_formatting import (
    UNDEFINED_MARK,
    format_audit_figure,
    format_figure_range,
    format_heading_with_unit,
)
from factaudit.audit.core.result_rows import Row, is_total_key, select_reason_of_figure
from factaudit.files import write_text
from factaudit.text.spreadsheet_cells import escape_spreadsheet_cell

#: A table shows so many rows; its CSV has all.
MAX_TABLE_ROWS = 100
#: It opens with so many of them, the others behind a click; one with a row for each evaluator with fewer.
N_UNFOLDED_ROWS, N_UNFOLDED_EVALUATORS = 20, 8


@dataclass(frozen=True)
class ReportTableCell:
    """What a cell says; ``notes`` are its interval and its bounds, ``reason`` the reason of an undefined figure."""

    text: str
    notes: list[str] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table to read. ``numeric[i]``: column i holds figures. ``total``: rows there are; ``rows`` may be fewer."""

    caption: str
    columns: list[str]
    numeric_columns: list[bool]
    rows: list[list[ReportTableCell]]
    total: int
    #: The CSV with all rows and columns, relative to the run folder.
    file: str | None = None
    notes: list[str] = field(default_factory=list)
    #: A page opens with so many rows.
    n_unfolded: int = N_UNFOLDED_ROWS


def build_report_table(
    rows: Sequence[Row], declared: Mapping[str, Column], caption: str, file: str | None = None
) -> ReportTable:
    """Rows of an audit to read: keys first, then figures with their intervals and bounds beside them."""
    total = len(rows)
    if total > N_UNFOLDED_ROWS:  # means over all come first where they would be cut off
        rows = sorted(rows, key=lambda row: not is_total_key(row.get("dataset")))
    present = list_declared_columns(declared, rows)
    shown = {
        key: column
        for key, column in present.items()
        if column.shown is True or (column.shown == "any" and any(row.get(key) for row in rows))
    }
    keys = [key for key, column in shown.items() if column.key]
    # How many stand behind a figure comes before the figure.
    figures = sorted((key for key in shown if key not in keys), key=lambda key: not (key == "n" or key[:2] == "n_"))
    columns = [*keys, *figures]
    numeric = [
        shown[key].unit != "text" and not any(isinstance(row.get(key), str | bool) for row in rows) for key in columns
    ]
    body = [[_build_report_cell(row, key, shown[key]) for key in columns] for row in rows[:MAX_TABLE_ROWS]]
    notes = []
    small = [note for line in body for cell in line for note in cell.notes]
    if any(note.startswith("[") for note in small):
        named = dict.fromkeys(column.bounds for column in shown.values() if isinstance(column.bounds, str))
        what = " and ".join(named) or "the least and the greatest value that the unscored claims leave possible"
        notes.append(f"In brackets: {what}.")
    if any(cell.reason for line in body for cell in line):
        notes.append("A dash is an undefined figure; point at it for the reason.")
    return ReportTable(
        caption, [format_heading_with_unit(shown[key]) for key in columns], numeric, body, total, file, notes
    )


def build_plain_report_table(columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str) -> ReportTable:
    """A table of plain values in a given order of columns."""
    body = [
        [ReportTableCell(format_audit_figure(_PLAIN_COLUMN, value)) for value in row] for row in rows[:MAX_TABLE_ROWS]
    ]
    numeric = [
        any(isinstance(row[i], int | float) for row in rows) and not any(isinstance(row[i], str) for row in rows)
        for i in range(len(columns))
    ]
    return ReportTable(caption, list(columns), numeric, body, len(rows))


#: Of a table that no audit declares.
_PLAIN_COLUMN = Column("")


def _build_report_cell(row: Row, key: str, column: Column) -> ReportTableCell:
    value = row.get(key)
    if column.key:
        return ReportTableCell(format_audit_figure(column, value))
    if value is None:
        return ReportTableCell(UNDEFINED_MARK, reason=select_reason_of_figure(row, key) if key in row else "")
    return ReportTableCell(format_audit_figure(column, value), format_report_interval_and_bounds(row, key, column))


def format_report_interval_and_bounds(row: Row, key: str, column: Column) -> list[str]:
    """What stands beside a figure: its interval and its bounds, where it has them."""
    notes = []
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is not None and high is not None:
        notes.append(format_figure_range(column, low, high))
    least, greatest = row.get(f"{key}_min"), row.get(f"{key}_max")
    # Equal as they are printed: what sums round off is no bound.
    if (
        least is not None
        and greatest is not None
        and not (
            format_audit_figure(column, least)
            == format_audit_figure(column, row[key])
            == format_audit_figure(column, greatest)
        )
    ):
        notes.append(f"[{format_figure_range(column, least, greatest)}]")
    return notes


def name_table_file(audit: str) -> str:
    """The file with all rows of an audit, relative to the run folder."""
    return f"tables/{audit}.csv"


def write_report_csv_table(rows: Sequence[Row], path: Path, columns: Sequence[str] = ()) -> Path:
    """All rows and columns, UTF-8, null as an empty field, nested values as JSON; ``columns`` come first.

    Text that a spreadsheet would run as a formula is escaped (`factaudit.text.spreadsheet_cells`).
    """
    names = list(dict.fromkeys([*columns, *(key for row in rows for key in row)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(escape_spreadsheet_cell, names))
    for row in rows:
        writer.writerow([_format_csv_value(row.get(key)) for key in names])
    write_text(path, text.getvalue())
    return path


#: Names stand in many rows.
_escape_cached_cell = functools.lru_cache(maxsize=4096)(escape_spreadsheet_cell)


def _format_csv_value(value: object) -> object:
    if isinstance(value, str):
        return _escape_cached_cell(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
