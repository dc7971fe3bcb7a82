"""The rows of one file or data frame, as they lie: CSV with any separator, lines of JSON, JSON, Parquet, Excel, gzip.

Cells of text files are text, null where empty; nothing is checked but that it is a table, and that one row names its
columns. What a file says above or below its table is not read: such a file is refused, with what to delete.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import InputError, Problem, UsageError, format_error_first_line, suggest_known_name
from factaudit.files import check_is_table_file, check_unpacked_size, open_input_file, parse_json_file_text
from factaudit.tables.column_parsing import TEXT_DTYPE, is_arrow_text_type
from factaudit.tables.documents import DocumentColumnBuilder, list_shared_texts, read_document_column
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import POSITIONS_KEY
from factaudit.tables.unreadable_rows import leave_out_broken_table_rows
from factaudit.text.spreadsheet_cells import ESCAPED_CELL_START, unescape_spreadsheet_cell

T = TypeVar("T")
#: What a name may end in; ``.gz`` may follow the text formats.
FILE_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", ".parquet", ".xlsx", ".xls")
#: In place of a sheet's name: each sheet that holds a table.
ALL_SHEETS = "*"
#: So many rows that are left out have their reasons kept.
_MAX_LEFT_OUT = 10_000
#: Characters of a text file that are read at a time, about; and of its head, which tells the separator.
_BLOCK_CHARACTERS, _HEAD_CHARACTERS = 16 << 20, 1 << 16
#: How deep in a JSON document its rows are looked for.
_MAX_DEPTH = 6
#: A workbook's XML takes several times as much memory as objects.
_WORKBOOK_SHARE = 0.25
#: Where a Parquet file's columns are this many times its size, what they unpack to is bounded as that of archives is;
#: a cell takes so many bytes at the least, were it null.
MAX_PARQUET_PACKING, _CELL_BYTES = 50, 8
#: What text in the languages of Western Europe has beyond ASCII.
_WESTERN_CHARACTERS = {*"äöüÄÖÜßéèêëÉÈÊàâáãåæÀÁÂÅÆçÇñÑíìîïÍóòôõøÓÖØœŒúùûýÿÚ’‘“”„‚–—…€£°«»·•´§²³½×©®™ºª¿¡\u00a0"}
#: A cell as NumPy and PyTorch print a number: ``np.int64(1)``, ``tensor(0.62, device='cuda:0')``.
_PRINTED_NUMBER = r"^(?:(?:np|numpy|torch)\.\w+|tensor|array)\(([-+]?[\d.]+(?:e[-+]?\d+)?)(?:, ?\w+=[^()]*)?\)$"
#: What a row beside a table may say: a comment, or what codes mean.
_REMARK = re.compile(r"\s*#|.*(?<![\w.])-?\d+\s*[=:]|.*=\s*-?\d", re.DOTALL)
#: A second row that names the columns, or says what their cells are to be, as survey tools write it.
_HEADER_CELL = re.compile(r'\{"ImportId"|(\(.*\)|\[.*\]|(open[- ]ended )?response)$', re.IGNORECASE)
_TOTAL_WORDS = {"total", "totals", "sum", "mean", "average", "grand total", "gesamt", "summe", "mittelwert", "moyenne"}
#: Shorter cells are no texts.
_TEXT_LENGTH = 15
#: Names under which JSON documents say what codes mean.
_CODE_BOOK = re.compile(
    r"label.?(map|mapping|names|classes)|labels.?map|id2label|label2id|class(es|.?names)|code.?book"
)


def read_table(
    path: str | Path, document_column: str | None = None, is_counted: bool = False, sheet: str | None = None
) -> pd.DataFrame:
    """The rows of a file, unchecked; `InputError` where it is no whole, readable table.

    document_column: the column of texts that many rows share, which is read as `factaudit.tables.documents` says.
    sheet: of a workbook.

    A JSON file is a list of objects, an object of columns, or an object that holds such a list (``{"results":
    [...]}``). Rows that are none are left out where somebody collects them (`factaudit.tables.unreadable_rows`), but
    not where other files count them (``is_counted``); ``attrs["positions"]`` has the number of each row then.
    """
    path = Path(path)
    check_is_table_file(path)
    name = path.name.lower()
    text_name = name.removesuffix(".gz")
    with _name_unreadable_file(path):
        start = _read_start(path)
        _check_is_what_its_name_says(path, start)
        if name.endswith(".parquet"):
            return _read_parquet(path, document_column)
        if name.endswith((".xlsx", ".xls")):
            return _build_table_of_cells(path, iter(_read_sheet(path, sheet)), None, is_counted)
        if sheet is not None:
            raise UsageError(f"--sheet {sheet}: {path} is no workbook")
        if text_name.endswith((".jsonl", ".ndjson", ".manifest")):
            return read_json_lines(path, document_column, is_counted)
        is_text = text_name.endswith((".csv", ".tsv", ".txt"))
        if text_name.endswith(".json") or (is_text and re.match(rb'(\xef\xbb\xbf)?\s*(\{\s*"|\[\s*\{)', start)):
            return _read_json_table(path)
        if is_text:
            return read_in_its_encoding(path, lambda code: _read_separated(path, document_column, is_counted, code))
    raise InputError(str(path), [Problem(f"expected a name that ends in {', '.join(FILE_SUFFIXES)}")])


def read_tables(path: str | Path, sheet: str | None = None) -> list[tuple[str, pd.DataFrame]]:
    """`read_table`, by the file's name in messages; or the tables of all sheets of a workbook (`ALL_SHEETS`)."""
    path = Path(path)
    if sheet != ALL_SHEETS:
        return [(str(path), read_table(path, "doc", sheet=sheet))]
    return [
        (f"{path}/{name}", _build_table_of_cells(path, iter(rows), None, False))
        for name, rows in _read_workbook(path).items()
    ]


@contextmanager
def _name_unreadable_file(path: Path) -> Iterator[None]:
    """Raise `InputError` where a file is empty, no whole gzip file, or cannot be read."""
    try:
        if path.stat().st_size == 0:
            raise InputError(str(path), [Problem("the file is empty")])
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(str(path), [Problem(f"not a whole gzip file ({format_error_first_line(error)})")]) from None
    except OSError as error:
        raise InputError(
            str(path), [Problem(f"cannot be read ({error.strerror or format_error_first_line(error)})")]
        ) from None


def _read_start(path: Path) -> bytes:
    with open_input_file(path) as file:
        return file.read(512)


def _check_is_what_its_name_says(path: Path, start: bytes) -> None:
    """Raise `InputError` for a web page, an archive or a workbook under another name."""
    message = None
    if re.match(rb"\s*(<!doctype html|<html|<table|<div|<\?xml)", start, re.IGNORECASE):
        message = "a web page, whatever its name says: open it in a spreadsheet program and save the table as CSV"
    elif start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")) and not path.name.lower().endswith((".xlsx", ".xls")):
        message = f"an Excel file, whatever its name says: rename it to {path.stem}.xlsx"
        if zipfile.is_zipfile(path):
            names = zipfile.ZipFile(path).namelist()
            if "[Content_Types].xml" not in names:
                message = f"an archive that holds {', '.join(names[:5])}: unpack it and name the file"
    if message is not None:
        raise InputError(str(path), [Problem(message)])


# Parquet and data frames ----------------------------------------------------------------------------------------------


def _read_parquet(path: Path, document_column: str | None) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path)
        schema, names = file.schema_arrow, file.schema_arrow.names
        _check_column_names(path, names)
        check_parquet_unpacked_size(path, file)
        has_documents = document_column in names and is_arrow_text_type(schema.field(document_column).type)
        apart = document_column if has_documents else None
        # Without pandas' metadata an index that has a name ("claim_id") is the column that it is in the file.
        # Each column is let go as soon as pandas has it: two copies of millions of rows are too many.
        table = file.read([name for name in names if name != apart]).to_pandas(
            ignore_metadata=True, self_destruct=True, split_blocks=True
        )
        if apart is not None:
            table.insert(names.index(apart), apart, read_document_column(path, apart))
    except pa.ArrowException as error:
        raise InputError(
            str(path), [Problem(f"not a readable Parquet file ({format_error_first_line(error)})")]
        ) from None
    table = table.drop(columns=[name for name in table.columns if re.fullmatch(r"__index_level_\d+__", name)])
    return _name_classes(table, _list_features(schema))


def check_parquet_unpacked_size(path: Path, file: pq.ParquetFile) -> None:
    """Raise `InputError` where the columns take more memory than a compressed file may unpack to."""
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    cells = _CELL_BYTES * file.metadata.num_rows * file.metadata.num_columns
    unpacked = max(cells, sum(group.total_byte_size for group in groups))
    if unpacked > MAX_PARQUET_PACKING * path.stat().st_size:
        check_unpacked_size(str(path), unpacked)


def load_pandas_frame(data_frame: Any) -> pd.DataFrame:
    """A data frame of pandas, polars, PyArrow, DuckDB or `datasets` as pandas'. Raises `UsageError`.

    An index that has a name is a column; columns of several levels are called by all of them (``judge.gpt4``).
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
        raise UsageError(f"expected a path or a data frame (pandas, polars, PyArrow, datasets), found {kind}")
    table = _name_classes(table, features)
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    table = table.reset_index(named) if named else table
    if table.columns.nlevels > 1:
        table = table.set_axis([".".join(filter(None, map(str, name))) for name in table.columns], axis=1)
    return table


def _list_features(schema: pa.Schema) -> Any:
    """What the metadata that `datasets` writes says of the columns."""
    try:
        return json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
    except (KeyError, TypeError, ValueError):
        return None


def _name_classes(table: pd.DataFrame, features: Any) -> pd.DataFrame:
    """The table with the names of classes where its columns hold their codes: 0 may be "faithful" as well as
    "hallucinated". -1 is no class.

    features: what `datasets` says of the columns, as plain data or as its own objects.
    """
    found: dict[str, pd.Series] = {}
    for name, feature in features.items() if isinstance(features, Mapping) else ():
        column = str(name)
        names = feature.get("names") if isinstance(feature, Mapping) else getattr(feature, "names", None)
        if column not in table or not isinstance(names, list) or not names:
            continue
        codes = pd.to_numeric(table[column], errors="coerce")
        if codes[~table[column].map(is_missing_value)].isin(range(-1, len(names))).all():  # else they are names already
            words = [None if pd.isna(code) or code < 0 else str(names[int(code)]) for code in codes]
            found[column] = pd.Series(words, index=table.index, dtype="object")
    return table.assign(**found)


# Rows of cells: CSV and Excel -----------------------------------------------------------------------------------------


def read_in_its_encoding(path: Path, read: Callable[[str], T]) -> T:
    """What ``read`` makes of a file in UTF-8, UTF-16 or Windows-1252, whichever it is of. Raises `InputError`."""
    start = _read_start(path)  # every second byte of Latin text in UTF-16 is null
    bare = [code for code, at in (("utf-16-le", 1), ("utf-16-be", 0)) if len(start) > 3 and not any(start[at:200:2])]
    is_marked = start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding = "utf-16" if is_marked else next(iter(bare), "utf-8-sig")
    try:
        return read(encoding)
    except UnicodeDecodeError:
        with open_input_file(path) as file:
            content = file.read()
        if encoding == "utf-8-sig" and _is_windows_1252_text(content):  # as Excel saves it
            return read("cp1252")
        number, byte = next(_list_undecodable_bytes(content), (1, 0))
        said = f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8"
        command = f"`iconv -f ENCODING -t UTF-8 {path} > utf8.csv`"
        raise InputError(str(path), [Problem(f"{said} ({command})", number, unit="line")]) from None


def _list_undecodable_bytes(content: bytes) -> Iterator[tuple[int, int]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            yield number, line[error.start]


def _is_windows_1252_text(content: bytes) -> bool:
    """Whether bytes read as Windows-1252 are text of Western Europe: few letters beyond ASCII, all of its alphabets."""
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    beyond = [one for one in text if not one.isascii()]
    return {*beyond} <= _WESTERN_CHARACTERS and len(beyond) < 0.15 * sum(one.isalpha() for one in text)


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with open_input_file(path) as file:
        yield io.TextIOWrapper(file, encoding=encoding, newline="")


def _read_separated(path: Path, document_column: str | None, is_counted: bool, encoding: str) -> pd.DataFrame:
    with _open_text(path, encoding) as text:
        head = text.read(_HEAD_CHARACTERS)
    said = re.match(r"sep=(.)\r?\n", head)  # Excel's first line
    separator = said[1] if said else _detect_separator(head)
    with _open_text(path, encoding) as text, _lift_csv_field_limit():
        if said:
            text.readline()
        rows = csv.reader(text, delimiter=separator, strict=True)
        try:
            cells: Iterator[list[Any]] = filter(None, rows)
            if separator == "|":  # blanks beside bars are layout
                cells = ([cell.strip() for cell in row] for row in cells)
            return _build_table_of_cells(path, cells, document_column, is_counted, is_text=True)
        except csv.Error as error:
            message = "a quoted cell is not closed" if "end of data" in str(error) else f"not CSV ({error})"
            raise InputError(str(path), [Problem(message, rows.line_num, unit="line")]) from None


def _detect_separator(head: str) -> str:
    """Of the separators that cut most rows of a file into as many cells, the one that cuts into most."""
    best, separator = (0.0, False, 0), ","
    for each in ",;\t|":
        try:
            sizes = [len(row) for row in csv.reader(io.StringIO(head, newline=""), delimiter=each) if row][:50]
        except csv.Error:
            continue
        sizes = sizes[:-1] if len(head) == _HEAD_CHARACTERS and len(sizes) > 1 else sizes
        usual = max(set(sizes), key=lambda size: (sizes.count(size), size), default=0)
        share = round(sizes.count(usual) / len(sizes), 1) if usual > 1 else 0.0
        if (score := (share, bool(share) and sizes[0] > 1, usual)) > best:  # the votes yes|no|yes cut no header
            best, separator = score, each
    return separator


def _build_table_of_cells(
    path: Path, rows: Iterator[list[Any]], document_column: str | None, is_counted: bool, is_text: bool = False
) -> pd.DataFrame:
    """A table of rows of cells, of which the first names the columns. Raises `InputError` where it does not, or where
    other rows say something beside the table.

    is_text: the cells are CSV's texts; else values, None where empty.
    """
    source = str(path)
    header = next(rows, None)
    if header is None:
        raise InputError(source, [Problem("the file has no header line")])
    names = [" ".join(unescape_spreadsheet_cell(str(cell)).split()) if cell else "" for cell in header]
    problems = TableProblemCollector(source, "row", n_kept=_MAX_LEFT_OUT)
    first, last = list[list[Any]](), list[Any]()
    positions: list[int] = []
    documents = DocumentColumnBuilder()
    apart = names.index(document_column) if document_column in names else None
    blocks: list[list[Any]] = []
    number = 0
    for block in _iterate_row_blocks(rows):
        if not blocks:
            first = block[:20]
            _check_header(source, names, first)
        good = []
        for row in block:
            number += 1
            if len(row) == len(names) or (len(row) > len(names) and not any(row[len(names) :])):
                if any(row):
                    good.append(row[: len(names)])
                    positions.append(number)
            else:
                _check_is_no_remark(source, row, number)
                problems.add(f"expected {len(names)} columns, as in the header, found {len(row)}", number)
        if good:
            last = good[-1]
            columns: list[Any] = [
                _parse_texts(column) if is_text else list(column) for column in zip(*good, strict=True)
            ]
            if apart is not None and is_text:
                documents.add(columns[apart])
                columns[apart] = pa.nulls(0, pa.large_string())
            blocks.append(columns)
    _check_last_row(source, names, last, first, number)
    leave_out_broken_table_rows(path, problems, number, is_counted)
    made: dict[str, Any] = {}
    for at, name in enumerate(names):
        if at == apart and is_text:
            values: Any = documents.build_column()
        elif is_text:
            chunks = pa.chunked_array([block[at] for block in blocks], type=pa.large_string())
            values = pd.Series(chunks, dtype=TEXT_DTYPE)
        else:
            values = pd.Series([cell for block in blocks for cell in block[at]], dtype="object")
        # pandas writes its index, and spreadsheets their empty columns, without a name.
        if name or values.notna().any():
            made[name or f"Unnamed: {at}"] = values
    _check_column_names(path, [name for name in names if name])
    table = pd.DataFrame(made)
    if problems.total or len(positions) != number:
        table.attrs[POSITIONS_KEY] = positions
    return table


def _iterate_row_blocks(rows: Iterator[list[Any]]) -> Iterator[list[list[Any]]]:
    """Some rows at a time: as many as the longest of the block before leaves room for, at most 50,000."""
    size = 100
    while block := list(islice(rows, size)):
        yield block
        longest = max(sum(len(cell) for cell in row if isinstance(cell, str)) for row in block)
        size = min(50_000, max(1, _BLOCK_CHARACTERS // max(1, longest)), 10 * size)


@contextmanager
def _lift_csv_field_limit() -> Iterator[None]:
    """Documents are longer than the 131,072 characters that Python's csv allows a field; not without end."""
    before = csv.field_size_limit(100_000_000)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _parse_texts(cells: Sequence[str]) -> pa.Array:
    texts = pa.array(cells, type=pa.large_string())
    texts = pc.replace_substring_regex(texts, ESCAPED_CELL_START, r"\1")
    if pc.any(pc.match_substring_regex(texts, r"^(np|numpy|torch|tensor|array)[.(]")).as_py():
        texts = pc.replace_substring_regex(texts, _PRINTED_NUMBER, r"\1")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _check_column_names(path: Path, column_names: Sequence[str]) -> None:
    twice = [Problem("the column is there twice", column=name) for name, n in Counter(column_names).items() if n > 1]
    if twice:
        raise InputError(str(path), twice)


def _check_header(source: str, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Raise `InputError` where the first row is not surely the one, and the only one, that names the columns."""
    said = [str(cell).strip() for row in rows[:2] for cell in row if cell]
    message = None
    number = next((name for name in names if re.fullmatch(r"[+-]?\d*[.,]\d+ ?%?", name)), None)
    usual, n_usual = Counter(map(len, rows)).most_common(1)[0]
    filled = [at for at in range(usual) if any(len(row) > at and row[at] for row in rows)]
    nameless = [at for at in filled if at >= len(names) or not names[at]]
    if len(names) == 1 and usual == 1 and " " in names[0]:
        message = "columns that only blanks part: save the table as CSV"
    elif len(nameless) > 1 and n_usual > 1:
        message = (
            "the names of some columns are missing: give each column one name, in row 1, and delete the other rows"
        )
    elif number is not None:
        message = (
            f"expected the columns' names, found {number!r}: put a row with names (claim, doc, label, ...) above it"
        )
    elif len(rows) > 1 and len(said) > 1 and _is_second_header(rows):
        message = "the names stand in more than one row: give each column one name, in row 1, and delete the other rows"
    if message is not None:
        _check_is_no_remark(source, names, 1)
        raise InputError(source, [Problem(message, 1)])


def _is_second_header(rows: Sequence[Sequence[Any]]) -> bool:
    """Whether one of the first two rows only has cells such as ``{"ImportId": ...}``, ``Response`` or ``(1-5)``."""
    cells = ([str(cell).strip() for cell in row if cell] for row in rows[:2])
    return any(len(row) > 1 and all(map(_HEADER_CELL.match, row)) for row in cells)


def _check_is_no_remark(source: str, row: Sequence[Any], number: int) -> None:
    """Raise `InputError` where a row that is none of the table may say what its codes mean: they might be read upside
    down."""
    text = ", ".join(str(cell) for cell in row if cell)
    if _REMARK.match(text):
        said = "which may say what codes mean: delete it, and say --labels 1=0,0=1 or 1=1,0=0"
        raise InputError(source, [Problem(f"a remark ({text}), {said}", number)])


def _check_last_row(
    source: str, names: Sequence[str], row: Sequence[Any], first: Sequence[Sequence[Any]], number: int
) -> None:
    """Raise `InputError` where the last row sums up the others (``Accuracy,,,0.75``): where the cells above are long
    texts it has short ones or none, and none in a column that is never empty above; or it is called a total."""
    filled = [cell for cell in row if cell not in (None, "")]
    above = [one for one in first[: number // 2] if len(one) == len(names)]
    if not filled or len(filled) == len(row) or len(above) < 2:
        return
    if len(filled) == 1:
        _check_is_no_remark(source, filled, number)
    texts = [at for at in range(len(row)) if all(len(str(one[at] or "")) >= _TEXT_LENGTH for one in above)]
    is_short = (
        2 * len(filled) <= len(row) and bool(texts) and all(len(str(row[at] or "")) < _TEXT_LENGTH for at in texts)
    )
    is_short = is_short and any(not row[at] and all(one[at] for one in above) for at in range(len(row)))
    if is_short or str(filled[0]).strip().lower().rstrip(":") in _TOTAL_WORDS:
        raise InputError(source, [Problem(f"the last row ({filled[0]} ...) is no claim: delete it", number)])


def _read_workbook(path: Path) -> dict[str, list[list[Any]]]:
    """The cells of each sheet of a workbook that holds a table. Raises `InputError` where none does."""
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
    found = {
        str(name): [[None if is_missing_value(cell) else cell for cell in row] for row in table.to_numpy().tolist()]
        for name, table in sheets.items()
    }
    tables = {name: rows for name, rows in found.items() if sum(len(list(filter(None, row))) > 1 for row in rows) > 1}
    if not tables:
        raise InputError(str(path), [Problem("no sheet holds a table")])
    return tables


def _read_sheet(path: Path, sheet: str | None) -> list[list[Any]]:
    """The cells of a workbook's sheet, of several the one that holds a table. Raises `AmbiguousReadingError`."""
    tables = _read_workbook(path)
    if sheet is not None and sheet not in tables:
        raise UsageError(f"--sheet: {path} has no sheet {sheet!r}{suggest_known_name(sheet, list(tables))}")
    if sheet is None and len(tables) > 1:
        from factaudit.tables.questions import AmbiguousReadingError, OpenQuestion, PossibleReading

        readings = [PossibleReading(f"the sheet {name!r}", {"sheet": name}) for name in tables]
        question = OpenQuestion(f"the sheets {', '.join(map(repr, tables))} hold tables", readings)
        raise AmbiguousReadingError(str(path), [question], readings)
    return next(iter(tables.values())) if sheet is None else tables[sheet]


# JSON -----------------------------------------------------------------------------------------------------------------


def read_json_lines(path: Path, document_column: str | None = None, is_counted: bool = False) -> pd.DataFrame:
    """The objects of a file with one in each line, whatever it is called; else as `read_table`."""
    with _name_unreadable_file(path), open_input_file(path) as file:
        return _build_table_of_objects(path, file, document_column, is_counted)


def _build_table_of_objects(
    path: Path, lines: Iterable[bytes], document_column: str | None, is_counted: bool
) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    read, size = _JsonTableBuilder(document_column), 0
    problems = TableProblemCollector(str(path), "line", n_kept=_MAX_LEFT_OUT)
    positions: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _JSON_DECODER.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            # JSON can escape half a surrogate pair, which is no text and can be written nowhere.
            if b"\\ud" in line.lower():
                json.dumps(row, ensure_ascii=False).encode()
        except UnicodeDecodeError:
            problems.add("not UTF-8 text; save the file as UTF-8", number)
        except UnicodeEncodeError:
            problems.add("not Unicode text: it has half of a surrogate pair (\\ud800 to \\udfff)", number)
        except json.JSONDecodeError as error:
            cut = not line.endswith(b"\n")
            what = "the last line is cut off (the file was not written to its end)" if cut else "not JSON"
            problems.add(f"{what}: {error.msg} at character {error.pos + 1}", number)
        except (ValueError, RecursionError) as error:
            problems.add(f"not JSON: {format_error_first_line(error)}", number)
        else:
            if not isinstance(row, dict):
                problems.add(f"expected a JSON object, found {type(row).__name__}", number)
                continue
            rows.append(row)
            positions.append(number)
            size += len(line)
            if size > _BLOCK_CHARACTERS:
                read.add(rows)
                rows, size = [], 0
    leave_out_broken_table_rows(path, problems, len(positions) + problems.total, is_counted)
    read.add(rows)
    table = read.build_table()
    if positions and positions[-1] != len(positions):
        table.attrs[POSITIONS_KEY] = positions
    return table


class _JsonTableBuilder:
    """Objects as columns, some rows at a time: as Python's objects, all together take several times the file's size."""

    def __init__(self, documents: str | None) -> None:
        self._columns: dict[str, list[pa.Array | list[Any]]] = {}
        self._size = 0
        self._documents, self._texts = documents, DocumentColumnBuilder()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in self._columns:
                self._columns[name] = []
                self._add_values(name, [None] * self._size)
        for name in self._columns:
            self._add_values(name, [row.get(name) for row in rows])
        self._size += len(rows)

    def _add_values(self, name: str, values: list[Any]) -> None:
        only_text = all(value is None or isinstance(value, str) for value in values)
        piece = pa.array(values, pa.large_string()) if only_text else values
        if name == self._documents:
            if only_text:
                self._texts.add(piece)
                return
            self._documents = None  # lists of texts, say
            self._columns[name].append(list_shared_texts(self._texts.build_column()))
        self._columns[name].append(piece)

    def build_table(self) -> pd.DataFrame:
        return pd.DataFrame({name: self._build_column(name, pieces) for name, pieces in self._columns.items()})

    def _build_column(self, name: str, pieces: list[pa.Array | list[Any]]) -> pd.Series:
        if name == self._documents:
            return self._texts.build_column()
        texts = [piece for piece in pieces if isinstance(piece, pa.Array)]
        if len(texts) == len(pieces) and any(len(piece) > piece.null_count for piece in texts):
            return pd.Series(pa.chunked_array(texts), dtype=TEXT_DTYPE)
        # `object` keeps "007" a text.
        values = [value for piece in pieces for value in (piece if isinstance(piece, list) else piece.to_pylist())]
        return pd.Series(values, dtype="object")


def _parse_json_object(key_values: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(key_values)
    if len(found) < len(key_values):
        twice = next(name for name, n in Counter(name for name, _ in key_values).items() if n > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


_JSON_DECODER = json.JSONDecoder(object_pairs_hook=_parse_json_object)


def read_json_document(path: Path) -> Any:
    """A JSON file's value, parsed once however often it is asked for: nothing may change it.

    Raises `json.JSONDecodeError`, and `InputError` where the file is no text.
    """
    state = path.stat()
    return _parse_json_document(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=2)
def _parse_json_document(path: Path, n_bytes: int, modified: int) -> Any:
    def read(encoding: str) -> Any:
        with open_input_file(path) as file:
            return parse_json_file_text(file.read().decode(encoding))

    with _name_unreadable_file(path):
        return read_in_its_encoding(path, read)


def _read_json_table(path: Path) -> pd.DataFrame:
    try:
        document = read_json_document(path)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            return read_json_lines(path)  # under another name
        raise InputError(str(path), [Problem(f"not JSON: {error.msg}", error.lineno, unit="line")]) from None
    rows = _find_rows(document, _MAX_DEPTH, str(path))
    if rows is None:
        raise InputError(str(path), [Problem("expected a list of objects, or an object that holds one")])
    parts = [document, *document.values()] if isinstance(document, dict) else []
    for name in (str(name) for part in parts if isinstance(part, dict) for name in part):
        if _CODE_BOOK.fullmatch(name.lower()):
            message = f"{name!r} says what codes mean, and is not read: write the words into the rows, and delete it"
            raise InputError(str(path), [Problem(message)])
    features = document.get("features") if isinstance(document, dict) else None
    if isinstance(features, list) and all(isinstance(row.get("row"), dict) for row in rows):  # Hugging Face's viewer
        rows = [row["row"] for row in rows]
        types = {str(one.get("name")): one.get("type") for one in features if isinstance(one, dict)}
        return _name_classes(pd.DataFrame(rows, dtype="object"), types)
    return pd.DataFrame(rows, dtype="object")


def _find_rows(document: Any, depth: int, source: str) -> list[dict[str, Any]] | None:
    """The longest list of objects in a JSON document. Raises `InputError` where another list is as much of a table."""
    if isinstance(document, list):
        return document if document and all(isinstance(row, dict) for row in document) else None
    if not isinstance(document, dict) or not document or depth == 0:
        return None
    if (rows := _find_rows_of_columns(document, source) or _find_rows_by_key(document)) is not None:
        return rows
    found = {
        str(key): rows
        for key, value in document.items()
        if (rows := _find_rows(value, depth - 1, source)) is not None and (key != "features" or "rows" not in document)
    }
    if not found:
        return None
    longest = max(found, key=lambda key: len(found[key]))
    n_rows, fields = len(found[longest]), {*found[longest][0]}
    others = [key for key, rows in found.items() if {*rows[0]} == fields or 2 * len(rows) >= n_rows > 1]
    if len(others) > 1:
        listed = ", ".join(map(repr, others[:5])) + (" ..." if len(others) > 5 else "")
        way = "write each into a file of its own, or make them one list, whose rows have a field that says which it is"
        raise InputError(source, [Problem(f"{listed} are lists of rows: {way} (system, annotator, dataset)")])
    beside = [key for key, one in document.items() if isinstance(one, list) and len(one) == n_rows > 1]
    beside = [key for key in beside if key not in (longest, *fields)]
    if not beside:
        return found[longest]
    return [row | {key: document[key][at] for key in beside} for at, row in enumerate(found[longest])]


def _find_rows_of_columns(document: Mapping[str, Any], source: str) -> list[dict[str, Any]] | None:
    """Rows of pandas' orient="split" and W&B's tables (``columns``, ``data``), or of an object of columns."""
    names, rows = document.get("columns"), document.get("data")
    names, rows = (one if isinstance(one, list) else [] for one in (names, rows))
    if names and rows and all(isinstance(row, list) and len(row) == len(names) for row in rows):
        names = [str(tuple(name)) if isinstance(name, list) else str(name) for name in names]
        return [dict(zip(names, row, strict=True)) for row in rows]
    columns = [value for value in document.values() if isinstance(value, list)]
    is_whole = len(columns) == len(document) and bool(columns[0]) and len({len(column) for column in columns}) == 1
    if not is_whole or _find_rows(columns[0], 1, source) is not None:
        return None
    return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]


def _find_rows_by_key(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Rows of an object of objects with equal keys: columns by row (pandas' default), or rows by their id."""
    objects = list(document.values())
    if len(document) < 2 or not all(isinstance(one, dict) and one for one in objects):
        return None
    keys = list(objects[0])
    if any(list(one) != keys for one in objects):
        return None
    if keys == list(map(str, range(len(keys)))) and list(document) != list(map(str, range(len(document)))):
        return [{name: values[key] for name, values in document.items()} for key in keys]
    texts = [[value for value in one.values() if isinstance(value, str) and " " in value] for one in objects]
    is_nested = any(isinstance(value, list | dict) for value in objects[0].values())
    if is_nested and not (len(objects) > 4 and all(texts) and len({*map(tuple, texts)}) == len(objects)):
        return None  # parts of a document, and not rows with a claim of their own each
    return [{"id": key, **row} for key, row in document.items()] if len(keys) > 1 else None
