"""May an evaluator be used for a task? The limits that say so, and how sure a figure is of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from factaudit.audit.core.declare import Audited
from factaudit.audit.core.rows import Row
from factaudit.errors import UsageError, hint


@dataclass(frozen=True)
class Limits:
    """What is asked of an evaluator, in shares; a run can set its own.

    min_rate: both TPR and TNR, to find single errors. max_bias: of each system's error rate, to report it.
    max_misordered: share of pairs of systems, to rank them. min_orderable: share of pairs that the labels must order,
    before they can say anything of a ranking. max_unscored: with a larger share unscored or guessed, sentences state
    bounds instead of the figure.
    """

    min_rate: float = 0.8
    max_bias: float = 0.05
    max_misordered: float = 0.1
    min_orderable: float = 0.25
    max_unscored: float = 0.1

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Limits:
        """The defaults with some given; raises `UsageError` for an unknown name or a value outside [0, 1]."""
        names = [field.name for field in fields(cls)]
        for name, value in (given or {}).items():
            if name not in names:
                raise UsageError(f"limits: unknown limit {name!r}{hint(name, names)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise UsageError(f"limits: expected {name} between 0 and 1, found {value!r}")
        return cls(**(given or {}))

    def given(self) -> dict[str, float]:
        return asdict(self)


def limits_of(audited: Audited) -> Limits:
    """The limits of a run: those that its ``about`` has, else the defaults."""
    return Limits.of(audited.about.get("limits"))


def range_of(row: Row, key: str) -> tuple[float, float] | None:
    """Between what a figure lies for sure: its interval, widened to its bounds; None without an interval.

    Bounds say what the figure of these claims could be, the interval what other claims would make of it: where claims
    are unscored, the interval is moved to either bound.
    """
    value, low, high = row.get(key), row.get(f"{key}_low"), row.get(f"{key}_high")
    if value is None or low is None or high is None:
        return None
    least, most = row.get(f"{key}_min"), row.get(f"{key}_max")
    return low - (value - (value if least is None else least)), high + ((value if most is None else most) - value)


def surely_above(row: Row, key: str, limit: float) -> bool:
    """Whether a figure is over a limit by its interval and its bounds."""
    found = range_of(row, key)
    return found is not None and found[0] > limit


def surely_below(row: Row, key: str, limit: float) -> bool:
    """Whether a figure is under a limit by its interval and its bounds."""
    found = range_of(row, key)
    return found is not None and found[1] < limit


def surely_within(row: Row, key: str, limit: float) -> bool:
    """Whether a figure is no farther than ``limit`` from 0 by its interval and its bounds."""
    found = range_of(row, key)
    return found is not None and -limit <= found[0] and found[1] <= limit


def surely_beyond(row: Row, key: str, limit: float) -> bool:
    """Whether a figure is farther than ``limit`` from 0, to one side, by its interval and its bounds."""
    return surely_above(row, key, limit) or surely_below(row, key, -limit)


def unsure_share(row: Row) -> float:
    """The share of claims that are unscored or guessed."""
    lacking = (row.get("n_unscored") or 0) + (row.get("n_guessed") or 0)
    whole = (row.get("n") or 0) + (row.get("n_unscored") or 0)
    return lacking / whole if whole else 0.0
