"""Documents, of which many claims share one: each text is held once, and on disk where all together are large.

A column of documents is plain text up to `MIN_ENCODED_BYTES`. Above that it is dictionary-encoded (an Arrow dictionary
in pandas): a number per row, and the distinct texts. More of these than `MAX_MEMORY_BYTES` lie in an unnamed temporary
file that is mapped: what is read of it takes memory, until `release_memory_of_documents_on_disk`.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
import weakref
from array import array
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

#: Bytes of text in all the rows, from which a column is encoded, and of distinct texts, from which these are on disk.
MIN_ENCODED_BYTES, MAX_MEMORY_BYTES = 32 << 20, 64 << 20
#: Bytes of documents that are read at a time.
BLOCK_BYTES = 16 << 20
#: Short texts take more as Python's objects than their bytes: so many at once.
BLOCK_TEXTS = 1 << 14
_TEXT_TYPE = pa.large_string()
_mapped_files: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


class DocumentColumnBuilder:
    """A column of documents, put together from pieces."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        #: Of each text its number, by a hash: the texts themselves may be on disk.
        self._known: dict[bytes, int] = {}
        self._ends = array("q", [0])
        self._file = tempfile.SpooledTemporaryFile(max_size=MAX_MEMORY_BYTES)  # noqa: SIM115 (mapped as long as it is used)

    def add(self, texts: pa.Array) -> None:
        """The documents of the next rows: strings, encoded or not; null for none."""
        if isinstance(texts, pa.DictionaryArray):
            self._numbers.append(self._number_texts(texts))
        elif len(texts):
            # Claims of one document mostly stand together: neighbours are compared before anything is looked up.
            first = np.ones(len(texts), dtype=bool)
            first[1:] = pc.fill_null(pc.not_equal(texts[1:], texts[:-1]), True).to_numpy(zero_copy_only=False)
            heads = self._number_texts(texts.filter(pa.array(first)).dictionary_encode())
            self._numbers.append(heads[np.cumsum(first) - 1])

    def _number_texts(self, texts: pa.DictionaryArray) -> np.ndarray:
        """int32: of each row the number of its text, -1 for none."""
        used = pc.unique(texts.indices).drop_null()
        found = np.full(len(texts.dictionary) + 1, -1, dtype=np.int32)  # the last one is for rows without a text
        found[used.to_numpy()] = [
            self._number_text(text) for text in _iterate_document_bytes(texts.dictionary.take(used))
        ]
        return found[pc.fill_null(texts.indices, -1).to_numpy()]

    def _number_text(self, text: memoryview) -> int:
        number = self._known.setdefault(hashlib.sha256(text).digest(), len(self._known))
        if number == len(self._ends) - 1:
            self._file.write(text)
            self._ends.append(self._ends[-1] + len(text))
        return number

    def build_column(self) -> pd.Series:
        """The rows that were added; nothing can be added after that."""
        numbers = np.concatenate([np.empty(0, dtype=np.int32), *self._numbers])
        size = self._ends[-1]
        data = self._read_text_buffer(size)
        offsets = np.frombuffer(self._ends, dtype=np.int64)
        distinct = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)
        encoded = pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), distinct)
        if np.diff(offsets, append=offsets[-1])[numbers].sum() <= MIN_ENCODED_BYTES:
            return pd.Series(encoded.dictionary_decode(), dtype=TEXT_DTYPE)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([encoded])))

    def _read_text_buffer(self, size: int) -> pa.Buffer:
        with self._file as file:
            if size <= MAX_MEMORY_BYTES:
                file.seek(0)
                return pa.py_buffer(file.read())
            file.flush()
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        _mapped_files.add(mapped)
        return pa.py_buffer(mapped)


def read_document_column(path: Path, column_name: str) -> pd.Series:
    """The documents in a column of text of a Parquet file, of which a piece at a time is in memory."""
    plain = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    encoded = pq.ParquetFile(path, read_dictionary=[column_name])
    at = plain.schema_arrow.names.index(column_name)
    found = DocumentColumnBuilder()
    for group in range(plain.num_row_groups):
        part = plain.metadata.row_group(group)
        size = next(
            column.total_uncompressed_size
            for column in map(part.column, range(at, part.num_columns))
            if column.path_in_schema == column_name
        )
        if size <= MAX_MEMORY_BYTES:  # a dictionary of the whole group is no larger than that
            for chunk in encoded.read_row_group(group, [column_name]).column(column_name).chunks:
                found.add(chunk)
            continue
        rows = max(1, BLOCK_BYTES // 4 * part.num_rows // size)
        for batch in plain.iter_batches(rows, [group], [column_name], use_threads=False):
            found.add(batch.column(column_name))
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
    release_memory_of_documents_on_disk()


def split_document_column(values: pd.Series) -> Iterator[tuple[int, pa.DictionaryArray]]:
    """The parts of an encoded column, each with its first row's number and only the texts that its rows have.

    A part brings at most about half of `MAX_MEMORY_BYTES` of texts that no earlier part has.
    """
    numbers, texts = encode_distinct_documents(values)
    lengths = np.diff(_read_text_offsets(texts))
    seen, first = np.unique(numbers, return_index=True)
    new = np.zeros(len(numbers), dtype=np.int64)
    new[first[seen >= 0]] = lengths[seen[seen >= 0]]
    part = np.cumsum(new) // (MAX_MEMORY_BYTES // 2)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(numbers)]):
        used, places = np.unique(numbers[start:end], return_inverse=True)
        places = (places - (used[0] < 0)).astype(np.int32)
        own = texts.take(pa.array(used[used >= 0]))
        yield start, pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), own)
        release_memory_of_documents_on_disk()


def iterate_document_text_blocks(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """Start and end of blocks of about `BLOCK_BYTES` bytes, with at least one text each and at most `BLOCK_TEXTS`.

    After each block the memory of texts on disk is given back.
    """
    ends = _read_text_offsets(texts)
    start = 0
    while start < len(texts):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + BLOCK_BYTES, side="right")) - 1)
        end = min(end, start + BLOCK_TEXTS)
        yield start, end
        release_memory_of_documents_on_disk()
        start = end


def release_memory_of_documents_on_disk() -> None:
    """Give back the memory of documents that are on disk; who reads them again, reads them from there."""
    for each in list(_mapped_files):
        if hasattr(each, "madvise"):
            each.madvise(mmap.MADV_DONTNEED)


def _read_text_offsets(texts: pa.Array) -> np.ndarray:
    return np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _iterate_document_bytes(texts: pa.Array) -> Iterator[memoryview]:
    """The UTF-8 of each text."""
    texts = texts.cast(_TEXT_TYPE)
    if len(texts):
        data = memoryview(texts.buffers()[2] or b"")
        for start, end in pairwise(_read_text_offsets(texts).tolist()):
            yield data[start:end]
