"""A table from a file of any usual shape, as it is: CSV with any separator, TSV, JSON, JSONL, Parquet, Excel."""

from __future__ import annotations

import ast
import codecs
import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem, UsageError
from factaudit.files import check_is_table_file, open_input_file
from factaudit.tables import read_table
from factaudit.tables.cell_values import parse_printed_value
from factaudit.tables.class_labels import (
    list_class_names_of_parquet,
    read_huggingface_viewer_rows,
    replace_class_codes_by_names,
)
from factaudit.tables.header_rows import (
    ALL_SHEETS,
    build_table_from_cell_grid,
    read_excel_grid,
    read_excel_grids_of_tables,
)
from factaudit.tables.header_rows import READING_NOTE as READING_NOTE
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.reading import read_json_lines
from factaudit.tables.separated_values import read_file_text, read_json_document, read_separated_values
from factaudit.tables.vocabulary import normalise_vocabulary_words, parse_label_word

#: What a name may end in; ``.gz`` may follow the text formats.
FILE_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".manifest", ".parquet", ".xlsx", ".xls")
#: Columns of ours whose cells are text though it is JSON.
_AS_TEXT = ("raw", "chunk_scores")
#: Around the JSON of a model's reply.
_CODE_FENCE = re.compile(r"^```\w*\s*|\s*```$")
#: Several words in a cell; a comma alone may be a decimal one.
_VOTES = re.compile(r"[^;|,]{1,30}(?:\s*[;|]\s*[^;|,]{1,30}|, [^;|,]{1,30}|,[^\W\d][^;|,]{0,29})+|[01](?:,[01]){2,}")
#: Fewer keys of an object may be names of fields that few rows have.
_MIN_IDS = 4
#: Names under which JSON documents say what codes mean.
_CODE_BOOK_NAMES = {"label map", "labels map", "label mapping", "label names", "label classes", "id2label", "label2id"}
_CODE_BOOK_NAMES |= {"classes", "class names", "codebook", "code book", "legend"}
#: How deep in a JSON document its rows are looked for.
_MAX_DEPTH = 6


def read_foreign_tables(path: str | Path, sheet: str | None = None) -> list[tuple[str, pd.DataFrame]]:
    """The table of a file, or those of all sheets of a workbook, by their names in messages. As `read_foreign_file`."""
    if sheet != ALL_SHEETS:
        return [(str(path), read_foreign_file(path, sheet))]
    return [
        (f"{path}/{name}", build_table_from_cell_grid(str(path), grid, None))
        for name, grid in read_excel_grids_of_tables(Path(path)).items()
    ]


def read_foreign_file(path: str | Path, sheet: str | None = None) -> pd.DataFrame:
    """The rows of a file as a DataFrame of plain values; nothing is checked but that it is a table.

    sheet: of a workbook. header: the row of CSV and Excel that names the columns, from 1; by default it is found
    (`factaudit.tables.header_rows`), and what was left out is in ``attrs["reading_note"]``.

    A JSON file is a list of objects, an object of columns, or an object that holds such a list (``{"results":
    [...]}``: the longest one counts, to three levels). Objects within rows become columns with a dot (``input.text``).
    Raises `InputError` naming the file, and the line where there is one.
    """
    path = Path(path)
    name = path.name.lower().removesuffix(".gz")
    check_is_table_file(path)
    start = _read_foreign_file_start(path)
    is_page = re.match(rb"\s*(<!doctype html|<html|<table|<div|<\?xml)", start, re.IGNORECASE)
    if is_page:
        message = "a web page, whatever its name says: open it in a spreadsheet program and save the table as CSV"
        raise InputError(str(path), [Problem(message)])
    if name.endswith((".xlsx", ".xls")):
        return build_table_from_cell_grid(str(path), read_excel_grid(path, sheet), None)
    if start.startswith(b"PK\x03\x04") and (files := _list_files_of_archive(path)):
        raise InputError(str(path), [Problem(f"an archive that holds {', '.join(files)}: unpack it and name the file")])
    if start.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        message = f"an Excel file, whatever its name says: rename it to {path.stem}.xlsx"
        raise InputError(str(path), [Problem(message)])
    if sheet is not None:
        raise UsageError(f"--sheet {sheet}: {path} is no workbook")
    is_text = name.endswith((".csv", ".tsv", ".txt"))
    if name.endswith(".json") or (is_text and re.match(rb'\s*(\{\s*"|\[\s*\{)', start.removeprefix(codecs.BOM_UTF8))):
        table = _read_foreign_json_document(path)
        flat = flatten_foreign_columns(table)
        flat.attrs |= table.attrs
        return flat
    if is_text:
        table = read_separated_values(path)
        flat = flatten_foreign_columns(table)
        flat.attrs |= table.attrs
        return flat
    if name.endswith((".jsonl", ".ndjson", ".manifest", ".parquet")):
        table = convert_arrays_in_cells(read_table(path) if name.endswith(".parquet") else read_json_lines(path))
        if name.endswith(".parquet"):
            table = replace_class_codes_by_names(table, list_class_names_of_parquet(path))
        return flatten_foreign_columns(table)
    raise InputError(str(path), [Problem(f"expected a name that ends in {', '.join(FILE_SUFFIXES)}")])


def _read_foreign_file_start(path: Path) -> bytes:
    try:
        with open_input_file(path) as file:
            return file.read(512)
    except (EOFError, zlib.error, OSError):
        return b""  # whoever reads the file says what is wrong with it


def _list_files_of_archive(path: Path) -> list[str]:
    """The first files of a zip archive; none where it is a workbook, or cannot be read."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and not name.endswith("/")]
    except (OSError, zipfile.BadZipFile):
        return []
    return [] if "[Content_Types].xml" in names else names[:5]


def _parse_cells_of_objects(table: pd.DataFrame) -> pd.DataFrame:
    """The table with objects, and lists of texts or of decimals, where all cells of a column are one as text: JSON, or
    as Python prints them."""
    found = {}
    for name in table.columns[~table.columns.duplicated(keep=False)]:
        cells = table[name].tolist()
        first = next((cell for cell in cells if not is_missing_value(cell)), None)
        text = _CODE_FENCE.sub("", first.strip()) if isinstance(first, str) else ""
        is_json = text[:1] + text[-1:] in ("{}", "[]") or bool(re.match(r"(np\.|numpy\.)?(array|list)\(\[", text))
        is_votes = not is_json and all(is_missing_value(cell) or _VOTES.fullmatch(str(cell)) for cell in cells)
        if not text or not (is_json or is_votes) or name in _AS_TEXT:
            continue
        parse = _parse_foreign_object_cell if is_json else _split_votes
        objects = [parse(cell) if isinstance(cell, str) else cell for cell in cells]
        if all(
            is_missing_value(cell) or _is_object_or_plain_list(one) for cell, one in zip(cells, objects, strict=True)
        ):
            found[name] = pd.Series(objects, index=table.index, dtype="object")
    return table.assign(**found)


def _split_votes(text: str) -> list[str] | None:
    """The words of a cell like ``yes; no; yes``, as several people said them; None where they are no such."""
    words = [word.strip() for word in re.split(r"[;|,]", text)]
    return words if all(parse_label_word(word) is not None for word in words) else None


def _is_object_or_plain_list(value: Any) -> bool:
    """Whether a value is an object, or a list of texts, objects, decimals, or 0 and 1 (``[3]`` may be a reference)."""
    if isinstance(value, list):
        return any(all(isinstance(one, kind) for one in value) for kind in (str, float, dict)) or all(
            one in (0, 1) for one in value
        )
    return isinstance(value, dict)


def _parse_foreign_object_cell(text: str) -> Any:
    return parse_printed_value(_CODE_FENCE.sub("", text.strip()))


def _read_foreign_json_document(path: Path) -> pd.DataFrame:
    try:
        data = read_json_document(path)
    except json.JSONDecodeError as error:
        if "\n" in read_file_text(path).strip() and error.msg == "Extra data":
            return read_json_lines(path)  # under another name
        raise InputError(str(path), [Problem(f"not JSON: {error.msg}", error.lineno, unit="line")]) from None
    if (page := read_huggingface_viewer_rows(data)) is not None:
        return page
    rows = _find_foreign_json_rows(data, _MAX_DEPTH, str(path))
    if rows is None:
        raise InputError(str(path), [Problem("expected a list of objects, or an object that holds one")])
    _check_has_no_code_book(data, str(path))
    return pd.DataFrame(rows, dtype="object")


def _check_has_no_code_book(document: Any, source_name: str) -> None:
    """Raise `InputError` where a JSON document says beside its rows what their codes mean."""
    parts = [document, *document.values()] if isinstance(document, dict) else []
    for name in (name for part in parts if isinstance(part, dict) for name in part):
        if normalise_vocabulary_words(name) in _CODE_BOOK_NAMES:
            message = f"{name!r} says what codes mean, and is not read: write the words into the rows, and delete it"
            raise InputError(source_name, [Problem(message)])


def _find_foreign_json_rows(document: Any, depth: int, source_name: str) -> list[dict[str, Any]] | None:
    """The longest list of objects in a JSON document. Raises `InputError` where another list is as much of a table."""
    if isinstance(document, list):
        return document if document and all(isinstance(row, dict) for row in document) else None
    if not isinstance(document, dict) or not document or depth == 0:
        return None
    names, rows = document.get("columns"), document.get("data")  # pandas' orient="split", W&B's tables
    if isinstance(names, list) and isinstance(rows, list) and rows and _are_rows_of(rows, len(names)):
        names = [str(tuple(name)) if isinstance(name, list) else str(name) for name in names]
        return [dict(zip(names, row, strict=True)) for row in rows]
    columns = [value for value in document.values() if isinstance(value, list)]
    if (
        len(columns) == len(document)
        and columns[0]
        and len({len(column) for column in columns}) == 1
        and _find_foreign_json_rows(columns[0], 1, source_name) is None
    ):
        return [dict(zip(document, row, strict=True)) for row in zip(*columns, strict=True)]
    if (rows := _read_objects_by_key(document)) is not None:
        return rows
    found = {
        str(key): rows
        for key, value in document.items()
        if (rows := _find_foreign_json_rows(value, depth - 1, source_name)) is not None
    }
    if not found:
        return None
    longest = max(found, key=lambda key: len(found[key]))
    fields = {*found[longest][0]}
    alike = [key for key, rows in found.items() if {*rows[0]} == fields]
    if len(alike) > 1:
        listed = ", ".join(map(repr, alike[:5])) + (" ..." if len(alike) > 5 else "")
        way = "make them one list, whose rows have a field that says which it is (system, annotator, dataset, split)"
        raise InputError(source_name, [Problem(f"{listed} are lists of rows with the same fields: {way}")])
    n_rows = len(found[longest])
    if others := [key for key, rows in found.items() if key != longest and 2 * len(rows) >= n_rows > 1]:
        listed = ", ".join(map(repr, [longest, *others]))
        raise InputError(source_name, [Problem(f"{listed} are lists of rows: write each into a file of its own")])
    beside = [key for key, one in document.items() if isinstance(one, list) and len(one) == n_rows > 1]
    beside = [key for key in beside if key not in (longest, *fields)]
    if not beside:
        return found[longest]
    return [row | {key: document[key][at] for key in beside} for at, row in enumerate(found[longest])]


def _read_objects_by_key(document: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Rows of an object of objects with equal keys: columns by row (pandas' default), or rows by their id. Of a few
    objects those of lists and objects are none."""
    objects = list(document.values())
    if len(document) < 2 or not all(isinstance(one, dict) and one for one in objects):
        return None
    keys = list(objects[0])
    is_nested = any(isinstance(value, list | dict) for value in objects[0].values())
    if any(list(one) != keys for one in objects) or (is_nested and not _are_rows_by_id(objects)):
        return None
    if keys == list(map(str, range(len(keys)))) and list(document) != list(map(str, range(len(document)))):
        return [{name: values[key] for name, values in document.items()} for key in keys]
    return [{"id": key, **row} for key, row in document.items()] if len(keys) > 1 else None


def _are_rows_by_id(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether objects are many, and each has a text that no other has: a row's own claim."""
    texts = [[value for value in one.values() if isinstance(value, str) and " " in value] for one in objects]
    return len(objects) > _MIN_IDS and all(texts) and len({*map(tuple, texts)}) == len(objects)


def _are_rows_of(rows: list[Any], length: int) -> bool:
    return all(isinstance(row, list) and len(row) == length for row in rows)


def flatten_foreign_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Objects within rows as columns of their own (``output.score``), one level after the other, lists as they are."""
    table = table.set_axis([_join_column_levels(str(name)) for name in table.columns], axis=1)
    for _ in range(_MAX_DEPTH):
        table = _parse_cells_of_objects(table)
        wrapped = [name for name in table.columns if _has_only_one_item_lists(table[name])]
        table = table.assign(**{name: _unwrap_lists(table[name]) for name in wrapped})
        nested = [
            name
            for name in table.columns
            if table[name].dtype == object
            and any(isinstance(value, dict) for value in table[name])
            and all(isinstance(value, dict) or is_missing_value(value) for value in table[name])
        ]
        if not nested and not wrapped:
            break
        parts: list[pd.DataFrame] = []
        for name in table.columns:
            if name not in nested:
                parts.append(table[[name]])
                continue
            cells = [value if isinstance(value, dict) else {} for value in table[name]]
            if _are_objects_by_id(cells):
                objects = [[one for value in cell.values() for one in _wrap_object(value)] for cell in cells]
                parts.append(pd.DataFrame({name: objects}, index=table.index, dtype="object"))
                continue
            keys = list(dict.fromkeys(str(key) for cell in cells for key in cell))
            columns = {f"{name}.{key}": [cell.get(key) for cell in cells] for key in keys}
            parts.append(pd.DataFrame(columns, index=table.index, dtype="object"))
        table = pd.concat(parts, axis=1)
    return table


def _are_objects_by_id(cells: Sequence[dict[Any, Any]]) -> bool:
    """Whether objects have objects under keys that are ids, others in each row (SciFact's evidence by document)."""
    keys = Counter(key for cell in cells for key in cell)
    values = [one for cell in cells for value in cell.values() for one in _wrap_object(value)]
    return (
        len(keys) > _MIN_IDS and max(keys.values()) * 2 <= len(cells) and all(isinstance(one, dict) for one in values)
    )


def _wrap_object(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def convert_arrays_in_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with lists and objects where Arrow's and Parquet's have become arrays and pairs, at any depth."""
    objects = table.columns[
        table.dtypes.map(pd.api.types.is_object_dtype).to_numpy(dtype=bool) & ~table.columns.duplicated(keep=False)
    ]
    found = [
        name
        for name in objects
        if any(isinstance(value, np.ndarray | dict) or _is_arrow_map(value) for value in table[name])
    ]
    return table.assign(**{name: table[name].map(_convert_cell_arrays_to_lists) for name in found}) if found else table


def _is_arrow_map(value: Any) -> bool:
    """Whether a cell is a map of Arrow as PyArrow hands it over: a list of pairs of a key and a value."""
    return isinstance(value, list) and any(isinstance(one, tuple) for one in value)


def _convert_cell_arrays_to_lists(value: Any) -> Any:
    if _is_arrow_map(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
        return {str(key): _convert_cell_arrays_to_lists(one) for key, one in value}
    if isinstance(value, np.ndarray | list):
        return [_convert_cell_arrays_to_lists(one) for one in value]
    return {key: _convert_cell_arrays_to_lists(one) for key, one in value.items()} if isinstance(value, dict) else value


def _join_column_levels(name: str) -> str:
    """``('judge', 'gpt4')``, as pandas writes columns of several levels, as ``judge.gpt4``."""
    levels = ast.literal_eval(name) if re.fullmatch(r"\(('[^']*', )+'[^']*'\)", name) else (name,)
    return ".".join(level for level in levels if level)


def _has_only_one_item_lists(values: pd.Series) -> bool:
    """Whether all lists of a column hold one item, or none: it is as if there were no lists."""
    lists = [value for value in values if isinstance(value, list)] if values.dtype == object else []
    others = [value for value in values if not isinstance(value, list) and not is_missing_value(value)]
    if any(
        {"name", "key"} & {*one} and {"value", "score"} & {*one}
        for cell in lists
        for one in cell
        if isinstance(one, dict)
    ):
        return False  # evaluators by name, of which only one is there
    return bool(lists) and not others and all(len(value) < 2 for value in lists) and any(lists)


def _unwrap_lists(values: pd.Series) -> pd.Series:
    unwrapped = [value[0] if isinstance(value, list) and value else None for value in values]
    return pd.Series(unwrapped, index=values.index, dtype="object")
