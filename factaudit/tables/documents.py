"""Documents, of which many claims share one: each text is held once.

A column of documents is plain text up to `MIN_ENCODED_BYTES`. Above that it is dictionary-encoded (an Arrow dictionary
in pandas): a number per row, and the distinct texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.signature import hash_texts
from factaudit.tables.column_parsing import TEXT_DTYPE, is_dictionary_encoded, make_arrow_text

#: Bytes of text in all the rows, from which a column is encoded.
MIN_ENCODED_BYTES = 32 << 20
#: Bytes of documents, and documents, that are made Python's texts at a time.
BLOCK_BYTES, BLOCK_TEXTS = 16 << 20, 1 << 14
_TEXT_TYPE = pa.large_string()
_ENCODED_TYPE = pa.dictionary(pa.int32(), _TEXT_TYPE)


class DocumentColumnBuilder:
    """A column of documents, put together from pieces."""

    def __init__(self) -> None:
        self._chunks: list[pa.DictionaryArray] = []

    def add(self, texts: pa.Array) -> None:
        """The documents of the next rows: strings, encoded or not; null for none."""
        encoded = texts if isinstance(texts, pa.DictionaryArray) else texts.cast(_TEXT_TYPE).dictionary_encode()
        self._chunks.append(encoded.cast(_ENCODED_TYPE))

    def build_column(self) -> pd.Series:
        """The rows that were added; nothing can be added after that."""
        column = pa.chunked_array(self._chunks, _ENCODED_TYPE).unify_dictionaries()
        lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
        if sum(pc.sum(each).as_py() or 0 for each in lengths) <= MIN_ENCODED_BYTES:
            return pd.Series(column.cast(_TEXT_TYPE), dtype=TEXT_DTYPE)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([column.combine_chunks()])))


def read_document_column(path: Path, column_name: str) -> pd.Series:
    """The documents in a column of text of a Parquet file."""
    found = DocumentColumnBuilder()
    for chunk in pq.read_table(path, columns=[column_name], read_dictionary=[column_name]).column(0).chunks:
        found.add(chunk)
    return found.build_column()


def encode_distinct_documents(values: pd.Series) -> tuple[np.ndarray, pa.Array]:
    """int64 (n,): of each row the number of its text, -1 for none; and the distinct texts (large strings)."""
    if is_dictionary_encoded(values):
        chunks = values.array.__arrow_array__()
        column = chunks.chunk(0) if chunks.num_chunks == 1 else pa.concat_arrays(chunks.unify_dictionaries().chunks)
    else:
        column = make_arrow_text(values).dictionary_encode()
    numbers = pc.fill_null(column.indices, -1).to_numpy()
    return numbers.astype(np.int64), column.dictionary


def concatenate_document_columns(columns: Iterable[pd.Series]) -> pd.Series:
    """Columns of documents under each other."""
    found = DocumentColumnBuilder()
    for values in columns:
        for chunk in (
            values.array.__arrow_array__().chunks if is_dictionary_encoded(values) else [make_arrow_text(values)]
        ):
            found.add(chunk)
    return found.build_column()


def list_shared_texts(values: pd.Series) -> list[str | None]:
    """A column of texts, equal ones as one object: a document of many claims is in memory once. None for missing."""
    numbers, texts = encode_distinct_documents(values)
    return np.array([*texts.to_pylist(), None], dtype=object)[numbers].tolist()


def hash_distinct_documents(texts: pa.Array) -> list[str]:
    """Of each of the distinct texts (`encode_distinct_documents`) its `factaudit.signature.hash_texts`, 64 digits."""
    return [
        hash_texts(bytes(text), length=64)
        for start, end in iterate_document_text_blocks(texts)
        for text in _iterate_document_bytes(texts[start:end])
    ]


def iterate_document_blocks(values: pd.Series) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The rows that have a document, and their documents: those of some documents at a time, equal ones as one object.

    So never more than about `BLOCK_BYTES` bytes of text are read into memory at once, however long all are together.
    """
    numbers, texts = encode_distinct_documents(values)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    for start, end in iterate_document_text_blocks(texts):
        rows = order[np.searchsorted(sorted_numbers, start) : np.searchsorted(sorted_numbers, end)]
        if len(rows):
            read = texts[start:end].to_pylist()
            yield rows, [read[number - start] for number in numbers[rows].tolist()]


def iterate_document_text_blocks(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """Start and end of blocks of about `BLOCK_BYTES` bytes, with at least one text each and at most `BLOCK_TEXTS`."""
    ends = _read_text_offsets(texts)
    start = 0
    while start < len(texts):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + BLOCK_BYTES, side="right")) - 1)
        end = min(end, start + BLOCK_TEXTS)
        yield start, end
        start = end


def _read_text_offsets(texts: pa.Array) -> np.ndarray:
    return np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _iterate_document_bytes(texts: pa.Array) -> Iterator[memoryview]:
    """The UTF-8 of each text."""
    texts = texts.cast(_TEXT_TYPE)
    if len(texts):
        data = memoryview(texts.buffers()[2] or b"")
        for start, end in pairwise(_read_text_offsets(texts).tolist()):
            yield data[start:end]
