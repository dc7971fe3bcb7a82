"""What do the figures mean for a user? The checks of all audits, run on their rows (VC §6).

Each audit declares its checks; here they are run. A finding is ``{id, severity, evaluator, dataset, statement,
evidence}``: ``fail`` where the interval leaves no doubt, ``warn`` where the figure says so but its interval (or the
lack of one) leaves some, ``ok`` where a check had something to look at and found nothing (once per evaluator; dataset
None). ``evidence`` is a flat dict of the figures in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from typing import Any

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check
from factaudit.audit.core.result_rows import Row, select_reason_of_figure
from factaudit.text.display_text import format_count, join_reasons

#: Of the reasons why a check could not look at rows so many are said.
_MAX_REASONS = 2
#: Begins what is said of a check that could not look at some of the evaluators.
_NOT_FOR = "not for "


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
        candidates.test_counts.clear()
        found += _drop_response_findings_equal_to_claim_findings(
            [{"id": check.id, **asdict(each)} for each in check.run(candidates)]
        )
        n_tests[check.id] = sum(candidates.test_counts)
        if n_tests[check.id] and check.lacks and check.lacks(candidates):
            n_tests[check.id] = 0  # the report says of it that it was not checked
    return found, {name: n for name, n in n_tests.items() if n}


def _make_run_without_floors(audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None) -> AuditedRun:
    floors = AuditedRun(audit_rows, about or {}).floors
    return make_audited_run({name: _drop_evaluator_rows(rows, floors) for name, rows in audit_rows.items()}, about)


@dataclass(frozen=True)
class AuditCheckOutcome:
    """A check of an audit of the run, and for whom it could not run, with the reason; "" where it ran for all."""

    check: Check
    audit_name: str
    not_run: str = ""


def list_audit_check_outcomes(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> list[AuditCheckOutcome]:
    """The checks of all audits of the run, in their order, with what could not be checked and why.

    A check could run on a row that has its figure, with an interval where the audit makes one.
    """
    candidates = _make_run_without_floors(audit_rows, about)
    found = []
    for name, audit in load_all_audits().items():
        if name not in audit_rows:
            continue
        found += [
            AuditCheckOutcome(check, name, _explain_check_not_run(audit, check, candidates)) for check in audit.checks
        ]
    return found


def _explain_check_not_run(audit: Audit, check: Check, run: AuditedRun) -> str:
    """Why a check could not look at a run, or at some of its evaluators; "" where it looked at all of them."""
    missed = _explain_evaluators_not_checked(audit, check, list(run.rows(audit.name)))
    # Where nothing could be looked at of the other evaluators either, that is what is said.
    if (not missed or missed.startswith(_NOT_FOR)) and check.lacks and (why := check.lacks(run)):
        return why
    # A check without a test counts claims; printed rates do not say how many there are.
    return missed or ("" if check.null else str(run.about.get("counts") or ""))


def _explain_evaluators_not_checked(audit: Audit, check: Check, rows: Sequence[Row]) -> str:
    """Whom of a run's evaluators (or whether anything at all) a check could not look at, with the reasons."""
    if not rows:
        return "its audit has no rows"
    if not check.figure:
        return ""
    column = audit.columns[check.figure]

    def can_be_checked(row: Row) -> bool:
        if row.get(check.figure) is None:
            return False
        return not column.interval or row.get(f"{check.figure}_low") is not None

    missed: dict[str, list[str]] = {}
    of_all = list(dict.fromkeys(name for row in rows for name in sorted(_list_row_evaluators(row))))
    for name in of_all or [""]:
        mine = [row for row in rows if not name or name in _list_row_evaluators(row)]
        if not any(map(can_be_checked, mine)):
            missed.setdefault(_join_reasons_of_rows(mine, check.figure), []).append(name)
    if len(missed) == 1 and len(next(iter(missed.values()))) == max(len(of_all), 1):
        return next(iter(missed))
    return "; ".join(f"{_NOT_FOR}{', '.join(names)}: {reason}" for reason, names in missed.items())


def _join_reasons_of_rows(rows: Sequence[Row], figure: str) -> str:
    """Why rows cannot be looked at: one of them need not speak for the others, so further reasons are counted."""
    if all(f"{figure}_low" not in row for row in rows) and any(row.get(figure) is not None for row in rows):
        return "no interval was computed"
    # Of what was judged: on a data set that an evaluator left out, another reason stands.
    judged_rows = [row for row in rows if row.get("n", 1)] or rows
    told = [
        (row.get(figure) is None and select_reason_of_figure(row, figure)) or row.get("reason") for row in judged_rows
    ]
    reasons = list(dict.fromkeys(part for reason in told if reason for part in str(reason).split("; ")))
    shown, more = reasons[:_MAX_REASONS], len(reasons[_MAX_REASONS:])
    shown += [format_count(more, "more reason")] * bool(more)
    return join_reasons(shown) or "it is not defined on these claims"


def list_checks() -> list[Check]:
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
