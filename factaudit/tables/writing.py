"""Writes tables as Parquet, JSONL and CSV.

In Parquet and CSV, an extra column of objects, or of values of several types, becomes JSON text.
"""

from __future__ import annotations

import csv
import gzip
from contextlib import suppress
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pandas.api.types import infer_dtype, is_numeric_dtype

from factaudit.files import replace_file_atomically
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.documents import make_encoded_documents
from factaudit.tables.plain_values import dump_json_line, is_missing_value, list_plain_rows
from factaudit.tables.schema import parse_table_suffix
from factaudit.text.spreadsheet_cells import escape_spreadsheet_cell

_ALWAYS_WRITTEN_COLUMNS = (
    "claim_id",
    "dataset",
    "claim",
    "label",
    "evaluator",
    "score",
    "prediction",
    "status",
)


def write_table(table: pd.DataFrame, path: str | Path) -> None:
    """Write claims, verdicts or any other table atomically, in the format of the suffix.

    JSONL and CSV files leave out standard columns without values, to stay readable.
    """
    target = Path(path)
    kind = parse_table_suffix(target)
    table = table.set_axis(table.columns.map(str), axis=1)
    with replace_file_atomically(target) as temporary:
        if kind == ".parquet":
            _write_parquet_table(_serialise_objects(table, serialise_lists=False), temporary)
            return
        names = [
            name
            for name in table
            if name in _ALWAYS_WRITTEN_COLUMNS or not _is_uninformative_column(table[name])
        ]
        if kind.startswith(".csv"):
            content = _format_csv(table[names]).encode()
        else:
            rows = list_plain_rows(table[names])
            content = "".join(dump_json_line(row) + "\n" for row in rows).encode()
        if kind.endswith(".gz"):
            # Without a name and a time stamp in the header the same table gives the same bytes.
            content = gzip.compress(content, mtime=0)
        temporary.write_bytes(content)


def _format_csv(table: pd.DataFrame) -> str:
    # Most readers end a row at a lone carriage return, and pandas quotes it only if it quotes all
    # texts.
    texts = (table[name] for name in table if not is_numeric_dtype(table[name].dtype))
    has_returns = any(one.astype(TEXT_DTYPE).str.contains("\r", regex=False).any() for one in texts)
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    plain = _escape_formulas(_serialise_objects(table, serialise_lists=True))
    return plain.to_csv(index=False, lineterminator="\n", quoting=quoting)


def _write_parquet_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table so that readers find text in all columns and each document once in a row group.
    Neither PyArrow nor readers then need more memory than the distinct documents do."""
    if "doc" not in table or table["doc"].dtype != object:
        frame = pa.Table.from_pandas(table, preserve_index=False)
        pq.write_table(frame, path, compression="zstd")
        return
    as_text = table.iloc[:0].assign(doc=pd.Series(dtype=TEXT_DTYPE))
    about = pa.Schema.from_pandas(as_text, preserve_index=False).metadata
    frame = pa.Table.from_pandas(table.drop(columns="doc"), preserve_index=False)
    place = list(table.columns).index("doc")
    frame = frame.add_column(place, "doc", make_encoded_documents(table["doc"]))
    with pq.ParquetWriter(
        path,
        frame.schema,
        compression="zstd",
        store_schema=False,
        use_dictionary=[name for name in table if name not in ("claim_id", "claim")],
        dictionary_pagesize_limit=1 << 30,
    ) as writer:
        writer.add_key_value_metadata(about)
        writer.write_table(frame)


def _can_write_parquet_type(arrow_type: pa.DataType) -> bool:
    """Whether Parquet can hold values of the type. It cannot hold empty objects, as in ``[{}]``."""
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields == 0:
        return False
    return all(
        _can_write_parquet_type(arrow_type.field(at).type) for at in range(arrow_type.num_fields)
    )


def _is_uninformative_column(values: pd.Series) -> bool:
    """Whether a reader would assume all values of the column if it were missing."""
    return bool((values == 0).all() if values.name == "repeat" else values.isna().all())


def _escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with texts and column names that no spreadsheet runs as formulas."""
    for column in table.columns:
        if not is_numeric_dtype(table[column].dtype):
            table[column] = table[column].map(
                lambda cell: escape_spreadsheet_cell(cell) if isinstance(cell, str) else cell
            )
    return table.set_axis([escape_spreadsheet_cell(name) for name in table.columns], axis=1)


def _serialise_objects(table: pd.DataFrame, serialise_lists: bool) -> pd.DataFrame:
    """The table with JSON text in columns that the format cannot hold: objects, mixed types and
    (CSV) lists."""
    flat = table.copy(deep=False)
    for column in flat.columns:
        cells = flat[column]
        if cells.dtype != object or cells.isna().all() or infer_dtype(cells) == "string":
            continue
        kinds = {type(value) for value in cells if not is_missing_value(value)}
        unwanted = {dict, list, np.ndarray} if serialise_lists else {dict}
        if kinds & unwanted or not _has_parquet_type(cells):
            flat[column] = cells.map(dump_json_line, na_action="ignore").astype(TEXT_DTYPE)
    return flat


def _has_parquet_type(cells: pd.Series) -> bool:
    with suppress(pa.ArrowException):
        return _can_write_parquet_type(pa.array(cells, from_pandas=True).type)
    return False
