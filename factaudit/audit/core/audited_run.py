"""What do checks, decisions and the first screen read? The rows of a run by audit, its limits, and
the evaluators that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit.core.audit_declaration import DEFAULT_CONFIDENCE, Column
from factaudit.audit.core.decision_limits import DecisionLimits, open_share
from factaudit.audit.core.result_rows import (
    EVALUATOR_KEYS,
    MACRO_MEAN,
    Row,
    group_rows,
    is_redundant_macro_row,
)
from factaudit.audit.core.wording import fill

if TYPE_CHECKING:
    from factaudit.audit.core import checks


@dataclass(frozen=True)
class AuditedRun:
    """The rows of a run by audit, and what they are ``about`` (as in ``results.json``).

    columns: the columns that each audit declares; `factaudit.audit.make_audited_run` fills them in.
    """

    audits: Mapping[str, Sequence[Row]]
    about: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Mapping[str, Column]] = field(default_factory=dict)
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
        if set(asked) - {"dataset", *self.columns.get(audit, ())}:
            return
        for row in self.rows(audit):
            is_wanted = all(row.get(key) == value for key, value in wanted.items())
            if (
                is_wanted
                and row["dataset"] != MACRO_MEAN
                and (figure is None or row.get(figure) is not None)
            ):
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
        return AuditedRun(audits, self.about, self.columns)

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
