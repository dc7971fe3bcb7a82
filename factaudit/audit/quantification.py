"""How well an evaluator quantifies a system's error rate (VC §3.3, Tables 9-11, 13, 14, 16-21, 23, 24, 26, 27, 29)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import Groups, group_by, split
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.audit.core.rows import ALL, Row, counted, number, reasons, without_interval
from factaudit.errors import UsageError


def quantification(
    judged: Judged,
    *,
    levels: Sequence[str] = LEVELS,
    by: Sequence[str] = ("dataset",),
    intervals: Intervals | None = None,
) -> list[Row]:
    """Labelled and predicted error rates of each system, and the bias = predicted - labelled.

    A row per group of ``by``, level, evaluator and system, then one of system ``__all__`` (all claims of the group,
    those without a system too): the keys of ``by``, level, system, evaluator, n (labelled and scored claims or
    responses; all scored ones where none is both), n_unscored, n_unlabelled, labelled_error_rate, predicted_error_rate
    and bias, each with ``_min`` and ``_max`` (what it could be, whatever the missing predictions) and, with intervals,
    ``_low`` and ``_high``. A claim without response_id belongs to no response; the ``__all__`` row says how many.
    """
    by = [column for column in by if column != "system"]  # every row is of a system anyway
    rows: list[tuple[int, Row]] = []
    for level in dict.fromkeys(levels):
        units = judged.at(level)
        whole, left_out = grouped(judged, level, by)
        systems, parents = split(whole, units.claims, "system")
        for evaluator in range(len(judged.evaluators)):
            rows += zip(parents.tolist(), _rows(units, evaluator, level, systems, intervals), strict=True)
            for place, row in enumerate(_rows(units, evaluator, level, whole, intervals)):
                if left_out[place]:
                    outside = f"{counted(left_out[place], 'claim')} without response_id"
                    row["reason"] = reasons([outside, row["reason"] or ""])
                rows.append((place, row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def grouped(judged: Judged, level: str, by: Sequence[str]) -> tuple[Groups, list[int]]:
    """The claims or responses in the groups that the *claims* have (so that a group without a response is seen).

    Also per group how many claims belong to no response. Raises `UsageError` where a response's claims differ in a
    column of ``by``: it would be in several groups.
    """
    groups = group_by(judged.claims, by)
    if level == "claim":
        return groups, [0] * len(groups.keys)
    outside = judged.claims["response_id"].isna().to_numpy()
    left_out = np.bincount(groups.codes[outside], minlength=len(groups.keys)).tolist()
    first, last = judged.response_ends(groups.codes)
    if (first != last).any():
        raise UsageError(f"claims of one response differ in {', '.join(by)}: use levels: [claim]")
    return Groups(first, groups.keys), left_out


def by_system(judged: Judged, level: str) -> Groups:
    """The claims or responses by dataset and system; code -1 where there is no system."""
    return split(grouped(judged, level, ("dataset",))[0], judged.at(level).claims, "system")[0]


def _rows(units: Judged, evaluator: int, level: str, groups: Groups, intervals: Intervals | None) -> list[Row]:
    prediction = units.prediction[evaluator]
    counts = nine.count(groups.codes, len(groups.keys), units.label, prediction)
    over_all = nine.unlabelled(counts)
    bounds = nine.error_rate_bounds(counts)
    figures: dict[str, np.ndarray] = {}
    for name, values in nine.error_rates(counts, over_all).items():
        figures |= {name: values, f"{name}_min": bounds[name][0], f"{name}_max": bounds[name][1]}
    if intervals is not None:
        drawn = nine.replicates(units, evaluator, groups.codes, over_all, intervals)
        figures |= low_high(intervals, nine.error_rates(drawn, over_all))
    sizes = nine.sizes(counts)
    rows = []
    for at, key in enumerate(groups.keys):
        row: Row = {column: value for column, value in key.items() if column != "system"}
        row |= {"level": level, "system": key.get("system", ALL), "evaluator": units.evaluators[evaluator]}
        row |= {name: int(values[at]) for name, values in sizes.items()}
        row |= {name: number(values[at]) for name, values in figures.items()}
        rows.append(row | {"reason": reasons([_undefined(counts[at], row), without_interval(row)])})
    return rows


def _undefined(counts: np.ndarray, row: Row) -> str:
    if not counts.sum():
        return f"no {row['level']}"
    if not row["n"]:
        return f"no {row['level']} is scored"
    if row["labelled_error_rate"] is None:
        unlabelled = not counts[:2].sum()
        return f"no {row['level']} is labelled" + ("" if unlabelled else " and scored") + ": the rate is of all scored"
    return ""
