"""Where tables past memory are: Parquet files by name or pattern, or tables of a DuckDB database by an address."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from factaudit.errors import InputError, Problem, UsageError
from factaudit.sql.engine import Duck, Engine, literal

_EXAMPLE = "duckdb:///path/to.db?claims=TABLE&verdicts=TABLE"


@dataclass(frozen=True)
class Tables:
    """Claims and verdicts as relations of SQL, each with what messages call it.

    files: what is read, for checksums. database: a DuckDB file that has the tables, as the schema ``source``.
    """

    claims: str
    verdicts: str
    claims_name: str
    verdicts_name: str
    files: tuple[Path, ...]
    database: Path | None = None

    def engine(self, folder: Path) -> Engine:
        """DuckDB, which keeps what it makes of them in ``folder``."""
        return Duck(folder, self.database)


def is_address(text: str) -> bool:
    """Whether a text is the address of tables in a database, not a file."""
    return bool(re.match(r"\w+:///", text))


def of_address(text: str) -> Tables:
    """``duckdb:///path.db?claims=TABLE&verdicts=TABLE`` (further ``&verdicts=`` are put under the first)."""
    parts = urlsplit(text)
    named = parse_qs(parts.query)
    if parts.scheme != "duckdb" or not parts.path.strip("/") or set(named) != {"claims", "verdicts"}:
        raise UsageError(f"expected {_EXAMPLE}, found {text!r}")
    if len(named["claims"]) != 1:
        raise UsageError(f"expected one table of claims, found {', '.join(named['claims'])}")
    path = Path(unquote(parts.path))
    # As in SQLAlchemy: three slashes and a relative path, four and an absolute one; an absolute one that is there is it.
    path = path if path.is_file() else Path(unquote(parts.path[1:]))
    verdicts = " UNION ALL BY NAME ".join(f"SELECT * FROM {_table(name)}" for name in named["verdicts"])
    return Tables(
        claims=_table(named["claims"][0]),
        verdicts=f"({verdicts})",
        claims_name=f"{path}, table {named['claims'][0]}",
        verdicts_name=f"{path}, table {', '.join(named['verdicts'])}",
        files=(path,),
        database=path,
    )


def of_files(claims: Sequence[str], verdicts: Sequence[str]) -> Tables:
    """Parquet files, by name or by pattern (``verdicts/*.parquet``)."""
    if not verdicts:
        raise UsageError("expected a Parquet file of claims and at least one of verdicts")
    found = [_matching(patterns) for patterns in (claims, verdicts)]
    claims_sql, verdicts_sql = (f"read_parquet([{', '.join(map(literal, each))}], union_by_name = TRUE)" for each in found)
    return Tables(
        claims=claims_sql,
        verdicts=verdicts_sql,
        claims_name=", ".join(claims),
        verdicts_name=", ".join(verdicts),
        files=tuple(Path(name) for each in found for name in each),
    )


def _matching(patterns: Sequence[str]) -> list[str]:
    names: list[str] = []
    for pattern in patterns:
        matching = [pattern] if Path(pattern).is_file() else sorted(glob.glob(pattern))
        if not matching:
            raise InputError(pattern, [Problem("no such file")])
        for name in matching:
            if not name.endswith(".parquet"):
                raise InputError(name, [Problem("expected Parquet: other files are read into memory (without --on)")])
        names += matching
    return names


def _table(name: str) -> str:
    return ".".join(['source', *('"' + part.replace('"', '""') + '"' for part in name.split("."))])
