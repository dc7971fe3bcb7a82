"""A table from a file of any usual shape, as it is: CSV with any separator, TSV, JSON, JSONL, Parquet, Excel."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables import read_table

#: What a name may end in; ``.gz`` may follow the text formats.
SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xls")
_SEPARATORS = ",;\t|"
#: The start of a file that tells its separator.
_HEAD = 1 << 16
#: How deep in a JSON document its rows are looked for.
_DEPTH = 3


def read_any(path: str | Path) -> pd.DataFrame:
    """The rows of a file as a DataFrame of plain values; nothing is checked but that it is a table.

    A JSON file is a list of objects, an object of columns, or an object that holds such a list (``{"results":
    [...]}``: the longest one counts, to three levels). Objects within rows become columns with a dot (``input.text``).
    Raises `InputError` naming the file, and the line where there is one.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    if not path.is_file():
        raise InputError(str(path), [Problem("this is a folder, expected a file" if path.is_dir() else "no such file")])
    if name.endswith((".xlsx", ".xls")):
        return _excel(path)
    if name.endswith(".json"):
        return _flat(_json(path))
    if name.endswith((".csv", ".tsv", ".txt")):
        separator = _separator(path)
        return read_table(path) if separator == "," and name.endswith(".csv") else _separated(path, separator)
    if name.endswith(".ndjson"):
        return _flat(_lines(path))
    if name.endswith((".jsonl", ".parquet")):
        return _flat(read_table(path))
    raise InputError(str(path), [Problem(f"expected a name that ends in {', '.join(SUFFIXES)}")])


def _text(path: Path) -> str:
    try:
        content = gzip.decompress(path.read_bytes()) if path.name.lower().endswith(".gz") else path.read_bytes()
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise InputError(str(path), [Problem(f"cannot be read ({error})")]) from None
    if not content.strip():
        raise InputError(str(path), [Problem("the file is empty")])
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = Problem(f"byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8", line)
        raise InputError(str(path), [problem]) from None


def _separator(path: Path) -> str:
    """The separator of a file's first line: the one that stands most often outside quotes."""
    head = _text(path)[:_HEAD]
    first = next(iter(csv.reader(io.StringIO(head), delimiter="\0")), [""])[0] if '"' not in head else head
    line = first.split("\n", 1)[0]
    counts = {each: len(next(csv.reader([line], delimiter=each), [])) for each in _SEPARATORS}
    return max(_SEPARATORS, key=lambda each: (counts[each], -_SEPARATORS.index(each)))


def _separated(path: Path, separator: str) -> pd.DataFrame:
    before = csv.field_size_limit(2**31 - 1)  # documents are longer than what Python's csv allows a field
    try:
        rows = list(csv.reader(io.StringIO(_text(path), newline=""), delimiter=separator))
    except csv.Error as error:
        raise InputError(str(path), [Problem(f"not a table: {error}")]) from None
    finally:
        csv.field_size_limit(before)
    header, *body = [row for row in rows if row]
    problems = [
        Problem(f"expected {len(header)} cells as in the first row, found {len(row)}", number)
        for number, row in enumerate(body, start=1)
        if len(row) != len(header)
    ]
    if problems:
        raise InputError(str(path), problems[:20], len(problems))
    columns = {name: [row[at] or None for row in body] for at, name in enumerate(header)}
    return pd.DataFrame(columns, dtype="object")


def _excel(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_excel(path, dtype=object)
    except ImportError as error:
        message = f"reading Excel files needs a package that is not installed ({error}); or save the sheet as CSV"
        raise InputError(str(path), [Problem(message)]) from None
    except (ValueError, OSError, KeyError) as error:
        raise InputError(str(path), [Problem(f"not an Excel file that can be read ({error})")]) from None
    return table.astype(object).where(table.notna(), None)


def _json(path: Path) -> pd.DataFrame:
    try:
        data = json.loads(_text(path))
    except RecursionError:
        raise InputError(str(path), [Problem("the JSON is nested too deep to be a table")]) from None
    except json.JSONDecodeError as error:
        if "\n" in _text(path).strip() and error.msg == "Extra data":
            return _lines(path)  # a line of JSON each, under another name
        raise InputError(str(path), [Problem(f"not JSON: {error.msg}", error.lineno, unit="line")]) from None
    rows = _rows(data, _DEPTH)
    if rows is None:
        raise InputError(str(path), [Problem("expected a list of objects, or an object that holds one")])
    return pd.DataFrame(rows, dtype="object")


def _lines(path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(str(path), [Problem(f"not JSON: {error}", number, unit="line")]) from None
        if not isinstance(row, dict):
            found = type(row).__name__
            raise InputError(str(path), [Problem(f"expected a JSON object, found {found}", number, unit="line")])
        rows.append(row)
    return pd.DataFrame(rows, dtype="object")


def _rows(data: Any, depth: int) -> list[dict[str, Any]] | None:
    """The longest list of objects in a JSON document."""
    if isinstance(data, list):
        return data if data and all(isinstance(row, dict) for row in data) else None
    if not isinstance(data, dict) or not data or depth == 0:
        return None
    columns = [value for value in data.values() if isinstance(value, list)]
    if len(columns) == len(data) and len({len(column) for column in columns}) == 1 and _rows(columns[0], 1) is None:
        return [dict(zip(data, row, strict=True)) for row in zip(*columns, strict=True)]
    found = [rows for value in data.values() if (rows := _rows(value, depth - 1)) is not None]
    return max(found, key=len) if found else None


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Objects within rows as columns of their own (``output.score``), one level after the other, lists as they are."""
    for _ in range(_DEPTH):
        nested = [
            name
            for name in table.columns
            if table[name].dtype == object
            and any(isinstance(value, dict) for value in table[name])
            and all(isinstance(value, dict) or value is None or value != value for value in table[name])
        ]
        if not nested:
            break
        parts: list[pd.DataFrame] = []
        for name in table.columns:
            if name not in nested:
                parts.append(table[[name]])
                continue
            cells = [value if isinstance(value, dict) else {} for value in table[name]]
            keys = list(dict.fromkeys(str(key) for cell in cells for key in cell))
            columns = {f"{name}.{key}": [cell.get(key) for cell in cells] for key in keys}
            parts.append(pd.DataFrame(columns, index=table.index, dtype="object"))
        table = pd.concat(parts, axis=1)
    return table
