"""Result rows as tables: CSV files with everything, and tables to read with what fits a page."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factaudit.files import write_text
from factaudit.report.labels import KEYS, Row, column_label, figure, group_columns, name, span, unique

#: A table shows so many rows; its CSV has all.
MAX_ROWS = 200
#: Only in the CSV: 1 − TNR and 1 − TPR, and what the figures of `ranking_pairs` show.
_HIDDEN = re.compile(r"fpr|fnr|n_datasets|reason|labelled_(lt|eq|gt)_predicted_(lt|eq|gt)")
#: Shown only where some row has one.
_WHERE_ANY = ("n_unlabelled", "chunk_size")
_SUFFIXES = ("_low", "_high", "_min", "_max")


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


def result_table(rows: Sequence[Row], caption: str, file: str | None = None) -> Table:
    """Rows of an audit to read: keys first, then figures with their intervals and bounds beside them."""
    present = unique(key for row in rows for key in row)
    merged = {key + suffix for key in present for suffix in _SUFFIXES}
    groups = group_columns(rows, KEYS)
    keys = [key for key in unique((*groups, *KEYS)) if key in present and (key != "dataset" or "dataset" in groups)]
    shown = [key for key in present if key not in {*keys, *merged, "dataset"} and not _HIDDEN.fullmatch(key)]
    shown = [key for key in shown if key not in _WHERE_ANY or any(row.get(key) for row in rows)]
    # How many stand behind a figure comes before the figure.
    shown.sort(key=lambda key: not (key == "n" or key.startswith("n_")))
    columns = [*keys, *shown]
    numeric = [
        key == "bin" or (key not in keys and not any(isinstance(row.get(key), str | bool) for row in rows))
        for key in columns
    ]
    body = [[_cell(row, key, key in keys) for key in columns] for row in rows[:MAX_ROWS]]
    notes = []
    small = [note for line in body for cell in line for note in cell.notes]
    if any(not note.startswith("[") for note in small):
        notes.append("Small figures: interval.")
    if any(note.startswith("[") for note in small):
        notes.append("In brackets: the least and the greatest value that the unscored claims leave possible.")
    if any(cell.why for line in body for cell in line):
        notes.append("A dash is an undefined figure; point at it for the reason.")
    return Table(caption, [column_label(key) for key in columns], numeric, body, len(rows), file, notes)


def plain_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], caption: str, file: str | None = None
) -> Table:
    """A table of plain values in a given order of columns."""
    body = [[Cell(figure("", value)) for value in row] for row in rows[:MAX_ROWS]]
    numeric = [
        any(isinstance(row[i], int | float) for row in rows) and not any(isinstance(row[i], str) for row in rows)
        for i in range(len(columns))
    ]
    return Table(caption, list(columns), numeric, body, len(rows), file)


def _cell(row: Row, key: str, is_key: bool) -> Cell:
    value = row.get(key)
    if is_key:
        return Cell(name(key, value))
    if value is None:
        return Cell(figure(key, None), why=str(row.get("reason") or "") if key in row else "")
    notes = []
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is not None and high is not None:
        notes.append(span(key, low, high))
    least, greatest = row.get(f"{key}_min"), row.get(f"{key}_max")
    if least is not None and greatest is not None and least != greatest:
        notes.append(f"[{span(key, least, greatest)}]")
    return Cell(figure(key, value), notes)


def write_csv(rows: Sequence[Row], path: Path, columns: Sequence[str] = ()) -> Path:
    """All rows and columns, UTF-8, null as an empty field, nested values as JSON; ``columns`` come first."""
    names = unique([*columns, *(key for row in rows for key in row)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_plain(row.get(key)) for key in names])
    write_text(path, text.getvalue())
    return path


def _plain(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value
