"""The two tables that everything reads and writes: claims and verdicts.

A *claim* is one statement to check against one document; a *verdict* is what one evaluator said of one claim. Both are
pandas DataFrames with the columns of `factaudit.tables.schema`, kept as Parquet, JSONL or CSV (the last two also
``.gz``). Reading validates: all that is wrong with a file is reported together, by row and column.
"""

from factaudit.tables.plain import records
from factaudit.tables.read import read_claims, read_run, read_table, read_verdicts
from factaudit.tables.schema import CLAIM_COLUMNS, DEFAULT_THRESHOLD, STATUSES, VERDICT_COLUMNS, VERDICT_KEY, suffix
from factaudit.tables.validate import (
    claim_positions,
    make_claim_ids,
    merge_claims,
    merge_verdicts,
    validate_claims,
    validate_verdicts,
)
from factaudit.tables.write import write_table

__all__ = [
    "CLAIM_COLUMNS",
    "DEFAULT_THRESHOLD",
    "STATUSES",
    "VERDICT_COLUMNS",
    "VERDICT_KEY",
    "claim_positions",
    "make_claim_ids",
    "merge_claims",
    "merge_verdicts",
    "read_claims",
    "read_run",
    "read_table",
    "read_verdicts",
    "records",
    "suffix",
    "validate_claims",
    "validate_verdicts",
    "write_table",
]
