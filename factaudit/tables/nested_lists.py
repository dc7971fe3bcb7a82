"""Lists within rows, mapped by paths: ``annotations[].label`` is what each of a row's annotations says, ``votes[]``
each word of a list.

A list becomes a column for each annotator (or evaluator): who it is, another path says (``annotations[].by.name``),
else the place in the list. Where a path gives the claims (``statements[].text``), each object becomes a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.tables.column_kinds import is_name_of_person, list_measures
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping, match_column_patterns

_LIST_MARK = "[]"
#: What a path can give, and the column of ours that says whose it is.
_OWNERS = {"label": "annotator", "score": "evaluator", "prediction": "evaluator"}


def has_nested_paths(mapping: ColumnMapping, columns: Iterable[str] = ()) -> bool:
    """Whether a mapping takes columns from lists. columns: of a table, whose lists may have become rows already."""
    return bool({*_list_nested_paths(mapping).values()} - {*columns})


def is_nested_path(path: str) -> bool:
    """Whether a path leads into a list.

    >>> is_nested_path("annotations[].label"), is_nested_path("votes[]"), is_nested_path("judge[0]")
    (True, True, False)
    """
    return f"{_LIST_MARK}." in path or path.endswith(_LIST_MARK)


def _split_nested_path(path: str) -> tuple[str, str]:
    """The list of a path, and the key in its objects ("" where the list holds no objects)."""
    list_name, _, key = path.partition(_LIST_MARK)
    return list_name, key.removeprefix(".")


def _list_nested_paths(mapping: ColumnMapping) -> dict[str, str]:
    """The columns of ours that a mapping takes from lists, with their paths. Raises `UsageError` for others."""
    paths = {ours: path for ours, path in mapping.columns.items() if isinstance(path, str) and is_nested_path(path)}
    for ours, path in paths.items():
        if "claim" not in paths and ours not in (*_OWNERS, *_OWNERS.values()):
            expected = ", ".join(dict.fromkeys(("claim", *_OWNERS, *_OWNERS.values())))
            raise UsageError(f"--columns {ours}={path}: a list gives {expected}, a value for each of its objects")
    return paths


def spread_nested_lists(
    table: pd.DataFrame, source_name: str, mapping: ColumnMapping
) -> tuple[pd.DataFrame, ColumnMapping]:
    """The table with a column for each annotator or evaluator of the lists that are mapped, and the mapping to these.

    Raises `InputError` for a list or a key that is nowhere, with those that there are.
    """
    paths = _list_nested_paths(mapping)
    if "claim" in paths:
        return _spread_objects_over_rows(table, source_name, paths), mapping
    columns: dict[str, list[Any]] = {}
    annotators, evaluators = dict(mapping.annotators), dict(mapping.evaluators)
    for ours, owner in _OWNERS.items():
        if ours not in paths:
            continue
        list_name, key = _split_nested_path(paths[ours])
        owner_path = paths.get(owner)
        rows = [flatten_nested_objects(value) for value in _get_list_column(table, list_name, source_name)]
        wanted = [key] if owner_path is None else [key, _split_nested_path(owner_path)[1]]
        _check_keys_of_nested_objects(rows, wanted, list_name, source_name)
        for at, objects in enumerate(rows):
            for number, one in enumerate(objects, start=1):
                said = None if owner_path is None else one.get(wanted[1])
                name = str(number if said is None or said == "" else said)  # a worker may be called 0
                if name in mapping.ignore or (ours != "label" and list_measures({name, ""})):
                    continue
                cells = columns.setdefault(f"{paths[ours]} of {name}", [None] * len(table))
                if cells[at] is not None:
                    message = (
                        f"a list {list_name!r} has two of {name!r}: say who judged by another path, or leave one out"
                    )
                    raise InputError(source_name, [Problem(message, at + 1)])
                cells[at] = one.get(key)
                if ours == "label" or is_name_of_person(name) or match_column_patterns([name], mapping.people):
                    annotators[name] = f"{paths[ours]} of {name}"
                else:
                    known = evaluators.get(name, EvaluatorColumnMapping())
                    evaluators[name] = known.model_copy(update={ours: f"{paths[ours]} of {name}"})
    lists = {_split_nested_path(path)[0] for path in paths.values()}
    spread = pd.DataFrame(columns, index=table.index, dtype="object")
    kept = {ours: theirs for ours, theirs in mapping.columns.items() if ours not in paths}
    update = {"columns": kept, "annotators": annotators, "evaluators": evaluators}
    return pd.concat([table.drop(columns=list(lists)), spread], axis=1), mapping.model_copy(update=update)


def _spread_objects_over_rows(table: pd.DataFrame, source_name: str, paths: Mapping[str, str]) -> pd.DataFrame:
    """A row for each object of the list that the claims stand in, its keys as columns (``statements[].text``)."""
    list_name, _ = _split_nested_path(paths["claim"])
    cells = [flatten_nested_objects(value) for value in _get_list_column(table, list_name, source_name)]
    wanted = [key for name, key in map(_split_nested_path, paths.values()) if name == list_name]
    _check_keys_of_nested_objects(cells, wanted, list_name, source_name)
    parallel = list_parallel_lists(table, list_name)
    others = table.drop(columns=[list_name, *parallel]).to_dict("records")
    rows = []
    for at, (row, objects) in enumerate(zip(others, cells, strict=True)):
        for place, one in enumerate(objects):
            keyed = {_join_nested_path(list_name, key): value for key, value in one.items()}
            keyed[paths["claim"]] = join_words_of_claim(keyed.get(paths["claim"]))
            rows.append(row | keyed | {name: table[name].iloc[at][place] for name in parallel})
    return pd.DataFrame(rows, dtype="object")


def join_words_of_claim(value: Any) -> Any:
    """A claim that is a list of words (a triplet of subject, relation and object) as one text; others as they are."""
    is_words = isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
    return " ".join(value) if is_words else value


def list_parallel_lists(table: pd.DataFrame, list_name: str) -> list[str]:
    """The columns of lists that have in each row a number or a word for each item of another column's list."""
    lists = table[list_name].tolist()
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


def _join_nested_path(list_name: str, key: str) -> str:
    return f"{list_name}{_LIST_MARK}" + (f".{key}" if key else "")


def _get_list_column(table: pd.DataFrame, list_name: str, source_name: str) -> pd.Series:
    if list_name not in table or not any(flatten_nested_objects(value) for value in table[list_name]):
        lists = [str(name) for name in table.columns if any(flatten_nested_objects(value) for value in table[name])]
        known = suggest_known_name(list_name, lists) if lists else " (no column holds lists of objects)"
        raise InputError(source_name, [Problem(f"no list {list_name!r} in it{known}")])
    return table[list_name]


def _check_keys_of_nested_objects(
    rows: Sequence[Sequence[Mapping[str, Any]]], keys: Sequence[str], list_name: str, source_name: str
) -> None:
    known = list(dict.fromkeys(_join_nested_path(list_name, key) for objects in rows for one in objects for key in one))
    for path in (_join_nested_path(list_name, key) for key in keys):
        if path not in known:
            raise InputError(source_name, [Problem(f"no path {path!r} in it{suggest_known_name(path, known)}")])


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
