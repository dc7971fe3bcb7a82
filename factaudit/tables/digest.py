"""A hash of a table's content, by which a run tells whether it has changed."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from factaudit.tables.columns import TEXT, arrow, is_encoded
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
    again = 1 if is_encoded(values) else _times(arrow(values))
    numbers, texts = encode(values.iloc[: len(values) // again])
    each = [
        pd.util.hash_array(np.array(texts[start:end].to_pylist(), dtype=object), categorize=False)
        for start, end in blocks(texts)
    ]
    return np.tile(np.concatenate([*each, np.array([_NO_TEXT], dtype=np.uint64)])[numbers], again)


def _times(texts: pa.Array) -> int:
    """How often a column says the same all over again: verdicts mostly name the claims once for each evaluator."""
    size = pc.index(texts[1:], texts[0]).as_py() + 1
    if size < 2 or len(texts) % size:
        return 1
    first = texts[:size]
    return len(texts) // size if all(texts[at : at + size].equals(first) for at in range(size, len(texts), size)) else 1
