"""Objects and lists in the cells of a table: objects become columns of their own
(``output.score``), lists stay.

Cells may hold them as values (JSON, Parquet, frames) or as text (CSV): as JSON, or as Python or
NumPy print them. The items of a list become rows where a mapping names a path into it
(``annotations[].label``, ``votes[]``): from there on the table is one in the long form. Where a
path gives the claims (``statements[].text``), each item is a claim of its own; else all are about
the claim of their row, and who said what another path names, or the place in the list.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.tables.cell_values import parse_printed_value
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import parse_label_word

#: In a table of a list's items: the number of the row that each item stood in.
ROW_COLUMN = "row of the list"
_LIST_MARK = "[]"
#: What a path can give, and the column of ours that says whose it is.
_OWNERS = {"label": "annotator", "score": "evaluator", "prediction": "evaluator"}
#: Columns of ours whose cells are text though it is JSON.
_AS_TEXT = ("raw", "chunk_scores")
#: Around the JSON of a model's reply.
_CODE_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_NESTED_TEXT = re.compile(r"\{.*\}|\[.*\]|(np\.|numpy\.)?(array|list)\(\[.*", re.DOTALL)
#: Several words in a cell; a comma alone may be a decimal one.
_VOTES = re.compile(
    r"[^;|,]{1,30}(?:\s*[;|]\s*[^;|,]{1,30}|, [^;|,]{1,30}|,[^\W\d][^;|,]{0,29})+|[01](?:,[01]){2,}"
)
#: Fewer keys of an object may be names of fields that few rows have.
_MIN_IDS = 4
#: How deep objects are taken apart.
_MAX_DEPTH = 6


def flatten_columns(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each field of the objects in its cells, one level after the
    other."""
    if table.columns.duplicated().any():
        return table
    found: dict[str, Any] = {}
    for name, values in table.items():
        _flatten_column(_join_levels(str(name)), values, found, _MAX_DEPTH)
    return pd.DataFrame(found, index=table.index)


def _flatten_column(name: str, values: pd.Series, found: dict[str, Any], depth: int) -> None:
    found[name] = values
    if not depth or not (values.dtype == object or isinstance(values.dtype, pd.StringDtype)):
        return
    cells = [_list_arrays(cell) for cell in values] if values.dtype == object else values.tolist()
    parsed = _unwrap_single_items(_parse_texts(name, cells))
    objects = [cell for cell in parsed if isinstance(cell, dict)]
    if values.dtype == object or parsed is not cells:
        found[name] = pd.Series(parsed, index=values.index, dtype="object")
    if not objects or not all(isinstance(cell, dict) or is_missing_value(cell) for cell in parsed):
        return
    del found[name]
    if _are_by_id(objects):  # SciFact's evidence by document
        listed = [
            [one for value in (cell or {}).values() for one in _list_of(value)] for cell in parsed
        ]
        _flatten_column(
            name, pd.Series(listed, index=values.index, dtype="object"), found, depth - 1
        )
        return
    for key in dict.fromkeys(str(key) for cell in objects for key in cell):
        own = [cell.get(key) if isinstance(cell, dict) else None for cell in parsed]
        _flatten_column(
            f"{name}.{key}", pd.Series(own, index=values.index, dtype="object"), found, depth - 1
        )


def _join_levels(name: str) -> str:
    """``('judge', 'gpt4')``, as pandas writes columns of several levels, as ``judge.gpt4``."""
    levels = ast.literal_eval(name) if re.fullmatch(r"\(('[^']*', )+'[^']*'\)", name) else (name,)
    return ".".join(level for level in levels if level)


def _list_arrays(value: Any) -> Any:
    """A cell with lists and objects where Arrow's and Parquet's have become arrays and pairs, at
    any depth."""
    if isinstance(value, np.ndarray | list):
        if len(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return {str(key): _list_arrays(one) for key, one in value}
        return [_list_arrays(one) for one in value]
    return (
        {key: _list_arrays(one) for key, one in value.items()} if isinstance(value, dict) else value
    )


def _parse_texts(name: str, cells: list[Any]) -> list[Any]:
    """Cells as the objects, or the lists of texts or decimals, that all of them are as text; else
    as they are."""
    present = [cell for cell in cells if not is_missing_value(cell)]
    text = (
        _CODE_FENCE.sub("", present[0].strip()) if present and isinstance(present[0], str) else ""
    )
    if name in _AS_TEXT or not text:
        return cells
    if _NESTED_TEXT.fullmatch(text):
        parsed = [
            parse_printed_value(_CODE_FENCE.sub("", cell.strip()))
            if isinstance(cell, str)
            else cell
            for cell in cells
        ]
    elif all(_VOTES.fullmatch(str(cell)) for cell in present):
        parsed = [_split_votes(cell) if isinstance(cell, str) else cell for cell in cells]
    else:
        return cells
    is_whole = all(
        is_missing_value(cell) or _is_nested(one) for cell, one in zip(cells, parsed, strict=True)
    )
    return parsed if is_whole else cells


def _split_votes(text: str) -> list[str] | None:
    """The words of a cell like ``yes; no; yes``, as several people said them; None where they are
    no such."""
    words = [word.strip() for word in re.split(r"[;|,]", text)]
    return words if all(parse_label_word(word) is not None for word in words) else None


def _is_nested(value: Any) -> bool:
    """Whether a value is an object, or a list of texts, objects, decimals, or 0 and 1 (``[3]`` may
    be a reference)."""
    if isinstance(value, list):
        kinds = {type(one) for one in value}
        return len(kinds) < 2 and (
            kinds <= {str, float, dict} or all(one in (0, 1) for one in value)
        )
    return isinstance(value, dict)


def _unwrap_single_items(cells: list[Any]) -> list[Any]:
    """Cells of which no list holds more than one item as if there were no lists; not evaluators by
    name, of which only one is there."""
    lists = [cell for cell in cells if isinstance(cell, list)]
    if not any(lists) or not all(
        isinstance(cell, list) or is_missing_value(cell) for cell in cells
    ):
        return cells
    items = [cell[0] for cell in lists if cell]
    is_named = any(
        {"name", "key"} & {*one} and {"value", "score"} & {*one}
        for one in items
        if isinstance(one, dict)
    )
    if is_named or max(map(len, lists)) > 1:
        return cells
    return _unwrap_single_items(
        [cell[0] if isinstance(cell, list) and cell else None for cell in cells]
    )


def _are_by_id(objects: Sequence[dict[Any, Any]]) -> bool:
    """Whether objects have objects under keys that are ids, others in each row."""
    keys = Counter(key for cell in objects for key in cell)
    is_varied = len(keys) > _MIN_IDS and max(keys.values()) * 2 <= len(objects)
    return is_varied and all(
        isinstance(one, dict)
        for cell in objects
        for value in cell.values()
        for one in _list_of(value)
    )


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# Items of lists as rows
# ------------------------------------------------------------


def has_nested_paths(mapping: ColumnMapping, columns: Iterable[str] = ()) -> bool:
    """Whether a mapping takes columns from lists. columns: of a table, whose lists may have become
    rows already."""
    return bool({*_list_paths(mapping).values()} - {*columns})


def _list_paths(mapping: ColumnMapping) -> dict[str, str]:
    """The columns of ours that a mapping takes from a list, with their paths. Raises `UsageError`
    for others."""
    paths = {
        ours: path
        for ours, path in mapping.columns.items()
        if isinstance(path, str) and _LIST_MARK in path
    }
    known = ["claim", *_OWNERS, *dict.fromkeys(_OWNERS.values())]
    for ours, path in paths.items():
        if "claim" not in paths and ours not in known:
            listed = ", ".join(known)
            raise UsageError(
                f"--columns {ours}={path}: a list gives {listed}, a value for each of its objects"
            )
    return paths


def spread_nested_lists(
    table: pd.DataFrame, source_name: str, mapping: ColumnMapping
) -> tuple[pd.DataFrame, ColumnMapping]:
    """The table with a row for each item of the lists that are mapped, and the mapping with who
    said each.

    Raises `InputError` for a list or a key that is nowhere, with those that there are.
    """
    paths = _list_paths(mapping)
    names = [path.partition(_LIST_MARK)[0] for path in paths.values()]
    if "claim" in paths:
        name, path = paths["claim"].partition(_LIST_MARK)[0], paths["claim"]
        rows = _spread_list(table, source_name, name, [path], False)
        spread = pd.DataFrame(rows, dtype="object").drop(columns=names, errors="ignore")
        spread[path] = spread[path].map(join_words_of_claim)
        return spread, mapping
    owners: dict[str, str] = {}
    for ours, path in paths.items():
        if ours in _OWNERS and _OWNERS[ours] not in mapping.columns:
            owners[_OWNERS[ours]] = f"{path.partition(_LIST_MARK)[0]}[] #"
    rows = []
    for name in dict.fromkeys(names):
        keys = [path for path in paths.values() if path.partition(_LIST_MARK)[0] == name]
        rows += _spread_list(table, source_name, name, [*keys, f"{name}[] #"], True)
    spread = pd.DataFrame(rows, dtype="object").drop(columns=names, errors="ignore")
    unused = [f"{name}[] #" for name in names if f"{name}[] #" not in owners.values()]
    spread = spread.drop(columns=unused, errors="ignore")
    return spread, mapping.model_copy(update={"columns": {**mapping.columns, **owners}})


def _spread_list(
    table: pd.DataFrame, source_name: str, name: str, paths: Sequence[str], keeps_rows: bool
) -> list[dict[str, Any]]:
    """A row for each item of a list, whose keys are columns under its path, and whose place is
    ``list[] #``.

    keeps_rows: it is about its row's claim, and only the paths that are mapped count; a row whose
    list is empty is one, too.
    """
    lists = [flatten_nested_objects(value) for value in table[name]] if name in table else []
    if not any(lists):
        known = [
            str(one)
            for one in table.columns
            if any(flatten_nested_objects(value) for value in table[one])
        ]
        listed = suggest_known_name(name, known) if known else " (no column holds lists of objects)"
        raise InputError(source_name, [Problem(f"no list {name!r} in it{listed}")])
    found: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    for at, (whole, items) in enumerate(zip(table.to_dict("records"), lists, strict=True)):
        row = {str(column): cell for column, cell in whole.items()} | (
            {ROW_COLUMN: at} if keeps_rows else {}
        )
        for place, one in enumerate(items, start=1):
            item = {
                f"{name}{_LIST_MARK}.{key}".removesuffix("."): value for key, value in one.items()
            }
            found |= dict.fromkeys(item)
            item |= {f"{name}[] #": str(place)} if keeps_rows else {}
            rows.append(
                row
                | {path: value for path, value in item.items() if path in paths or not keeps_rows}
            )
        rows += [row] if keeps_rows and not items else []
    for path in paths:
        if path not in found and not path.endswith("#"):
            raise InputError(
                source_name,
                [Problem(f"no path {path!r} in it{suggest_known_name(path, [*found])}")],
            )
    return rows


def join_words_of_claim(value: Any) -> Any:
    """A claim that is a list of words (a triplet of subject, relation and object) as one text;
    others as they are."""
    is_words = (
        isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
    )
    return " ".join(value) if is_words else value


def flatten_nested_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, flat, and each word or number as the object's value under ""; none of
    a mixed list."""
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return [{"": one} for one in value]
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return []
    return [_flatten_object(one) for one in value]


def _flatten_object(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object within which others are, and lists of a single item, as one of plain values
    (``result.value``)."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        while isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]
        found |= (
            _flatten_object(inner, f"{prefix}{key}.")
            if isinstance(inner, Mapping)
            else {f"{prefix}{key}": inner}
        )
    return found
