"""The tables that everything reads and writes: claims and verdicts.

A *claim* is one statement to check against one document. A *verdict* is what one evaluator said
about one claim. Both are pandas DataFrames with the columns of `factaudit.tables.schema`, stored as
Parquet, JSONL or CSV (the last two also ``.gz``). Reading validates them and reports all that is
wrong with a file at once, by row and column. Users' own tables are read by the names of their
columns (`factaudit.tables.table_loading`).
"""

from factaudit.tables.plain_values import list_plain_rows
from factaudit.tables.reading import read_claims, read_run_tables, read_verdicts
from factaudit.tables.schema import (
    CLAIM_COLUMNS,
    DEFAULT_THRESHOLD,
    STATUSES,
    VERDICT_COLUMNS,
    VERDICT_KEY,
    parse_table_suffix,
)
from factaudit.tables.table_files import read_table
from factaudit.tables.validation import (
    find_claim_positions,
    make_claim_ids,
    merge_claim_tables,
    merge_verdict_tables,
    validate_claims,
    validate_verdicts,
)
from factaudit.tables.writing import write_table

__all__ = [
    "CLAIM_COLUMNS",
    "DEFAULT_THRESHOLD",
    "STATUSES",
    "VERDICT_COLUMNS",
    "VERDICT_KEY",
    "find_claim_positions",
    "list_plain_rows",
    "make_claim_ids",
    "merge_claim_tables",
    "merge_verdict_tables",
    "parse_table_suffix",
    "read_claims",
    "read_run_tables",
    "read_table",
    "read_verdicts",
    "validate_claims",
    "validate_verdicts",
    "write_table",
]
