"""What a Parquet file unpacks to. Its own sizes do not tell: a text that many rows share is in the file once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.files import check_unpacked_size, read_unpacked_size_limit
from factaudit.tables.column_parsing import is_arrow_text_type

#: Where a Parquet file's columns are this many times its size, what they unpack to is bounded as that of archives is.
MAX_PARQUET_PACKING = 50
#: Bytes that a cell takes in memory at the least, were it null.
_CELL_BYTES = 8


def check_parquet_unpacked_size(path: Path, file: pq.ParquetFile, encoded_column: str | None = None) -> None:
    """Raise `InputError` where the columns take more memory than a compressed file may unpack to.

    encoded_column: the column of texts that stays as it is in the file, each distinct text once.
    """
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    packed_bytes = MAX_PARQUET_PACKING * path.stat().st_size
    n_bytes = sum(group.total_byte_size for group in groups)
    cell_bytes = _CELL_BYTES * file.metadata.num_rows * file.metadata.num_columns
    for unpacked in (n_bytes, cell_bytes):
        if unpacked > packed_bytes:
            check_unpacked_size(str(path), unpacked)
    limit = read_unpacked_size_limit()
    texts = [field.name for field in file.schema_arrow if is_arrow_text_type(field.type)]
    for at, group in enumerate(groups):
        sizes = {
            group.column(n).path_in_schema: group.column(n).total_uncompressed_size for n in range(group.num_columns)
        }
        for name in texts:
            # No text is longer than all that is stored of the column.
            if name == encoded_column or name not in sizes or sizes[name] * group.num_rows <= limit:
                continue
            n_bytes += _sum_text_bytes(path, at, name) - sizes[name]
            if n_bytes > packed_bytes:
                check_unpacked_size(str(path), n_bytes)


def _sum_text_bytes(path: Path, group: int, column_name: str) -> int:
    """The bytes of a column's texts in a row group, of which each distinct one is in memory once."""
    column = pq.ParquetFile(path, read_dictionary=[column_name]).read_row_group(group, [column_name]).column(0)
    n_bytes = 0
    for chunk in column.chunks:
        assert isinstance(chunk, pa.DictionaryArray)
        lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
        n_bytes += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    return n_bytes
