"""Turns objects in the cells of a table into columns of their own (``output.score``). Lists stay.

Cells may hold objects and lists as values (JSON, Parquet, frames) or as text (CSV): as JSON, or as
Python or NumPy print them. A list of passages is a document. Lists of judgements are not read: a
table whose labels or verdicts may be in a list is refused (`factaudit.tables.role_questions`).
"""

from __future__ import annotations

import ast
import re
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import parse_printed_value
from factaudit.tables.plain_values import is_missing_value

#: Columns whose cells stay text although it is JSON.
_AS_TEXT = ("raw", "chunk_scores")
#: The marks around the JSON in a model's reply.
_CODE_FENCE = re.compile(r"^```\w*\s*|\s*```$")
_NESTED_TEXT = re.compile(r"\{.*\}|\[.*\]|(np\.|numpy\.)?(array|list)\(\[.*", re.DOTALL)
#: The number of levels that become columns.
_MAX_DEPTH = 6


def flatten_columns(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column for each field of the objects in its cells, level by level."""
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
    parsed = _parse_texts(name, cells)
    objects = [cell for cell in parsed if isinstance(cell, dict)]
    if values.dtype == object or parsed is not cells:
        found[name] = pd.Series(parsed, index=values.index, dtype="object")
    if not objects or not all(isinstance(cell, dict) or is_missing_value(cell) for cell in parsed):
        return
    del found[name]
    for key in dict.fromkeys(str(key) for cell in objects for key in cell):
        own = [cell.get(key) if isinstance(cell, dict) else None for cell in parsed]
        _flatten_column(
            f"{name}.{key}", pd.Series(own, index=values.index, dtype="object"), found, depth - 1
        )


def _join_levels(name: str) -> str:
    """Names of several levels, as pandas writes them (``('judge', 'gpt4')``), as ``judge.gpt4``."""
    levels = ast.literal_eval(name) if re.fullmatch(r"\(('[^']*', )+'[^']*'\)", name) else (name,)
    return ".".join(level for level in levels if level)


def _list_arrays(value: Any) -> Any:
    """A cell with lists and objects in place of the arrays and pairs of Arrow and Parquet, at any
    depth."""
    if isinstance(value, np.ndarray | list):
        if len(value) and all(isinstance(one, tuple) and len(one) == 2 for one in value):
            return {str(key): _list_arrays(one) for key, one in value}
        return [_list_arrays(one) for one in value]
    return (
        {key: _list_arrays(one) for key, one in value.items()} if isinstance(value, dict) else value
    )


def _parse_texts(name: str, cells: list[Any]) -> list[Any]:
    """Cells as the objects, or the lists of texts or decimals, that all of them hold as text; else
    unchanged."""
    present = [cell for cell in cells if not is_missing_value(cell)]
    if name in _AS_TEXT or not present or not isinstance(present[0], str):
        return cells
    if not _NESTED_TEXT.fullmatch(_strip_code_fence(present[0])):
        return cells
    parsed = [
        parse_printed_value(_strip_code_fence(cell)) if isinstance(cell, str) else cell
        for cell in cells
    ]
    is_whole = all(
        is_missing_value(cell) or _is_nested(one) for cell, one in zip(cells, parsed, strict=True)
    )
    return parsed if is_whole else cells


def _strip_code_fence(text: str) -> str:
    return _CODE_FENCE.sub("", text.strip())


def _is_nested(value: Any) -> bool:
    """Whether a value is an object, or a list of texts, objects, decimals, or 0 and 1 (``[3]`` may
    be a reference)."""
    if isinstance(value, list):
        kinds = {type(one) for one in value}
        return len(kinds) < 2 and (
            kinds <= {str, float, dict} or all(one in (0, 1) for one in value)
        )
    return isinstance(value, dict)
