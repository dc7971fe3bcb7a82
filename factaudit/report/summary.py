"""Which verdicts are missing, what can each evaluator be used for, and which findings come first in the report?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.decision_limits import read_decision_limits
from factaudit.audit.core.figure_formatting import (
    UNDEFINED_MARK,
    format_audit_figure,
    format_figure_range,
    format_limit_in_points,
    format_percent,
)
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.screen import rank_evaluators
from factaudit.report.report_tables import (
    N_UNFOLDED_EVALUATORS,
    ReportTable,
    ReportTableCell,
)
from factaudit.text.display_text import format_count

#: From the gravest to the least.
SEVERITIES = ("fail", "warn", "ok")


def compose_report_summary_paragraphs(results: Mapping[str, Any]) -> list[str]:
    """Which predictions are missing or guessed, and of which claims rates are; one string per paragraph."""
    paragraphs = []
    told = results["about"].get("evaluators", [])
    missing = _format_shares_by_evaluator(
        {each["name"]: (_count_missing_predictions(each), each.get("n_verdicts") or 0) for each in told}
    )
    if missing:
        paragraphs.append(
            # Not each figure: estimates by a model of the scores have none.
            f"Some verdicts have no prediction: {missing}. Every figure that these claims could change has bounds: the "
            "lowest and the highest value that it could have."
        )
    if of_which := _describe_claims_of_rates(results["about"].get("claims") or [], is_all_scored=not missing):
        paragraphs.append(of_which)
    guessed = _format_shares_by_evaluator(
        {each["name"]: (each.get("n_guessed") or 0, each.get("n_verdicts") or 0) for each in told}
    )
    if guessed:
        paragraphs.append(f"Some replies state no verdict clearly and were counted as one all the same: {guessed}.")
    return paragraphs


def _describe_claims_of_rates(claim_rows: Sequence[Row], *, is_all_scored: bool) -> str:
    """Of which claims predicted and labelled error rates are, where it is not simply all."""
    labelled, total = (sum(row.get(key) or 0 for row in claim_rows) for key in ("n_labelled", "n_claims"))
    if not labelled:
        return ""
    if labelled < total:
        scored = "" if is_all_scored else " that are scored"
        return (
            f"Predicted rates are over the labelled claims{scored}, labelled rates over all labelled claims "
            f"({labelled:,} of {total:,}). Where nothing is labelled, predicted rates are over all scored claims."
        )
    return "" if is_all_scored else "Predicted rates are over the scored claims, labelled rates over all claims."


_FAILED_STATUSES = ("unparsed", "refused", "error", "skipped")


def _count_missing_predictions(evaluator_row: Row) -> int:
    return sum(evaluator_row.get(f"n_{status}") or 0 for status in _FAILED_STATUSES) - (
        evaluator_row.get("n_guessed") or 0
    )


def _format_shares_by_evaluator(counts: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} ({part:,} of {whole:,})" for name, (part, whole) in counts.items() if part)


def build_report_evaluator_uses_table(results: Mapping[str, Any]) -> ReportTable | None:
    """May each evaluator be used for each task? A line per evaluator, a column per task, with figure and sentence."""
    audited = make_audited_run(results["audits"], results["about"])
    tasks = [one for name, audit in load_all_audits().items() if audited.rows(name) for one in audit.decides]
    given = [row["name"] for row in results["about"].get("evaluators") or []]
    names = [name for name in dict.fromkeys([*rank_evaluators(audited), *given]) if name not in audited.floors]
    answers = {(name, one.task): one.answer(audited, name) for name in names for one in tasks}
    tasks = [one for one in tasks if any(answers[name, one.task] is not None for name in names)]
    names = [name for name in names if any(answers[name, one.task] is not None for one in tasks)]
    if not names or not tasks:
        return None
    body = []
    for name in names:
        cells = [ReportTableCell(name)]
        for one in tasks:
            answer = answers[name, one.task]
            cells.append(
                ReportTableCell(UNDEFINED_MARK)
                if answer is None
                else ReportTableCell(answer.may, [answer.figure, answer.sentence])
            )
        body.append(cells)
    limits = read_decision_limits(audited)
    by_task = {
        "find single errors": "To find single errors, an evaluator must have a TPR and a TNR of more than "
        f"{format_percent(limits.min_rate)}.",
        "report a system's error rate": "To report error rates, each of its rates must be within "
        f"{format_limit_in_points(limits.max_bias)} points of the labelled rate.",
        "rank systems": "To rank systems, it may put no pair significantly in the wrong order and may disagree "
        "with the "
        f"labels on at most {format_percent(limits.max_misordered)} of the pairs; the labels must order at least "
        f"{format_percent(limits.min_orderable)} of them.",
    }
    said = [by_task[one.task] for one in tasks if one.task in by_task]
    caption = " ".join(["What each evaluator can be used for.", *said, *["You can set these limits."] * bool(said)])
    if any(cell.text == "cannot tell" for line in body for cell in line):
        caption += " “Cannot tell” means that there are too few labels for an answer."
    columns = ["evaluator", *(one.task for one in tasks)]
    return ReportTable(caption, columns, [False] * len(columns), body, len(body), n_unfolded=N_UNFOLDED_EVALUATORS)


@dataclass(frozen=True)
class CheckFindingsSummary:
    """The findings of one check, gravest first: by severity, by size, then those on the best evaluators."""

    title: str
    findings: list[Row]
    #: The audit whose check it is; "" where none declares it.
    audit_name: str = ""

    def format_severity_counts(self) -> str:
        """``3 fail, 1 warn``."""
        severities = [each.get("severity") for each in self.findings]
        return ", ".join(f"{severities.count(one)} {one}" for one in SEVERITIES if one in severities)


#: So many findings open the report.
MAX_HEADLINES = 5


@dataclass(frozen=True)
class ReportSummaryFinding:
    """What a check found of an evaluator: its gravest finding, which stands for those on ``n_more_datasets`` other data
    sets.
    """

    check: CheckFindingsSummary
    finding: Row
    n_more_datasets: int

    @property
    def statement(self) -> str:
        text = str(self.finding.get("statement"))
        more = self.n_more_datasets
        return f"{text} (The same is true on {format_count(more, 'more data set')}.)" if more else text


def choose_report_summary_findings(check_warnings: Sequence[CheckFindingsSummary]) -> list[ReportSummaryFinding]:
    """The findings to read first: of every check the gravest, then the next of each; among them what failed first, then
    those that hold on most data sets."""
    ranked = []
    for group in check_warnings:
        lines: dict[tuple[Any, Any], list[Row]] = {}
        for each in group.findings:
            lines.setdefault((each.get("severity"), each.get("evaluator")), []).append(each)
        for depth, ((severity, _), found) in enumerate(lines.items()):
            more = len(
                {each.get("dataset") for each in found} - {None, ALL_TOGETHER, MACRO_MEAN, found[0].get("dataset")}
            )
            gravity = SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
            ranked.append((depth, gravity, -more, ReportSummaryFinding(group, found[0], more)))
    return [headline for *_, headline in sorted(ranked, key=lambda one: one[:3])[:MAX_HEADLINES]]


def group_report_summary_findings_by_check(results: Mapping[str, Any]) -> tuple[list[CheckFindingsSummary], list[Row]]:
    """The checks that have something to warn of, and the findings that are ``ok``."""
    severities = {severity: position for position, severity in enumerate(SEVERITIES)}
    best = rank_evaluators(make_audited_run(results["audits"], results.get("about", {})))
    rank = {evaluator: position for position, evaluator in enumerate(best)}
    known = {check.id: (check, audit.name) for audit in load_all_audits().values() for check in audit.checks}

    def order(finding: Row) -> tuple[int, float, int]:
        check, _ = known.get(str(finding.get("id")), (None, ""))
        size = check.measure_gravity(finding.get("evidence") or {}) if check else 0.0
        severity = severities.get(str(finding.get("severity")), 0)
        return severity, -size, rank.get(str(finding.get("evaluator")), len(rank))

    found = results.get("findings") or []
    grave = [each for each in found if each.get("severity") != "ok"]
    groups = [
        CheckFindingsSummary(
            check.title if check else str(one), sorted((f for f in grave if f.get("id") == one), key=order), audit
        )
        for one in dict.fromkeys(each.get("id") for each in grave)
        for check, audit in [known.get(str(one), (None, ""))]
    ]
    return groups, [each for each in found if each.get("severity") == "ok"]


def format_report_summary_finding_evidence(finding: Row) -> str:
    """What a finding's statement leaves out, in one line: ``gap +42.8 points (+30.1 to +55.0), n 120``."""
    figures, told = finding.get("evidence") or {}, str(finding.get("statement"))
    said = []
    for key, value in figures.items():
        if key.endswith(("_low", "_high", "_min", "_max")) and key.rpartition("_")[0] in figures:
            continue
        column = _find_summary_evidence_column(str(finding.get("id")), key)
        unit = {"percent": "%", "points": "points"}.get(column.unit, "")
        shown = format_audit_figure(column, value)
        low, high = figures.get(f"{key}_low"), figures.get(f"{key}_high")
        least, most = figures.get(f"{key}_min"), figures.get(f"{key}_max")
        has_interval, is_bounded = low is not None and high is not None, least is not None and most is not None
        is_bounded = is_bounded and format_audit_figure(column, least) != format_audit_figure(column, most)
        is_told = unit and re.search(rf"(?<![\w.,]){re.escape(f'{shown} {unit}')}", told)
        if is_told and not has_interval and not is_bounded:
            continue
        text = " ".join(part for part in (column.heading, shown, unit) if part)
        if has_interval:
            text += f" ({format_figure_range(column, low, high)})"
        if is_bounded:
            text += f", bounds {format_figure_range(column, least, most)}"
        said.append(text)
    return ", ".join(said)


def _find_summary_evidence_column(check_id: str, key: str) -> Column:
    """The column of a figure in a finding's evidence."""
    for audit in load_all_audits().values():
        for each in audit.checks:
            if each.id == check_id:
                known = {**audit.columns, **each.evidence}
                if key in known:
                    return known[key]
                if key[-2:] in ("_a", "_b") and key[:-2] in known:
                    return replace(known[key[:-2]], heading=f"{known[key[:-2]].heading} {key[-1]}")
    return Column(key.removeprefix("n_").replace("_", " "))
