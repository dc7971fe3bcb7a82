"""The counts table: published error rates of systems as numbers of claims, for papers that do not
publish claims and verdicts.

A row for each dataset, level, system and evaluator: ``n`` claims (or responses) that are labelled
and scored; of these, ``labelled_errors`` and ``predicted_errors`` with label or prediction 0, or
instead the shares ``labelled_error_rate`` and ``predicted_error_rate``. ``errors_found``, if known,
is the number of labelled errors that are predicted errors; with it the whole 2 x 2 table is known.
``n_known`` is 0 if the numbers of claims are not published, but were chosen to fit rounded rates.
Rates, orders and corrections of systems can then be computed, but not what depends on the numbers,
such as an interval.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.tables.column_parsing import (
    make_empty_text_column,
    parse_number_column,
    parse_text_column,
)
from factaudit.tables.problems import TableProblemCollector
from factaudit.tables.schema import POSITIONS_KEY, name_row_unit
from factaudit.tables.table_files import read_table

#: Columns of the counts table, in order.
COUNT_COLUMNS = (
    "dataset",
    "level",
    "system",
    "evaluator",
    "n",
    "labelled_errors",
    "predicted_errors",
    "errors_found",
    "n_known",
)
#: The key of a row, and the key of the claims (and so of the labels) that rows share.
_KEY_COLUMNS = ["dataset", "level", "system", "evaluator"]
_CLAIM_SET_COLUMNS = _KEY_COLUMNS[:3]
_RATE_COLUMNS = {
    "labelled_errors": "labelled_error_rate",
    "predicted_errors": "predicted_error_rate",
}
_LEVELS = ("claim", "response")


def is_counts_table(table: pd.DataFrame) -> bool:
    """Whether a table has the columns of a counts table."""
    return {"dataset", "evaluator", "n"} <= set(table.columns) and "claim" not in table


def read_counts(path: str | Path) -> pd.DataFrame:
    """Read and validate a counts table (Parquet, JSONL or CSV). Raises `InputError` naming file,
    row and column."""
    return validate_counts(read_table(path), source=str(path), unit=name_row_unit(path))


def validate_counts(table: pd.DataFrame, source: str = "counts", unit: str = "row") -> pd.DataFrame:
    """Check a table of counts and bring it into the standard form (`COUNT_COLUMNS`, index 0..n-1).

    A missing ``level`` is ``claim``, a missing ``system`` null, a missing ``errors_found`` null,
    and a missing ``n_known`` 1. Rates become the nearest number of claims. All rows of one dataset,
    level and system are about the same claims, so their n and labelled_errors must be equal.
    """
    problems = TableProblemCollector(source, unit, table.attrs.get(POSITIONS_KEY))
    table = table.reset_index(drop=True)
    problems.add_missing_columns(table, ("dataset", "evaluator", "n"))
    for column, rate in _RATE_COLUMNS.items():
        if column not in table and rate not in table:
            problems.add(f"expected a column {column!r} or a column {rate!r}")
    problems.add_if_empty(table)
    problems.raise_if_any()

    found = {}
    for column in _KEY_COLUMNS:
        given = (
            parse_text_column(table[column], column, problems)
            if column in table
            else make_empty_text_column(table.index)
        )
        if column in ("dataset", "evaluator"):
            problems.add_where(
                given.isna() | (given.str.strip() == ""), column, "expected text, found none"
            )
        found[column] = given.fillna("claim") if column == "level" else given
    problems.add_where(
        ~found["level"].isin(_LEVELS),
        "level",
        f"expected {' or '.join(_LEVELS)}",
        table.get("level"),
    )
    n = parse_number_column(table["n"])
    problems.add_where(
        ~(_is_whole_number(n) & (n >= 1)), "n", "expected a whole number from 1 on", table["n"]
    )
    problems.raise_if_any()
    for column, rate in _RATE_COLUMNS.items():
        found[column] = _parse_counts_table_errors(table, column, rate, n, problems)
    most = found["labelled_errors"].combine(found["predicted_errors"], min)
    least = (found["labelled_errors"] + found["predicted_errors"] - n).clip(lower=0)
    known = (
        parse_number_column(table["errors_found"])
        if "errors_found" in table
        else pd.Series(np.nan, index=table.index)
    )
    if "errors_found" in table:
        bad = table["errors_found"].notna() & ~(
            _is_whole_number(known) & (known >= least) & (known <= most)
        )

        def said(row: int) -> str:
            labelled, predicted = (
                f"{found[column][row]:.0f} {column.replace('_', ' ')}" for column in _RATE_COLUMNS
            )
            bounds = f"from {least[row]:.0f} to {most[row]:.0f}"
            return (
                f"expected a whole number {bounds} ({labelled}, {predicted}, n {n[row]:.0f}), found"
                f" {known[row]:g}"
            )

        problems.add_rows(np.flatnonzero(bad), "errors_found", said)
    n_known = pd.Series(1, index=table.index)
    if "n_known" in table:
        n_known = parse_number_column(table["n_known"])
        problems.add_where(~n_known.isin((0, 1)), "n_known", "expected 1 or 0", table["n_known"])
    problems.raise_if_any()

    counts = pd.DataFrame({**found, "n": n, "errors_found": known, "n_known": n_known})[
        list(COUNT_COLUMNS)
    ]
    counts = counts.astype(
        dict.fromkeys(("n", *_RATE_COLUMNS, "n_known"), "int64") | {"errors_found": "Int64"}
    )
    _report_inconsistent_counts(counts, problems)
    problems.raise_if_any()
    return counts


def _is_whole_number(values: pd.Series) -> pd.Series:
    return values.notna() & (values % 1 == 0)


def _parse_counts_table_errors(
    table: pd.DataFrame,
    count_column: str,
    rate_column: str,
    n: pd.Series,
    problems: TableProblemCollector,
) -> pd.Series:
    """Numbers of errors: as given, or else the whole numbers nearest to the rates."""
    given = (
        parse_number_column(table[count_column])
        if count_column in table
        else pd.Series(np.nan, index=table.index)
    )
    wanted = (
        table[count_column].notna()
        if count_column in table
        else pd.Series(False, index=table.index)
    )
    if count_column in table:
        good = _is_whole_number(given) & (given >= 0) & (given <= n)
        problems.add_where(
            wanted & ~good, count_column, "expected a whole number from 0 to n", table[count_column]
        )
    if rate_column in table:
        rates = parse_number_column(table[rate_column])
        good = (rates >= 0) & (rates <= 1)
        problems.add_where(
            ~wanted & ~good,
            rate_column,
            "expected a share from 0 to 1 (12.5 % is 0.125)",
            table[rate_column],
        )
        given = given.where(wanted, (rates * n).round())
    else:
        problems.add_where(~wanted, count_column, "expected a whole number from 0 to n, found none")
    return given


def _report_inconsistent_counts(counts: pd.DataFrame, problems: TableProblemCollector) -> None:
    """Report repeated rows, evaluators with different claims, and data sets with and without
    systems."""
    again = counts.duplicated(_KEY_COLUMNS).to_numpy()
    problems.add_where(
        again, "evaluator", "expected one row for each dataset, level, system and evaluator"
    )
    for column in ("n", "labelled_errors"):
        first = counts.groupby(_CLAIM_SET_COLUMNS, dropna=False)[column].transform("first")
        wrong = (counts[column] != first).to_numpy() & ~again
        message = (
            f"expected the {column} of this dataset, level and system's earlier rows (the same"
            " claims)"
        )
        problems.add_where(wrong, column, message, counts[column])
    systems = counts["system"].notna().groupby([counts["dataset"], counts["level"]])
    mixed = systems.transform("nunique") > 1
    problems.add_where(
        (mixed & counts["system"].isna()).to_numpy(),
        "system",
        "expected a system, since other rows of this dataset and level have one: its claims would"
        " count twice",
    )
