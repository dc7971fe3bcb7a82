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
from typing import IO, Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.errors import InputError, Problem
from factaudit.tables.columns import TEXT, is_text
from factaudit.tables.documents import Documents, documents_in, shared_texts
from factaudit.tables.problems import Problems
from factaudit.tables.schema import POSITIONS, suffix
from factaudit.tables.validate import (
    make_claim_ids,
    merge_claims,
    merge_verdicts,
    validate_claims,
    validate_verdicts,
)
from factaudit.text.cells import ESCAPED, unescape_cell

#: Characters of a CSV file that are read at a time, about.
_BLOCK = 16 << 20


def read_claims(*paths: str | Path) -> pd.DataFrame:
    """Read and validate claims from one or several files (concatenated in the order given).

    Returns a DataFrame with all of `CLAIM_COLUMNS` (missing optional ones null), then any extra columns.
    Raises `InputError` naming file, row and column.
    """
    tables, made = [], []
    for path in paths:
        table = read_table(path, documents="doc")
        made.append("claim_id" not in table)
        tables.append(validate_claims(table, source=str(path), unit=unit(path)))
    if len(tables) > 1 and any(made):
        # Made over all the files together, so that equal rows of two files get two ids.
        together = pd.concat([table for table, own in zip(tables, made, strict=True) if own], ignore_index=True)
        ids = iter(make_claim_ids(together))
        for table in (table for table, own in zip(tables, made, strict=True) if own):
            table["claim_id"] = pd.Series(list(islice(ids, len(table))), dtype=TEXT)
    return merge_claims(tables, [str(path) for path in paths])


def read_verdicts(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate verdicts from one or several files; against ``claims`` where given.

    Returns a DataFrame with `VERDICT_COLUMNS`. Raises `InputError` naming file, row and column.
    """
    tables = [validate_verdicts(read_table(path), claims=claims, source=str(path), unit=unit(path)) for path in paths]
    return merge_verdicts(tables, [str(path) for path in paths])


def read_run(run_dir: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims and verdicts of a run folder. Raises `InputError` where it holds none (a table of counts, say)."""
    for name in ("claims.parquet", "verdicts.parquet"):
        if not (run_dir / name).is_file():
            raise InputError(str(run_dir), [Problem(f"the run folder has no {name}: there are no claims")])
    claims = read_claims(run_dir / "claims.parquet")
    return claims, read_verdicts(run_dir / "verdicts.parquet", claims=claims)


def read_table(path: str | Path, documents: str | None = None) -> pd.DataFrame:
    """Read a Parquet, JSONL or CSV file as it is, unchecked; `InputError` where it is no whole, readable file.

    documents: the column of texts that many rows share, which is read as `factaudit.tables.documents` says.

    CSV cells are text, null where empty. Where a JSONL file has blank lines, ``attrs["positions"]`` has the line number
    of each row.
    """
    path = Path(path)
    if not path.is_file():
        message = "this is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(str(path), [Problem(message)])
    kind = suffix(path)
    try:
        if path.stat().st_size == 0:
            raise InputError(str(path), [Problem("the file is empty")])
        if kind == ".parquet":
            return _read_parquet(path, documents)
        return (_read_csv if kind.startswith(".csv") else _read_jsonl)(path, kind, documents)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(str(path), [Problem(f"not a whole gzip file ({_line(error)})")]) from None
    except OSError as error:
        raise InputError(str(path), [Problem(f"cannot be read ({error.strerror or _line(error)})")]) from None


def _read_parquet(path: Path, documents: str | None) -> pd.DataFrame:
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
        _check_header(path, names)
        apart = documents if documents in names and is_text(file.schema_arrow.field(documents).type) else None
        # Without pandas' metadata an index that has a name ("claim_id") is the column that it is in the file.
        table = file.read([name for name in names if name != apart]).to_pandas(ignore_metadata=True)
        if apart is not None:
            table.insert(names.index(apart), apart, documents_in(path, apart))
    except pa.ArrowException as error:
        raise InputError(str(path), [Problem(f"not a readable Parquet file ({_line(error)})")]) from None
    return table.drop(columns=[name for name in table.columns if re.fullmatch(r"__index_level_\d+__", name)])


def _read_csv(path: Path, kind: str, documents: str | None) -> pd.DataFrame:
    problems = Problems(str(path), "row")
    texts = Documents()
    blocks: list[list[pa.Array]] = []
    with _open(path, kind) as file, _fields_of_any_size():
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), strict=True)
        try:
            header = next(filter(None, rows), None)
            if header is None:
                raise InputError(str(path), [Problem("the file has no header line")])
            header = [unescape_cell(name) for name in header]
            _check_header(path, [name for name in header if name])
            wrong = f"expected {len(header)} columns, as in the header, found "
            number = 0
            apart = header.index(documents) if documents in header else None
            for block in _blocks(filter(None, rows)):
                for row in block:
                    number += 1
                    if len(row) != len(header):
                        problems.add(f"{wrong}{len(row)}", number)
                if not problems.total:
                    cells = [_cells(column) for column in zip(*block, strict=True)]
                    if apart is not None:
                        texts.add(cells[apart])
                        cells[apart] = pa.nulls(0, pa.large_string())
                    blocks.append(cells)
        except UnicodeDecodeError:
            raise InputError(str(path), [_undecodable(path, kind)]) from None
        except csv.Error as error:
            message = "a quoted cell is not closed" if "end of data" in str(error) else f"not CSV ({error})"
            raise InputError(str(path), [Problem(message, rows.line_num, unit="line")]) from None
    problems.raise_if_any()
    columns = {}
    for position, name in enumerate(header):
        if position == apart:
            columns[name] = texts.column()
            continue
        values = pa.chunked_array([block[position] for block in blocks], type=pa.large_string())
        # pandas writes its index, and spreadsheets their empty columns, without a name.
        if name or values.null_count < len(values):
            columns[name or f"Unnamed: {position}"] = pd.Series(values, dtype=TEXT)
    return pd.DataFrame(columns)


def _cells(column: Sequence[str]) -> pa.Array:
    texts = pa.array(column, type=pa.large_string())
    texts = pc.replace_substring_regex(texts, ESCAPED, r"\1")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.large_string()), texts)


def _blocks(rows: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """Some rows at a time: as many as the longest of the block before leaves room for, at most 50,000."""
    size = 100
    while block := list(islice(rows, size)):
        yield block
        longest = max(sum(map(len, row)) for row in block)
        size = min(50_000, max(1, _BLOCK // max(1, longest)), 10 * size)


@contextmanager
def _fields_of_any_size() -> Iterator[None]:
    # Documents are longer than the 131,072 characters that Python's csv allows a field.
    before = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _check_header(path: Path, names: Sequence[str]) -> None:
    twice = [Problem("the column is there twice", column=name) for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(str(path), twice)


def _read_jsonl(path: Path, kind: str, documents: str | None) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    read, size = _Rows(documents), 0
    problems = Problems(str(path), "line")
    positions: list[int] = []
    with _open(path, kind) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = _JSON.decode(line.decode("utf-8-sig" if number == 1 else "utf-8"))
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
                problems.add(f"not JSON: {_line(error)}", number)
            else:
                if isinstance(row, dict):
                    rows.append(row)
                    positions.append(number)
                    size += len(line)
                    if size > _BLOCK:
                        read.add(rows)
                        rows, size = [], 0
                else:
                    problems.add(f"expected a JSON object, found {type(row).__name__}", number)
    problems.raise_if_any()
    read.add(rows)
    table = read.table()
    if positions and positions[-1] != len(positions):
        table.attrs[POSITIONS] = positions
    return table


class _Rows:
    """Objects as columns, some rows at a time: as Python's objects, all together take several times the file's size."""

    def __init__(self, documents: str | None) -> None:
        self._columns: dict[str, list[pa.Array | list[Any]]] = {}
        self._size = 0
        self._documents, self._texts = documents, Documents()

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for name in dict.fromkeys(name for row in rows for name in row):
            if name not in self._columns:
                self._columns[name] = []
                self._put(name, [None] * self._size)
        for name in self._columns:
            self._put(name, [row.get(name) for row in rows])
        self._size += len(rows)

    def _put(self, name: str, values: list[Any]) -> None:
        only_text = all(value is None or isinstance(value, str) for value in values)
        piece = pa.array(values, pa.large_string()) if only_text else values
        if name == self._documents:
            if only_text:
                self._texts.add(piece)
                return
            self._documents = None  # lists of texts, say
            self._columns[name].append(shared_texts(self._texts.column()))
        self._columns[name].append(piece)

    def table(self) -> pd.DataFrame:
        return pd.DataFrame({name: self._column(name, pieces) for name, pieces in self._columns.items()})

    def _column(self, name: str, pieces: list[pa.Array | list[Any]]) -> pd.Series:
        if name == self._documents:
            return self._texts.column()
        texts = [piece for piece in pieces if isinstance(piece, pa.Array)]
        if len(texts) == len(pieces) and any(len(piece) > piece.null_count for piece in texts):
            return pd.Series(pa.chunked_array(texts), dtype=TEXT)
        # `object` keeps "007" a text.
        values = [value for piece in pieces for value in (piece if isinstance(piece, list) else piece.to_pylist())]
        return pd.Series(values, dtype="object")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, n in Counter(name for name, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice!r} is there twice")
    return found


_JSON = json.JSONDecoder(object_pairs_hook=_object)


def _undecodable(path: Path, kind: str) -> Problem:
    with _open(path, kind) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                byte = line[error.start]
                return Problem(f"byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8", number, unit="line")
    return Problem("not UTF-8 text; save the file as UTF-8")


def _open(path: Path, kind: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if kind.endswith(".gz") else path.open("rb")


def unit(path: str | Path) -> str:
    """What a message calls a row of the file."""
    return "line" if suffix(path).startswith(".jsonl") else "row"


def _line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
