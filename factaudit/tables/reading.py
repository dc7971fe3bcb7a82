"""Files read into tables: Parquet, JSONL and CSV. CSV has no null: an empty cell is one."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import InputError, Problem, format_error_first_line
from factaudit.files import check_is_table_file, open_input_file
from factaudit.tables.column_parsing import TEXT_DTYPE, is_arrow_text_type
from factaudit.tables.documents import DocumentColumnBuilder, list_shared_texts, read_document_column
from factaudit.tables.parquet_size import check_parquet_unpacked_size
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit, parse_table_suffix
from factaudit.tables.unreadable_rows import leave_out_broken_table_rows
from factaudit.tables.validation import (
    make_claim_ids_from_content,
    merge_claim_tables,
    merge_verdict_tables,
    validate_claims,
    validate_verdicts,
)
from factaudit.text.spreadsheet_cells import ESCAPED_CELL_START, unescape_spreadsheet_cell

#: So many rows that are left out have their reasons kept.
_MAX_LEFT_OUT = 10_000
#: What text in the languages of Western Europe has beyond ASCII.
_WESTERN_CHARACTERS = {*"äöüÄÖÜßéèêëÉÈÊàâáãåæÀÁÂÅÆçÇñÑíìîïÍóòôõøÓÖØœŒúùûýÿÚ’‘“”„‚–—…€£°«»·•´§²³½×©®™ºª¿¡\u00a0"}
#: Characters of a CSV file that are read at a time, about.
_BLOCK_CHARACTERS = 16 << 20


def read_claims(*paths: str | Path) -> pd.DataFrame:
    """Read and validate claims from one or several files (concatenated in the order given).

    Returns a DataFrame with all of `CLAIM_COLUMNS` (missing optional ones null), then any extra columns.
    Raises `InputError` naming file, row and column.
    """
    return combine_claims([read_table(path, document_column="doc") for path in paths], [str(path) for path in paths])


def combine_claims(tables: Sequence[pd.DataFrame], sources: Sequence[str]) -> pd.DataFrame:
    """Validate tables of claims and put them under each other, see `read_claims`."""
    validated = [
        validate_claims(table, source=source, unit=name_row_unit(source))
        for table, source in zip(tables, sources, strict=True)
    ]
    new = [claims for table, claims in zip(tables, validated, strict=True) if "claim_id" not in table]
    if len(tables) > 1 and new:
        # Made over all the files together, so that equal rows of two files get two ids.
        ids = iter(make_claim_ids_from_content(pd.concat(new, ignore_index=True)))
        for claims in new:
            claims["claim_id"] = pd.Series(list(islice(ids, len(claims))), dtype=TEXT_DTYPE)
    return merge_claim_tables(validated, sources)


def read_verdicts(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate verdicts from one or several files; against ``claims`` where given.

    Returns a DataFrame with `VERDICT_COLUMNS`. Raises `InputError` naming file, row and column.
    """
    return combine_verdicts([read_table(path) for path in paths], [str(path) for path in paths], claims)


def combine_verdicts(
    tables: Sequence[pd.DataFrame], sources: Sequence[str], claims: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Validate tables of verdicts and put them under each other, see `read_verdicts`."""
    validated = [
        validate_verdicts(table, claims=claims, source=source, unit=name_row_unit(source))
        for table, source in zip(tables, sources, strict=True)
    ]
    return merge_verdict_tables(validated, sources)


def read_run_tables(run_dir: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims and verdicts of a run folder. Raises `InputError` where it holds none (a table of counts, say)."""
    for name in ("claims.parquet", "verdicts.parquet"):
        if not (run_dir / name).is_file():
            raise InputError(str(run_dir), [Problem(f"the run folder has no {name}: there are no claims")])
    claims = read_claims(run_dir / "claims.parquet")
    return claims, read_verdicts(run_dir / "verdicts.parquet", claims=claims)


def read_table(path: str | Path, document_column: str | None = None, is_counted: bool = False) -> pd.DataFrame:
    """Read a Parquet, JSONL or CSV file as it is, unchecked; `InputError` where it is no whole, readable file.

    document_column: the column of texts that many rows share, which is read as `factaudit.tables.documents` says.

    CSV cells are text, null where empty. Rows that are none are left out where somebody collects them
    (`factaudit.tables.unreadable_rows`), but not where other files count them (``is_counted``). Where a JSONL file has
    blank lines, or a row was left out, ``attrs["positions"]`` has the number of each row.
    """
    path = Path(path)
    check_is_table_file(path)
    kind = parse_table_suffix(path)
    if kind.startswith(".jsonl"):
        return read_json_lines(path, document_column, is_counted)
    with _name_unreadable_file(path):
        if kind == ".parquet":
            return _read_parquet_table(path, document_column)
        return _read_csv_table(path, document_column, is_counted)


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


def _read_parquet_table(path: Path, document_column: str | None) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        _check_column_names(path, names)
        apart = (
            document_column
            if document_column in names and is_arrow_text_type(file.schema_arrow.field(document_column).type)
            else None
        )
        check_parquet_unpacked_size(path, file)
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
    return table.drop(columns=[name for name in table.columns if re.fullmatch(r"__index_level_\d+__", name)])


def _read_csv_table(
    path: Path, document_column: str | None, is_counted: bool, encoding: str = "utf-8-sig"
) -> pd.DataFrame:
    problems = TableProblemCollector(str(path), "row", n_kept=_MAX_LEFT_OUT)
    positions: list[int] = []
    texts = DocumentColumnBuilder()
    blocks: list[list[pa.Array]] = []
    with open_input_file(path) as file, lift_csv_field_limit():
        rows = csv.reader(io.TextIOWrapper(file, encoding=encoding, newline=""), strict=True)
        try:
            header = next(filter(None, rows), None)
            if header is None:
                raise InputError(str(path), [Problem("the file has no header line")])
            header = [unescape_spreadsheet_cell(name) for name in header]
            _check_column_names(path, [name for name in header if name])
            wrong = f"expected {len(header)} columns, as in the header, found "
            number = 0
            apart = header.index(document_column) if document_column in header else None
            for block in _iterate_table_row_blocks(filter(None, rows)):
                good = []
                for row in block:
                    number += 1
                    if len(row) != len(header):
                        problems.add(f"{wrong}{len(row)}", number)
                    else:
                        good.append(row)
                        positions.append(number)
                if good:
                    cells = [_parse_csv_cells(column) for column in zip(*good, strict=True)]
                    if apart is not None:
                        texts.add(cells[apart])
                        cells[apart] = pa.nulls(0, pa.large_string())
                    blocks.append(cells)
        except UnicodeDecodeError:
            with open_input_file(path) as whole:
                is_windows = encoding == "utf-8-sig" and is_windows_1252_text(whole.read())
            if is_windows:  # as Excel saves it
                return _read_csv_table(path, document_column, is_counted, "cp1252")
            raise InputError(str(path), [_find_undecodable_table_line(path)]) from None
        except csv.Error as error:
            message = "a quoted cell is not closed" if "end of data" in str(error) else f"not CSV ({error})"
            raise InputError(str(path), [Problem(message, rows.line_num, unit="line")]) from None
    leave_out_broken_table_rows(path, problems, number, is_counted)
    columns = {}
    for position, name in enumerate(header):
        if position == apart:
            columns[name] = texts.build_column()
            continue
        values = pa.chunked_array([block[position] for block in blocks], type=pa.large_string())
        # pandas writes its index, and spreadsheets their empty columns, without a name.
        if name or values.null_count < len(values):
            columns[name or f"Unnamed: {position}"] = pd.Series(values, dtype=TEXT_DTYPE)
    table = pd.DataFrame(columns)
    if problems.total:
        table.attrs[POSITIONS_KEY] = positions
    return table


def is_windows_1252_text(content: bytes) -> bool:
    """Whether bytes read as Windows-1252 are text of Western Europe: few letters beyond ASCII, all of its alphabets."""
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        return False
    beyond = [one for one in text if not one.isascii()]
    return {*beyond} <= _WESTERN_CHARACTERS and len(beyond) < 0.15 * sum(one.isalpha() for one in text)


def _parse_csv_cells(cells: Sequence[str]) -> pa.Array:
    texts = pa.array(cells, type=pa.large_string())
    texts = pc.replace_substring_regex(texts, ESCAPED_CELL_START, r"\1")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _iterate_table_row_blocks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """Some rows at a time: as many as the longest of the block before leaves room for, at most 50,000."""
    size = 100
    while block := list(islice(rows, size)):
        yield block
        longest = max(sum(map(len, row)) for row in block)
        size = min(50_000, max(1, _BLOCK_CHARACTERS // max(1, longest)), 10 * size)


@contextmanager
def lift_csv_field_limit() -> Iterator[None]:
    """Documents are longer than the 131,072 characters that Python's csv allows a field; not without end."""
    before = csv.field_size_limit(100_000_000)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_column_names(path: Path, column_names: Sequence[str]) -> None:
    twice = [Problem("the column is there twice", column=name) for name, n in Counter(column_names).items() if n > 1]
    if twice:
        raise InputError(str(path), twice)


def read_json_lines(path: Path, document_column: str | None = None, is_counted: bool = False) -> pd.DataFrame:
    """The objects of a file with one in each line, whatever it is called; else as `read_table`."""
    with _name_unreadable_file(path):
        return _read_json_lines(path, document_column, is_counted)


def _read_json_lines(path: Path, document_column: str | None, is_counted: bool) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    read, size = _JsonTableBuilder(document_column), 0
    problems = TableProblemCollector(str(path), "line", n_kept=_MAX_LEFT_OUT)
    positions: list[int] = []
    with open_input_file(path) as file:
        for number, line in enumerate(file, start=1):
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
                if isinstance(row, dict):
                    rows.append(row)
                    positions.append(number)
                    size += len(line)
                    if size > _BLOCK_CHARACTERS:
                        read.add(rows)
                        rows, size = [], 0
                else:
                    problems.add(f"expected a JSON object, found {type(row).__name__}", number)
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


def _parse_json_table_row(key_values: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(key_values)
    if len(found) < len(key_values):
        twice = next(name for name, n in Counter(name for name, _ in key_values).items() if n > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


_JSON_DECODER = json.JSONDecoder(object_pairs_hook=_parse_json_table_row)


def _find_undecodable_table_line(path: Path) -> Problem:
    with open_input_file(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return Problem(f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8", number, unit="line")
    return Problem("not UTF-8 text; save the file as UTF-8")
