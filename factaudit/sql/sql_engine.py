"""What runs the queries: DuckDB inside this process, or whatever else has these methods (`factaudit.sql.spark`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from factaudit.errors import FactauditError, InputError, Problem, format_error_first_line

#: Kinds of columns as far as checks tell them apart.
ColumnKind = Literal["text", "whole", "number", "truth", "other"]

#: What DuckDB may hold while it joins tables, and while it is asked, beside what Python makes of the answers: so a run
#: stays under 2 GB.
JOIN_MEMORY_LIMIT, QUERY_MEMORY_LIMIT = "1GB", "512MB"
#: So many rows are joined within that.
_ROWS_PER_JOIN = 10_000_000


class SqlEngine(Protocol):
    """Runs SQL that DuckDB, Spark and BigQuery share."""

    def query(self, sql: str) -> dict[str, np.ndarray]:
        """The columns of a small result, in their order; text is of objects, null is None or NaN."""

    def store_table(self, name: str, *queries: str, order: Sequence[str] = ()) -> None:
        """Store queries' results, one under the other, as the table ``name``.

        order: columns that a store may sort each result by, to read it faster.
        """

    def drop_table(self, name: str) -> None:
        """Let go of one table."""

    def find_part_bounds(self, relation: str, column: str, rows: int) -> list[Any]:
        """Ascending values of a column between which rows are to be joined part by part; none: all at once."""

    def read_column_kinds(self, relation: str) -> dict[str, ColumnKind]:
        """The columns of a table. Raises `InputError` where it cannot be read."""

    def close(self) -> None:
        """Let go of what was stored."""


class DuckDBEngine:
    """DuckDB with a database of its own in ``folder``, which is where it spills, too.

    attach: a database file that is read, as the schema ``source``.
    """

    def __init__(self, folder: Path, attach: Path | None = None, threads: int = 2) -> None:
        try:
            import duckdb
        except ImportError:
            raise FactauditError("tables past memory need DuckDB: pip install 'factaudit[duckdb]'") from None
        self._error = duckdb.Error
        self._file = folder / "tables.duckdb"
        self._connection = duckdb.connect(str(self._file))
        settings = {"memory_limit": JOIN_MEMORY_LIMIT, "threads": threads, "temp_directory": str(folder / "spill")}
        for name, value in (settings | {"preserve_insertion_order": False}).items():
            self._set(name, value)
        if attach is not None:
            if not attach.is_file():
                raise InputError(str(attach), [Problem("no such file")])
            try:
                self._connection.execute(f"ATTACH {quote_sql_literal(str(attach))} AS source (READ_ONLY)")
            except duckdb.Error as error:
                raise InputError(
                    str(attach), [Problem(f"not a DuckDB database ({format_error_first_line(error)})")]
                ) from None

    def query(self, sql: str) -> dict[str, np.ndarray]:
        self._set("memory_limit", QUERY_MEMORY_LIMIT)
        found = self._connection.execute(sql).fetchnumpy().items()
        return {name: np.ma.filled(np.ma.asarray(each), None if each.dtype == object else 0) for name, each in found}

    def store_table(self, name: str, *queries: str, order: Sequence[str] = ()) -> None:
        self._set("memory_limit", JOIN_MEMORY_LIMIT)
        sorting = f" ORDER BY {', '.join(order)}" if order else ""
        for at, sql in enumerate(queries):
            into = f"INSERT INTO {name}" if at else f"CREATE OR REPLACE TABLE {name} AS"
            self._connection.execute(f"{into} SELECT * FROM ({sql}) AS q{sorting}")

    def drop_table(self, name: str) -> None:
        self._connection.execute(f"DROP TABLE {name}")

    def _set(self, name: str, value: object) -> None:
        self._connection.execute(f"SET {name} = {quote_sql_literal(value)}")

    def find_part_bounds(self, relation: str, column: str, rows: int) -> list[Any]:
        parts = -(-rows // _ROWS_PER_JOIN)
        if parts < 2:
            return []
        sample = f"SELECT {column} FROM {relation} AS t USING SAMPLE reservoir({1000 * parts} ROWS)"
        found = [value for (value,) in self._connection.execute(f"SELECT * FROM ({sample}) AS s ORDER BY 1").fetchall()]
        return list(dict.fromkeys(found[len(found) * at // parts] for at in range(1, parts)))

    def read_column_kinds(self, relation: str) -> dict[str, ColumnKind]:
        try:
            found = self._connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        except self._error as error:
            raise InputError(relation, [Problem(f"cannot be read ({format_error_first_line(error)})")]) from None
        return {str(name): classify_sql_column_type(str(declared)) for name, declared, *_ in found}

    def close(self) -> None:
        self._connection.close()
        self._file.unlink(missing_ok=True)


def classify_sql_column_type(declared_type: str) -> ColumnKind:
    """The kind of a column by its declared type, in any of the dialects."""
    name = declared_type.upper()
    if re.match(r"(VARCHAR|STRING|TEXT|CHAR|ENUM)", name):
        return "text"
    if re.fullmatch(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER|64|8|16|32)?|LONG|BYTE|SHORT", name):
        return "whole"
    if name in ('"NULL"', "VOID"):  # Parquet without a value: any kind will do
        return "whole"
    if re.match(r"(FLOAT|DOUBLE|REAL|DECIMAL|NUMERIC)", name):
        return "number"
    return "truth" if name.startswith("BOOL") else "other"


def quote_sql_literal(value: Any) -> str:
    """A value as SQL: text quoted, so that nothing in it is SQL."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
