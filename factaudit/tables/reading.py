"""Reads claims and verdicts with factaudit's columns from files and validates them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.column_parsing import TEXT_DTYPE
from factaudit.tables.schema import name_row_unit
from factaudit.tables.table_files import read_table
from factaudit.tables.validation import (
    make_claim_ids,
    make_empty_verdicts,
    merge_claim_tables,
    merge_verdict_tables,
    validate_claims,
    validate_verdicts,
)


def read_claims(*paths: str | Path) -> pd.DataFrame:
    """Read and validate claims from one or several files, in the order given.

    Returns a DataFrame with all of `CLAIM_COLUMNS` (missing optional ones null), then any extra
    columns. Raises `InputError` naming file, row and column.
    """
    return combine_claims([read_table(path) for path in paths], [str(path) for path in paths])


def combine_claims(
    tables: Sequence[pd.DataFrame], sources: Sequence[str], remedy: str = ""
) -> pd.DataFrame:
    """Validate tables of claims and put them under each other, as `read_claims` does."""
    validated = [
        validate_claims(table, source=source, unit=name_row_unit(source), remedy=remedy)
        for table, source in zip(tables, sources, strict=True)
    ]
    new = [
        claims for table, claims in zip(tables, validated, strict=True) if "claim_id" not in table
    ]
    if len(tables) > 1 and new:
        # Ids are made over all files together, so that equal rows in two files get different ids.
        ids = iter(make_claim_ids(pd.concat(new, ignore_index=True)))
        for claims in new:
            claims["claim_id"] = pd.Series(list(islice(ids, len(claims))), dtype=TEXT_DTYPE)
    return merge_claim_tables(validated, sources)


def read_verdicts(*paths: str | Path, claims: pd.DataFrame | None = None) -> pd.DataFrame:
    """Read and validate verdicts from one or several files, and against ``claims`` if given.

    Returns a DataFrame with `VERDICT_COLUMNS`. Raises `InputError` naming file, row and column.
    """
    return combine_verdicts(
        [read_table(path) for path in paths], [str(path) for path in paths], claims
    )


def combine_verdicts(
    tables: Sequence[pd.DataFrame], sources: Sequence[str], claims: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Validate tables of verdicts and put them under each other, as `read_verdicts` does."""
    validated = [
        validate_verdicts(table, claims=claims, source=source, unit=name_row_unit(source))
        for table, source in zip(tables, sources, strict=True)
    ]
    return merge_verdict_tables(validated, sources)


def read_run_tables(run_dir: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The claims and verdicts of a run folder. If only people judged the claims, there are no
    verdicts. Raises `InputError` if the folder has no claims, for example because it holds a run of
    a counts table."""
    claims_file, verdicts_file = run_dir / "claims.parquet", run_dir / "verdicts.parquet"
    has_people = (run_dir / "annotations.parquet").is_file()
    for path, is_needed in ((claims_file, True), (verdicts_file, not has_people)):
        if is_needed and not path.is_file():
            raise InputError(
                str(run_dir), [Problem(f"the run folder has no {path.name}: there are no claims")]
            )
    claims = read_claims(claims_file)
    if not verdicts_file.is_file():
        return claims, make_empty_verdicts()
    return claims, read_verdicts(verdicts_file, claims=claims)
