"""Which checks did a run make, how are their false alarms controlled, and what could not be checked?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from factaudit.audit.findings import list_audit_check_outcomes
from factaudit.report.report_tables import ReportTable, build_plain_report_table

_COLUMNS = ["check", "nothing is wrong if", "false alarms are limited by", "tests", "found", "not tested"]


def build_report_check_table(results: Mapping[str, Any]) -> ReportTable | None:
    """A line for each check of the run's audits; None where no audit has one."""
    found = Counter((each.get("id"), each.get("severity")) for each in results.get("findings") or [])
    rows = []
    several = len((results.get("about") or {}).get("claims") or [None, None]) > 1  # printed rates name no claims
    n_tests = (results.get("about") or {}).get("n_tests") or {}
    outcomes = list_audit_check_outcomes(results["audits"], results.get("about"))
    for one in outcomes:
        counts = [f"{n} {severity}" for severity in ("fail", "warn", "ok") if (n := found[one.check.id, severity])]
        rows.append(
            [
                one.check.title,
                one.check.null or f"(this check counts and makes no test: {one.check.says})",
                one.check.describe_controls(has_several_datasets=several) or None,
                n_tests.get(one.check.id),
                ", ".join(counts) or None,
                one.not_run or None,
            ]
        )
    about = results.get("about") or {}
    caption = "The checks of this run."
    if about.get("replicates") == 0:
        untested = "if a check made no test, its warnings rest on the figures alone."
        untested = untested if n_tests else "warnings rest on the figures alone, and nothing is tested."
        caption += f" No intervals were computed: {untested}"
    elif about.get("confidence") and any(one.check.null for one in outcomes):
        chance = 100 * (1 - about["confidence"])
        caption += f" A check that makes tests warns in at most {chance:.3g} % of the runs in which nothing is wrong."
    return build_plain_report_table(_COLUMNS, rows, caption) if rows else None
