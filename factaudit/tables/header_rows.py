"""Grids of cells as tables: which row names the columns, what stands above it, and which rows are no data."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.files import check_unpacked_size
from factaudit.tables.cell_values import is_number_text
from factaudit.tables.code_books import (
    CODE_BOOK,
    find_code_book_of_dictionary,
    find_code_book_of_sheet,
    is_code_book_text,
)
from factaudit.tables.open_questions import AmbiguousReadingError, OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.unreadable_rows import leave_out_broken_table_rows

#: In the ``attrs`` of a table: what was left out of the file, as a line to show.
READING_NOTE = "reading_note"
#: Rows above the header that are looked at.
_MAX_TITLE_ROWS = 20
#: A workbook's XML takes several times as much memory as objects, and so does a cell of its grid, be it empty.
_WORKBOOK_SHARE, _CELL_BYTES = 0.25, 32
#: In place of a sheet's name: each sheet that holds a table.
ALL_SHEETS = "*"
#: Where a row or a cell of a sheet says that it stands: ``r="12"``, ``r="AB12"``.
_CELL_PLACE = re.compile(rb"""\sr\s*=\s*["']([A-Z]*)([0-9]{1,9})["']""")
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


def build_table_from_cell_grid(
    source: str, grid: Sequence[Sequence[Any]], note: str | None, header: int | None
) -> pd.DataFrame:
    """A table of rows of cells (None where empty). header: the row with the names, from 1; by default it is found.

    Lone titles above the names, a second row of names that repeats or explains the first (Qualtrics, SurveyMonkey) and
    a last row of totals are left out; of two rows with groups of columns above (merged cells) the names have both.
    Raises `InputError`.
    """
    notes = [] if note is None else [note]
    rows = [list(row) for row in grid]
    first = _find_header_row(rows) if header is None else header - 1
    if header is not None and header > len(rows):
        raise UsageError(f"--header {header}: {source} has {len(rows)} rows")
    books = [", ".join(str(cell) for cell in row if cell is not None) for row in rows[:first]]
    books = [text for text in [*books, *notes] if is_code_book_text(text)]
    if first:
        notes.append(f"header  row {first + 1}: {first} above it left out")
    names, body = rows[first], rows[first + 1 :]
    if header is None:
        _check_header_row_holds_names(source, names)
    names, body, told = (names, body, None) if header is not None else _join_header_rows(names, body)
    notes += [] if told is None else [told]
    if header is None and len(body) > 2 and _is_hint_row(body[0], body[1:]):
        notes.append("header  the row below the names says what the cells hold: left out")
        body = body[1:]
    while names and names[-1] is None and all(len(row) < len(names) or row[len(names) - 1] is None for row in body):
        names = names[:-1]
        body = [row[: len(names)] if len(row) > len(names) else row for row in body]
    body = _drop_rows_of_wrong_width(source, names, body)
    body = [row for row in body if any(cell is not None for cell in row)]
    while len(body) > 1 and len(names) > 2 and (text := _parse_footer(body[-1])) is not None:
        books, body = [*books, text], body[:-1]
    footer = _find_footer(body)
    if footer:
        words = [str(next(cell for cell in row if cell is not None)) for row in body[-footer:]]
        which = "the last one" if footer == 1 else f"the last {footer}"
        notes.append(f"rows  {which} ({', '.join(words)}) sum{'s' if footer == 1 else ''} up the others: left out")
        body = body[:-footer]
    notes += [f"codes  {text}" for text in books if text != note]
    columns: dict[str, list[Any]] = {}
    for at, name in enumerate(names):
        values = [row[at] if at < len(row) else None for row in body]
        if name is not None or any(value is not None for value in values):
            key = f"Unnamed: {at}" if name is None else " ".join(str(name).split())
            if key in columns:
                raise InputError(source, [Problem("the column is there twice", column=key)])
            columns[key] = values
    table = pd.DataFrame(columns, dtype="object")
    if books:
        table.attrs[CODE_BOOK] = "; ".join(text.lstrip("# ") for text in books)
    if notes:
        table.attrs[READING_NOTE] = "; ".join(notes)
    return table


def _find_header_row(rows: Sequence[Sequence[Any]]) -> int:
    """The first row that is no title: as long as most rows, with more than one cell."""
    head = rows[: _MAX_TITLE_ROWS * 2]
    sizes = [len(row) for row in head]
    usual = max(set(sizes), key=lambda size: (sizes.count(size), size == sizes[0])) if sizes else 0
    if usual < 2 or sizes.count(usual) * 2 < len(sizes):
        return 0
    good = [at for at, row in enumerate(head) if len(row) == usual and sum(cell is not None for cell in row) > 1]
    return good[0] if good and good[0] <= _MAX_TITLE_ROWS else 0


def _check_header_row_holds_names(source: str, names: Sequence[Any]) -> None:
    """Raise `InputError` where the first row has a number with decimals: it is data, and names no column."""
    found = next((cell for cell in names if re.fullmatch(r"[+-]?\d*[.,]\d+ ?%?", str(cell).strip())), None)
    if found is not None:
        said = f"expected the columns' names, found {found!r}: put a row with names (claim, doc, label, ...) above it"
        raise InputError(source, [Problem(f"{said}, or say --header ROW", 1)])


def _join_header_rows(names: list[Any], body: list[list[Any]]) -> tuple[list[Any], list[list[Any]], str | None]:
    """The names and the data, where more than one row is no data."""
    if body[1:] and any(isinstance(cell, str) and cell.startswith('{"ImportId"') for cell in body[1]):
        return names, body[2:], "header  Qualtrics' rows 2 and 3 left out"
    if not body:
        return names, body, None
    second = body[0]
    said = [str(cell).strip().lower() for cell in second if cell is not None]
    if said and len(body) > 1 and all(one in _ANSWER_WORDS for one in said):
        return names, body[1:], "header  SurveyMonkey's row 2 left out"
    levels = 1
    while len(body) > 1 and (joined := _join_header_levels(names, body)) is not None:
        names, body, levels = joined, body[1:], levels + 1
    if levels == 1:
        return names, body, None
    named = [at for at, cell in enumerate(body[0]) if cell is not None]
    if named and len(body) > 1 and all(names[at] is None for at in named):  # pandas' names of the index
        names = [cell if name is None else name for name, cell in zip(names, body[0], strict=True)]
        body = body[1:]
    rows = "rows 1 and 2" if levels == 2 else f"rows 1 to {levels}"
    return names, body, f"header  {rows}: groups of columns, and their names"


def _join_header_levels(names: Sequence[Any], body: Sequence[Sequence[Any]]) -> list[Any] | None:
    """The names of groups with those of their columns, in the first row below; None where that row is data. A group
    stands once, with gaps beside it (merged cells), or above each of its columns (pandas)."""
    lower_names, data = body[0], body[1:]
    if len(names) != len(lower_names) or len(names) < 3:
        return None
    filled = [at for at, cell in enumerate(names) if cell is not None]
    gaps = [at for at, cell in enumerate(lower_names) if cell is not None and names[at] is None]
    is_merged = bool(filled) and any(at > filled[0] for at in gaps)
    below = [cell for cell in lower_names if cell is not None]
    are_names = all(isinstance(cell, str) and not is_number_text(cell) for cell in below)
    are_data = any(
        cell is not None and any(row[at : at + 1] == [cell] for row in data) for at, cell in enumerate(lower_names)
    )
    if not are_names or are_data or not (is_merged or len({names[at] for at in filled}) < len(filled)):
        return None
    found: list[Any] = []
    group = None
    for upper, lower in zip(names, lower_names, strict=True):
        group = upper if upper is not None or not is_merged else group
        if lower is None and group is not None:
            return None
        found.append(lower if group is None else f"{group}.{lower}")
    return found


def _is_hint_row(row: Sequence[Any], data: Sequence[Sequence[Any]]) -> bool:
    """Whether a row says what the cells below hold: all of it in brackets (``(0/1)``), or of columns of numbers
    something else (``0/1``, ``int64``) where it has none for others, that are never blank."""
    said = [cell for cell in row if cell is not None]
    if len(said) > 1 and all(isinstance(cell, str) and re.fullmatch(r"\(.*\)|\[.*\]", cell.strip()) for cell in said):
        return True
    columns = [[one[at] for one in data if at < len(one)] for at in range(len(row))]
    numbers = [at for at, cells in enumerate(columns) if all(c is None or is_number_text(c) for c in cells)]
    is_of_numbers = any(row[at] is not None and any(columns[at]) for at in numbers)
    texts = [at for at in range(len(row)) if at not in numbers]
    return (
        is_of_numbers
        and all(row[at] is None or not is_number_text(row[at]) for at in numbers)
        and all(_is_below_texts(row[at], columns[at]) for at in texts)
        and bool(texts)
    )


def _is_below_texts(cell: Any, others: Sequence[Any]) -> bool:
    """Whether a cell is blank in a column that is never so, or short in one of long texts."""
    if cell is None:
        return None not in others
    are_texts = all(isinstance(one, str) and len(one) >= _TEXT_LENGTH for one in others)
    return are_texts and len(str(cell)) < _TEXT_LENGTH


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


def _parse_footer(row: Sequence[Any]) -> str | None:
    """The text of a row of one cell that says what codes mean, else None."""
    said = [str(cell) for cell in row if cell is not None]
    return said[0] if len(said) == 1 and is_code_book_text(said[0]) else None


def _find_footer(body: Sequence[Sequence[Any]]) -> int:
    """How many of the last rows sum up the others (``Accuracy,,,0.75``): where the cells above are long texts they have
    a short one or none, and none in a column that is never blank above; or they are called a total."""
    for size in range(min(_MAX_FOOTER_ROWS, len(body) // 2), 0, -1):
        if all(_is_summary_row(row, body[:-size]) for row in body[-size:]):
            return size
    return 0


def _is_summary_row(row: Sequence[Any], above: Sequence[Sequence[Any]]) -> bool:
    first = next((at for at, cell in enumerate(row) if cell is not None), None)
    if first is None or not isinstance(row[first], str):
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
    return None in row and row[first].strip().lower().rstrip(":") in _TOTAL_WORDS


def _read_excel_grids(path: Path) -> dict[str, list[list[Any]]]:
    """The cells of each sheet of a workbook."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_unpacked_size(str(path), sum(member.file_size for member in archive.infolist()), _WORKBOOK_SHARE)
                check_unpacked_size(str(path), _CELL_BYTES * _count_excel_sheet_cells(archive), _WORKBOOK_SHARE)
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


def _find_excel_code_books(grids: Mapping[str, list[list[Any]]]) -> dict[str, str]:
    """By the sheets that say what codes or columns mean: what each says of codes."""
    headers = {
        name: next((row for row in rows if sum(cell is not None for cell in row) > 1), [])
        for name, rows in grids.items()
    }
    books = {}
    for name, rows in grids.items():
        others = {str(cell).strip() for other, row in headers.items() if other != name for cell in row}
        line = find_code_book_of_sheet(rows)
        line = find_code_book_of_dictionary(rows, others) if line is None else line
        if line is not None:
            books[name] = line and f"codes  {line}"
    return books


def _find_code_book_beside(books: Mapping[str, str], sheet: str) -> str | None:
    """What another sheet than this one says of codes, if any."""
    return next((line for name, line in books.items() if line and name != sheet), None)


def read_excel_grids_of_tables(path: Path) -> dict[str, tuple[list[list[Any]], str | None]]:
    """Of each sheet of a workbook that holds a table the cells, and what another sheet says of codes, if any. Raises
    `InputError` where none does."""
    grids = _read_excel_grids(path)
    books = _find_excel_code_books(grids)
    tables = [name for name, rows in grids.items() if _is_table(rows) and name not in books]
    if not tables:
        raise InputError(str(path), [Problem("no sheet holds a table")])
    return {name: (grids[name], _find_code_book_beside(books, name)) for name in tables}


def read_excel_grid(path: Path, sheet: str | None) -> tuple[list[list[Any]], str | None]:
    """The cells of a workbook's sheet, of several the one that holds a table; and what another says of its codes, if
    any. Raises `AmbiguousReadingError`."""
    grids = _read_excel_grids(path)
    books = _find_excel_code_books(grids)
    if sheet is not None:
        if sheet not in grids:
            raise UsageError(f"--sheet: {path} has no sheet {sheet!r}{suggest_known_name(sheet, list(grids))}")
        return grids[sheet], _find_code_book_beside(books, sheet)
    tables = {name: rows for name, rows in grids.items() if _is_table(rows) and name not in books}
    if not tables:
        raise InputError(str(path), [Problem("no sheet holds a table")])
    if len(tables) > 1:
        listed = ", ".join(map(repr, tables))
        readings = [PossibleColumnReading(f"the sheet {name!r}", {"auto": True, "sheet": name}) for name in tables]
        raise AmbiguousReadingError(str(path), [OpenQuestion(f"the sheets {listed} hold tables", readings)], readings)
    return next(iter(tables.values())), next(filter(None, books.values()), None)


def _count_excel_sheet_cells(archive: zipfile.ZipFile) -> int:
    """The cells of the largest sheet's grid, up to its last row and its last column: most of them may be empty."""
    largest = 0
    for member in archive.infolist():
        if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", member.filename):
            continue
        n_rows = n_columns = 0
        with archive.open(member) as file:
            rest = b""
            while block := file.read(1 << 20):
                text = rest + block
                for letters, number in _CELL_PLACE.findall(text):
                    n_rows = max(n_rows, int(number))
                    if len(letters) < 4:  # no spreadsheet has more columns
                        n_columns = max(n_columns, _parse_column_letters(letters))
                rest = text[-40:]
        largest = max(largest, n_rows * n_columns)
    return largest


def _parse_column_letters(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _is_table(rows: Sequence[Sequence[Any]]) -> bool:
    return sum(sum(cell is not None for cell in row) > 1 for row in rows) > 1
