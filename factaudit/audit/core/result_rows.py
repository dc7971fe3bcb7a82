"""What does an audit return? A list of flat rows.

A row has its keys, counts, each figure with its bounds (``_min``, ``_max``) and interval (``_low``,
``_high``), and ``reason``, which says what is null and why. A figure is a plain number, or None;
never NaN. `tabulate` makes a row for each group, `average_datasets` the means over data sets.

    >>> from factaudit.arrays.figures import Figure
    >>> tpr = Figure(np.array([0.5, np.nan]), bounds=(np.array([0.4, 0.0]), np.array([0.6, 1.0])))
    >>> keys, counts = [{"dataset": "a"}, {"dataset": "b"}], {"n": np.array([8, 0])}
    >>> reasons = {"no claim is scored": np.array([False, True])}
    >>> for row in tabulate(keys, counts, {"tpr": tpr}, reasons):
    ...     print(row)  # doctest: +NORMALIZE_WHITESPACE
    {'dataset': 'a', 'n': 8, 'tpr': 0.5, 'tpr_min': 0.4, 'tpr_max': 0.6, 'reason': None}
    {'dataset': 'b', 'n': 0, 'tpr': None, 'tpr_min': 0.0, 'tpr_max': 1.0,
     'reason': 'no claim is scored'}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.arrays.response_means import mean_of_defined
from factaudit.stats import name_ends
from factaudit.stats.mover import mover_weighted_sum
from factaudit.text.display_text import join_reasons

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


# ---- making rows


def tabulate(
    keys: Sequence[Row],
    counts: Mapping[str, Any],
    figures: Mapping[str, Figure],
    reasons: Mapping[str, Sequence[bool] | np.ndarray] | None = None,
    few_clusters: str = FEW_CLUSTERS,
) -> list[Row]:
    """A row for each of N keys.

    counts: whole numbers (N,) by name, or any other values that go into the rows as they are.
    figures: by name, arrays (N,). reasons: bool (N,) by a sentence that the row's reason contains
    where the value is True, after the key's own ``reason``. few_clusters: why a figure has no
    interval.
    """
    columns = {
        name: values.tolist() if isinstance(values, np.ndarray) else values
        for name, values in counts.items()
    }
    for name, figure in figures.items():
        columns |= list_figure_columns(name, figure)
    rows = []
    for at, key in enumerate(keys):
        row = key | {name: values[at] for name, values in columns.items()}
        why = [text for text, applies in (reasons or {}).items() if applies[at]]
        rows.append(explain_row(row, figures, [key.get("reason") or "", *why], few_clusters))
    return rows


def explain_row(
    row: Row,
    figures: Iterable[str],
    reasons: Sequence[str] = (),
    few_clusters: str = FEW_CLUSTERS,
) -> Row:
    """The row with its ``reason``: the given reasons (else the names of the undefined figures), and
    the figures that lack an interval.

    few_clusters: why a figure has no interval.
    """
    undefined = [name for name in figures if row[name] is None]
    lacking = [
        name for name in figures if name not in undefined and row.get(f"{name}_low", 0) is None
    ]
    texts = [text for text in reasons if text]
    if undefined and not texts:
        texts.append(f"undefined: {', '.join(undefined)}")
    if lacking:
        texts.append(f"no interval for {', '.join(lacking)}: {few_clusters}")
    return row | {"reason": join_reasons(texts)}


def list_figure_columns(name: str, figure: Figure) -> dict[str, list[float | None]]:
    """The columns of a figure: NAME, its bounds ``_min`` and ``_max``, and its interval ``_low``
    and ``_high``."""
    columns = {name: _list_plain_numbers(figure.point)}
    for ends, names in ((figure.bounds, ("min", "max")), (figure.interval, ("low", "high"))):
        for end, values in zip(names, ends or (), strict=False):
            columns[f"{name}_{end}"] = _list_plain_numbers(values)
    return columns


def pick_figure(name: str, figure: Figure, place: int) -> Row:
    """A figure of one group as part of a row."""
    return {key: values[place] for key, values in list_figure_columns(name, figure).items()}


def interleave(rows_by_evaluator: Iterable[Sequence[Row]]) -> list[Row]:
    """The rows of several evaluators (or pairs of them) that have the same groups, sorted by
    group."""
    return [row for rows in zip(*rows_by_evaluator, strict=True) for row in rows]


def average_datasets(
    rows: Sequence[Row],
    keys: Sequence[str],
    figures: Sequence[str],
    counts: Sequence[str],
    remark: str = "",
) -> list[Row]:
    """For rows with equal ``keys``, the unweighted mean of each figure over the data sets on which
    it is defined.

    ``counts`` are summed; columns that are neither counts nor figures are null. Bounds are means
    over the rows that have them, and contain the mean. The interval is MOVER's for independent data
    sets; it is null if a defined figure has none. remark: added to the reason of each mean.
    """
    means = []
    for values, group in group_rows(rows, *keys).items():
        mean = dict.fromkeys(rows[0]) | {
            "dataset": MACRO_MEAN,
            **dict(zip(keys, values, strict=True)),
        }
        mean |= {name: sum(row[name] for row in group) for name in counts}
        for key in figures:
            mean |= _average_figure(group, key)
        lacking = [key for key in figures if any(row[key] is None for row in group)]
        why = f"undefined in a data set: {', '.join(lacking)}" if lacking else ""
        means.append(explain_row(mean, figures, [why, remark], "a data set has none"))
    return means


def _average_figure(rows: Sequence[Row], key: str) -> Row:
    point, least, most, low, high = (
        np.array([row.get(f"{key}{end}") for row in rows], dtype=float)
        for end in ("", "_min", "_max", "_low", "_high")
    )
    known = ~np.isnan(point)
    mean = mean_of_defined(point)
    found: Row = {key: mean}
    for end, values, narrower in (("min", least, min), ("max", most, max)):
        if f"{key}_{end}" in rows[0]:
            # A row without the figure may have bounds, so the mean of the bounds can be over more
            # data sets.
            bound = mean_of_defined(values)
            found[f"{key}_{end}"] = (
                bound if mean is None or bound is None else narrower(bound, mean)
            )
    if f"{key}_low" in rows[0] and known.any():
        weight = np.full(known.sum(), 1 / known.sum())
        found |= name_ends(
            key, mover_weighted_sum(point[known], (low[known], high[known]), weight)[1]
        )
    return found


def _list_plain_numbers(values: np.ndarray) -> list[float | None]:
    return [None if value != value else value for value in np.asarray(values, dtype=float).tolist()]
