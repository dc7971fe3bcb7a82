"""The tables of one call as they lie: files, sheets of workbooks, data frames; their rows once they are needed."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.errors import UsageError
from factaudit.files import open_input_file
from factaudit.tables.class_labels import (
    list_class_names_of_features,
    list_class_names_of_huggingface_schema,
    replace_class_codes_by_names,
)
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.foreign_files import (
    READING_NOTE,
    convert_arrays_in_cells,
    flatten_foreign_columns,
    read_foreign_file,
    read_foreign_tables,
)
from factaudit.tables.reading import read_table
from factaudit.tables.standard_columns import classify_standard_tables
from factaudit.tables.unreadable_rows import collect_unreadable_rows


@dataclass
class OpenedTable:
    """One table of a call: what messages call it, its columns, and its rows once they are needed.

    path: only where the file is in a form that we write, and can be read without a mapping. is_log: of a tool's log,
    whose claims' columns have our names; renamed: their own names.
    """

    name: str
    columns: list[str]
    path: str | Path | None = None
    _rows: pd.DataFrame | None = None
    note: str | None = None
    is_log: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, source: Any, number: int, mapping: ColumnMapping) -> list[OpenedTable]:
        """The tables of a source: one, or those of a workbook's sheets; a table that was opened before is itself."""
        if isinstance(source, cls):
            return [source]
        if not isinstance(source, str | Path):
            rows = load_pandas_frame(source)
            return [cls(f"table {number}", [*map(str, rows.columns)], None, rows)]
        columns = None if mapping.sheet else _load_column_names_from_first_line(source)
        if columns is not None and classify_standard_tables([columns]) != [None]:
            return [cls(str(source), columns, source)]
        tables = read_foreign_tables(source, mapping.sheet)
        return [cls(name, [*map(str, rows.columns)], None, rows, rows.attrs.get(READING_NOTE)) for name, rows in tables]

    def read_own(self) -> pd.DataFrame:
        """The rows of a table that has our columns."""
        return self.rows if self.path is None else read_table(self.path, document_column="doc")

    def rename(self, names: Mapping[str, str]) -> OpenedTable:
        """The table with a log's columns called as in the log's own table, where it has none of that name."""
        known = {theirs: ours for theirs, ours in names.items() if theirs in self.columns and ours not in self.columns}
        if not known:
            return self
        return OpenedTable(
            self.name, [known.get(one, one) for one in self.columns], None, self.rows.rename(columns=known)
        )

    @property
    def rows(self) -> pd.DataFrame:
        if self._rows is None:
            self._rows = read_foreign_file(str(self.path))
        return self._rows


def load_pandas_frame(data_frame: Any) -> pd.DataFrame:
    """A data frame of pandas, polars, PyArrow, DuckDB or `datasets` as pandas'. Raises `UsageError`.

    An index that has a name is a column; columns of several levels are called by all of them (``judge.gpt4``).
    """
    if isinstance(data_frame, pd.DataFrame):
        table = data_frame
    elif hasattr(data_frame, "__arrow_c_stream__"):
        arrow = pa.table(data_frame)
        table = replace_class_codes_by_names(arrow.to_pandas(), list_class_names_of_huggingface_schema(arrow.schema))
    elif hasattr(data_frame, "to_pandas"):  # a `datasets.Dataset`
        table = cast("pd.DataFrame", data_frame.to_pandas())
    else:
        kind = type(data_frame).__name__
        raise UsageError(f"expected a path or a data frame (pandas, polars, PyArrow, datasets), found {kind}")
    table = replace_class_codes_by_names(table, list_class_names_of_features(getattr(data_frame, "features", None)))
    named = [name for name in table.index.names if name is not None and name not in table.columns]
    table = table.reset_index(named) if named else table
    if table.columns.nlevels > 1:
        table = table.set_axis([".".join(filter(None, map(str, name))) for name in table.columns], axis=1)
    table = convert_arrays_in_cells(table)
    return table if classify_standard_tables([[*map(str, table.columns)]]) != [None] else flatten_foreign_columns(table)


def list_column_names(path: str | Path, mapping: Any = None) -> list[str]:
    """The names of a file's columns, by the mapping's sheet."""
    given = ColumnMapping() if mapping is None else ColumnMapping.from_source(mapping)
    with collect_unreadable_rows():
        return [name for one in OpenedTable.open(path, 1, given) for name in one.columns]


def _load_column_names_from_first_line(path: str | Path) -> list[str] | None:
    """The names of a file's columns, from its first line; None where they can't be had so."""
    path = Path(path)
    name = path.name.lower()
    text = name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            schema = pq.read_schema(path)
            return None if list_class_names_of_huggingface_schema(schema) else list(schema.names)
        if not text.endswith((".csv", ".jsonl")):
            return None
        with open_input_file(path) as file:
            first = file.readline().decode("utf-8-sig")
        if text.endswith(".csv"):
            names = next(csv.reader([first]), [])
            return names if len(names) > 1 else None
        row = json.loads(first)
        nested = not isinstance(row, dict) or any(isinstance(value, dict) for value in row.values())
        return None if nested else list(row)
    except (OSError, ValueError, EOFError, RecursionError, csv.Error, pa.ArrowException):
        return None  # whoever reads the file says what is wrong with it
