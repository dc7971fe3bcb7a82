"""Turns the values of a table into plain Python values, as JSON needs them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd


def list_plain_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dictionaries for JSON: missing values are None, numbers are Python's own."""
    columns = {
        name: [make_plain_value(value) for value in table[name].tolist()] for name in table.columns
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def make_plain_value(value: Any) -> Any:
    """The value with None in place of missing values, and with Python's own lists and numbers."""
    if is_missing_value(value):
        return None
    if isinstance(value, np.ndarray):
        return [make_plain_value(item) for item in value.tolist()]
    if isinstance(value, list):
        return [make_plain_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): make_plain_value(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def is_missing_value(value: Any) -> bool:
    """Whether a value is None, NaN, or one of the two null values of pandas."""
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def dump_json_line(value: Any) -> str:
    """One line of JSON. Values that JSON does not know (times, decimals) become text."""
    return json.dumps(make_plain_value(value), ensure_ascii=False, default=_encode_foreign_value)


def _encode_foreign_value(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)


def clear_blank_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with null in place of text that is only white space: a blank label is no label."""
    table = table.copy(deep=False)
    for column in table.columns[~table.columns.duplicated(keep=False)]:
        if table[column].dtype == object or isinstance(table[column].dtype, pd.StringDtype):
            blank = (
                table[column]
                .map(lambda cell: isinstance(cell, str) and not cell.strip())
                .astype(bool)
            )
            if blank.any():
                table[column] = table[column].mask(blank, None)
    return table
