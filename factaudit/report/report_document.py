"""What is in a report? Sections with text, tables and figures, as data; HTML only lays them out.

Sections of audits are made from the audits' declarations and from their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from factaudit.audit import find_audit_declarations, list_computable_audits, load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import Audit, list_declared_columns, sort_declared_rows
from factaudit.audit.core.interval_methods import is_random_interval_method
from factaudit.audit.core.result_rows import Row, is_redundant_macro_row
from factaudit.audit.input_description import describe_graded_labels
from factaudit.audit.screen import DEFAULT_TITLE, Screen, compose_screen, rank_evaluators
from factaudit.publications.register import recognise_published_files
from factaudit.report.check_table import build_report_check_table
from factaudit.report.figure_selection import MAX_DRAWN_EVALUATORS
from factaudit.report.report_figures import ReportFigure, has_report_figure_rows, list_report_figures
from factaudit.report.report_tables import ReportTable, build_plain_report_table, build_report_table, name_table_file
from factaudit.report.summary import (
    CheckFindingsSummary,
    ReportSummaryFinding,
    build_report_evaluator_uses_table,
    choose_report_summary_findings,
    compose_report_summary_paragraphs,
    group_report_summary_findings_by_check,
)
from factaudit.text.display_text import format_cached_reply_dates, format_count


@dataclass(frozen=True)
class ReportSection:
    id: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    figures: list[ReportFigure] = field(default_factory=list)
    tables: list[ReportTable] = field(default_factory=list)
    #: D-FActScore's paragraphs with their facts by person (`build_dfactscore_paragraphs_section`).
    merged_paragraphs: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class ReportDocument:
    """A report, ready to be laid out. All text is plain: whoever lays it out escapes it."""

    title: str
    screen: Screen
    summary_paragraphs: list[str]
    #: What each evaluator may be used for.
    decision_table: ReportTable | None
    #: What to warn of, by check; and the findings that are well.
    check_warnings: list[CheckFindingsSummary]
    #: The findings to read first, and the figures that carry them.
    headline_findings: list[ReportSummaryFinding]
    headline_figures: list[ReportFigure]
    ok_findings: list[Row]
    sections: list[ReportSection]
    signature: str
    version: str

    def format_finding_counts(self) -> str:
        """``9 fail, 1 warn, 4 ok``."""
        found = [each for check in self.check_warnings for each in check.findings] + self.ok_findings
        return CheckFindingsSummary("", found).format_severity_counts()

    def describe_headline_choice(self) -> str:
        """``The most serious finding of each check``; of few checks, the next ones are shown as well."""
        n_checks, n_shown = len(self.check_warnings), len(self.headline_findings)
        checks = "each check" if n_checks <= n_shown else f"{n_shown} of {n_checks} checks"
        return f"The most serious finding of {checks}" + ", then the next ones" * (n_checks < n_shown)

    def format_ok_counts(self) -> str:
        """``4 findings are ok (1 check)``: a check that looked at four evaluators is one."""
        checks = format_count(len({each.get("id") for each in self.ok_findings}), "check")
        verb = "is" if len(self.ok_findings) == 1 else "are"
        return f"{format_count(len(self.ok_findings), 'finding')} {verb} ok ({checks})"


def build_report_document(results: Mapping[str, Any], run_dir: Path) -> ReportDocument:
    """The document of a ``results.json``'s content; nothing is drawn yet."""
    about = results["about"]
    audits = find_audit_declarations(results["audits"])
    # What an engine has to say is what its run was about.
    sections = [
        _build_report_engine_section(i, given, run_dir) for i, given in enumerate(results.get("sections") or [])
    ]
    ranked = rank_evaluators(make_audited_run(results["audits"], about))
    sections += [_build_report_audit_section(audit, results, ranked) for audit in audits]
    sections += [_build_report_calls_section(results["calls"])] if results.get("calls") else []
    checks = build_report_check_table(results)
    sections.append(ReportSection("checks", "What was checked, and how", tables=[] if checks is None else [checks]))
    sections.append(_build_report_provenance_section(results))
    sections = [section for section in sections if section.paragraphs or section.tables or section.figures]
    warnings, well = group_report_summary_findings_by_check(results)
    first = choose_report_summary_findings(warnings)
    chosen = _choose_report_figures(first, sections)
    sections = [_keep_figures(section, chosen) for section in sections]
    return ReportDocument(
        title=about.get("title") or DEFAULT_TITLE,
        screen=compose_screen(results),
        summary_paragraphs=compose_report_summary_paragraphs(results),
        decision_table=build_report_evaluator_uses_table(results),
        check_warnings=warnings,
        headline_findings=first,
        headline_figures=chosen[:MAX_HEADLINE_FIGURES],
        ok_findings=well,
        sections=sections,
        signature=results["signature"],
        version=str(about.get("factaudit", "")),
    )


#: The report draws at most so many figures; `Results.figure` draws any.
MAX_REPORT_FIGURES = 6
#: So many of them open it; the others stand in their sections.
MAX_HEADLINE_FIGURES = 2


def _choose_report_figures(
    headline_findings: Sequence[ReportSummaryFinding], sections: Sequence[ReportSection]
) -> list[ReportFigure]:
    """The first figure of a section each: who is best, then those of the audits whose findings open the report."""
    found = [headline.check.audit_name.replace("_", "-") for headline in headline_findings]
    place = {name: found.index(name) for name in found}
    drawn = [section for section in sections if section.figures]
    best = {name.replace("_", "-") for name, audit in load_all_audits().items() if audit.best is not None}
    # An engine's own section says what its run was about.
    drawn.sort(
        key=lambda section: (
            not section.id.startswith("section-"),
            section.id not in best,
            place.get(section.id, len(found)),
        )
    )
    return [section.figures[0] for section in drawn[:MAX_REPORT_FIGURES]]


def _keep_figures(section: ReportSection, chosen: Sequence[ReportFigure]) -> ReportSection:
    """A section with its chosen figures, and with those that an engine has drawn already."""
    return replace(section, figures=[one for one in section.figures if one in chosen or one.draw is None])


def _build_report_audit_section(audit: Audit, results: Mapping[str, Any], ranked: Sequence[str]) -> ReportSection:
    about, slug = results["about"], audit.name.replace("_", "-")
    evaluators = [row["name"] for row in about.get("evaluators", [])]
    rows = [row for row in results["audits"][audit.name] if not is_redundant_macro_row(row)]
    order = evaluators
    if len(evaluators) > MAX_DRAWN_EVALUATORS:  # who reads the first rows reads of the best
        order = list(dict.fromkeys([*ranked, *evaluators]))
    rows = sort_declared_rows(rows, list_declared_columns(audit.columns, rows), order)
    if not rows:
        return ReportSection(slug, audit.title)  # it is named among what was not computed
    if audit.plot is not None and not has_report_figure_rows(rows, audit.plot):
        why = _find_common_undefined_reason(rows)
        text = f"These figures do not exist for these claims: {why}. The rows are in {name_table_file(audit.name)}."
        return ReportSection(slug, audit.title, [audit.text, text])
    shown, note = (rows, "") if audit.readable is None else audit.readable(rows)
    if audit.add_references is not None:
        shown = audit.add_references(make_audited_run(results["audits"], about), shown)
    options = "; ".join(
        f"{name} {_format_report_audit_option(value)}"
        for name, value in (about.get("options") or {}).get(audit.name, {}).items()
        if name != "levels"  # the table has them
    )
    paragraphs = [audit.text, f"Options of this run: {options}." * bool(options)]
    paragraphs = [text for text in paragraphs if text]
    if audit.remarks is not None:
        own = {check.id for check in audit.checks}
        paragraphs += audit.remarks(rows, [each for each in results.get("findings") or [] if each.get("id") in own])
    drawn = list_report_figures(audit, shown, evaluators, about, ranked)
    caption = " ".join(filter(None, [f"{audit.title}.", audit.formula, note]))
    table = build_report_table(shown, audit.columns, caption, name_table_file(audit.name))
    return ReportSection(slug, audit.title, paragraphs, drawn, [table])


def _format_report_audit_option(value: Any) -> str:
    """``claim, response``; ``small: a, b; large: c``."""
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_format_report_audit_option(inner)}" for name, inner in value.items())
    if value is None:
        return "null"  # as it is written in the YAML
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _find_common_undefined_reason(rows: Sequence[Row]) -> str:
    """Why all rows are undefined: a reason of all, else what reasons have in common before they name systems."""
    reasons = list(dict.fromkeys(str(row["reason"]) for row in rows if row.get("reason")))
    if len(reasons) <= 1:
        return next(iter(reasons), "no reason given")
    heads = [[part.partition(": ")[0] for part in reason.split("; ")] for reason in reasons]
    shared = [head for head in dict.fromkeys(heads[0]) if all(head in others for others in heads)]
    return "; ".join(shared) or "there are several reasons"


# --- what is not an audit --------------------------------------------------------------------------------------------


def _build_report_engine_section(position: int, engine_section: Mapping[str, Any], run_dir: Path) -> ReportSection:
    """A section that an engine contributed: {title, text, table: {columns, rows} or null, figure: "name.svg" or null}.

    ``text`` is a string or a list of paragraphs. The figure's files are in the run folder's ``figures``.
    """
    title = str(engine_section.get("title") or "More")
    text = engine_section.get("text") or []
    table, stem = engine_section.get("table"), engine_section.get("figure")
    tables = [build_plain_report_table(table["columns"], table["rows"], title)] if table else []
    pictures = []
    # Only a plain name of a file that is there: results are data, and must not make the report read other files.
    if stem and Path(stem).name == stem and (run_dir / "figures" / stem).is_file():
        pictures = [ReportFigure(Path(stem).stem, title, title)]
    paragraphs = [text] if isinstance(text, str) else list(text)
    return ReportSection(
        f"section-{position + 1}", title, paragraphs, pictures, tables, list(engine_section.get("merged") or [])
    )


def _build_report_calls_section(calls: Sequence[Row]) -> ReportSection:
    table = build_report_table(calls, {}, "Calls to language models. Cached calls cost nothing.", "tables/calls.csv")
    known = [row["cost"] for row in calls if row.get("cost") is not None]
    n_calls = sum(row.get("calls") or 0 for row in calls)
    n_cached = sum(row.get("cached_calls") or 0 for row in calls)
    text = f"{format_count(n_calls, 'call')} sent; {n_cached:,} answered from the cache"
    if dated := format_cached_reply_dates(calls):
        text += f" ({dated})"
    text += " or by an equal call" if n_calls else ""
    text += f"; cost {sum(known):.4g}" if known else "; cost unknown"
    if possible := sum(row.get("possible_cost") or 0.0 for row in calls):
        text += f", of which {possible:.4g} is for calls without a reply, which may not have been charged"
    missing = len(calls) - len(known)
    text += f" (unknown for {format_count(missing, 'evaluator')})." if known and missing else "."
    return ReportSection("calls", "Calls and cost", [text], [], [table])


def _explain_report_claims_labels_and_intervals(results: Mapping[str, Any]) -> list[str]:
    """What a claim, a label, 1 and 0 are here, whose an interval is, and what could not be computed."""
    about = results["about"]
    claims = about.get("claims") or []
    if not claims:
        return []
    text = "A claim is a row of the claims table. "
    text += "Label and prediction 1 mean attributable: the document supports the claim. 0 means an error."
    if results["audits"].get("dfactscore"):
        labels = (
            "Label 1 means true of the person that the text is about. Label 0 means an error, which may be true of "
        )
        labels += "another person of the same name."
        if about.get("verifiers"):
            text = "A claim is a fact of a response. The claims table has a row for it and each person of the name. "
            text += (
                f"{labels} Prediction 1 means that a page supports it: of any person (FActScore), or of the linked one "
            )
            text += "(D-FActScore)."
        else:  # the verifier's own verdicts
            facts = dict.fromkeys(row["dataset"] for row in results["audits"]["dfactscore"])
            others = [row["dataset"] for row in claims if row["dataset"] not in facts]
            text = (
                "A row of the claims table is a fact of a response and one person of the name, so a fact has several "
            )
            text += f"rows. {labels} Prediction 1 means that this person's page supports it."
            if others:
                text += f" In {', '.join(others)}, 1 means attributable: the document supports the claim."
    # What no system wrote is no response, whatever ids it has.
    written = [row for row in claims if row.get("n_responses") and row.get("n_systems") != 0]
    single = [row["dataset"] for row in written if row["n_responses"] == row["n_claims"]]
    if single:
        text += f" In {', '.join(single)}, a claim is a whole response."
    if results["audits"].get("estimates"):
        has_labels = any(row.get("n_labelled") for row in claims)
        text += _explain_estimate_label_origin(about.get("estimate") or {}, has_labels)
    told = [text]
    if about.get("confidence"):
        level = f"{100 * about['confidence']:.4g} %"
        joint = []
        if results["audits"].get("headroom"):
            joint.append("The interval of a lowest error rate holds for all systems together. ")
        if any(row.get("headroom") is not None for row in results["audits"].get("estimate_summary") or []):
            joint.append(
                "The intervals of the lowest, the highest and the best-looking estimate allow for choosing one "
                "of many. "
            )
        text = (
            f"Each {'other ' * bool(joint)}interval is a {level} interval for one figure alone. In tables, intervals "
        )
        text += (
            "are in small print. Captions say how the intervals in figures are made; the page of audits says it for "
        )
        text += "all of them."
        text = "".join(joint) + text
        if about.get("replicates") == 0:
            text = "No intervals were computed."
        if n_tests := about.get("n_tests") or {}:
            checks, tests = format_count(len(n_tests), "check"), format_count(sum(n_tests.values()), "test")
            text += (
                f" {checks} of this run made {tests}. In findings, “significant” means after Holm's correction for all "
                "tests of a check, so a bias whose interval leaves out 0 need not be significant. When two evaluators "
                "or two data sets are compared, or TPR and TNR with a limit, “significant” rests on the intervals of "
                "that one comparison. “What was checked, and how” counts the tests of each check."
            )
        if results["audits"].get("estimate_differences"):
            text += (
                " The model tells two systems apart if the probability of the wrong order is small enough, also after "
                "the adjustment for all pairs. Then the interval of their difference leaves out 0, and at most 5 % of "
                "all such pairs are expected to be in the wrong order."
            )
        told.append(text)
    if claims and all(row.get("n_labelled") == 0 for row in claims) and not results["audits"].get("estimates"):
        told.append("No claim is labelled, so no figure that needs labels was computed.")
    empty = [audit.title for audit in find_audit_declarations(results["audits"]) if not results["audits"][audit.name]]
    left_out = [audit for name, audit in list_computable_audits().items() if name not in results["audits"]]
    if all(audit.applies is not None for audit in left_out):  # else audits were named
        empty += [audit.title for audit in left_out]
    if empty:
        told.append(f"These audits do not apply to these claims and verdicts: {'; '.join(empty)}.")
    return told


def _explain_estimate_label_origin(origin: Mapping[str, Any], has_labels: bool) -> str:
    """Where the labels come from that estimates rest on; ``has_labels``: the claims have some, too."""
    files = ", ".join(origin.get("labels") or [])
    sample = f", which {origin['sample']} drew" if origin.get("sample") else ""
    others = "; all other figures use all labels of the claims" if has_labels else ""
    whose = f"labels of their own from {files}" if files else "labels of the claims"
    return f" Estimates use {whose}{sample}{others}."


def _has_random_interval(audit: Audit) -> bool:
    methods = [audit.intervals if column.interval is True else column.interval for column in audit.columns.values()]
    return any(is_random_interval_method(method) for method in methods if isinstance(method, str))


def _build_report_provenance_section(results: Mapping[str, Any]) -> ReportSection:
    about = results["about"]
    tables = []
    if about.get("claims"):
        columns = ["dataset", "task", "claims", "labelled", "attributable", "systems", "responses"]
        keys = ["dataset", "task", *(f"n_{key}" for key in columns[2:])]
        if any(row.get("languages") for row in about["claims"]):
            columns, keys = [*columns, "languages"], [*keys, "languages"]
        # Of no labels there is no number of attributable ones.
        rows = [row | ({} if row["n_labelled"] else {"n_attributable": None}) for row in about["claims"]]
        has_others = about.get("estimate") or results["audits"].get("estimates")
        caption = "The claims, with the labels of their own table." if has_others else "The claims."
        tables.append(build_plain_report_table(columns, [[row.get(key) for key in keys] for row in rows], caption))
    verifiers = about.get("verifiers") or []
    evaluators = [*verifiers, *(about.get("evaluators") or [])]
    if any(row.get("n_verdicts") or row.get("signature") for row in evaluators):  # printed rates have neither
        columns = ["evaluator", "verdicts", "ok", "unparsed", "refused", "error", "skipped", "signature"]
        keys = ["name", *(f"n_{key}" for key in columns[1:-1]), "signature"]
        caption = "The evaluators: how many of their verdicts are usable, and how they were made."
        if verifiers:
            made, of = (", ".join(row["name"] for row in rows) for rows in (about["evaluators"], verifiers))
            caption += f" A verdict by {made} is about a fact. It is made from the verdicts by {of} "
            caption += "about the fact and each person."
        tables.append(
            build_plain_report_table(columns, [[row.get(key) for key in keys] for row in evaluators], caption)
        )
    if about.get("reading"):
        rows = [[" ".join(str(note).split())] for note in about["reading"]]
        tables.append(build_plain_report_table(["note"], rows, "What factaudit said when it read the sources."))
    if about.get("inputs"):
        rows = [[row.get("path"), row.get("checksum")] for row in about["inputs"]]
        tables.append(build_plain_report_table(["file", "checksum"], rows, "Inputs."))
    if published := recognise_published_files(about.get("inputs") or []):
        tables.append(
            build_plain_report_table(
                ["publication", "files", "repository", "commit", "licence", "cite"],
                [
                    [one.name, len(own), f"github.com/{one.repository}", one.commit[:12], one.licence, one.cite]
                    for one, own in published.items()
                ],
                "The published data behind these figures. references.bib in the run folder has the citations.",
            )
        )
    parts = [f"factaudit {about.get('factaudit', '')}", f"seed {about.get('seed')}"]
    if about.get("replicates") and any(map(_has_random_interval, find_audit_declarations(results["audits"]))):
        parts.append(format_count(about["replicates"], "bootstrap replicate"))
    text = [
        ", ".join(parts) + ".",
        f"Signature: {results['signature']}",
        *_explain_report_claims_labels_and_intervals(results),
        describe_graded_labels(make_audited_run(results["audits"], about)),
    ]
    return ReportSection("provenance", "Where the figures come from", list(filter(None, text)), [], tables)
