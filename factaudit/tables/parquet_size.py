"""What a Parquet file unpacks to, told before it is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from factaudit.files import check_unpacked_size

#: Where a Parquet file's columns are this many times its size, what they unpack to is bounded as that of archives is.
MAX_PARQUET_PACKING = 50
#: Bytes that a cell takes in memory at the least, were it null.
_CELL_BYTES = 8


def check_parquet_unpacked_size(path: Path, file: pq.ParquetFile) -> None:
    """Raise `InputError` where the columns take more memory than a compressed file may unpack to."""
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    cells = _CELL_BYTES * file.metadata.num_rows * file.metadata.num_columns
    unpacked = max(cells, sum(group.total_byte_size for group in groups))
    if unpacked > MAX_PARQUET_PACKING * path.stat().st_size:
        check_unpacked_size(str(path), unpacked)
