"""The counts table: published error rates of systems as numbers of claims, where claims and verdicts are not at hand.

A row per dataset, level, system and evaluator: ``n`` claims (or responses) that are labelled and scored, of these
``labelled_errors`` and ``predicted_errors`` (label or prediction 0), or in their place the shares
``labelled_error_rate`` and ``predicted_error_rate``. ``errors_found``, where it is known, is how many of the labelled
errors are predicted errors: with it the whole 2 x 2 table is known.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.tables.columns import no_text, numbers, text
from factaudit.tables.problems import Problems
from factaudit.tables.read import read_table, unit
from factaudit.tables.schema import POSITIONS

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
)
#: What tells rows apart, and what shares its claims (and so their labels).
_KEY = ["dataset", "level", "system", "evaluator"]
_UNITS = _KEY[:3]
_RATES = {"labelled_errors": "labelled_error_rate", "predicted_errors": "predicted_error_rate"}
_LEVELS = ("claim", "response")


def is_counts(table: pd.DataFrame) -> bool:
    """Whether a table that was read is of counts, by its columns."""
    return {"dataset", "evaluator", "n"} <= set(table.columns) and "claim" not in table


def read_counts(path: str | Path) -> pd.DataFrame:
    """Read and validate a counts table (Parquet, JSONL or CSV); raises `InputError` naming file, row and column."""
    return validate_counts(read_table(path), source=str(path), unit=unit(path))


def validate_counts(table: pd.DataFrame, source: str = "counts", unit: str = "row") -> pd.DataFrame:
    """Check a table of counts and bring it into the standard form (`COUNT_COLUMNS`, index 0..n-1).

    ``level`` is ``claim`` and ``system`` null where they are not given. Rates become the nearest number of claims.
    ``errors_found`` is null where it is not known. All rows of one dataset, level and system are of the same claims: n
    and labelled_errors must be the same.
    """
    problems = Problems(source, unit, table.attrs.get(POSITIONS))
    table = table.reset_index(drop=True)
    problems.columns(table, ("dataset", "evaluator", "n"))
    for column, rate in _RATES.items():
        if column not in table and rate not in table:
            problems.add(f"expected a column {column!r} or a column {rate!r}")
    problems.no_rows(table)
    problems.raise_if_any()

    found = {}
    for column in _KEY:
        given = text(table[column], column, problems) if column in table else no_text(table.index)
        if column in ("dataset", "evaluator"):
            problems.mask(given.isna() | (given.str.strip() == ""), column, "expected text, found none")
        found[column] = given.fillna("claim") if column == "level" else given
    problems.mask(~found["level"].isin(_LEVELS), "level", f"expected {' or '.join(_LEVELS)}", table.get("level"))
    n = numbers(table["n"])
    problems.mask(~(_whole(n) & (n >= 1)), "n", "expected a whole number from 1 on", table["n"])
    problems.raise_if_any()
    for column, rate in _RATES.items():
        found[column] = _errors(table, column, rate, n, problems)
    most = found["labelled_errors"].combine(found["predicted_errors"], min)
    least = (found["labelled_errors"] + found["predicted_errors"] - n).clip(lower=0)
    known = numbers(table["errors_found"]) if "errors_found" in table else pd.Series(np.nan, index=table.index)
    if "errors_found" in table:
        bad = table["errors_found"].notna() & ~(_whole(known) & (known >= least) & (known <= most))

        def said(row: int) -> str:
            labelled, predicted = (f"{found[column][row]:.0f} {column.replace('_', ' ')}" for column in _RATES)
            bounds = f"from {least[row]:.0f} to {most[row]:.0f}"
            return f"expected a whole number {bounds} ({labelled}, {predicted}, n {n[row]:.0f}), found {known[row]:g}"

        problems.each(np.flatnonzero(bad), "errors_found", said)
    problems.raise_if_any()

    counts = pd.DataFrame({**found, "n": n, "errors_found": known})[list(COUNT_COLUMNS)]
    counts = counts.astype(dict.fromkeys(("n", *_RATES), "int64") | {"errors_found": "Int64"})
    _check_rows(counts, problems)
    problems.raise_if_any()
    return counts


def _whole(values: pd.Series) -> pd.Series:
    return values.notna() & (values % 1 == 0)


def _errors(table: pd.DataFrame, column: str, rate: str, n: pd.Series, problems: Problems) -> pd.Series:
    """Numbers of errors: the given ones, else the whole numbers nearest to the rates."""
    given = numbers(table[column]) if column in table else pd.Series(np.nan, index=table.index)
    wanted = table[column].notna() if column in table else pd.Series(False, index=table.index)
    if column in table:
        good = _whole(given) & (given >= 0) & (given <= n)
        problems.mask(wanted & ~good, column, "expected a whole number from 0 to n", table[column])
    if rate in table:
        rates = numbers(table[rate])
        good = (rates >= 0) & (rates <= 1)
        problems.mask(~wanted & ~good, rate, "expected a share from 0 to 1 (12.5 % is 0.125)", table[rate])
        given = given.where(wanted, (rates * n).round())
    else:
        problems.mask(~wanted, column, "expected a whole number from 0 to n, found none")
    return given


def _check_rows(counts: pd.DataFrame, problems: Problems) -> None:
    """No row twice, the same claims for all evaluators, and none counted with and without a system."""
    again = counts.duplicated(_KEY).to_numpy()
    problems.mask(again, "evaluator", "expected one row for each dataset, level, system and evaluator")
    for column in ("n", "labelled_errors"):
        first = counts.groupby(_UNITS, dropna=False)[column].transform("first")
        wrong = (counts[column] != first).to_numpy() & ~again
        message = f"expected the {column} of this dataset, level and system's earlier rows (the same claims)"
        problems.mask(wrong, column, message, counts[column])
    systems = counts["system"].notna().groupby([counts["dataset"], counts["level"]])
    mixed = systems.transform("nunique") > 1
    problems.mask(
        (mixed & counts["system"].isna()).to_numpy(),
        "system",
        "expected a system, since other rows of this dataset and level have one: its claims would count twice",
    )
