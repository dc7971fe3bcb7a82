"""Reads the rows of one file or data frame: CSV with any separator, lines of JSON, JSON, Parquet,
Excel, each also with gzip.

Cells of text files are text, null if they are empty. It is only checked that the file is a table
whose first row names the columns. A file with text above or below its table is refused, with what
to delete.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import (
    InputError,
    Problem,
    UsageError,
    format_error_first_line,
    suggest_known_name,
)
from factaudit.files import (
    check_is_table_file,
    check_unpacked_size,
    open_input_file,
    parse_json_file_text,
)
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.documents import read_encoded_documents
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import POSITIONS_KEY
from factaudit.tables.unreadable_rows import leave_out_broken_table_rows
from factaudit.text.spreadsheet_cells import ESCAPED_CELL_START, unescape_spreadsheet_cell

#: Possible ends of a file's name. ``.gz`` may follow those of text.
FILE_SUFFIXES = (
    ".csv",
    ".tsv",
    ".txt",
    ".json",
    ".jsonl",
    ".ndjson",
    ".manifest",
    ".parquet",
    ".xlsx",
    ".xls",
)
_WORKBOOK_SUFFIXES = (".xlsx", ".xls")
#: The reasons of so many rows that are left out are kept.
_MAX_LEFT_OUT = 10_000
#: The rows of a text file that become columns at a time; the characters at its start in which the
#: separator is looked for.
_BLOCK_ROWS, _HEAD_CHARACTERS = 5000, 1 << 16
#: The levels of a JSON document in which rows are looked for.
_MAX_DEPTH = 6
#: The XML of a workbook needs several times its size in memory.
_WORKBOOK_SHARE = 0.25
#: If the columns of a Parquet file are so many times its size, their unpacked size is limited like
#: that of archives. A cell takes at least so many bytes.
_MAX_PARQUET_PACKING, _CELL_BYTES = 50, 8
#: Characters beyond ASCII in texts in the languages of Western Europe.
_WESTERN_CHARACTERS = {
    *"äöüÄÖÜßéèêëÉÈÊàâáãåæÀÁÂÅÆçÇñÑíìîïÍóòôõøÓÖØœŒúùûýÿÚ’‘“”„‚–—…€£°«»·•´§²³½×©®™ºª¿¡\u00a0"
}
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: A row beside a table may be a comment, or say what codes mean.
_REMARK = re.compile(r"\s*#|.*(?<![\w.])-?\d+\s*[=:]|.*=\s*-?\d", re.DOTALL)
#: A cell in a second row of names, or of descriptions of cells, as survey tools write it.
_HEADER_CELL = re.compile(r'\{"ImportId"|(\(.*\)|\[.*\]|(open[- ]ended )?response)$', re.IGNORECASE)
_TOTAL_WORDS = {
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
}
#: Shorter cells are not taken for texts.
_TEXT_LENGTH = 15
#: Keys under which JSON documents say what codes mean.
_CODE_BOOK = re.compile(
    r"label.?(map|mapping|names|classes)|labels.?map|id2label|label2id|class(es|.?names)|code.?book"
    r"|features"
)


def read_table(
    path: str | Path, is_counted: bool = False, sheet: str | None = None
) -> pd.DataFrame:
    """The rows of a file, unchecked. Raises `InputError` if it is no complete, readable table.
    sheet: of a workbook.

    A JSON file is a list of objects, an object of columns, or an object that contains such a list
    (``{"results": [...]}``). Broken rows are left out if the caller collects them
    (`factaudit.tables.unreadable_rows`), but not if other files count rows (``is_counted``);
    ``attrs["positions"]`` then has the number of each row.
    """
    path = Path(path)
    check_is_table_file(path)
    name = path.name.lower().removesuffix(".gz")
    is_text = name.endswith((".csv", ".tsv", ".txt"))
    with _name_unreadable_file(path):
        with open_input_file(path) as file:
            start = file.read(512)
        _check_is_what_its_name_says(path, start)
        if name.endswith(_WORKBOOK_SUFFIXES):
            return _build_table_of_cells(path, iter(_read_sheet(path, sheet)), is_counted)
        if sheet is not None:
            raise UsageError(f"--sheet {sheet}: {path} is no workbook")
        if name.endswith(".parquet"):
            return _read_parquet(path)
        if name.endswith((".jsonl", ".ndjson", ".manifest")):
            return read_json_lines(path, is_counted)
        if name.endswith(".json") or (
            is_text and re.match(rb'(\xef\xbb\xbf)?\s*(\{\s*"|\[\s*\{)', start)
        ):
            return _read_json_table(path)
        if is_text:
            return _read_separated(path, is_counted)
    raise InputError(
        str(path), [Problem(f"expected a name that ends in {', '.join(FILE_SUFFIXES)}")]
    )


@contextmanager
def _name_unreadable_file(path: Path) -> Iterator[None]:
    """Raise `InputError` if a file is empty, an incomplete gzip file, or unreadable."""
    try:
        if path.stat().st_size == 0:
            raise InputError(str(path), [Problem("the file is empty")])
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            str(path), [Problem(f"not a whole gzip file ({format_error_first_line(error)})")]
        ) from None
    except OSError as error:
        reason = error.strerror or format_error_first_line(error)
        raise InputError(str(path), [Problem(f"cannot be read ({reason})")]) from None


def _check_is_what_its_name_says(path: Path, start: bytes) -> None:
    """Raise `InputError` for a web page, and for an archive or a workbook under another name."""
    message = None
    if re.match(rb"\s*(<!doctype html|<html|<table|<div|<\?xml)", start, re.IGNORECASE):
        message = (
            "a web page, whatever its name says: open it in a spreadsheet program and save the"
            " table as CSV"
        )
    elif start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) and not path.name.lower().endswith(
        _WORKBOOK_SUFFIXES
    ):
        message = f"an Excel file, whatever its name says: rename it to {path.stem}.xlsx"
        try:
            names = zipfile.ZipFile(path).namelist() if zipfile.is_zipfile(path) else None
        except (ValueError, NotImplementedError, zipfile.BadZipFile) as error:
            message = f"an archive that is damaged ({error})"
        else:
            if names is not None and "[Content_Types].xml" not in names:
                held = ", ".join(names[:5])
                message = f"an archive that holds {held}: unpack it and name the file"
    if message is not None:
        raise InputError(str(path), [Problem(message)])


# Parquet and data frames
# ------------------------------------------------------------


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        _check_column_names(path, schema.names)
        check_parquet_unpacked_size(path, file)
        columns = pq.read_table(path, read_dictionary=["doc"])
        docs = columns.column("doc") if "doc" in schema.names else None
        if docs is not None and pa.types.is_dictionary(docs.type):
            docs = read_encoded_documents(docs)
            columns = columns.drop_columns("doc")
        else:
            docs = None
        # Without pandas' metadata an index that has a name ("claim_id") is the column that it is in
        # the file. Each column is let go as soon as pandas has it: two copies of millions of rows
        # are too many.
        table = columns.to_pandas(ignore_metadata=True, self_destruct=True, split_blocks=True)
        if docs is not None:
            table.insert(schema.names.index("doc"), "doc", docs)
    except pa.ArrowException as error:
        message = f"not a readable Parquet file ({format_error_first_line(error)})"
        raise InputError(str(path), [Problem(message)]) from None
    table = table.drop(
        columns=[name for name in table.columns if re.fullmatch(r"__index_level_\d+__", name)]
    )
    return _name_classes(table, _list_features(schema))


def check_parquet_unpacked_size(path: Path, file: pq.ParquetFile) -> None:
    """Raise `InputError` if the columns need more memory than a compressed file may unpack to."""
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    cells = _CELL_BYTES * file.metadata.num_rows * file.metadata.num_columns
    unpacked = max(cells, sum(group.total_byte_size for group in groups))
    if unpacked > _MAX_PARQUET_PACKING * path.stat().st_size:
        check_unpacked_size(str(path), unpacked)


def load_pandas_frame(data_frame: Any) -> pd.DataFrame:
    """A data frame of pandas, polars, PyArrow, DuckDB or `datasets` as a pandas frame. Raises
    `UsageError`.

    An index with a name becomes a column. Columns of several levels are named by all of them
    (``judge.gpt4``).
    """
    features = getattr(data_frame, "features", None)
    if isinstance(data_frame, pd.DataFrame):
        table = data_frame
    elif hasattr(data_frame, "__arrow_c_stream__"):
        arrow = pa.table(data_frame)
        table, features = arrow.to_pandas(), features or _list_features(arrow.schema)
    elif hasattr(data_frame, "to_pandas"):  # a `datasets.Dataset`
        table = cast("pd.DataFrame", data_frame.to_pandas())
    else:
        kind = type(data_frame).__name__
        raise UsageError(
            f"expected a path or a data frame (pandas, polars, PyArrow, datasets), found {kind}"
        )
    table = _name_classes(table, features)
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    table = table.reset_index(named) if named else table
    if table.columns.nlevels > 1:
        table = table.set_axis(
            [".".join(filter(None, map(str, name))) for name in table.columns], axis=1
        )
    return table


def _list_features(schema: pa.Schema) -> Any:
    """What the metadata written by `datasets` says about the columns."""
    try:
        return json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return None


def _name_classes(table: pd.DataFrame, features: Any) -> pd.DataFrame:
    """The table with the names of classes in place of their codes: 0 may mean "faithful" as well as
    "hallucinated". -1 is no class.

    features: the columns as `datasets` describes them, as plain data or as its own objects.
    """
    found: dict[str, pd.Series] = {}
    for column, feature in features.items() if isinstance(features, Mapping) else ():
        name = str(column)
        names = (
            feature.get("names")
            if isinstance(feature, Mapping)
            else getattr(feature, "names", None)
        )
        if name not in table or not isinstance(names, list) or not names:
            continue
        codes = pd.to_numeric(table[name], errors="coerce")
        # If the values are no codes, they are names already.
        if codes[~table[name].map(is_missing_value)].isin(range(-1, len(names))).all():
            words = dict(enumerate(map(str, names)))
            found[name] = pd.Series(
                [words.get(code) for code in codes], index=table.index, dtype="object"
            )
    return table.assign(**found)


# Rows of cells: CSV and Excel
# ------------------------------------------------------------


def _read_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 or Windows-1252 as Excel saves it. Raises
    `InputError`."""
    with open_input_file(path) as file:
        content = file.read()
    try:
        text = content.decode("utf-16" if content.startswith(_UTF_16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("cp1252", errors="replace")
        beyond = [one for one in text if not one.isascii()]
        is_western = {*beyond} <= _WESTERN_CHARACTERS and len(beyond) < 0.15 * sum(
            one.isalpha() for one in text
        )
        if not is_western:  # few letters beyond ASCII, all of its alphabets
            line = content.count(b"\n", 0, error.start) + 1
            said = f"byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8"
            command = f"`iconv -f ENCODING -t UTF-8 {path} > utf8.csv`"
            raise InputError(
                str(path), [Problem(f"{said} ({command})", line, unit="line")]
            ) from None
    if "\0" in text[:512]:
        message = (
            "not UTF-8 text: it holds null characters, as UTF-16 without a mark does; save the file"
            " as UTF-8"
        )
        raise InputError(str(path), [Problem(message)])
    return text


def _read_separated(path: Path, is_counted: bool) -> pd.DataFrame:
    file = io.StringIO(_read_text(path), newline="")
    said = re.match(r"sep=(.)\r?\n", file.read(8))  # the first line that Excel writes
    file.seek(said.end() if said else 0)
    separator = said[1] if said else _detect_separator(file.getvalue()[:_HEAD_CHARACTERS])
    rows = csv.reader(file, delimiter=separator, strict=True)
    cells: Iterator[list[Any]] = filter(None, rows)
    if separator == "|":  # blanks beside bars are only layout
        cells = ([cell.strip() for cell in row] for row in cells)
    # Documents may be longer than Python's limit of 131,072 characters.
    before = csv.field_size_limit(100_000_000)
    try:
        return _build_table_of_cells(path, cells, is_counted, is_text=True)
    except csv.Error as error:
        message = (
            "a quoted cell is not closed" if "end of data" in str(error) else f"not CSV ({error})"
        )
        raise InputError(str(path), [Problem(message, rows.line_num, unit="line")]) from None
    finally:
        csv.field_size_limit(before)


def _detect_separator(head: str) -> str:
    """The separator that divides most rows of a file into equally many cells; if several do, the
    one that gives most cells."""
    best, separator = (0.0, False, 0), ","
    for each in ",;\t|":
        try:
            sizes = [
                len(row) for row in csv.reader(io.StringIO(head, newline=""), delimiter=each) if row
            ][:50]
        except csv.Error:
            continue
        sizes = sizes[:-1] if len(head) == _HEAD_CHARACTERS and len(sizes) > 1 else sizes
        usual = max(set(sizes), key=lambda size: (sizes.count(size), size), default=0)
        share = round(sizes.count(usual) / len(sizes), 1) if usual > 1 else 0.0
        # Votes such as yes|no|yes do not divide the header.
        if (score := (share, bool(share) and sizes[0] > 1, usual)) > best:
            best, separator = score, each
    return separator


def _build_table_of_cells(
    path: Path, rows: Iterator[list[Any]], is_counted: bool, is_text: bool = False
) -> pd.DataFrame:
    """A table of rows of cells. The first row names the columns. Raises `InputError` if it does
    not, or if other rows are no rows of the table.

    is_text: the cells are texts of a CSV file; else they are values, None if empty.
    """
    source = str(path)
    header = next(rows, None)
    if header is None:
        raise InputError(source, [Problem("the file has no header line")])
    names = [
        " ".join(unescape_spreadsheet_cell(str(cell)).split()) if cell else "" for cell in header
    ]
    problems = TableProblemCollector(source, "row", n_kept=_MAX_LEFT_OUT)
    good: list[list[Any]] = []
    blocks: list[pd.DataFrame] = []
    positions: list[int] = []
    last: list[Any] = []
    number = 0
    first = [*islice(rows, 20)]
    _check_header(source, names, first)
    for number, row in enumerate(chain(first, rows), start=1):
        if len(row) != len(names) and (len(row) < len(names) or any(row[len(names) :])):
            _check_is_no_remark(source, row, number)
            problems.add(
                f"expected {len(names)} columns, as in the header, found {len(row)}", number
            )
        elif any(row):
            last = row[: len(names)]
            good.append(last)
            positions.append(number)
        if len(good) == _BLOCK_ROWS:
            blocks.append(_make_block(good, is_text))
            good = []
    _check_last_row(source, names, last, first, number)
    leave_out_broken_table_rows(path, problems, number, is_counted)
    blocks += [_make_block(good, is_text)] if good else []
    table = (
        pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame(columns=range(len(names)))
    )
    # Columns without a name are the index that pandas writes, and empty columns of spreadsheets.
    kept = [at for at, name in enumerate(names) if name or table[at].notna().any()]
    _check_column_names(path, [name for name in names if name])
    table = table[kept].set_axis([names[at] or f"Unnamed: {at}" for at in kept], axis=1)
    if len(positions) != number:
        table.attrs[POSITIONS_KEY] = positions
    return table


def _make_block(rows: Sequence[Sequence[Any]], is_text: bool) -> pd.DataFrame:
    """Rows as columns, by their position. Empty texts are null."""
    columns = dict(enumerate(zip(*rows, strict=True)))
    if not is_text:
        return pd.DataFrame({at: pd.Series(cells, dtype="object") for at, cells in columns.items()})
    return pd.DataFrame(
        {at: pd.Series(_parse_texts(cells), dtype=TEXT_DTYPE) for at, cells in columns.items()}
    )


def _parse_texts(cells: Sequence[str]) -> pa.Array:
    texts = pa.array(cells, type=pa.large_string())
    texts = pc.replace_substring_regex(texts, ESCAPED_CELL_START, r"\1")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _check_column_names(path: Path, column_names: Sequence[str]) -> None:
    twice = [
        Problem("the column is there twice: rename one of them", column=name)
        for name, n in Counter(column_names).items()
        if n > 1
    ]
    if twice:
        raise InputError(str(path), twice)


def _check_header(source: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Raise `InputError` unless the first row, and only the first, certainly names the columns."""
    usual, n_usual = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    filled = [at for at in range(usual) if any(len(row) > at and row[at] for row in rows)]
    nameless = [at for at in filled if at >= len(names) or not names[at]]
    number = next((name for name in names if re.fullmatch(r"[+-]?\d*[.,]\d+ ?%?", name)), None)
    one_name = "the first row must name each column, and the claims must follow at once"
    message = None
    if len(names) == usual == 1 and " " in names[0]:
        message = "columns that only blanks part: save the table as CSV"
    elif len(nameless) > 1 and n_usual > 1:
        found = next(filter(None, names), "nothing")
        message = f"the names of some columns are missing (the file begins {found!r}): {one_name}"
    elif number is not None:
        message = (
            f"expected the columns' names, found {number!r}: put a row with names (claim, label,"
            " ...) above it"
        )
    elif any(map(_is_second_header, rows[:2])):
        message = f"the names stand in more than one row: {one_name}"
    if message is not None:
        _check_is_no_remark(source, names, 1, unit="line")
        raise InputError(source, [Problem(message, 1, unit="line")])


def _is_second_header(row: Sequence[Any]) -> bool:
    """Whether all cells of a row are like ``{"ImportId": ...}``, ``Response`` or ``(1-5)``."""
    cells = [str(cell).strip() for cell in row if cell]
    return len(cells) > 1 and all(map(_HEADER_CELL.match, cells))


def _check_is_no_remark(source: str, row: Sequence[Any], number: int, unit: str = "row") -> None:
    """Raise `InputError` if a row that is not part of the table may say what codes mean, because
    they might be read upside down."""
    text = ", ".join(str(cell) for cell in row if cell)
    if _REMARK.match(text):
        said = "which may say what codes mean: delete it, and say --labels 1=0,0=1 or 1=1,0=0"
        raise InputError(source, [Problem(f"a remark ({text}), {said}", number, unit=unit)])


def _check_last_row(
    source: str,
    names: Sequence[str],
    row: Sequence[Any],
    first: Sequence[Sequence[Any]],
    number: int,
) -> None:
    """Raise `InputError` if the last row sums up the others (``Accuracy,,,0.75``).

    This is assumed of a row called a total; and of a row that has short cells, or none, under long
    texts, and an empty cell under a column without any.
    """
    filled = [cell for cell in row if cell not in (None, "")]
    above = [one for one in first[: number // 2] if len(one) == len(names)]
    if not filled or len(filled) == len(row) or len(above) < 2:
        return
    if len(filled) == 1:
        _check_is_no_remark(source, filled, number)
    columns = [*zip(row, *above, strict=True)]
    texts = [
        cell
        for cell, *others in columns
        if all(len(str(one or "")) >= _TEXT_LENGTH for one in others)
    ]
    is_short = bool(texts) and all(len(str(cell or "")) < _TEXT_LENGTH for cell in texts)
    has_gap = any(not cell and all(others) for cell, *others in columns)
    is_sum = is_short and has_gap and 2 * len(filled) <= len(row)
    if is_sum or str(filled[0]).strip().lower().rstrip(":") in _TOTAL_WORDS:
        raise InputError(
            source, [Problem(f"the last row ({filled[0]} ...) is no claim: delete it", number)]
        )


def _read_workbook(path: Path) -> dict[str, list[list[Any]]]:
    """The cells of each sheet that holds a table. Raises `InputError` if there is none."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_unpacked_size(
                    str(path),
                    sum(member.file_size for member in archive.infolist()),
                    _WORKBOOK_SHARE,
                )
        sheets = pd.read_excel(path, sheet_name=None, header=None, dtype=object)
    except ImportError as error:
        needed = f"Excel files need the extra [excel]: pip install 'factaudit[excel]' ({error})"
        raise InputError(str(path), [Problem(f"{needed}; or save the sheet as CSV")]) from None
    except (ValueError, OSError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            str(path), [Problem(f"not an Excel file that can be read ({error})")]
        ) from None
    cells = {
        str(name): one.where(one.notna(), None).to_numpy().tolist() for name, one in sheets.items()
    }
    found = {
        name: rows
        for name, rows in cells.items()
        if sum(sum(map(bool, row)) > 1 for row in rows) > 1
    }
    if not found:
        raise InputError(str(path), [Problem("no sheet holds a table")])
    return found


def _read_sheet(path: Path, sheet: str | None) -> list[list[Any]]:
    """The cells of one sheet of a workbook. Raises `AmbiguousReadingError` if several hold tables
    and none is named."""
    tables = _read_workbook(path)
    if sheet is not None and sheet not in tables:
        raise UsageError(
            f"--sheet: {path} has no sheet {sheet!r}{suggest_known_name(sheet, list(tables))}"
        )
    if sheet is None and len(tables) > 1:
        from factaudit.tables.questions import AmbiguousReadingError, OpenQuestion

        text = f"the sheets {', '.join(map(repr, tables))} hold tables: which one"
        raise AmbiguousReadingError(
            str(path), [OpenQuestion(text, [{"sheet": name} for name in tables])]
        )
    return tables[sheet or next(iter(tables))]


# JSON
# ------------------------------------------------------------


def read_json_lines(path: Path, is_counted: bool = False) -> pd.DataFrame:
    """The objects of a file with one in each line, whatever its name; otherwise like
    `read_table`."""
    problems = TableProblemCollector(str(path), "line", n_kept=_MAX_LEFT_OUT)
    blocks: list[pd.DataFrame] = []
    positions: list[int] = []
    with _name_unreadable_file(path), open_input_file(path) as file:
        rows = _parse_lines(file, problems)
        while block := [*islice(rows, _BLOCK_ROWS)]:
            positions += [number for number, _ in block]
            blocks.append(_make_block_of_objects([row for _, row in block]))
    leave_out_broken_table_rows(path, problems, len(positions) + problems.total, is_counted)
    table = pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame()
    if positions and positions[-1] != len(positions):
        table.attrs[POSITIONS_KEY] = positions
    return table


def _parse_lines(
    lines: Iterable[bytes], problems: TableProblemCollector
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects in lines, with their numbers. Other lines are problems."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _JSON_DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            # JSON can escape half a surrogate pair, which is no text and can be written nowhere.
            if b"\\ud" in line.lower():
                json.dumps(row, ensure_ascii=False).encode()
            if isinstance(row, dict):
                yield number, row
            else:
                problems.add(f"expected a JSON object, found {type(row).__name__}", number)
        except UnicodeDecodeError:
            problems.add("not UTF-8 text; save the file as UTF-8", number)
        except UnicodeEncodeError:
            problems.add(
                "not Unicode text: it has half of a surrogate pair (\\ud800 to \\udfff)", number
            )
        except json.JSONDecodeError as error:
            cut = not line.endswith(b"\n")
            what = (
                "the last line is cut off (the file was not written to its end)"
                if cut
                else "not JSON"
            )
            problems.add(f"{what}: {error.msg} at character {error.pos + 1}", number)
        except (ValueError, RecursionError) as error:
            problems.add(f"not JSON: {format_error_first_line(error)}", number)


def _make_block_of_objects(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Objects as columns, which need a fraction of the memory of Python's objects. The type
    `object` keeps "007" a text beside numbers."""
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        is_text = all(value is None or isinstance(value, str) for value in values)
        found[name] = pd.Series(values, dtype=TEXT_DTYPE if is_text and any(values) else "object")
    return pd.DataFrame(found, index=range(len(rows)))


def _parse_json_object(key_values: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(key_values)
    if len(found) < len(key_values):
        twice = next(name for name, n in Counter(name for name, _ in key_values).items() if n > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


_JSON_DECODER = json.JSONDecoder(object_pairs_hook=_parse_json_object)


def read_json_document(path: Path) -> Any:
    """The value of a JSON file, parsed only once however often it is asked for. It must not be
    changed.

    Raises `json.JSONDecodeError`, and `InputError` if the file is no text.
    """
    state = path.stat()
    return _parse_json_document(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=2)
def _parse_json_document(path: Path, n_bytes: int, modified: int) -> Any:
    with _name_unreadable_file(path):
        return parse_json_file_text(_read_text(path))


def _read_json_table(path: Path) -> pd.DataFrame:
    try:
        document = read_json_document(path)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return read_json_lines(path)  # lines of JSON under another name
        raise InputError(
            str(path), [Problem(f"not JSON: {error.msg}", error.lineno, unit="line")]
        ) from None
    rows = _find_rows(document, _MAX_DEPTH, str(path))
    if rows is None:
        message = (
            "expected a list of objects, or an object that holds one (pandas:"
            " table.to_json(path, orient='records'))"
        )
        raise InputError(str(path), [Problem(message)])
    parts = [document, *document.values()] if isinstance(document, dict) else []
    for name in (str(name) for part in parts if isinstance(part, dict) for name in part):
        if _CODE_BOOK.fullmatch(name.lower()):
            message = (
                f"{name!r} says what codes mean, and is not read: write the words into the rows,"
                " and delete it"
            )
            raise InputError(str(path), [Problem(message)])
    return pd.DataFrame(rows, dtype="object")


def _find_rows(document: Any, depth: int, source: str) -> list[dict[str, Any]] | None:
    """The longest list of objects in a JSON document. Raises `InputError` if another list may be
    the table just as well."""
    if isinstance(document, list):
        return document if document and all(isinstance(row, dict) for row in document) else None
    if not isinstance(document, dict) or not document or depth == 0:
        return None
    columns = [*document.values()]
    if len(columns) > 1 and all(
        isinstance(one, dict) and [*one] == [*map(str, range(len(columns[0])))] for one in columns
    ):  # pandas writes columns as objects whose keys are row numbers
        columns = [[*one.values()] for one in columns]
    if columns[0] and all(isinstance(one, list) for one in columns):
        is_table = len({len(one) for one in columns}) == 1
        if is_table and not all(isinstance(one, dict) for one in columns[0]):
            return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
    found = {
        str(key): rows
        for key, value in document.items()
        if (rows := _find_rows(value, depth - 1, source)) is not None
    }
    if not found:
        return None
    longest = max(found, key=lambda key: len(found[key]))
    n_rows, fields = len(found[longest]), {*found[longest][0]}
    others = [
        key for key, rows in found.items() if {*rows[0]} == fields or 2 * len(rows) >= n_rows > 1
    ]
    lists = [
        key
        for key, one in document.items()
        if key not in found and isinstance(one, list) and len(one) == n_rows
    ]
    if len(others) > 1 or (lists and n_rows > 1):
        listed = ", ".join(map(repr, [*others, *lists][:5])) + (" ..." if len(others) > 5 else "")
        way = (
            "write each into a file of its own, or make them one list, whose rows have a field that"
            " says which it is"
        )
        raise InputError(
            source, [Problem(f"{listed} are lists of rows: {way} (system, annotator, dataset)")]
        )
    return found[longest]
