"""Documents, of which many claims share one: each text is held once, and on disk where all together are large.

A column of documents is plain text up to `LARGE`. Above that it is dictionary-encoded (an Arrow dictionary in pandas):
a number per row, and the distinct texts. More of these than `IN_MEMORY` lie in an unnamed temporary file that is
mapped: what is read of it takes memory, until `forget`.
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

from factaudit.signature import digest
from factaudit.tables.columns import TEXT, arrow, is_encoded

#: Bytes of text in all the rows, from which a column is encoded, and of distinct texts, from which these are on disk.
LARGE, IN_MEMORY = 32 << 20, 64 << 20
#: Bytes of documents that are read at a time.
BLOCK = 16 << 20
_TEXTS = pa.large_string()
_mapped: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()


class Documents:
    """A column of documents, put together from pieces."""

    def __init__(self) -> None:
        self._numbers: list[np.ndarray] = []
        #: Of each text its number, by a hash: the texts themselves may be on disk.
        self._known: dict[bytes, int] = {}
        self._ends = array("q", [0])
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 (mapped as long as it is used)

    def add(self, texts: pa.Array) -> None:
        """The documents of the next rows: strings, encoded or not; null for none."""
        if isinstance(texts, pa.DictionaryArray):
            self._numbers.append(self._numbers_of(texts))
        elif len(texts):
            # Claims of one document mostly stand together: neighbours are compared before anything is looked up.
            first = np.ones(len(texts), dtype=bool)
            first[1:] = pc.fill_null(pc.not_equal(texts[1:], texts[:-1]), True).to_numpy(zero_copy_only=False)
            heads = self._numbers_of(texts.filter(pa.array(first)).dictionary_encode())
            self._numbers.append(heads[np.cumsum(first) - 1])

    def _numbers_of(self, texts: pa.DictionaryArray) -> np.ndarray:
        """int32: of each row the number of its text, -1 for none."""
        used = pc.unique(texts.indices).drop_null()
        found = np.full(len(texts.dictionary) + 1, -1, dtype=np.int32)  # the last one is for rows without a text
        found[used.to_numpy()] = [self._number(text) for text in _bytes_of(texts.dictionary.take(used))]
        return found[pc.fill_null(texts.indices, -1).to_numpy()]

    def _number(self, text: memoryview) -> int:
        number = self._known.setdefault(hashlib.sha256(text).digest(), len(self._known))
        if number == len(self._ends) - 1:
            self._file.write(text)
            self._ends.append(self._ends[-1] + len(text))
        return number

    def column(self) -> pd.Series:
        """The rows that were added; nothing can be added after that."""
        numbers = np.concatenate([np.empty(0, dtype=np.int32), *self._numbers])
        size = self._ends[-1]
        data = self._whole(size)
        offsets = np.frombuffer(self._ends, dtype=np.int64)
        distinct = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), data)
        encoded = pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), distinct)
        if np.diff(offsets, append=offsets[-1])[numbers].sum() <= LARGE:
            return pd.Series(encoded.dictionary_decode(), dtype=TEXT)
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([encoded])))

    def _whole(self, size: int) -> pa.Buffer:
        with self._file as file:
            if size <= IN_MEMORY:
                file.seek(0)
                return pa.py_buffer(file.read())
            file.flush()
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        _mapped.add(mapped)
        return pa.py_buffer(mapped)


def documents_in(path: Path, name: str) -> pd.Series:
    """The documents in a column of text of a Parquet file, of which a piece at a time is in memory."""
    plain = pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    encoded = pq.ParquetFile(path, read_dictionary=[name])
    at = plain.schema_arrow.names.index(name)
    found = Documents()
    for group in range(plain.num_row_groups):
        part = plain.metadata.row_group(group)
        size = next(
            column.total_uncompressed_size
            for column in map(part.column, range(at, part.num_columns))
            if column.path_in_schema == name
        )
        if size <= IN_MEMORY:  # a dictionary of the whole group is no larger than that
            for chunk in encoded.read_row_group(group, [name]).column(name).chunks:
                found.add(chunk)
            continue
        rows = max(1, BLOCK // 4 * part.num_rows // size)
        for batch in plain.iter_batches(rows, [group], [name], use_threads=False):
            found.add(batch.column(name))
    return found.column()


def encode(values: pd.Series) -> tuple[np.ndarray, pa.Array]:
    """int64 (n,): of each row the number of its text, -1 for none; and the distinct texts (large strings)."""
    if is_encoded(values):
        chunks = values.array.__arrow_array__()
        column = chunks.chunk(0) if chunks.num_chunks == 1 else pa.concat_arrays(chunks.unify_dictionaries().chunks)
    else:
        column = arrow(values).dictionary_encode()
    numbers = pc.fill_null(column.indices, -1).to_numpy()
    return numbers.astype(np.int64), column.dictionary


def joined(columns: Iterable[pd.Series]) -> pd.Series:
    """Columns of documents under each other."""
    found = Documents()
    for values in columns:
        for chunk in values.array.__arrow_array__().chunks if is_encoded(values) else [arrow(values)]:
            found.add(chunk)
    return found.column()


def shared_texts(values: pd.Series) -> list[str | None]:
    """A column of texts, equal ones as one object: a document of many claims is in memory once. None for missing."""
    numbers, texts = encode(values)
    return np.array([*texts.to_pylist(), None], dtype=object)[numbers].tolist()


def digests(texts: pa.Array) -> list[str]:
    """Of each of the distinct texts (`encode`) its `factaudit.signature.digest`, 64 digits."""
    return [digest(bytes(text), length=64) for start, end in blocks(texts) for text in _bytes_of(texts[start:end])]


def in_blocks(values: pd.Series) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The rows that have a document, and their documents: those of some documents at a time, equal ones as one object.

    So never more than about `BLOCK` bytes of text are read into memory at once, however long all are together.
    """
    numbers, texts = encode(values)
    order = np.argsort(numbers, kind="stable")
    sorted_numbers = numbers[order]
    for start, end in blocks(texts):
        rows = order[np.searchsorted(sorted_numbers, start) : np.searchsorted(sorted_numbers, end)]
        if len(rows):
            read = texts[start:end].to_pylist()
            yield rows, [read[number - start] for number in numbers[rows].tolist()]
    forget()


def parts(values: pd.Series) -> Iterator[tuple[int, pa.DictionaryArray]]:
    """An encoded column in parts, with the row where each begins: at most some `IN_MEMORY` bytes of new texts in each,
    and no others."""
    numbers, texts = encode(values)
    lengths = np.diff(_offsets(texts))
    seen, first = np.unique(numbers, return_index=True)
    new = np.zeros(len(numbers), dtype=np.int64)
    new[first[seen >= 0]] = lengths[seen[seen >= 0]]
    part = np.cumsum(new) // (IN_MEMORY // 2)
    starts = np.flatnonzero(np.diff(part, prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(numbers)]):
        used, places = np.unique(numbers[start:end], return_inverse=True)
        places = (places - (used[0] < 0)).astype(np.int32)
        own = texts.take(pa.array(used[used >= 0]))
        yield start, pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), own)
        forget()


def blocks(texts: pa.Array) -> Iterator[tuple[int, int]]:
    """From where to where `BLOCK` bytes of texts go, at least one text each; then forgets what is on disk of them."""
    ends = _offsets(texts)
    start = 0
    while start < len(texts):
        end = max(start + 1, int(np.searchsorted(ends, ends[start] + BLOCK, side="right")) - 1)
        yield start, end
        forget()
        start = end


def forget() -> None:
    """Give back the memory of documents that are on disk; who reads them again, reads them from there."""
    for each in list(_mapped):
        if hasattr(each, "madvise"):
            each.madvise(mmap.MADV_DONTNEED)


def _offsets(texts: pa.Array) -> np.ndarray:
    return np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]


def _bytes_of(texts: pa.Array) -> Iterator[memoryview]:
    """The UTF-8 of each text."""
    texts = texts.cast(_TEXTS)
    if len(texts):
        data = memoryview(texts.buffers()[2] or b"")
        for start, end in pairwise(_offsets(texts).tolist()):
            yield data[start:end]
