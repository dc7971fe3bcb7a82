"""Grids of cells as tables: the row that names the columns, and the rows below it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.files import check_unpacked_size
from factaudit.tables.cell_values import is_number_text
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.questions import AmbiguousReadingError, OpenQuestion, PossibleReading
from factaudit.tables.unreadable_rows import leave_out_broken_table_rows
from factaudit.tables.vocabulary import parse_stated_codes

#: In the ``attrs`` of a table: what was left out of the file, as a line to show.
READING_NOTE = "reading_note"
#: Rows above the header that are looked at.
_MAX_TITLE_ROWS = 20
#: A workbook's XML takes several times as much memory as objects.
_WORKBOOK_SHARE = 0.25
#: In place of a sheet's name: each sheet that holds a table.
ALL_SHEETS = "*"
_TOTAL_WORDS = (
    "total",
    "totals",
    "sum",
    "mean",
    "average",
    "grand total",
    "gesamt",
    "summe",
    "mittelwert",
    "moyenne",
    "media",
)
#: Shorter cells are no texts; fewer rows do not show what the others have in common.
_TEXT_LENGTH, _MIN_ROWS_ABOVE = 15, 4
#: More rows than this are no footer.
_MAX_FOOTER_ROWS = 12
_ANSWER_WORDS = ("response", "open-ended response", "open ended response")


def build_table_from_cell_grid(source: str, grid: Sequence[Sequence[Any]], note: str | None) -> pd.DataFrame:
    """A table of rows of cells (None where empty), of which the first names the columns.

    Raises `InputError` where a later row looks like the names, where names stand in two rows, or where the last rows
    sum up the others.
    """
    rows = [list(row) for row in grid]
    for number, row in enumerate(rows, start=1):
        said = [str(cell) for cell in row if cell is not None]
        if len(row) != len(rows[-1]) or len(said) == 1:
            _check_is_no_code_book(source, ", ".join(said), number)
    names, body = rows[0], rows[1:]
    _check_header_row(source, rows)
    while names and names[-1] is None and all(len(row) < len(names) or row[len(names) - 1] is None for row in body):
        names = names[:-1]
        body = [row[: len(names)] if len(row) > len(names) else row for row in body]
    body = _drop_rows_of_wrong_width(source, names, body)
    body = [row for row in body if any(cell is not None for cell in row)]
    _check_last_rows(source, body)
    columns: dict[str, list[Any]] = {}
    for at, name in enumerate(names):
        values = [row[at] if at < len(row) else None for row in body]
        if name is not None or any(value is not None for value in values):
            key = f"Unnamed: {at}" if name is None else " ".join(str(name).split())
            if key in columns:
                raise InputError(source, [Problem("the column is there twice", column=key)])
            columns[key] = values
    table = pd.DataFrame(columns, dtype="object")
    if note is not None:
        table.attrs[READING_NOTE] = note
    return table


def _check_is_no_code_book(source: str, text: str, number: int) -> None:
    """Raise `InputError` where a line above or below the table says what its codes mean: they might be read upside
    down."""
    if any(value is not None for value in parse_stated_codes(text).values()):
        message = (
            f"the row says what codes mean ({text}), and is not read: delete it, and say --labels 1=0,0=1 or 1=1,0=0"
        )
        raise InputError(source, [Problem(message, number)])


def _check_header_row(source: str, rows: Sequence[Sequence[Any]]) -> None:
    """Raise where the first row is not surely the one that names the columns, or a second row does so, too."""
    names, body = rows[0], rows[1:]
    if (first := _find_header_row(rows)) > 0:
        message = f"row 1 does not name the columns, and row {first + 1} seems to: delete the rows above it"
        raise InputError(source, [Problem(message, 1)])
    found = next((cell for cell in names if re.fullmatch(r"[+-]?\d*[.,]\d+ ?%?", str(cell).strip())), None)
    if found is not None:
        said = f"expected the columns' names, found {found!r}: put a row with names (claim, doc, label, ...) above it"
        raise InputError(source, [Problem(said, 1)])
    second = body[0] if body else []
    words = [str(cell).strip() for cell in second if cell is not None]
    gaps = [at for at, cell in enumerate(second[: len(names)]) if cell is not None and names[at] is None]
    is_survey = any(str(cell).startswith('{"ImportId"') for row in body[:2] for cell in row if cell is not None)
    is_hint = len(body) > 1 and len(words) > 1 and all(re.fullmatch(r"\(.*\)|\[.*\]", word) for word in words)
    are_answers = bool(words) and all(word.lower() in _ANSWER_WORDS for word in words)
    if is_survey or is_hint or are_answers or (len(gaps) > 1 and not any(map(is_number_text, words))):
        message = "the names stand in more than one row: give each column one name, in row 1, and delete the other rows"
        raise InputError(source, [Problem(message, 2)])


def _find_header_row(rows: Sequence[Sequence[Any]]) -> int:
    """The first row that is no title: as long as most rows, with more than one cell."""
    head = rows[: _MAX_TITLE_ROWS * 2]
    sizes = [len(row) for row in head]
    usual = max(set(sizes), key=lambda size: (sizes.count(size), size == sizes[0])) if sizes else 0
    if usual < 2 or sizes.count(usual) * 2 < len(sizes):
        return 0
    good = [at for at, row in enumerate(head) if len(row) == usual and sum(cell is not None for cell in row) > 1]
    return good[0] if good and good[0] <= _MAX_TITLE_ROWS else 0


def _drop_rows_of_wrong_width(source: str, names: Sequence[Any], body: Sequence[list[Any]]) -> list[list[Any]]:
    """The rows that have a cell for each name, and no more that says anything."""
    problems = TableProblemCollector(source, n_kept=len(body))
    kept = []
    for number, row in enumerate(body, start=1):
        if len(row) == len(names) or (len(row) > len(names) and all(cell is None for cell in row[len(names) :])):
            kept.append(row)
        else:
            problems.add(f"expected {len(names)} columns, as in the header, found {len(row)}", number)
    leave_out_broken_table_rows(Path(source), problems, len(body))
    return kept


def _check_last_rows(source: str, body: Sequence[Sequence[Any]]) -> None:
    """Raise `InputError` where the last rows sum up the others (``Accuracy,,,0.75``): where the cells above are long
    texts they have a short one or none, and none in a column that is never blank above; or they are called a total."""
    for size in range(min(_MAX_FOOTER_ROWS, len(body) // 2), 0, -1):
        if all(_is_summary_row(row, body[:-size]) for row in body[-size:]):
            words = ", ".join(str(next(cell for cell in row if cell is not None)) for row in body[-size:])
            raise InputError(source, [Problem(f"the last rows ({words}) are no claims: delete them")])


def _is_summary_row(row: Sequence[Any], above: Sequence[Sequence[Any]]) -> bool:
    first = next((at for at, cell in enumerate(row) if cell is not None), None)
    if first is None or None not in row or not isinstance(row[first], str):
        return False
    columns = [[one[at] for one in above] for at in range(len(row))]
    texts = [
        at for at, cells in enumerate(columns) if all(isinstance(c, str) and len(c) >= _TEXT_LENGTH for c in cells)
    ]
    if texts and len(above) >= _MIN_ROWS_ABOVE and None not in columns[first]:
        is_short = all(
            row[at] is None or len(str(row[at])) < _TEXT_LENGTH or str(row[at]).lower().split()[0] in _TOTAL_WORDS
            for at in texts
        )
        return is_short and any(row[at] is None and None not in columns[at] for at in range(len(row)))
    return row[first].strip().lower().rstrip(":") in _TOTAL_WORDS


def _read_excel_grids(path: Path) -> dict[str, list[list[Any]]]:
    """The cells of each sheet of a workbook."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_unpacked_size(str(path), sum(member.file_size for member in archive.infolist()), _WORKBOOK_SHARE)
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object)
    except ImportError as error:
        message = (
            f"Excel files need the extra [excel]: pip install 'factaudit[excel]' ({error}); or save the sheet as CSV"
        )
        raise InputError(str(path), [Problem(message)]) from None
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(str(path), [Problem(f"not an Excel file that can be read ({error})")]) from None
    return {
        str(name): [[None if is_missing_value(cell) else cell for cell in row] for row in table.to_numpy().tolist()]
        for name, table in sheets.items()
    }


def read_excel_grids_of_tables(path: Path) -> dict[str, list[list[Any]]]:
    """The cells of each sheet of a workbook that holds a table. Raises `InputError` where none does."""
    tables = {name: rows for name, rows in _read_excel_grids(path).items() if _is_table(rows)}
    if not tables:
        raise InputError(str(path), [Problem("no sheet holds a table")])
    return tables


def read_excel_grid(path: Path, sheet: str | None) -> list[list[Any]]:
    """The cells of a workbook's sheet, of several the one that holds a table. Raises `AmbiguousReadingError`."""
    if sheet is not None:
        grids = _read_excel_grids(path)
        if sheet not in grids:
            raise UsageError(f"--sheet: {path} has no sheet {sheet!r}{suggest_known_name(sheet, list(grids))}")
        return grids[sheet]
    tables = read_excel_grids_of_tables(path)
    if len(tables) > 1:
        listed = ", ".join(map(repr, tables))
        readings = [PossibleReading(f"the sheet {name!r}", {"sheet": name}) for name in tables]
        raise AmbiguousReadingError(str(path), [OpenQuestion(f"the sheets {listed} hold tables", readings)], readings)
    return next(iter(tables.values()))


def _is_table(rows: Sequence[Sequence[Any]]) -> bool:
    return sum(sum(cell is not None for cell in row) > 1 for row in rows) > 1
