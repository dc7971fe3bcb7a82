"""Which known format a file is of, by what it holds: its keys and columns, never its name.

A format's mark is paths that all occur in a file, apart by blanks: ``testCases[].metricsData`` is the key metricsData
of the objects in the list testCases; a column of a table is a path of one key, and so is a key of a line of JSON. ``*``
stands for any text within a key. ``{label-score-pairs}`` is a document of nothing but lists of pairs.
"""

from __future__ import annotations

import csv
import json
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.datasets.formats import FORMATS, UNREAD_FILES
from factaudit.errors import InputError, Problem
from factaudit.files import list_folder_files, open_input_file
from factaudit.tables.table_files import read_json_document

#: How many rows of a file, items of a list and keys of an object are looked at, and how deep.
_MAX_ROWS, _MAX_ITEMS, _MAX_KEYS, _MAX_DEPTH = 20, 5, 200, 6
#: The marks of FActScore's annotated responses: an engine's input, which holds facts but no claims yet.
_ANNOTATED_FACTS_MARKS = (
    "input output annotations[].human-atomic-facts",
    "input output annotations[].model-atomic-facts",
)


def detect_dataset_format(path: str | Path) -> str | None:
    """The name of the known format that a file is of; None where it is of none, or cannot be read.

    Of a folder: that of its first files which are of one. Raises `InputError` where it could be of two.
    """
    if Path(path).is_dir():
        names = (detect_dataset_format(one) for one in list_folder_files(Path(path))[:_MAX_ROWS])
        return next((name for name in names if name is not None), None)
    found = [
        name
        for name in _list_marked_formats(Path(path))
        if not (FORMATS[name].is_json and _is_path_of_table(Path(path)))
    ]
    if len(found) > 1:
        commands = " or ".join(f"`factaudit convert {name} {path} --out claims.parquet`" for name in found)
        raise InputError(str(path), [Problem(f"looks like {' and like '.join(found)}: say which with {commands}")])
    return found[0] if found else None


def check_is_readable_format(path: str | Path) -> None:
    """Raise `InputError` where a file is of a tool or a data set whose files are not read."""
    paths = set() if Path(path).is_dir() else list_format_detection_paths(Path(path))
    for name, marks in UNREAD_FILES.items():
        if any(_has_mark(paths, mark) for mark in marks):
            expected = "save a table with a row for each claim (claim, doc, label, a column for each evaluator)"
            raise InputError(str(path), [Problem(f"a file of {name}, which is not read: {expected}")])


def detect_json_format_of_table(path: str | Path) -> str | None:
    """The known format whose keys a CSV or Parquet file has as columns, though files of the format are JSON."""
    marked = _list_marked_formats(Path(path)) if _is_path_of_table(Path(path)) else []
    return next((name for name in marked if FORMATS[name].is_json), None)


def _is_path_of_table(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith((".csv", ".parquet"))


def _list_marked_formats(path: Path) -> list[str]:
    paths = list_format_detection_paths(path)
    return [name for name, entry in FORMATS.items() if any(_has_mark(paths, mark) for mark in entry.marks)]


def is_annotated_responses_file(path: str | Path) -> bool:
    """Whether a file has FActScore's responses with the facts that people annotated in them."""
    return any(_has_mark(list_format_detection_paths(Path(path)), mark) for mark in _ANNOTATED_FACTS_MARKS)


def list_format_detection_paths(path: Path) -> set[str]:
    """The paths of a file's keys or columns, of its first rows; none where it cannot be read."""
    name = path.name.lower()
    text_name = name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return _list_parquet_paths(path)
        if name.endswith(".eval"):
            with zipfile.ZipFile(path) as archive:
                return set(archive.namelist())
        with open_input_file(path) as file:
            if text_name.endswith((".jsonl", ".ndjson")):
                return _list_json_line_paths(file)
            if text_name.endswith(".csv"):
                return set(next(csv.reader([file.readline().decode("utf-8-sig")]), []))
            if text_name.endswith((".json", ".score")):
                return _list_json_detection_paths(path)
    except (OSError, ValueError, EOFError, RecursionError, csv.Error, zipfile.BadZipFile, pa.ArrowException):
        pass  # whoever reads the file says what is wrong with it
    return set()


def _list_parquet_paths(path: Path) -> set[str]:
    file = pq.ParquetFile(path)
    schema = file.schema_arrow
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]  # a first batch costs a whole page each
    rows = next(file.iter_batches(batch_size=_MAX_ROWS, columns=nested), None) if nested else None
    return {*schema.names} | set(_list_value_detection_paths([] if rows is None else rows.to_pylist(), ""))


def _list_json_line_paths(lines: Any) -> set[str]:
    rows = []
    for line in islice((line for line in lines if line.strip()), _MAX_ROWS):
        with suppress(ValueError):  # a broken line is left out
            rows.append(json.loads(line))
    return set(_list_value_detection_paths(rows, "")) if all(isinstance(row, dict) for row in rows) else set()


def _list_json_detection_paths(path: Path) -> set[str]:
    try:
        document = read_json_document(path)
    except json.JSONDecodeError as error:
        if error.msg != "Extra data":
            raise
        with open_input_file(path) as file:
            return _list_json_line_paths(file)  # lines of JSON under another name
    if isinstance(document, dict) and {*document} == {"columns", "data"}:  # pandas' orient="split"
        return {str(column) for column in document["columns"]}
    if isinstance(document, dict) and document and all(map(_is_list_of_pairs, document.values())):
        return {"{label-score-pairs}"}
    return set(_list_value_detection_paths(document, ""))


def _is_list_of_pairs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, list) and len(one) == 2 for one in value[:_MAX_ROWS])


def _list_value_detection_paths(value: Any, prefix: str, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """The paths within a value; those within the rows of a document that is a list are the rows' own."""
    if depth == 0:
        return
    if isinstance(value, dict):
        for key, inner in islice(value.items(), _MAX_KEYS):
            name = f"{prefix}.{key}" if prefix else str(key)
            yield name
            yield from _list_value_detection_paths(inner, name, depth - 1)
    elif isinstance(value, list):
        name = f"{prefix}[]" if prefix else ""
        if name:
            yield name
        for inner in value[: _MAX_ITEMS if name else _MAX_ROWS]:
            yield from _list_value_detection_paths(inner, name, depth - 1)


def _has_mark(content_paths: set[str], mark: str) -> bool:
    return all(any(_compile_path_pattern(part).fullmatch(path) for path in content_paths) for part in mark.split())


@lru_cache(maxsize=256)
def _compile_path_pattern(path_pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(path_pattern).replace(r"\*", r"[^.\[\]]*"), re.DOTALL)
