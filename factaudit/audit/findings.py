"""What do the figures mean for a user? The checks of all audits, run on their rows (VC §6).

Each audit declares its checks; here they are run. A finding is ``{id, severity, evaluator, dataset, statement,
evidence}``: ``fail`` where the interval leaves no doubt, ``warn`` where the figure says so but its interval (or the
lack of one) leaves some, ``ok`` where a check had something to look at and found nothing (once per evaluator; dataset
None). ``evidence`` is a flat dict of the figures in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from typing import Any

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core import checks
from factaudit.audit.core.audit_declaration import AuditedRun, Check
from factaudit.audit.core.result_rows import Row


def run_audit_checks(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> tuple[list[Row], dict[str, int]]:
    """The findings of all checks whose audits are there, in the order of the audits; and how many tests each check
    made, by its id.

    audit_rows: rows by audit name, as in ``results.json``. about: its ``about``, with the evaluators (one without any
    row gets a finding, floors such as ``always-yes`` get none) and the number of clusters.
    """
    candidates = _make_run_without_floors(audit_rows, about)
    found: list[Row] = []
    n_tests: dict[str, int] = {}
    for check in list_checks():
        if isinstance(check, checks.Check):
            found += [one.as_dict() for one in candidates.find(check) if one.severity is not None]
            n_tests[check.id] = check.count_tests(candidates)
            continue
        candidates.test_counts.clear()
        found += _drop_response_findings_equal_to_claim_findings(
            [{"id": check.id, **asdict(each)} for each in check.run(candidates)]
        )
        n_tests[check.id] = sum(candidates.test_counts)
        if n_tests[check.id] and check.lacks and check.lacks(candidates):
            n_tests[check.id] = 0  # there was nothing to look at
    return found, {name: n for name, n in n_tests.items() if n}


def _make_run_without_floors(audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None) -> AuditedRun:
    floors = AuditedRun(audit_rows, about or {}).floors
    return make_audited_run({name: _drop_evaluator_rows(rows, floors) for name, rows in audit_rows.items()}, about)


def list_checks() -> list[Check | checks.Check]:
    """All checks, in the order of the audits."""
    return [check for audit in load_all_audits().values() for check in audit.checks]


def _drop_response_findings_equal_to_claim_findings(findings: list[Row]) -> list[Row]:
    """Without what a check says of responses where it says the same of claims (a data set of whole responses)."""

    def of_level(finding: Row, level: str) -> tuple[Any, ...]:
        figures = {**finding["evidence"], "level": level}
        return finding["evaluator"], finding["dataset"], tuple(sorted(figures.items(), key=str))

    of_claims = {of_level(each, "claim") for each in findings if each["evidence"].get("level") == "claim"}
    return [
        each
        for each in findings
        if each["evidence"].get("level") != "response" or of_level(each, "claim") not in of_claims
    ]


def _list_row_evaluators(row: Row) -> set[str]:
    return {row[key] for key in _EVALUATOR_KEYS if key in row}


_EVALUATOR_KEYS = ("evaluator", "evaluator_a", "evaluator_b")


def _drop_evaluator_rows(rows: Sequence[Row], evaluators: Set[str]) -> list[Row]:
    return [row for row in rows if not evaluators & _list_row_evaluators(row)]
