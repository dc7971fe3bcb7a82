"""Hashes the content of a table, so that a run can tell whether it has changed."""

from __future__ import annotations

import hashlib
import json

import pandas as pd

from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.plain_values import make_plain_value


def compute_table_digest(table: pd.DataFrame) -> str:
    """A hash of the content of a table, including the order of its rows."""
    plain = pd.DataFrame({column: _make_hashable(table[column]) for column in table.columns})
    rows = pd.util.hash_pandas_object(plain, index=False).to_numpy()
    return hashlib.sha256("\0".join(map(str, table.columns)).encode() + rows.tobytes()).hexdigest()[
        :16
    ]


def _make_hashable(values: pd.Series) -> pd.Series:
    """A column as pandas can hash it. Columns without values are equal whatever their type."""
    if values.isna().all():
        return values.isna().map({True: float("nan")}).astype("float64")
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) != "string":
        return pd.Series(
            [json.dumps(one, default=str) for one in map(make_plain_value, values)],
            dtype=TEXT_DTYPE,
        )
    return values
