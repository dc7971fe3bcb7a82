"""Claims and verdicts that are too large to be read as tables: DuckDB loads them into the arrays of
`Judgements`.

The texts stay where they are: what is loaded of a claim are its id, the columns beside its texts,
as codes, and a hash of its document, which says who shares one. What is loaded of a verdict are its
numbers. Tables are read and checked a block of rows at a time, by the code that checks tables in
memory (`factaudit.tables.validation`), so both refuse the same rows with the same words, and audits
compute the same rows of both.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from factaudit.arrays.judgements import Judgements, VerdictArrays
from factaudit.errors import (
    FactauditError,
    InputError,
    Problem,
    UsageError,
    format_error_first_line,
)
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import GRADE_COLUMN, POSITIONS_KEY, VARIANT_COLUMNS

#: More verdicts than this are loaded by DuckDB where nobody says otherwise: tables of them take
#: more than 4 GB.
MAX_VERDICTS_IN_MEMORY = 10_000_000
#: Rows that are read and checked at a time.
ROWS_PER_BLOCK = 500_000
#: What DuckDB may hold while it matches verdicts with claims, beside the arrays.
_MEMORY_LIMIT = "1GB"
#: The place of a row in its table, for messages.
_POSITION = "__position"
_ADDRESS_EXAMPLE = "duckdb:///path/to.db?claims=TABLE&verdicts=TABLE"
_VERDICT_COLUMNS = (
    "claim_id",
    "evaluator",
    "repeat",
    "score",
    "prediction",
    "status",
    GRADE_COLUMN,
)


@dataclass(frozen=True)
class DuckDBTables:
    """Tables of claims and of verdicts: each a relation of SQL, and what messages call it.

    files: what is read, for checksums; database: a DuckDB file that has the tables, as the schema
    ``source``.
    """

    claims: tuple[tuple[str, str], ...]
    verdicts: tuple[tuple[str, str], ...]
    files: tuple[Path, ...]
    database: Path | None = None


def choose_duckdb_tables(
    address: str | None,
    claims: Sequence[Any],
    verdicts: Sequence[str],
    where: str | None,
    has_other_steps: bool,
    say: Callable[[str], None],
) -> DuckDBTables | None:
    """The tables that a run loads by DuckDB: those of an address, files that it asks so of, or more
    than `MAX_VERDICTS_IN_MEMORY`.

    claims: files, or what is no file. has_other_steps: whether the run judges, estimates or names
    audits, which may
    read texts. None: they are read as tables in memory.
    """
    if address is not None:
        return parse_duckdb_address(address)
    files = [item for item in claims if isinstance(item, str)]
    alone = bool(files) and len(files) == len(claims)
    if where == "duckdb":
        if not alone:
            raise UsageError(
                "where: duckdb reads Parquet files of claims and verdicts, no other format"
            )
        return find_parquet_tables(files, verdicts)
    if where == "memory" or has_other_steps or not (alone and verdicts and find_spec("duckdb")):
        return None
    n = _count_parquet_verdicts(files, verdicts)
    if n <= MAX_VERDICTS_IN_MEMORY:
        return None
    say(
        f"{n:,} verdicts, more than {MAX_VERDICTS_IN_MEMORY:,}: loaded by DuckDB, without texts"
        " (else --where memory)"
    )
    return find_parquet_tables(files, verdicts)


def parse_duckdb_address(address: str) -> DuckDBTables:
    """``duckdb:///path.db?claims=TABLE&verdicts=TABLE``; there may be several tables of each."""
    parts = urlsplit(address)
    named = parse_qs(parts.query)
    if (
        parts.scheme != "duckdb"
        or not parts.path.strip("/")
        or set(named) != {"claims", "verdicts"}
    ):
        raise UsageError(f"expected {_ADDRESS_EXAMPLE}, found {address!r}")
    path = Path(unquote(parts.path))
    # As in SQLAlchemy a relative path after three slashes, an absolute one after four; after three
    # where it is there.
    path = path if path.is_file() else Path(unquote(parts.path[1:]))
    if not path.is_file():
        raise InputError(str(path), [Problem("no such file")])

    def relations(kind: str) -> tuple[tuple[str, str], ...]:
        quoted = [".".join(map(_quote_name, ["source", *name.split(".")])) for name in named[kind]]
        return tuple(
            (sql, f"{path}, table {name}") for sql, name in zip(quoted, named[kind], strict=True)
        )

    return DuckDBTables(relations("claims"), relations("verdicts"), (path,), path)


def find_parquet_tables(
    claims_patterns: Sequence[str], verdicts_patterns: Sequence[str]
) -> DuckDBTables:
    """Parquet files, by name or by pattern (``verdicts/*.parquet``)."""
    if not verdicts_patterns:
        raise UsageError("expected a Parquet file of claims and at least one of verdicts")
    claims, verdicts = (
        _match_parquet_files(patterns) for patterns in (claims_patterns, verdicts_patterns)
    )

    def relations(names: list[str]) -> tuple[tuple[str, str], ...]:
        return tuple((f"read_parquet({_quote_text(name)})", name) for name in names)

    return DuckDBTables(
        relations(claims), relations(verdicts), tuple(map(Path, [*claims, *verdicts]))
    )


def load_duckdb_judgements(tables: DuckDBTables, spill_folder: Path) -> Judgements:
    """Load all claims and verdicts; what DuckDB cannot hold meanwhile is written to
    ``spill_folder``.

    Raises `InputError` that names the table, the row and the column of what is wrong.
    """
    with _connect_to_duckdb(tables, spill_folder) as connection:
        claims = _load_claims(connection, tables)
        lone = claims["abstained"].notna()
        silent = claims[lone]
        claims = claims[~lone].reset_index(drop=True) if lone.any() else claims
        rows = pa.table(
            {"id": pa.array(claims["claim_id"], pa.large_string()), "row": np.arange(len(claims))}
        )
        connection.register("claim_rows", rows)
        arrays = VerdictArrays(_list_evaluators(connection, tables), len(claims))
        for relation, name in tables.verdicts:
            for block in _read_verdict_blocks(connection, relation, name):
                _add_block(arrays, block, name)
    without = [
        name
        for name, status in zip(arrays.evaluators, arrays.status[0], strict=True)
        if (status < 0).all()
    ]
    if without:
        listed = ", ".join(without)
        raise UsageError(
            f"no verdict of {listed} has repeat 0, which audits read: number repeats from 0"
        )
    return arrays.judge(claims, silent)


def _add_block(arrays: VerdictArrays, block: pd.DataFrame, source: str) -> None:
    """Take validated verdicts with the column ``row``, their claim's place (null: unknown)."""
    problems = TableProblemCollector(source, positions=block[_POSITION].tolist())
    message = "expected the id of a claim, but no claim has it"
    problems.add_where(block["row"].isna(), "claim_id", message, block["claim_id"])
    problems.raise_if_any()
    is_again = arrays.add(block["row"].to_numpy(dtype=np.int64), block)
    message = "expected one verdict per claim and evaluator, but there is another on this claim"
    problems.add_where(is_again, "claim_id", message, block["claim_id"])
    problems.raise_if_any()


@contextmanager
def _connect_to_duckdb(tables: DuckDBTables, spill_folder: Path) -> Iterator[Any]:
    try:
        import duckdb
    except ImportError:
        raise FactauditError(
            "tables past memory need DuckDB: pip install 'factaudit[duckdb]'"
        ) from None
    settings: dict[str, Any] = {
        "memory_limit": _MEMORY_LIMIT,
        "threads": 2,
        "temp_directory": str(spill_folder),
    }
    with duckdb.connect(":memory:", config=settings) as connection:
        if tables.database is not None:
            try:
                connection.execute(
                    f"ATTACH {_quote_text(str(tables.database))} AS source (READ_ONLY)"
                )
            except duckdb.Error as error:
                problem = Problem(f"not a DuckDB database ({format_error_first_line(error)})")
                raise InputError(str(tables.database), [problem]) from None
        yield connection


def _load_claims(connection: Any, tables: DuckDBTables) -> pd.DataFrame:
    """The validated claims without their texts: columns of text as categories, ``doc_id`` also by
    equal documents."""
    parts = []
    blocks: list[tuple[str, int]] = []
    for relation, name in tables.claims:
        kinds = _read_column_types(connection, relation, name, ("claim_id", "dataset"))
        if VARIANT_COLUMNS[0] in kinds:
            varied = f"SELECT COUNT({VARIANT_COLUMNS[0]}) FROM {relation}"
            if connection.execute(varied).fetchone()[0]:
                problem = Problem(
                    "expected nothing: variants are audited in memory alone",
                    column=VARIANT_COLUMNS[0],
                )
                raise InputError(name, [problem])
        blocks.append((name, 0))
        for block in _read_blocks(connection, _select_claims_sql(relation, kinds)):
            validated = validate_claims(block, name)
            validated["doc_id"] = validated["doc_id"].fillna(validated["doc"])
            validated["claim"] = validated["doc"] = pd.Series(
                None, index=validated.index, dtype=TEXT_DTYPE
            )
            parts.append(_encode_text_columns(validated))
            blocks[-1] = (name, blocks[-1][1] + len(block))
    claims = (
        pa.concat_tables(parts, promote_options="default")
        .unify_dictionaries()
        .combine_chunks()
        .to_pandas()
    )
    for column, values in claims.items():
        if isinstance(values.dtype, pd.CategoricalDtype):  # groups are in the order of their names
            claims[column] = values.cat.reorder_categories(sorted(values.cat.categories))
    for column in ("label", "abstained"):
        claims[column] = claims[column].astype("Int8")
    problems = TableProblemCollector("claims", parts=blocks)
    problems.add_duplicates(claims["claim_id"], "claim_id", "unique ids")
    problems.raise_if_any()
    return claims


def _select_claims_sql(relation: str, kinds: dict[str, str]) -> str:
    """All columns but the texts: a mark stands for the claim, a hash for the document
    (`hash_document`)."""
    columns = {name: _quote_name(name) for name in kinds if name not in ("claim", "doc")}
    abstained = "abstained IS NULL" if "abstained" in kinds else "TRUE"
    columns["claim"] = "CASE WHEN TRIM(CAST(claim AS VARCHAR)) <> '' THEN 'x' END"
    if "claim" not in kinds:
        columns["claim"] = f"CASE WHEN {abstained} THEN 'x' END"
    if "doc" in kinds:
        text = (
            "array_to_string(doc, chr(10) || chr(10))"
            if kinds["doc"].endswith("[]")
            else "CAST(doc AS VARCHAR)"
        )
        placeholder = r"regexp_full_match(d.text, '\(no text: row \d+ of .*\)', 's')"
        hashed = (
            f"CASE WHEN TRIM(d.text) <> '' AND NOT {placeholder} THEN 'text ' || md5(d.text) END"
        )
        columns["doc"] = f"(SELECT {hashed} FROM (SELECT {text} AS text) AS d)"
    listed = ", ".join(f"{sql} AS {_quote_name(name)}" for name, sql in columns.items())
    return f"SELECT {listed}, ROW_NUMBER() OVER () AS __position FROM {relation}"


def _encode_text_columns(claims: pd.DataFrame) -> pa.Table:
    table = pa.Table.from_pandas(claims, preserve_index=False)
    for at, field in enumerate(table.schema):
        if field.name != "claim_id" and (
            pa.types.is_large_string(field.type) or pa.types.is_string(field.type)
        ):
            encoded = table.column(at).cast(pa.large_string()).dictionary_encode()
            table = table.set_column(at, field.name, encoded)
    return table.replace_schema_metadata(None)


def _list_evaluators(connection: Any, tables: DuckDBTables) -> list[str]:
    names: set[str] = set()
    for relation, name in tables.verdicts:
        kinds = _read_column_types(connection, relation, name, ("claim_id", "evaluator"))
        sql = (
            f"SELECT DISTINCT {_id_text_sql('evaluator', kinds)} FROM {relation} WHERE evaluator IS"
            " NOT NULL"
        )
        names |= {value for (value,) in connection.execute(sql).fetchall()}
    return sorted(names)


def _read_verdict_blocks(connection: Any, relation: str, name: str) -> Iterator[pd.DataFrame]:
    """Validated verdicts with ``row``, the place of their claim, and ``__position``, their own in
    the table."""
    kinds = _read_column_types(connection, relation, name, ("claim_id", "evaluator"))
    columns = ", ".join(f"v.{column}" for column in _VERDICT_COLUMNS if column in kinds)
    numbered = f"(SELECT *, ROW_NUMBER() OVER () AS __position FROM {relation})"
    joined = f"LEFT JOIN claim_rows AS r ON r.id = {_id_text_sql('v.claim_id', kinds)}"
    for block in _read_blocks(
        connection, f"SELECT {columns}, v.__position, r.row FROM {numbered} AS v {joined}"
    ):
        positions, rows = block.attrs[POSITIONS_KEY], block.pop("row")
        yield validate_verdicts(block, source=name).assign(row=rows, **{_POSITION: positions})


def _read_blocks(connection: Any, sql: str) -> Iterator[pd.DataFrame]:
    """The rows of a query a block at a time, with their positions; one block without rows where it
    has none."""
    reader = connection.sql(sql).to_arrow_reader(ROWS_PER_BLOCK)
    is_empty = True
    for batch in reader:
        if batch.num_rows or is_empty:
            is_empty = False
            block = pa.Table.from_batches([batch]).to_pandas()
            # pandas copies lists slowly.
            block.attrs[POSITIONS_KEY] = block.pop(_POSITION).to_numpy()
            yield block
    if is_empty:
        yield pa.Table.from_batches([], reader.schema).to_pandas().drop(columns=_POSITION)


def _read_column_types(
    connection: Any, relation: str, name: str, required: Sequence[str]
) -> dict[str, str]:
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    except Exception as error:  # DuckDB's errors are known where it is imported
        raise InputError(
            name, [Problem(f"cannot be read ({format_error_first_line(error)})")]
        ) from None
    kinds = {str(column): str(kind).upper() for column, kind, *_ in described}
    problems = TableProblemCollector(name)
    problems.add_missing_columns(pd.DataFrame(columns=list(kinds)), required)
    problems.raise_if_any()
    return kinds


def _id_text_sql(column: str, kinds: dict[str, str]) -> str:
    """A column as text, a whole number as its digits even where the column is of floating point."""
    is_float = kinds[column.removeprefix("v.")] in ("FLOAT", "DOUBLE")
    return (
        f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR)"
        if is_float
        else f"CAST({column} AS VARCHAR)"
    )


def _count_parquet_verdicts(claims_paths: Sequence[str], verdicts_paths: Sequence[str]) -> int:
    """How many verdicts Parquet files of our columns hold; 0 where a file is of another kind."""
    total = 0
    for path in (*claims_paths, *verdicts_paths):
        if not path.endswith(".parquet") or not Path(path).is_file():
            return 0
        with suppress(Exception):  # whoever reads the file says what is wrong with it
            file = pq.ParquetFile(path)
            if "claim_id" not in file.schema_arrow.names:
                return 0
            total += file.metadata.num_rows if path in verdicts_paths else 0
    return total


def _match_parquet_files(patterns: Sequence[str]) -> list[str]:
    names: list[str] = []
    for pattern in patterns:
        matching = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
        if not matching:
            raise InputError(pattern, [Problem("no such file")])
        for name in matching:
            if not name.endswith(".parquet"):
                raise InputError(
                    name,
                    [
                        Problem(
                            "expected Parquet: other files are read into memory (--where memory)"
                        )
                    ],
                )
        names += matching
    return names


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quote_text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
