"""What the checks of several audits need: rows in groups, and how sure a figure is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from factaudit.audit.core.declare import Severity
from factaudit.audit.core.rows import Row

#: |TPR - TNR| over this is a lopsided evaluator (VC §6: 20 points).
MAX_GAP = 0.20


def by_keys(rows: Iterable[Row], *keys: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Rows by the values of some keys, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    yield from groups.items()


def by_evaluator(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    """`by_keys` of the evaluator."""
    for (evaluator,), group in by_keys(rows, "evaluator"):
        yield evaluator, group


def pair_name(a: Row, b: Row) -> str:
    """Two evaluators as the one that a finding is about."""
    return f"{a['evaluator']} / {b['evaluator']}"


def beyond(row: Row, key: str, limit: float, below: bool = False) -> Severity:
    """``fail`` where the whole interval of a figure is beyond the limit (away from 0, or below it), else ``warn``."""
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None:
        return "warn"
    return "fail" if (high < limit if below or limit < 0 else low > limit) else "warn"


def evidence_of(row: Row, *keys: str) -> Row:
    """Some figures of a row, those that it has."""
    return {key: row[key] for key in keys if key in row}


def of_datasets(some: Sequence[Any], every: Sequence[Any], noun: str = "dataset") -> str:
    """`` on 9 of 14 datasets``, with the space before it; "" where there is but one."""
    return "" if len(every) < 2 else f" on {len(some)} of {len(every)} {noun}s"


def names(items: Sequence[str], most: int = 4) -> str:
    """``a, b and 3 more``."""
    shown = ", ".join(items[:most])
    return shown if len(items) <= most else f"{shown} and {len(items) - most} more"
