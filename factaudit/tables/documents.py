"""Keeps each document in memory once, even if many claims share it.

A column of documents is a plain column of Python's texts (None if missing) in which equal texts are
one object. Claims that share ten thousand documents need the memory of ten thousand texts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

#: The most characters, and the most documents, in a block of `iterate_document_blocks`.
BLOCK_CHARACTERS, BLOCK_TEXTS = 16 << 20, 1 << 14


def encode_distinct_documents(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """The number of the text of each row, int64 (n,), -1 for none; and the distinct texts."""
    if values.dtype != object:
        codes, found = pd.factorize(values)
        return codes.astype(np.int64), found.tolist()
    # Python stores the hash of a text, which pandas would compute again for each row.
    seen: dict[str, int] = {}
    numbers = (seen.setdefault(one, len(seen)) if isinstance(one, str) else -1 for one in values)
    return np.fromiter(numbers, np.int64, len(values)), [*seen]


def share_documents(values: pd.Series) -> pd.Series:
    """The column with one object for equal texts."""
    numbers, texts = encode_distinct_documents(values)
    return _take_texts(numbers, texts, values.index)


def read_encoded_documents(column: pa.ChunkedArray) -> pd.Series:
    """A column of documents from a dictionary-encoded one of Arrow. Each text is made once."""
    encoded = column.unify_dictionaries().combine_chunks()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return _take_texts(numbers, encoded.dictionary.to_pylist(), pd.RangeIndex(len(numbers)))


def make_encoded_documents(values: pd.Series) -> pa.Array:
    """The column dictionary-encoded, as Arrow and Parquet store repeated texts."""
    numbers, texts = encode_distinct_documents(values)
    indices = pa.array(numbers.astype(np.int32), mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, pa.array(texts, pa.large_string()))


def _take_texts(numbers: np.ndarray, texts: list[str], index: pd.Index) -> pd.Series:
    """The text of each row; None for the number -1."""
    return pd.Series(np.array([*texts, None], dtype=object)[numbers], index=index, dtype="object")


def iterate_document_blocks(values: pd.Series) -> Iterator[tuple[np.ndarray, list[str]]]:
    """The rows with a document, and their documents, block by block.

    A caller can free what it computes for the documents of a block before the next block.
    """
    numbers, texts = encode_distinct_documents(values)
    order = np.argsort(numbers, kind="stable")
    lengths = np.cumsum([0, *map(len, texts)])
    start = 0
    while start < len(texts):
        longest = lengths[start] + BLOCK_CHARACTERS
        end = max(start + 1, int(np.searchsorted(lengths, longest, side="right")) - 1)
        end = min(end, start + BLOCK_TEXTS)
        within = np.searchsorted(numbers, [start, end], sorter=order)
        rows = order[slice(*within)]
        yield rows, [texts[number] for number in numbers[rows]]
        start = end
