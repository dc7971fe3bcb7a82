"""A hash of a table's content, by which a run tells whether it has changed."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd

from factaudit.tables.columns import TEXT, is_encoded
from factaudit.tables.documents import blocks, encode
from factaudit.tables.plain import plain

#: What pandas' hash has for a missing text.
_NO_TEXT = np.iinfo(np.uint64).max


def table_digest(table: pd.DataFrame) -> str:
    """A hash of a table's content, rows in order: what `pandas.util.hash_pandas_object` has for its rows, hashed.

    Each text is hashed once, and some at a time: as Python's objects all would take more than the table.
    """
    columns = list(table.columns)
    rows = np.full(len(table), 0x345678, dtype=np.uint64)
    factor = 1_000_003
    # Columns are put together as in pandas (and as in Python's tuples), where all would be held at once.
    for left, column in zip(range(len(columns), 0, -1), columns, strict=True):
        rows ^= _hashed(table[column])
        rows *= np.uint64(factor)
        factor += 82_520 + 2 * left
    rows += np.uint64(97_531)
    return hashlib.sha256("\0".join(map(str, columns)).encode() + rows.tobytes()).hexdigest()[:16]


def _hashed(values: pd.Series) -> np.ndarray:
    """uint64 (n,)."""
    if values.isna().all():  # most columns of most tables: the same, whatever its type
        return np.full(len(values), pd.util.hash_array(np.array([np.nan]))[:1], dtype=np.uint64)
    if values.dtype == object:
        values = pd.Series([json.dumps(value, default=str) for value in map(plain, values)], dtype=TEXT)
    if not (isinstance(values.dtype, pd.StringDtype) or is_encoded(values)):
        return pd.util.hash_pandas_object(values, index=False).to_numpy()
    numbers, texts = encode(values)
    each = [
        pd.util.hash_array(np.array(texts[start:end].to_pylist(), dtype=object), categorize=False)
        for start, end in blocks(texts)
    ]
    return np.concatenate([*each, np.array([_NO_TEXT], dtype=np.uint64)])[numbers]
