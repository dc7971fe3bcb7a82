"""Objects and lists in the cells of a table: objects become columns of their own (``output.score``), lists stay.

Cells may hold them as values (JSON, Parquet, frames) or as text (CSV): as JSON, or as Python or NumPy print them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import parse_printed_value
from factaudit.tables.column_parsing import is_dictionary_encoded
from factaudit.tables.documents import list_shared_texts
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import parse_label_word

#: Columns of ours whose cells are text though it is JSON.
_AS_TEXT = ("raw", "chunk_scores")
#: Around the JSON of a model's reply.
_CODE_FENCE = re.compile(r"^```\w*\s*|\s*```$")
#: Several words in a cell; a comma alone may be a decimal one.
_VOTES = re.compile(r"[^;|,]{1,30}(?:\s*[;|]\s*[^;|,]{1,30}|, [^;|,]{1,30}|,[^\W\d][^;|,]{0,29})+|[01](?:,[01]){2,}")
#: Fewer keys of an object may be names of fields that few rows have.
_MIN_IDS = 4
#: How deep objects are taken apart.
_MAX_DEPTH = 6


def flatten_columns(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each field of the objects in its cells, one level after the other."""
    if table.columns.duplicated().any():
        return table
    found: dict[str, Any] = {}
    for name, values in table.items():
        _flatten_column(_join_levels(str(name)), values, found, _MAX_DEPTH)
    return pd.DataFrame(found, index=table.index)


def _flatten_column(name: str, values: pd.Series, found: dict[str, Any], depth: int) -> None:
    if is_dictionary_encoded(values):
        values = pd.Series(list_shared_texts(values), index=values.index, dtype="object")
    if depth and (values.dtype == object or isinstance(values.dtype, pd.StringDtype)):
        cells = [_list_arrays(cell) for cell in values] if values.dtype == object else values.tolist()
        parsed = _parse_texts(name, cells)
        while (unwrapped := _unwrap_single_items(parsed)) is not parsed:
            parsed = unwrapped
        objects = [cell for cell in parsed if isinstance(cell, dict)]
        is_nested = bool(objects) and all(isinstance(cell, dict) or is_missing_value(cell) for cell in parsed)
        if is_nested and _are_by_id(objects):  # SciFact's evidence by document
            listed = [[one for value in (cell or {}).values() for one in _list_of(value)] for cell in parsed]
            _flatten_column(name, pd.Series(listed, index=values.index, dtype="object"), found, depth - 1)
            return
        if is_nested:
            for key in dict.fromkeys(str(key) for cell in objects for key in cell):
                own = [cell.get(key) if isinstance(cell, dict) else None for cell in parsed]
                _flatten_column(f"{name}.{key}", pd.Series(own, index=values.index, dtype="object"), found, depth - 1)
            return
        if values.dtype == object or parsed is not cells:
            values = pd.Series(parsed, index=values.index, dtype="object")
    found[name] = values


def _join_levels(name: str) -> str:
    """``('judge', 'gpt4')``, as pandas writes columns of several levels, as ``judge.gpt4``."""
    levels = ast.literal_eval(name) if re.fullmatch(r"\(('[^']*', )+'[^']*'\)", name) else (name,)
    return ".".join(level for level in levels if level)


def _list_arrays(value: Any) -> Any:
    """A cell with lists and objects where Arrow's and Parquet's have become arrays and pairs, at any depth."""
    if isinstance(value, np.ndarray | list):
        if len(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return {str(key): _list_arrays(one) for key, one in value}
        return [_list_arrays(one) for one in value]
    return {key: _list_arrays(one) for key, one in value.items()} if isinstance(value, dict) else value


def _parse_texts(name: str, cells: list[Any]) -> list[Any]:
    """Cells as the objects, or the lists of texts or decimals, that all of them are as text; else as they are."""
    first = next((cell for cell in cells if not is_missing_value(cell)), None)
    text = _CODE_FENCE.sub("", first.strip()) if isinstance(first, str) else ""
    parse: Callable[[str], Any] | None = None
    if text[:1] + text[-1:] in ("{}", "[]") or re.match(r"(np\.|numpy\.)?(array|list)\(\[", text):
        parse = _parse_object
    elif text and all(is_missing_value(cell) or _VOTES.fullmatch(str(cell)) for cell in cells):
        parse = _split_votes
    if parse is None or name in _AS_TEXT:
        return cells
    parsed = [parse(cell) if isinstance(cell, str) else cell for cell in cells]
    is_whole = all(is_missing_value(cell) or _is_nested(one) for cell, one in zip(cells, parsed, strict=True))
    return parsed if is_whole else cells


def _parse_object(text: str) -> Any:
    return parse_printed_value(_CODE_FENCE.sub("", text.strip()))


def _split_votes(text: str) -> list[str] | None:
    """The words of a cell like ``yes; no; yes``, as several people said them; None where they are no such."""
    words = [word.strip() for word in re.split(r"[;|,]", text)]
    return words if all(parse_label_word(word) is not None for word in words) else None


def _is_nested(value: Any) -> bool:
    """Whether a value is an object, or a list of texts, objects, decimals, or 0 and 1 (``[3]`` may be a reference)."""
    if isinstance(value, list):
        return any(all(isinstance(one, kind) for one in value) for kind in (str, float, dict)) or all(
            one in (0, 1) for one in value
        )
    return isinstance(value, dict)


def _unwrap_single_items(cells: list[Any]) -> list[Any]:
    """Cells of which no list holds more than one item as if there were no lists."""
    lists = [cell for cell in cells if isinstance(cell, list)]
    is_single = any(lists) and all(len(cell) < 2 for cell in lists)
    if not is_single or any(not isinstance(cell, list) and not is_missing_value(cell) for cell in cells):
        return cells
    if any(isinstance(cell[0], dict) and _names_evaluator(cell[0]) for cell in lists if cell):
        return cells  # evaluators by name, of which only one is there
    return [cell[0] if isinstance(cell, list) and cell else None for cell in cells]


def _names_evaluator(value: dict[str, Any]) -> bool:
    return bool({"name", "key"} & {*value}) and bool({"value", "score"} & {*value})


def _are_by_id(objects: Sequence[dict[Any, Any]]) -> bool:
    """Whether objects have objects under keys that are ids, others in each row."""
    keys = Counter(key for cell in objects for key in cell)
    values = [one for cell in objects for value in cell.values() for one in _list_of(value)]
    is_varied = len(keys) > _MIN_IDS and max(keys.values()) * 2 <= len(objects)
    return is_varied and all(isinstance(one, dict) for one in values)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
