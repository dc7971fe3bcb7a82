"""Brings single columns into their standard form. A value without one becomes null, and its row is
reported.

Each function takes the column as it was read, or None if the table has no such column.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from factaudit.tables.plain_values import make_plain_value
from factaudit.tables.problems import TableProblemCollector

#: Text with NaN for null. With the name ``"str"``, pandas 2 would turn null into the text "None".
TEXT_DTYPE = pd.StringDtype(na_value=np.nan)
_BOOLEAN_WORDS = {"True": 1, "False": 0, "true": 1, "false": 0}


def parse_text_column(values: pd.Series, column: str, problems: TableProblemCollector) -> pd.Series:
    """Text as it is, and whole numbers (a doc_id of 15596) as their digits. Anything else is a
    problem."""
    if isinstance(values.dtype, pd.StringDtype):
        return values.astype(TEXT_DTYPE)
    objects = values.astype(object)
    texts = objects.map(_format_whole_number, na_action="ignore")
    good = texts.notna() | values.isna()
    problems.add_where(~good, column, "expected text", objects)
    return texts.where(texts.notna(), None).astype(TEXT_DTYPE)


def infer_column_type(values: pd.Series) -> pd.Series:
    """An extra column as it is; a column of objects with the type that all its values have."""
    if values.dtype != object:
        return values
    return (
        values.astype(TEXT_DTYPE)
        if pd.api.types.infer_dtype(values, skipna=True) == "string"
        else values.infer_objects()
    )


def make_empty_text_column(index: pd.Index) -> pd.Series:
    """A column of text without values."""
    return pd.Series(None, index=index, dtype=TEXT_DTYPE)


def _format_whole_number(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(
        value, int | float | Decimal | np.number
    ):
        return None
    # A missing value elsewhere in the column turns 15596 into 15596.0. Floats are exact only up to
    # 2**53.
    number: Any = value
    exact = isinstance(number, int | np.integer) or (abs(number) <= 2**53 and number == int(number))
    return str(int(number)) if exact else None


def parse_binary_column(
    values: pd.Series | None,
    index: pd.Index,
    column: str,
    expected: str,
    problems: TableProblemCollector,
) -> pd.Series:
    """1, 0 or null as Int8. Accepts 1.0, booleans, and "1", "1.0" and "True" in CSV files, but not
    "yes"."""
    if values is None:
        return pd.Series(pd.NA, index=index, dtype="Int8")
    if not pd.api.types.is_numeric_dtype(values.dtype):
        values = values.astype(object).map(
            lambda v: _BOOLEAN_WORDS.get(v, v) if isinstance(v, str) else v
        )
    found = parse_number_column(values)
    good = values.isna() | found.isin([0, 1])
    problems.add_where(~good, column, expected, values)
    return found.where(good).astype("Int8")


def parse_repeat_column(
    values: pd.Series | None, index: pd.Index, problems: TableProblemCollector
) -> pd.Series:
    """Whole numbers from 0 on as int64, 0 for missing values."""
    if values is None:
        return pd.Series(0, index=index, dtype="int64")
    found = parse_number_column(values)
    whole = values.isna() | ((found >= 0) & (found % 1 == 0))
    problems.add_where(~whole, "repeat", "expected a whole number from 0 on, or nothing", values)
    # Nobody asks an evaluator so often: this is a column of something else, such as times.
    large = whole & (found >= 2**31)
    problems.add_where(large, "repeat", "expected a number below 2,147,483,648", values)
    good = whole & ~large
    return found.where(good).fillna(0).astype("int64")


def parse_score_column(
    values: pd.Series | None, index: pd.Index, problems: TableProblemCollector
) -> pd.Series:
    """Numbers from 0 to 1 as float64, NaN for missing values."""
    if values is None:
        return pd.Series(np.nan, index=index, dtype="float64")
    found = parse_number_column(values)
    good = values.isna() | ((found >= 0) & (found <= 1))
    problems.add_where(~good, "score", "expected a number from 0 to 1, or nothing", values)
    return found.where(good)


def parse_grade_column(values: pd.Series, problems: TableProblemCollector) -> pd.Series:
    """Finite numbers on any scale as float64, NaN for missing values."""
    found = parse_number_column(values)
    good = values.isna() | np.isfinite(found)
    problems.add_where(
        ~good, "grade", "expected a number (a word has no place on a scale), or nothing", values
    )
    return found.where(good)


def parse_number_column(values: pd.Series) -> pd.Series:
    """Numbers as float64, NaN for anything else, including times, which pandas would turn into
    nanoseconds."""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.astype("float64")
    return values.astype(object).map(_parse_number).astype("float64")


def _parse_number(value: Any) -> float:
    # Python reads the digits of all scripts, which some versions of pandas do not.
    if isinstance(value, str) and "_" in value:
        return np.nan
    try:
        return (
            float(value) if isinstance(value, str | int | float | Decimal | np.number) else np.nan
        )
    except (ValueError, OverflowError):
        return np.nan


def parse_chunk_scores_column(
    values: pd.Series | None, index: pd.Index, problems: TableProblemCollector
) -> pd.Series:
    """A list of numbers or nulls for each row; CSV files hold them as JSON."""
    if values is None:
        return pd.Series(None, index=index, dtype="object")
    lists = values.astype(object).map(_parse_score_list, na_action="ignore")
    expected = "expected a list of numbers from 0 to 1 ([0.2, null, 0.9]) or nothing"
    problems.add_where(lists.isna() & values.notna(), "chunk_scores", expected, values)
    return lists.where(lists.notna(), None)


def _parse_score_list(value: Any) -> list[float | None] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    items: Any = make_plain_value(value)
    if not isinstance(items, list):
        return None
    return items if all(item is None or _is_score_value(item) for item in items) else None


def _is_score_value(value: Any) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 1


def make_arrow_text(values: pd.Series) -> pa.Array:
    """A column of text as one Arrow array."""
    array = pa.array(values, type=pa.large_string(), from_pandas=True)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
