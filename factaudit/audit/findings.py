"""What do the figures mean for a user? The checks of all audits, run on their rows (VC §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row


def run_audit_checks(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> tuple[list[Row], dict[str, int]]:
    """The findings of all checks in the order of the audits, as ``results.json`` has them; and how
    many tests each check made, by its id.

    audit_rows: rows by audit name. about: that of the results, with the evaluators (one without any
    row gets a finding, floors such as ``always-yes`` get none) and the number of clusters.
    """
    run = make_audited_run(audit_rows, about)
    found = [one for check in list_checks() for one in run.find(check)]
    n_tests = {one.id: one.row["n_tests"] for one in found if one.row["n_tests"]}
    return [one.as_dict() for one in found if one.severity is not None], n_tests


def list_checks() -> list[Check]:
    """All checks, in the order of the audits."""
    return [check for audit in load_all_audits().values() for check in audit.checks]
