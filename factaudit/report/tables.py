"""Result rows as tables: CSV files with everything, and tables to read with what fits a page."""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factaudit.audit.core.declare import Column, columns_of
from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import UNDEFINED, figure, heading, span
from factaudit.files import write_text
from factaudit.text.cells import escape_cell

#: A table shows so many rows; its CSV has all.
MAX_ROWS = 200


@dataclass(frozen=True)
class Cell:
    """What a cell says; ``notes`` are its interval and its bounds, ``why`` the reason of an undefined figure."""

    text: str
    notes: list[str] = field(default_factory=list)
    why: str = ""


@dataclass(frozen=True)
class Table:
    """A table to read. ``numeric[i]``: column i holds figures. ``total``: rows there are; ``rows`` may be fewer."""

    caption: str
    columns: list[str]
    numeric: list[bool]
    rows: list[list[Cell]]
    total: int
    #: The CSV with all rows and columns, relative to the run folder.
    file: str | None = None
    notes: list[str] = field(default_factory=list)


def result_table(rows: Sequence[Row], declared: Mapping[str, Column], caption: str, file: str | None = None) -> Table:
    """Rows of an audit to read: keys first, then figures with their intervals and bounds beside them."""
    present = columns_of(declared, rows)
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
    body = [[_cell(row, key, shown[key]) for key in columns] for row in rows[:MAX_ROWS]]
    notes = []
    small = [note for line in body for cell in line for note in cell.notes]
    if any(not note.startswith("[") for note in small):
        notes.append("Small figures: interval.")
    if any(note.startswith("[") for note in small):
        notes.append("In brackets: the least and the greatest value that the unscored claims leave possible.")
    if any(cell.why for line in body for cell in line):
        notes.append("A dash is an undefined figure; point at it for the reason.")
    return Table(caption, [heading(shown[key]) for key in columns], numeric, body, len(rows), file, notes)


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str, file: str | None = None
) -> Table:
    """A table of plain values in a given order of columns."""
    body = [[Cell(figure(_PLAIN, value)) for value in row] for row in rows[:MAX_ROWS]]
    numeric = [
        any(isinstance(row[i], int | float) for row in rows) and not any(isinstance(row[i], str) for row in rows)
        for i in range(len(columns))
    ]
    return Table(caption, list(columns), numeric, body, len(rows), file)


#: Of a table that no audit declares.
_PLAIN = Column("")


def _cell(row: Row, key: str, column: Column) -> Cell:
    value = row.get(key)
    if column.key:
        return Cell(figure(column, value))
    if value is None:
        return Cell(UNDEFINED, why=str(row.get("reason") or "") if key in row else "")
    return Cell(figure(column, value), beside(row, key, column))


def beside(row: Row, key: str, column: Column) -> list[str]:
    """What stands beside a figure: its interval and its bounds, where it has them."""
    notes = []
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is not None and high is not None:
        notes.append(span(column, low, high))
    least, greatest = row.get(f"{key}_min"), row.get(f"{key}_max")
    if least is not None and greatest is not None and least != greatest:
        notes.append(f"[{span(column, least, greatest)}]")
    return notes


def write_csv(rows: Sequence[Row], path: Path, columns: Sequence[str] = ()) -> Path:
    """All rows and columns, UTF-8, null as an empty field, nested values as JSON; ``columns`` come first.

    Text that a spreadsheet would run as a formula is escaped (`factaudit.text.cells`).
    """
    names = list(dict.fromkeys([*columns, *(key for row in rows for key in row)]))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(escape_cell, names))
    for row in rows:
        writer.writerow([_plain(row.get(key)) for key in names])
    write_text(path, text.getvalue())
    return path


#: Names stand in many rows.
_escaped = functools.lru_cache(maxsize=4096)(escape_cell)


def _plain(value: object) -> object:
    if isinstance(value, str):
        return _escaped(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
