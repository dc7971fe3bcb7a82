"""Where tables past memory are: Parquet files by name or pattern, or tables of a DuckDB database by an address."""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow.parquet as pq

from factaudit.errors import InputError, Problem, UsageError
from factaudit.sql.sql_engine import DuckDBEngine, SqlEngine, quote_sql_literal

#: More verdicts than this are read by queries where nobody says otherwise: arrays of them take more than 4 GB.
MAX_VERDICTS_IN_MEMORY = 10_000_000
_ADDRESS_EXAMPLE = "duckdb:///path/to.db?claims=TABLE&verdicts=TABLE"


@dataclass(frozen=True)
class SourceTables:
    """Claims and verdicts as relations of SQL, each with what messages call it.

    files: what is read, for checksums. database: a DuckDB file that has the tables, as the schema ``source``.
    """

    claims: str
    verdicts: str
    claims_name: str
    verdicts_name: str
    files: tuple[Path, ...]
    database: Path | None = None

    def open_engine(self, folder: Path) -> SqlEngine:
        """DuckDB, which keeps what it makes of them in ``folder``."""
        return DuckDBEngine(folder, self.database)


def choose_sql_source_tables(
    address: str | None,
    claims: Sequence[Any],
    verdicts: Sequence[str],
    where: str | None,
    has_other_steps: bool,
    say: Callable[[str], None],
) -> SourceTables | None:
    """The tables that a run reads by queries: those of an address, files that it asks so of, or more than
    `MAX_VERDICTS_IN_MEMORY`.

    claims: files, or what is no file. has_other_steps: whether the run judges, estimates or names audits, which may
    read claims one by one. None: they are read into memory.
    """
    if address is not None:
        return parse_sql_database_address(address)
    files = [item for item in claims if isinstance(item, str)]
    alone = bool(files) and len(files) == len(claims)
    if where == "duckdb":
        if not alone:
            raise UsageError("where: duckdb reads Parquet files of claims and verdicts, no other format")
        return find_parquet_tables_for_sql(files, verdicts)
    if where == "memory" or has_other_steps or not (alone and verdicts and find_spec("duckdb")):
        return None
    n = count_sql_verdicts_past_memory(files, verdicts)
    if n is None:
        return None
    how = "read by DuckDB (--on memory, or where: memory, says otherwise)"
    say(f"{n:,} verdicts, more than {MAX_VERDICTS_IN_MEMORY:,}: {how}")
    return find_parquet_tables_for_sql(files, verdicts)


def parse_sql_database_address(address: str) -> SourceTables:
    """``duckdb:///path.db?claims=TABLE&verdicts=TABLE`` (further ``&verdicts=`` are put under the first)."""
    parts = urlsplit(address)
    named = parse_qs(parts.query)
    if parts.scheme != "duckdb" or not parts.path.strip("/") or set(named) != {"claims", "verdicts"}:
        raise UsageError(f"expected {_ADDRESS_EXAMPLE}, found {address!r}")
    if len(named["claims"]) != 1:
        raise UsageError(f"expected one table of claims, found {', '.join(named['claims'])}")
    path = Path(unquote(parts.path))
    # As in SQLAlchemy a relative path after three slashes, an absolute one after four; after three where it is there.
    path = path if path.is_file() else Path(unquote(parts.path[1:]))
    verdicts = " UNION ALL BY NAME ".join(f"SELECT * FROM {_quote_table_name(name)}" for name in named["verdicts"])
    return SourceTables(
        claims=_quote_table_name(named["claims"][0]),
        verdicts=f"({verdicts})",
        claims_name=f"{path}, table {named['claims'][0]}",
        verdicts_name=f"{path}, table {', '.join(named['verdicts'])}",
        files=(path,),
        database=path,
    )


def find_parquet_tables_for_sql(claims_patterns: Sequence[str], verdicts_patterns: Sequence[str]) -> SourceTables:
    """Parquet files, by name or by pattern (``verdicts/*.parquet``)."""
    if not verdicts_patterns:
        raise UsageError("expected a Parquet file of claims and at least one of verdicts")
    found = [_match_parquet_files_for_sql(patterns) for patterns in (claims_patterns, verdicts_patterns)]
    claims_sql, verdicts_sql = (
        f"read_parquet([{', '.join(map(quote_sql_literal, each))}], union_by_name = TRUE)" for each in found
    )
    return SourceTables(
        claims=claims_sql,
        verdicts=verdicts_sql,
        claims_name=", ".join(claims_patterns),
        verdicts_name=", ".join(verdicts_patterns),
        files=tuple(Path(name) for each in found for name in each),
    )


def count_sql_verdicts_past_memory(claims_paths: Sequence[str], verdicts_paths: Sequence[str]) -> int | None:
    """How many verdicts Parquet files of our columns hold, where these are more than `MAX_VERDICTS_IN_MEMORY`; None:
    read them all."""
    total = 0
    for path in (*claims_paths, *verdicts_paths):
        if not path.endswith(".parquet") or not Path(path).is_file():
            return None
        with suppress(Exception):  # whoever reads the file says what is wrong with it
            file = pq.ParquetFile(path)
            if "claim_id" not in file.schema_arrow.names:
                return None
            total += file.metadata.num_rows if path in verdicts_paths else 0
    return total if total > MAX_VERDICTS_IN_MEMORY else None


def _match_parquet_files_for_sql(patterns: Sequence[str]) -> list[str]:
    names: list[str] = []
    for pattern in patterns:
        matching = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
        if not matching:
            raise InputError(pattern, [Problem("no such file")])
        for name in matching:
            if not name.endswith(".parquet"):
                raise InputError(name, [Problem("expected Parquet: other files are read into memory (--on memory)")])
        names += matching
    return names


def _quote_table_name(name: str) -> str:
    return ".".join(["source", *('"' + part.replace('"', '""') + '"' for part in name.split("."))])
