"""When may an evaluator be used for a task? The limits that decide this, and how certain a figure
is with respect to them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError, suggest_known_name

#: An evaluator is not stable if a larger share of its verdicts changes although nothing relevant
#: has changed.
MAX_FLIP_RATE = 0.05


@dataclass(frozen=True)
class DecisionLimits:
    """The limits that decide whether an evaluator may be used for a task, in shares. A run can set
    its own.

    min_rate: for both TPR and TNR, to find single errors.
    max_bias: for each system's error rate, to report it.
    max_misordered: the share of pairs of systems that labels and predictions may order differently,
    to rank systems (one significantly reversed pair forbids it).
    min_orderable: the share of pairs that the labels must order before they say anything about a
    ranking.
    max_unscored: if a larger share is unscored or guessed, sentences state bounds instead of the
    figure.
    """

    min_rate: float = 0.8
    max_bias: float = 0.05
    max_misordered: float = 0.1
    min_orderable: float = 0.25
    max_unscored: float = 0.1

    @classmethod
    def parse(cls, limits: Mapping[str, Any] | None) -> DecisionLimits:
        """The defaults with some values replaced. Raises `UsageError` for an unknown name or a
        value outside [0, 1]."""
        names = [field.name for field in fields(cls)]
        for name, value in (limits or {}).items():
            if name not in names:
                raise UsageError(
                    f"require: unknown limit {name!r}{suggest_known_name(name, names)}"
                )
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UsageError(f"require: expected {name} between 0 and 1, found {value!r}")
        return cls(**(limits or {}))

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def widen_interval(row: Row, key: str) -> tuple[float, float]:
    """The interval of a figure, widened to its bounds. Without an interval it is NaN, which is
    beyond no limit.

    Bounds say what the figure of these claims could be; the interval says what it would be for
    other claims. If claims are unscored, the interval is moved to either bound.
    """
    value, low, high, least, most = (
        row.get(f"{key}{end}") for end in ("", "_low", "_high", "_min", "_max")
    )
    if value is None or low is None or high is None:
        return math.nan, math.nan
    least, most = (value if end is None else end for end in (least, most))
    return low - (value - least), high + (most - value)


def has_interval(row: Row, key: str) -> bool:
    """Whether a figure has an interval. Without one, nothing follows about its true value."""
    return row.get(f"{key}_low") is not None and row.get(f"{key}_high") is not None


def is_within(row: Row, key: str, limit: float) -> bool:
    """Whether a figure is no farther from 0 than a limit, by its interval and its bounds."""
    low, high = widen_interval(row, key)
    return -limit <= low and high <= limit


def count_open(row: Row) -> int:
    """The number of claims that are unscored or guessed."""
    return (row.get("n_unscored") or 0) + (row.get("n_guessed") or 0)


def open_share(row: Row) -> float:
    """The share of claims that are unscored or guessed."""
    whole = (row.get("n") or 0) + (row.get("n_unscored") or 0)
    return count_open(row) / whole if whole else 0.0
