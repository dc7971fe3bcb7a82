"""What the figures mean for a user: the advice of "Verify with Caution" (VC §6) as checks on the rows of the audits.

Each audit declares its checks; here they are run. A finding is ``{id, severity, evaluator, dataset, statement,
evidence}``: ``fail`` where the interval leaves no doubt, ``warn`` where the figure says so but its interval (or the
lack of one) leaves some, ``ok`` where a check had something to look at and found nothing (once per evaluator; dataset
None). ``evidence`` is a flat dict of the figures in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from factaudit.audit import declared
from factaudit.audit.core.declare import Audited, Check
from factaudit.audit.core.rows import Row


def findings(audits: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None) -> list[Row]:
    """The findings of all checks whose audits are there, in the order of the audits.

    audits: rows by audit name, as in ``results.json``. about: its ``about``, for an evaluator without any row is still
    told about, of a floor (``always-yes``, say) nothing is said, and intervals need clusters.
    """
    everything = Audited(audits, about or {})
    floors = everything.floors
    candidates = Audited(
        {name: [row for row in rows if not floors & _evaluators(row)] for name, rows in audits.items()},
        everything.about,
    )
    found: list[Row] = []
    for check in checks():
        found += _once([{"id": check.id, **asdict(each)} for each in check.run(candidates)])
    return found


def checks() -> list[Check]:
    """All checks, in the order of the audits."""
    return [check for audit in declared().values() for check in audit.checks]


def _once(found: list[Row]) -> list[Row]:
    """Without what a check says of responses where it says the same of claims (a data set of whole responses)."""

    def of_level(finding: Row, level: str) -> tuple[Any, ...]:
        figures = {**finding["evidence"], "level": level}
        return finding["evaluator"], finding["dataset"], tuple(sorted(figures.items(), key=str))

    of_claims = {of_level(each, "claim") for each in found if each["evidence"].get("level") == "claim"}
    return [
        each
        for each in found
        if each["evidence"].get("level") != "response" or of_level(each, "claim") not in of_claims
    ]


def _evaluators(row: Row) -> set[str]:
    return {row[key] for key in ("evaluator", "evaluator_a", "evaluator_b") if key in row}
