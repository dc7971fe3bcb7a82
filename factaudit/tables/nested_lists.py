"""Lists within rows, mapped by paths: ``annotations[].label`` is what each of a row's annotations says, ``votes[]``
each word of a list.

A list becomes a row for each of its items, with a column for each of their keys under its path: from there on it is a
table in the long form. Where a path gives the claims (``statements[].text``), each item is a claim of its own; else all
of them are about the claim of their row, and who said what another path names, or the place in the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.tables.column_mapping import ColumnMapping

#: In a table of such rows: the number of the row that each item stood in.
ROW_COLUMN = "row of the list"
_LIST_MARK = "[]"
#: What a path can give, and the column of ours that says whose it is.
_OWNERS = {"label": "annotator", "score": "evaluator", "prediction": "evaluator"}


def has_nested_paths(mapping: ColumnMapping, columns: Iterable[str] = ()) -> bool:
    """Whether a mapping takes columns from lists. columns: of a table, whose lists may have become rows already."""
    return bool({*_list_paths(mapping).values()} - {*columns})


def _split_path(path: str) -> tuple[str, str]:
    """The list of a path, and the key in its objects ("" where the list holds no objects)."""
    list_name, _, key = path.partition(_LIST_MARK)
    return list_name, key.removeprefix(".")


def _list_paths(mapping: ColumnMapping) -> dict[str, str]:
    """The columns of ours that a mapping takes from a list, with their paths. Raises `UsageError` for others."""
    paths = {
        ours: path
        for ours, path in mapping.columns.items()
        if isinstance(path, str) and (f"{_LIST_MARK}." in path or path.endswith(_LIST_MARK))
    }
    for ours, path in paths.items():
        if "claim" not in paths and ours not in (*_OWNERS, *_OWNERS.values()):
            expected = ", ".join(dict.fromkeys(("claim", *_OWNERS, *_OWNERS.values())))
            raise UsageError(f"--columns {ours}={path}: a list gives {expected}, a value for each of its objects")
    return paths


def spread_nested_lists(
    table: pd.DataFrame, source_name: str, mapping: ColumnMapping
) -> tuple[pd.DataFrame, ColumnMapping]:
    """The table with a row for each item of the lists that are mapped, and the mapping with who said each.

    Raises `InputError` for a list or a key that is nowhere, with those that there are.
    """
    paths = _list_paths(mapping)
    split = [_split_path(path) for path in paths.values()]
    claims = _split_path(paths["claim"])[0] if "claim" in paths else None
    owners: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    for name in dict.fromkeys(one for one, _ in split) if claims is None else [claims]:
        keys = [key for one, key in split if one == name]
        if claims is None:
            mine = [_OWNERS[ours] for ours, path in paths.items() if ours in _OWNERS and _split_path(path)[0] == name]
            owners |= {ours: f"{name}[] #" for ours in mine if ours not in mapping.columns}
        rows += _spread_list(table, source_name, name, keys, claims is None)
    spread = pd.DataFrame(rows, dtype="object").drop(columns=[one for one, _ in split], errors="ignore")
    spread = spread.drop(
        columns=[f"{one}[] #" for one, _ in split if f"{one}[] #" not in owners.values()], errors="ignore"
    )
    if claims is not None:
        spread[paths["claim"]] = spread[paths["claim"]].map(join_words_of_claim)
    return spread, mapping.model_copy(update={"columns": {**mapping.columns, **owners}})


def _spread_list(
    table: pd.DataFrame, source_name: str, name: str, keys: Sequence[str], keeps_rows: bool
) -> list[dict[str, Any]]:
    """A row for each item of a list. keeps_rows: it is about its row's claim, and only the keys that are mapped count;
    a row whose list is empty is one, too."""
    parallel = [] if keeps_rows else list_parallel_lists(table, name)
    cells = [flatten_nested_objects(value) for value in table[name]] if name in table else []
    if not any(cells):
        lists = [str(one) for one in table.columns if any(flatten_nested_objects(value) for value in table[one])]
        known = suggest_known_name(name, lists) if lists else " (no column holds lists of objects)"
        raise InputError(source_name, [Problem(f"no list {name!r} in it{known}")])
    known_keys = list(dict.fromkeys(key for objects in cells for one in objects for key in one))
    for key in keys:
        if key not in known_keys:
            listed = [_join_path(name, one) for one in known_keys]
            message = f"no path {_join_path(name, key)!r} in it{suggest_known_name(_join_path(name, key), listed)}"
            raise InputError(source_name, [Problem(message)])
    rows: list[dict[str, Any]] = []
    others = table.drop(columns=list(parallel)).to_dict("records")
    for at, (whole, objects) in enumerate(zip(others, cells, strict=True)):
        row = {str(column): cell for column, cell in whole.items()} | ({ROW_COLUMN: at} if keeps_rows else {})
        for place, one in enumerate(objects):
            item = {_join_path(name, key): value for key, value in one.items() if key in keys or not keeps_rows}
            item |= {other: table[other].iloc[at][place] for other in parallel}
            rows.append(row | item | ({f"{name}[] #": str(place + 1)} if keeps_rows else {}))
        if not objects and keeps_rows:
            rows.append(row)
    return rows


def join_words_of_claim(value: Any) -> Any:
    """A claim that is a list of words (a triplet of subject, relation and object) as one text; others as they are."""
    is_words = isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
    return " ".join(value) if is_words else value


def list_parallel_lists(table: pd.DataFrame, list_name: str) -> list[str]:
    """The columns of lists that have in each row a number or a word for each item of another column's list."""
    lists = table[list_name].tolist() if list_name in table else [None]
    if not all(isinstance(cell, list) for cell in lists):
        return []
    found = []
    for name in (str(name) for name in table.columns if name != list_name):
        pairs = [*zip(lists, table[name].tolist(), strict=True)]
        if all(isinstance(cell, list) and len(cell) == len(items) for items, cell in pairs) and all(
            one is None or isinstance(one, int | float) or (isinstance(one, str) and " " not in one.strip())
            for _, cell in pairs
            for one in cell
        ):
            found.append(name)
    return found


def _join_path(list_name: str, key: str) -> str:
    return f"{list_name}{_LIST_MARK}" + (f".{key}" if key else "")


def flatten_nested_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, flat, and each word or number as the object's value under ""; none of a mixed list."""
    if isinstance(value, list) and all(isinstance(one, str | int | float) for one in value):
        return [{"": one} for one in value]
    if not isinstance(value, list) or not all(isinstance(one, Mapping) for one in value):
        return []
    return [_flatten_object(one) for one in value]


def _flatten_object(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """An object within which others are, and lists of a single item, as one of plain values (``result.value``)."""
    found: dict[str, Any] = {}
    for key, inner in value.items():
        while isinstance(inner, list) and len(inner) == 1:
            inner = inner[0]
        found |= _flatten_object(inner, f"{prefix}{key}.") if isinstance(inner, Mapping) else {f"{prefix}{key}": inner}
    return found
