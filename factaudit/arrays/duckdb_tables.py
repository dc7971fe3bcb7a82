"""How are Parquet files of claims and verdicts read that are too large for memory? DuckDB loads
them into the arrays of `Judgements`.

The texts stay in the files. For a claim, its id is loaded, the columns beside its texts as codes,
and a hash of its document, which says which claims share one. For a verdict, its numbers are
loaded. Files are read and checked in blocks of rows by the code that checks tables in memory
(`factaudit.tables.validation`). So both ways refuse the same rows with the same words, and audits
compute the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.arrays.judgements import (
    MISSING,
    Judgements,
    VerdictArrays,
    check_first_repeats,
    name_documents,
    split_empty_responses,
)
from factaudit.errors import (
    FactauditError,
    InputError,
    Problem,
    format_error_first_line,
)
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import GRADE_COLUMN, POSITIONS_KEY, VARIANT_COLUMNS, VERDICT_COLUMNS

#: Tables with more verdicts than this take more than 4 GB of memory.
MANY_VERDICTS = 10_000_000
#: Rows that are read and checked at a time.
ROWS_PER_BLOCK = 200_000
#: The memory that DuckDB may use, beside the arrays, while it matches verdicts with claims.
_MEMORY_LIMIT = "1GB"
#: The place of a row in its file, for messages.
_POSITION = "__position"
#: Columns of verdicts that no array holds.
_UNREAD_COLUMNS = ("raw", "chunk_scores")
_NUMBERED_ROWS = (
    f"SELECT * EXCLUDE (file_row_number), file_row_number + 1 AS {_POSITION}"
    " FROM read_parquet(?, file_row_number=true)"
)


def load_duckdb_judgements(
    claims_paths: Sequence[str], verdicts_paths: Sequence[str], spill_folder: Path
) -> Judgements:
    """Load all claims and verdicts. What does not fit into DuckDB's memory meanwhile is written to
    ``spill_folder``.

    Raises `InputError` that names the file, the row and the column of what is wrong.
    """
    try:
        import duckdb
    except ImportError:
        raise FactauditError(
            "files that do not fit into memory need DuckDB: pip install 'factaudit[duckdb]'"
        ) from None
    settings: dict[str, Any] = {
        "memory_limit": _MEMORY_LIMIT,
        "threads": 2,
        "temp_directory": str(spill_folder),
    }
    for path in claims_paths:
        _list_columns(path, ("claim_id", "dataset"))
    names = {path: _list_columns(path, ("claim_id", "evaluator")) for path in verdicts_paths}
    with duckdb.connect(":memory:", config=settings) as connection:
        claims, silent = split_empty_responses(_load_claims(connection, claims_paths))
        ids = pa.array(claims["claim_id"], pa.large_string())
        connection.register("claim_rows", pa.table({"id": ids, "row": np.arange(len(claims))}))
        arrays = VerdictArrays(_list_evaluators(connection, verdicts_paths), len(claims))
        for path in verdicts_paths:
            _add_verdicts(arrays, connection, path, names[path])
    is_first = (arrays.repeats[0][1] != MISSING).any(axis=1)
    check_first_repeats(np.array(arrays.evaluators)[~is_first])
    return arrays.judge(claims, silent)


def count_parquet_rows(paths: Sequence[str]) -> int:
    """The number of rows of the Parquet files among these, from the metadata of each file."""
    total = 0
    for path in paths:
        # The reader of the file reports what is wrong with it.
        with suppress(OSError, pa.ArrowException):
            if path.endswith(".parquet"):
                total += pq.ParquetFile(path).metadata.num_rows
    return total


def _list_columns(path: str, required: Sequence[str]) -> list[str]:
    if not path.endswith(".parquet"):
        problem = Problem("expected Parquet: other files are read into memory (--where memory)")
        raise InputError(path, [problem])
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        problem = Problem(f"cannot be read ({format_error_first_line(error)})")
        raise InputError(path, [problem]) from None
    table = pd.DataFrame(columns=file.schema_arrow.names, index=range(file.metadata.num_rows > 0))
    problems = TableProblemCollector(path)
    problems.add_missing_columns(table, required)
    problems.add_if_empty(table)
    problems.raise_if_any()
    return file.schema_arrow.names


def _load_claims(connection: Any, paths: Sequence[str]) -> pd.DataFrame:
    """The validated claims without their texts: text columns as categories, and ``doc_id`` also by
    equal documents."""
    parts: list[pa.Table] = []
    sizes = dict.fromkeys(paths, 0)
    for path in paths:
        for block in _read_blocks(connection, _NUMBERED_ROWS, path):
            if "claim" not in block:
                block["claim"] = pd.Series("-", index=block.index)
                if "abstained" in block:
                    block["claim"] = block["claim"].where(block["abstained"].isna(), None)
            validated = validate_claims(block, path)
            if VARIANT_COLUMNS[0] in validated and validated[VARIANT_COLUMNS[0]].notna().any():
                message = "expected nothing: variants are audited in memory alone"
                raise InputError(path, [Problem(message, column=VARIANT_COLUMNS[0])])
            validated["doc_id"] = name_documents(validated).astype(TEXT_DTYPE)
            validated["claim"] = validated["doc"] = pd.Series(
                None, index=validated.index, dtype=TEXT_DTYPE
            )
            parts.append(_encode_text_columns(validated))
            sizes[path] += len(block)
    table = pa.concat_tables(parts, promote_options="default").unify_dictionaries()
    claims = table.combine_chunks().to_pandas()
    for column, values in claims.items():
        if isinstance(values.dtype, pd.CategoricalDtype):  # groups are in the order of their names
            claims[column] = values.cat.reorder_categories(sorted(values.cat.categories))
    for column in ("label", "abstained"):
        claims[column] = claims[column].astype("Int8")
    problems = TableProblemCollector("claims", parts=list(sizes.items()))
    problems.add_duplicates(claims["claim_id"], "claim_id", "unique ids")
    problems.raise_if_any()
    return claims


def _encode_text_columns(claims: pd.DataFrame) -> pa.Table:
    table = pa.Table.from_pandas(claims, preserve_index=False)
    for at, field in enumerate(table.schema):
        is_text = pa.types.is_large_string(field.type) or pa.types.is_string(field.type)
        if is_text and field.name != "claim_id":
            encoded = table.column(at).cast(pa.large_string()).dictionary_encode()
            table = table.set_column(at, field.name, encoded)
    return table.replace_schema_metadata(None)


def _list_evaluators(connection: Any, paths: Sequence[str]) -> list[str]:
    sql = "SELECT DISTINCT CAST(evaluator AS VARCHAR) FROM read_parquet(?) WHERE evaluator NOTNULL"
    found = [connection.execute(sql, [path]).fetchall() for path in paths]
    return sorted({name for rows in found for (name,) in rows})


def _add_verdicts(
    arrays: VerdictArrays, connection: Any, path: str, columns: Sequence[str]
) -> None:
    """Check the verdicts of a file and add them."""
    wanted = set(columns).difference(_UNREAD_COLUMNS)
    read = ", ".join(f"v.{name}" for name in (*VERDICT_COLUMNS, GRADE_COLUMN) if name in wanted)
    joined = (
        f"SELECT {read}, v.{_POSITION}, r.row FROM ({_NUMBERED_ROWS}) AS v"
        " LEFT JOIN claim_rows AS r ON r.id = CAST(v.claim_id AS VARCHAR)"
    )
    for block in _read_blocks(connection, joined, path):
        rows, positions = block.pop("row"), block.attrs[POSITIONS_KEY]
        verdicts = validate_verdicts(block, source=path)
        problems = TableProblemCollector(path, positions=positions.tolist())
        message = "expected the id of a claim, but no claim has it"
        problems.add_where(rows.isna(), "claim_id", message, verdicts["claim_id"])
        problems.raise_if_any()
        is_again = arrays.add(rows.to_numpy(dtype=np.int64), verdicts)
        message = "expected one verdict per claim and evaluator, but there is another on this claim"
        problems.add_where(is_again, "claim_id", message, verdicts["claim_id"])
        problems.raise_if_any()


def _read_blocks(connection: Any, sql: str, path: str) -> Iterator[pd.DataFrame]:
    """The rows of a query on a file, block by block, with their positions in the file."""
    reader = connection.sql(sql, params=[path]).to_arrow_reader(ROWS_PER_BLOCK)
    for batch in reader:
        block = pa.Table.from_batches([batch]).to_pandas()
        block.attrs[POSITIONS_KEY] = block.pop(_POSITION).to_numpy()  # pandas copies lists slowly
        yield block
