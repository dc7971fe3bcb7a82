"""A hash of a table's content, by which a run tells whether it has changed."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from factaudit.tables.column_parsing import TEXT_DTYPE, is_dictionary_encoded, make_arrow_text
from factaudit.tables.documents import encode_distinct_documents, iterate_document_text_blocks
from factaudit.tables.plain_values import make_plain_python_value

#: What pandas' hash has for a missing text.
_MISSING_TEXT_HASH = np.iinfo(np.uint64).max
#: Rows of a column of texts that are hashed at a time.
_ROWS_AT_A_TIME = 1 << 18


def compute_table_digest(table: pd.DataFrame) -> str:
    """A hash of a table's content, rows in order: what `pandas.util.hash_pandas_object` has for its rows, hashed.

    Each text is hashed once, and some at a time: as Python's objects all would take more than the table.
    """
    columns = list(table.columns)
    rows = np.full(len(table), 0x345678, dtype=np.uint64)
    factor = 1_000_003
    # Columns are put together as in pandas (and as in Python's tuples), where all would be held at once.
    for left, column in zip(range(len(columns), 0, -1), columns, strict=True):
        rows ^= _digest_table_column(table[column])
        rows *= np.uint64(factor)
        factor += 82_520 + 2 * left
    rows += np.uint64(97_531)
    return hashlib.sha256("\0".join(map(str, columns)).encode() + rows.tobytes()).hexdigest()[:16]


def _digest_table_column(values: pd.Series) -> np.ndarray:
    """uint64 (n,)."""
    if values.isna().all():  # most columns of most tables: the same, whatever its type
        return np.full(len(values), pd.util.hash_array(np.array([np.nan]))[:1], dtype=np.uint64)
    if values.dtype == object:
        values = pd.Series(
            [json.dumps(value, default=str) for value in map(make_plain_python_value, values)], dtype=TEXT_DTYPE
        )
    if not (isinstance(values.dtype, pd.StringDtype) or is_dictionary_encoded(values)):
        return pd.util.hash_pandas_object(values, index=False).to_numpy()
    again = 1 if is_dictionary_encoded(values) else _hash_repeated_text_column(make_arrow_text(values))
    size = len(values) // again
    # A dictionary is that of all its rows.
    step = max(1, size) if is_dictionary_encoded(values) else _ROWS_AT_A_TIME
    found = np.empty(size, dtype=np.uint64)
    for first in range(0, size, step):
        found[first : first + step] = _hash_table_column_texts(values.iloc[first : min(first + step, size)])
    return np.tile(found, again) if again > 1 else found


def _hash_table_column_texts(values: pd.Series) -> np.ndarray:
    """uint64 (n,)."""
    numbers, texts = encode_distinct_documents(values)
    each = [
        pd.util.hash_array(np.array(texts[start:end].to_pylist(), dtype=object), categorize=False)
        for start, end in iterate_document_text_blocks(texts)
    ]
    return np.concatenate([*each, np.array([_MISSING_TEXT_HASH], dtype=np.uint64)])[numbers]


def _hash_repeated_text_column(texts: pa.Array) -> int:
    """How often a column says the same all over again: verdicts mostly name the claims once for each evaluator."""
    size = pc.index(texts[1:], texts[0]).as_py() + 1
    if size < 2 or len(texts) % size:
        return 1
    first = texts[:size]
    return len(texts) // size if all(texts[at : at + size].equals(first) for at in range(size, len(texts), size)) else 1
