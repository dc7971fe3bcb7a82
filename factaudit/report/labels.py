"""How names, groups and figures are put in words: one place for tables, figures and text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Row = dict[str, Any]

#: Stands for an undefined figure; its reason is given beside it.
UNDEFINED = "–"

_SPECIAL = {
    ("dataset", "__macro__"): "mean over datasets",
    ("dataset", "__all__"): "all datasets",
    ("system", "__all__"): "all systems",
    ("group", "__all__"): "all systems",
    ("calibration_system", "__cv__"): "mean, each in turn",
}
_METHODS = {
    "none": "no adjustment",
    "adjusted_counts": "adjusted counts",
    "zero_bias_threshold": "threshold: zero bias",
    "bacc_threshold": "threshold: best BAcc",
}
#: Columns that say what a row is about, in the order in which they are shown; all others hold figures.
KEYS = (
    "dataset",
    "task",
    "level",
    "group",
    "class",
    "system",
    "system_a",
    "system_b",
    "evaluator",
    "evaluator_a",
    "evaluator_b",
    "chunked_evaluator",
    "method",
    "calibration_system",
    "r2_diff",
    "bin",
)


def name(column: str, value: Any) -> str:
    """A key's value as a reader should see it: ``__macro__`` is "mean over datasets", null is "–"."""
    if value is None:
        return UNDEFINED
    if column == "method":
        return _METHODS.get(str(value), str(value))
    return _SPECIAL.get((column, str(value)), str(value))


def is_total(value: Any) -> bool:
    """Whether a key's value stands for several others (``__all__``, ``__macro__``)."""
    return value in ("__all__", "__macro__")


def group_columns(rows: Sequence[Row], known: Iterable[str]) -> list[str]:
    """The columns that rows are grouped ``by``: `dataset`, and whatever text columns an experiment asked for.

    ``known`` are the audit's other key columns. `dataset` is left out where it is all datasets and another column tells
    the rows apart.
    """
    taken = {*known, "reason", "labelled_order", "predicted_order", "labelled_system", "predicted_system", "dataset"}
    others = [
        column
        for column in dict.fromkeys(column for row in rows for column in row)
        if column not in taken
        and any(isinstance(row.get(column), str) for row in rows)
        and all(row.get(column) is None or isinstance(row[column], str) for row in rows)
    ]
    if others and all(row.get("dataset") in (None, "__all__") for row in rows):
        return others
    return ["dataset", *others]


def group_label(row: Row, columns: Sequence[str]) -> str:
    """One label for a row's group: ``MediaSum`` or ``MediaSum · numbers``."""
    if is_total(row.get("dataset")):
        return name("dataset", row["dataset"])
    return " · ".join(name(column, row.get(column)) for column in columns)


def unique(values: Iterable[Any]) -> list[Any]:
    """Distinct values in order of first appearance."""
    return list(dict.fromkeys(values))
