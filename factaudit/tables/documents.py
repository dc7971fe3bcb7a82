"""Documents, of which many claims share one: each text is held once.

A column of documents is plain text up to `MIN_ENCODED_BYTES`. Above that it is dictionary-encoded
(an Arrow dictionary in pandas): a number per row, and the distinct texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from factaudit.signature import hash_texts
from factaudit.tables.column_parsing import TEXT_DTYPE, is_dictionary_encoded, make_arrow_text

#: Bytes of text in all the rows, from which a column is encoded.
MIN_ENCODED_BYTES = 32 << 20
#: Bytes of documents, and documents, that are made Python's texts at a time.
BLOCK_BYTES, BLOCK_TEXTS = 16 << 20, 1 << 14
_TEXT_TYPE = pa.large_string()
_ENCODED_TYPE = pa.dictionary(pa.int32(), _TEXT_TYPE)


def make_document_column(texts: pa.ChunkedArray) -> pd.Series:
    """A column of documents; texts: of all rows, encoded or not."""
    encoded = (
        texts if pa.types.is_dictionary(texts.type) else texts.cast(_TEXT_TYPE).dictionary_encode()
    )
    column = encoded.cast(_ENCODED_TYPE).unify_dictionaries()
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    if sum(pc.sum(each).as_py() or 0 for each in lengths) <= MIN_ENCODED_BYTES:
        return pd.Series(column.cast(_TEXT_TYPE), dtype=TEXT_DTYPE)
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column.combine_chunks()])))


def concatenate_document_columns(columns: Iterable[pd.Series]) -> pd.Series:
    """Columns of documents under each other."""
    chunks = [chunk for values in columns for chunk in _encode(values).chunks]
    return make_document_column(pa.chunked_array(chunks, _ENCODED_TYPE))


def share_documents(table: pd.DataFrame) -> pd.DataFrame:
    """A table with a column of documents, where it has one of text."""
    if "doc" in table and isinstance(table["doc"].dtype, pd.StringDtype):
        table["doc"] = concatenate_document_columns([table["doc"]])
    return table


def _encode(values: pd.Series) -> pa.ChunkedArray:
    if is_dictionary_encoded(values):
        return values.array.__arrow_array__().cast(_ENCODED_TYPE).unify_dictionaries()
    return pa.chunked_array([make_arrow_text(values).dictionary_encode()], _ENCODED_TYPE)


def encode_distinct_documents(values: pd.Series) -> tuple[np.ndarray, pa.Array]:
    """int64 (n,): of each row the number of its text, -1 for none; and the distinct texts (large
    strings)."""
    chunks = _encode(values).chunks
    column = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    return pc.fill_null(column.indices, -1).to_numpy().astype(np.int64), column.dictionary


def list_shared_texts(values: pd.Series) -> list[str | None]:
    """A column of texts, equal ones as one object: a document of many claims is in memory once.
    None for missing."""
    numbers, texts = encode_distinct_documents(values)
    return np.array([*texts.to_pylist(), None], dtype=object)[numbers].tolist()


def hash_distinct_documents(texts: pa.Array) -> list[str]:
    """Of each of the distinct texts (`encode_distinct_documents`) its
    `factaudit.signature.hash_texts`, 64 digits."""
    data = memoryview(texts.buffers()[2] or b"") if len(texts) else memoryview(b"")
    return [
        hash_texts(bytes(data[start:end]), length=64)
        for start, end in pairwise(_read_offsets(texts).tolist())
    ]


def iterate_document_blocks(values: pd.Series) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The rows that have a document, and their documents: those of some documents at a time, equal
    ones as one object.

    So never more than about `BLOCK_BYTES` bytes of text are read into memory at once, however long
    all are together.
    """
    numbers, texts = encode_distinct_documents(values)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    ends = _read_offsets(texts)
    start = 0
    while start < len(texts):
        end = max(
            start + 1, int(np.searchsorted(ends, ends[start] + BLOCK_BYTES, side="right")) - 1
        )
        end = min(end, start + BLOCK_TEXTS)
        rows = order[np.searchsorted(sorted_numbers, start) : np.searchsorted(sorted_numbers, end)]
        if len(rows):
            read = texts[start:end].to_pylist()
            yield rows, [read[number - start] for number in numbers[rows].tolist()]
        start = end


def _read_offsets(texts: pa.Array) -> np.ndarray:
    """Where each text begins in the bytes of all, and where the last ends."""
    if not len(texts):
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(texts.buffers()[1], dtype=np.int64)[
        texts.offset : texts.offset + len(texts) + 1
    ]
