"""What does an audit return? A list of flat rows: a figure is a plain number, or None with a
reason; never NaN."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from factaudit.arrays.claim_groups import ALL_TOGETHER

Row = dict[str, Any]

#: The largest number of rows that are a product (pairs of systems, calibrations × systems). An
#: audit that would have more has none.
MOST_PRODUCT_ROWS = 50_000
#: The dataset of a row that is the unweighted mean over datasets.
MACRO_MEAN = "__macro__"
#: The keys that say which evaluators a row is about.
EVALUATOR_KEYS = ("evaluator", "evaluator_a", "evaluator_b")


#: Why a figure has no interval if all its claims are in one cluster: nothing shows how clusters
#: differ.
FEW_CLUSTERS = "fewer than two clusters"


def explain_missing_labels(level: str) -> str:
    """Why rates of claims or responses have no label to use: a response has a label only if all its
    claims have one.

    >>> explain_missing_labels("response")
    'no response has labels for all its claims'
    """
    return (
        "no claim is labelled" if level == "claim" else f"no {level} has labels for all its claims"
    )


def list_row_keys(rows: Sequence[Row]) -> list[str]:
    """The keys of the rows, which are the same in all of them; none if there is no row."""
    return list(rows[0]) if rows else []


def select_rows_by_keys(rows: Sequence[Row], wanted: Mapping[str, Collection[Any]]) -> list[Row]:
    """The rows in which each key has one of the wanted values."""
    return [row for row in rows if all(row[key] in values for key, values in wanted.items())]


def is_total_key(key_value: Any) -> bool:
    """Whether a key's value stands for several others."""
    return key_value in (ALL_TOGETHER, MACRO_MEAN)


def is_redundant_macro_row(row: Row) -> bool:
    """Whether a row is the mean over a single dataset, which has a row of its own."""
    return row.get("dataset") == MACRO_MEAN and row.get("n_datasets") == 1


def group_rows(rows: Iterable[Row], *keys: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows grouped by the values of some keys, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(key) for key in keys), []).append(row)
    return groups
