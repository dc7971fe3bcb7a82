"""Tables written to Parquet, JSONL and CSV.

In Parquet and CSV an extra column of objects, or of values of several types, is written as JSON text.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.files import atomic
from factaudit.tables.columns import TEXT, is_encoded
from factaudit.tables.documents import parts
from factaudit.tables.plain import as_json, is_missing, records
from factaudit.tables.schema import suffix
from factaudit.text.cells import escape_cell

_ALWAYS = ("claim_id", "dataset", "claim", "label", "evaluator", "score", "prediction", "status")


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write claims or verdicts (or any table) atomically; the format is that of the suffix.

    Columns of the standard that hold nothing are left out of JSONL and CSV files, to keep them readable.
    """
    target = Path(path)
    kind = suffix(target)
    table = table.set_axis(table.columns.map(str), axis=1)
    with atomic(target) as temporary:
        if kind == ".parquet":
            _write_parquet(_flat(table, lists=False), temporary)
            return
        full = table.drop(columns=[c for c in table.columns if c not in _ALWAYS and _says_nothing(table[c])])
        if kind.startswith(".csv"):
            # A lone carriage return ends a row for most readers, and pandas quotes it only where it quotes everything.
            texts = [column for column in full if not pd.api.types.is_numeric_dtype(full[column].dtype)]
            returns = any(full[column].astype(TEXT).str.contains("\r", regex=False).any() for column in texts)
            quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
            text = _escaped(_flat(full, lists=True)).to_csv(index=False, lineterminator="\n", quoting=quoting)
        else:
            text = "".join(as_json(row) + "\n" for row in records(full))
        # No name and no time stamp in the gzip header: the same table gives the same bytes.
        temporary.write_bytes(gzip.compress(text.encode(), mtime=0) if kind.endswith(".gz") else text.encode())


def _write_parquet(flat: pd.DataFrame, path: Path) -> None:
    name = next((column for column in flat.columns if is_encoded(flat[column])), None)
    if name is None:
        pq.write_table(pa.Table.from_pandas(flat, preserve_index=False), path, compression="zstd")
        return
    # Readers find text, as in every other table, and each document once in a row group: they need no more in memory.
    as_text = pa.Table.from_pandas(flat.iloc[:0].assign(**{name: pd.Series(dtype=TEXT)}), preserve_index=False).schema
    at, shared = flat.columns.get_loc(name), [column for column in flat if column not in ("claim_id", "claim")]
    # Without the documents, all of which PyArrow would copy.
    frame = pa.Table.from_pandas(flat.drop(columns=name), preserve_index=False)
    kind = pa.dictionary(pa.int32(), pa.large_string())
    with pq.ParquetWriter(
        path,
        frame.schema.insert(at, pa.field(name, kind)),
        compression="zstd",
        store_schema=False,
        use_dictionary=shared,
        dictionary_pagesize_limit=1 << 30,
    ) as writer:
        writer.add_key_value_metadata(as_text.metadata)
        for start, texts in parts(flat[name]):
            part = frame.slice(start, len(texts)).add_column(at, pa.field(name, kind), texts)
            writer.write_table(part, row_group_size=len(texts))


def _says_nothing(values: pd.Series) -> bool:
    """Nothing but what a reader takes a missing column for."""
    return bool((values == 0).all() if values.name == "repeat" else values.isna().all())


def _escaped(flat: pd.DataFrame) -> pd.DataFrame:
    """No text, not even a column's name, that a spreadsheet would run as a formula."""
    for column in flat.columns:
        if not pd.api.types.is_numeric_dtype(flat[column].dtype):
            flat[column] = flat[column].map(lambda cell: escape_cell(cell) if isinstance(cell, str) else cell)
    return flat.set_axis([escape_cell(name) for name in flat.columns], axis=1)


def _flat(table: pd.DataFrame, lists: bool) -> pd.DataFrame:
    """The table with JSON text for the columns that the format can't hold: objects, mixed types and (CSV) lists."""
    flat = table.copy(deep=False)
    for column in flat.columns:
        if flat[column].dtype != object or flat[column].isna().all():
            continue
        kinds = {type(value) for value in flat[column] if not is_missing(value)}
        has_lists = bool(kinds & {list, np.ndarray})
        if not kinds & {dict} and not (lists and has_lists):
            try:
                pa.array(flat[column], from_pandas=True)
                continue
            except pa.ArrowException:
                pass
        flat[column] = flat[column].map(as_json, na_action="ignore").astype(TEXT)
    return flat
