"""What do checks, decisions and the first screen read? The rows of a run by audit, its limits, and
the evaluators that they are about."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE
from factaudit.audit.core.result_rows import (
    EVALUATOR_KEYS,
    MACRO_MEAN,
    Row,
    group_rows,
    is_redundant_macro_row,
)
from factaudit.audit.core.wording import fill
from factaudit.errors import UsageError, suggest_known_name

if TYPE_CHECKING:
    from factaudit.audit.core import checks


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


@dataclass(frozen=True)
class AuditedRun:
    """The rows of a run by audit, and what they are ``about`` (as in ``results.json``)."""

    audits: Mapping[str, Sequence[Row]]
    about: Mapping[str, Any] = field(default_factory=dict)
    _found: dict[str, list[checks.Finding]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def rows(self, audit: str) -> Sequence[Row]:
        """The rows of an audit; none if it was not computed."""
        return self.audits.get(audit, [])

    def per_dataset(self, audit: str, figure: str | None = None, **wanted: str) -> Iterator[Row]:
        """The rows of single data sets (or of all together) that have these values and whose
        ``figure`` is defined. There are none if rows are split by a column of the claims."""
        asked = (self.about.get("options") or {}).get(audit, {}).get("by") or ()
        if set(asked) - {"dataset"}:
            return
        for row in self.rows(audit):
            is_wanted = all(row.get(key) == value for key, value in wanted.items())
            is_known = figure is None or row.get(figure) is not None
            if is_wanted and is_known and row["dataset"] != MACRO_MEAN:
                yield row

    def overall(self, audit: str) -> dict[str, Row]:
        """For each evaluator the one row that is about all claims: the mean over data sets, else
        its only row."""
        found: dict[str, Row] = {}
        for (evaluator,), rows in group_rows(self.rows(audit), "evaluator").items():
            mine = [row for row in rows if not is_redundant_macro_row(row)]
            means, wholes = (
                [row for row in mine if row.get("dataset") == one]
                for one in (MACRO_MEAN, ALL_TOGETHER)
            )
            for choice in (mine, wholes, means):
                if len(choice) == 1:
                    found[evaluator] = choice[0]
        return found

    @property
    def floors(self) -> set[str]:
        """The evaluators that read nothing (such as ``always-yes``). Others are compared with them,
        and they are never candidates."""
        return {each["name"] for each in self.about.get("evaluators") or [] if each.get("floor")}

    @cached_property
    def confidence(self) -> float:
        """The confidence of all intervals. 1 minus it is the probability of a false alarm."""
        return float(self.about.get("confidence") or DEFAULT_CONFIDENCE)

    @cached_property
    def limits(self) -> DecisionLimits:
        """The limits in ``about``, else the defaults."""
        return DecisionLimits.parse(self.about.get("limits"))

    @cached_property
    def cluster_counts(self) -> Mapping[str, int]:
        """For each data set its number of documents (else responses, else claims), if it is
        known."""
        claims = self.about.get("claims") or []
        return {
            row["dataset"]: row["n_clusters"] for row in claims if row.get("n_clusters") is not None
        }

    @cached_property
    def candidates(self) -> AuditedRun:
        """The rows without floors. Checks look at these."""
        audits = {
            name: [
                row for row in rows if not self.floors & {row.get(key) for key in EVALUATOR_KEYS}
            ]
            for name, rows in self.audits.items()
        }
        return AuditedRun(audits, self.about)

    def find(self, check: checks.Check) -> list[checks.Finding]:
        """What a check finds in this run, including findings that say nothing. It is computed
        once."""
        if check.id not in self._found:
            self._found[check.id] = check.find(self.candidates)
        return self._found[check.id]

    def is_open(self, row: Row) -> bool:
        """Whether so much of a row is unscored or guessed that bounds say more than the figure."""
        return open_share(row) > self.limits.max_unscored

    def fill(self, template: str, row: Row) -> str:
        """The template with the figures of a row, or with their bounds if too much is open."""
        return fill(template, row, self.is_open(row))
