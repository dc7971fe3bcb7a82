"""What is in a report? The first screen, one section for each question that has an answer, and how
the figures were computed.

Everything here is data; the HTML template only lays it out. An audit gets a section if it says
which evaluator is best, if one of its checks warns, or if it belongs to an engine. The files of all
other audits are named at the end. Formulas and methods are explained once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import Audit, list_declared_columns, sort_declared_rows
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import Row, is_redundant_macro_row
from factaudit.audit.screen import DEFAULT_TITLE, Screen, compose_screen, rank_evaluators
from factaudit.publications.register import recognise_publications
from factaudit.report.figures import ReportFigure, make_report_figure
from factaudit.report.tables import ReportTable, build_plain_report_table, build_report_table
from factaudit.text.display_text import format_cached_reply_dates, format_count

#: The largest number of figures in a report. `Results.figure` draws any other.
MAX_REPORT_FIGURES = 5
#: The audits that a run is mainly about: scores of texts, or which evaluator is right.
_LEADING_AUDITS = ("factscore", "dfactscore", "rates")
#: A run with at most this many audits has a section for each of them.
_FEW_AUDITS = 4
#: From the most serious to the least serious.
_SEVERITIES = ("fail", "warn", "ok")
_FAILED_STATUSES = ("unparsed", "refused", "error", "skipped")


@dataclass(frozen=True)
class ReportSection:
    id: str
    title: str
    paragraphs: list[str] = field(default_factory=list)
    figure: ReportFigure | None = None
    table: ReportTable | None = None
    #: The most serious finding of each of its checks, and how many more findings there are;
    #: ``tables/findings.csv`` has all of them.
    findings: list[Row] = field(default_factory=list)
    n_more_findings: int = 0
    #: The CSV file with all rows and columns, relative to the run folder.
    file: str | None = None
    #: The paragraphs of D-FActScore, with their facts by person
    #: (`build_dfactscore_paragraphs_section`).
    merged_paragraphs: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class ReportDocument:
    """A report that is ready to be laid out. All text is plain; the template escapes it."""

    title: str
    screen: Screen
    #: What is missing from the run and every reader must know.
    remarks: list[str]
    sections: list[ReportSection]
    #: The title and file of each audit that was computed but has no section.
    others: list[tuple[str, str]]
    #: The title and formula of each audit that has a section.
    formulas: list[tuple[str, str]]
    methods: list[str]
    #: Where the figures come from: files, versions and settings.
    tables: list[ReportTable]
    signature: str
    version: str


def build_report_document(results: Mapping[str, Any], run_dir: Path) -> ReportDocument:
    """The document for the content of a ``results.json``. Nothing is drawn yet."""
    about = results["about"]
    audits = [audit for name, audit in load_all_audits().items() if results["audits"].get(name)]
    chosen = _choose_audits(audits, results)
    run = AuditedRun(results["audits"], about)
    ranked = rank_evaluators(run)
    engine = [
        _build_engine_section(place, given, run_dir)
        for place, given in enumerate(results.get("sections") or [])
    ]
    n_figures = sum(section.figure is not None for section in engine)
    leading, following = list[ReportSection](), list[ReportSection]()
    for audit in chosen:
        section = _build_audit_section(
            audit, results, ranked, has_room=n_figures < MAX_REPORT_FIGURES
        )
        n_figures += section.figure is not None
        (leading if audit.name in _LEADING_AUDITS else following).append(section)
    return ReportDocument(
        title=about.get("title") or DEFAULT_TITLE,
        screen=compose_screen(results),
        remarks=compose_report_remarks(results),
        sections=[*leading, *engine, *following],
        others=[(audit.title, _name_file(audit.name)) for audit in audits if audit not in chosen],
        formulas=[(audit.title, audit.formula) for audit in chosen if audit.formula],
        methods=_describe_methods(results),
        tables=_build_provenance_tables(results),
        signature=results["signature"],
        version=str(about.get("factaudit", "")),
    )


def _choose_audits(audits: Sequence[Audit], results: Mapping[str, Any]) -> list[Audit]:
    """The audits that get a section, starting with those that the run is mainly about."""
    warned = {
        each.get("id") for each in results.get("findings") or [] if each.get("severity") != "ok"
    }
    chosen = [
        audit
        for audit in audits
        if len(audits) <= _FEW_AUDITS
        or (audit.compute is None and (audit.plot is not None or audit.remarks is not None))
        or audit.name in _LEADING_AUDITS
        or any(check.id in warned for check in audit.checks)
    ]
    return sorted(chosen, key=lambda audit: audit.name not in _LEADING_AUDITS)


def _name_file(audit: str) -> str:
    return f"tables/{audit}.csv"


def _build_audit_section(
    audit: Audit, results: Mapping[str, Any], ranked: Sequence[str], *, has_room: bool
) -> ReportSection:
    """The section of an audit, with its figure if there is room for one. An audit without a figure
    shows a short table."""
    about = results["about"]
    run = AuditedRun(results["audits"], about)
    evaluators = [row["name"] for row in about.get("evaluators", [])]
    rows = [row for row in results["audits"][audit.name] if not is_redundant_macro_row(row)]
    rows = sort_declared_rows(rows, list_declared_columns(audit.columns, rows), evaluators)
    shown, note = (rows, "") if audit.readable is None else audit.readable(rows)
    own = {check.id for check in audit.checks}
    found = [each for each in results.get("findings") or [] if each.get("id") in own]
    remarks = [] if audit.remarks is None else audit.remarks(rows)
    paragraphs = [text for text in (*(remarks or [audit.question]), note) if text]
    figure = make_report_figure(audit, shown, evaluators, run.floors, ranked) if has_room else None
    has_table = figure is None and audit.plot is None and not remarks
    table = build_report_table(shown, audit.columns, "") if has_table else None
    if audit.plot is not None and figure is None and has_room:
        reasons = dict.fromkeys(str(row["reason"]) for row in rows if row.get("reason"))
        paragraphs.append(
            "These figures do not exist for these claims:"
            f" {next(iter(reasons), 'no reason given')}."
        )
    gravest: dict[str, Row] = {}
    for each in _sort_findings(found, audit, ranked):
        gravest.setdefault(each["id"], each)
    first = [each for each in gravest.values() if each.get("severity") != "ok"]
    first = first or list(gravest.values())[:1]
    return ReportSection(
        id=audit.name.replace("_", "-"),
        title=audit.title,
        paragraphs=paragraphs,
        figure=figure,
        table=table,
        findings=first,
        n_more_findings=len(found) - len(first),
        file=_name_file(audit.name),
    )


def _sort_findings(findings: Sequence[Row], audit: Audit, ranked: Sequence[str]) -> list[Row]:
    """The most serious findings first. Among equally serious ones, those about the best evaluators
    come first, because nobody uses the others."""
    checks = {check.id: check for check in audit.checks}

    def order(finding: Row) -> tuple[int, int, float]:
        severity, evaluator = finding.get("severity"), finding.get("evaluator")
        is_grave = severity != "ok"  # a finding that all is well may have no evidence
        evidence = finding.get("evidence") or {}
        return (
            _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES),
            ranked.index(evaluator) if evaluator in ranked else len(ranked),
            -checks[finding["id"]].measure_gravity(evidence) if is_grave else 0.0,
        )

    return sorted(findings, key=order)


def _build_engine_section(place: int, given: Mapping[str, Any], run_dir: Path) -> ReportSection:
    """A section that an engine contributed: {title, text, table: {columns, rows} or null, figure:
    "name.svg" or null}. ``text`` is a string or a list of paragraphs. The figure's file is in the
    run folder's ``figures``."""
    title = str(given.get("title") or "More")
    text = given.get("text") or []
    table, stem = given.get("table"), str(given.get("figure") or "")
    # Accept only a plain file name that exists in this folder: results are untrusted data and must
    # not make the report read other files.
    has_file = Path(stem).name == stem and (run_dir / "figures" / stem).is_file()
    return ReportSection(
        id=f"section-{place + 1}",
        title=title,
        paragraphs=[text] if isinstance(text, str) else list(text),
        figure=ReportFigure(Path(stem).stem, title, title) if has_file else None,
        table=build_plain_report_table(table["columns"], table["rows"], "", 100) if table else None,
        merged_paragraphs=list(given.get("merged") or []),
    )


# --- what stands above and below
# ------------------------------------------------------------


def compose_report_remarks(results: Mapping[str, Any]) -> list[str]:
    """Which predictions are missing or guessed, and which claims the rates are computed on; one
    string per paragraph."""
    about = results["about"]
    told = about.get("evaluators", [])
    remarks = []
    missing = {
        each["name"]: (
            sum(each.get(f"n_{status}") or 0 for status in _FAILED_STATUSES)
            - (each.get("n_guessed") or 0)
        )
        for each in told
    }
    guessed = {each["name"]: each.get("n_guessed") or 0 for each in told}
    n_verdicts = {each["name"]: each.get("n_verdicts") or 0 for each in told}
    for counts, head, tail in (
        (
            missing,
            "Some verdicts have no prediction: ",
            (
                ". Every figure that these claims could change has bounds: the lowest and the"
                " highest value that it could have."
            ),
        ),
        (
            guessed,
            "Some replies state no verdict clearly and were counted as one all the same: ",
            ".",
        ),
    ):
        named = [f"{name} ({n:,} of {n_verdicts[name]:,})" for name, n in counts.items() if n]
        if named:
            remarks.append(f"{head}{', '.join(named)}{tail}")
    claims = about.get("claims") or []
    labelled, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_claims")
    )
    if 0 < labelled < total:
        remarks.append(f"Rates are over the labelled claims ({labelled:,} of {total:,}).")
    if calls := _describe_calls(results.get("calls") or []):
        remarks.append(calls)
    return remarks


def _describe_calls(calls: Sequence[Row]) -> str:
    n_calls, n_cached = (
        sum(row.get(key) or 0 for row in calls) for key in ("calls", "cached_calls")
    )
    if not n_calls and not n_cached:
        return ""
    known = [row["cost"] for row in calls if row.get("cost") is not None]
    dated = format_cached_reply_dates(calls)
    text = (
        f"{format_count(n_calls, 'call')} to language models sent; {n_cached:,} answered from the"
        " cache"
    )
    text += (f" ({dated})" if dated else "") + (
        f"; cost ${sum(known):.4g}" if known else "; cost unknown"
    )
    if possible := sum(row.get("possible_cost") or 0.0 for row in calls):
        text += (
            f", of which ${possible:.4g} is for calls without a reply, which may not have been"
            " charged"
        )
    missing = len(calls) - len(known)
    return text + (
        f" (unknown for {format_count(missing, 'evaluator')})." if known and missing else "."
    )


def _describe_methods(results: Mapping[str, Any]) -> list[str]:
    """What 1 and 0 mean, how intervals are made, and how tests are corrected; each is said once for
    the whole report."""
    about = results["about"]
    text = (
        "Label and prediction 1 mean attributable: the document supports the claim. 0 means an"
        " error."
    )
    if results["audits"].get("dfactscore"):
        text = (
            "A row of the claims table is a fact of a response and one person of the name. Label 1"
            " means true of the "
        )
        text += (
            "person that the text is about; prediction 1 means that this person's page supports the"
            " fact."
        )
    found = [text] if about.get("claims") else []
    if results["audits"].get("estimates"):
        found.append(_describe_estimate_labels(about.get("estimate") or {}))
    if about.get("confidence") and about.get("replicates") != 0:
        level = f"{100 * about['confidence']:.4g} %"
        found.append(
            f"In figures, thin lines are {level} intervals of one figure alone, with the claims of"
            " a document as one cluster; pale bars are what missing predictions leave possible."
        )
    if about.get("replicates") == 0:
        found.append("No intervals were computed.")
    if n_tests := about.get("n_tests") or {}:
        checks, tests = (
            format_count(len(n_tests), "check"),
            format_count(sum(n_tests.values()), "test"),
        )
        found.append(
            f"{checks} of this run made {tests}. “Significant” means after Holm's correction for"
            " all tests of a check."
        )
    found.append(describe_graded_labels(about))
    found.append(f"factaudit {about.get('factaudit', '')}, seed {about.get('seed')}.")
    return [text for text in found if text]


def _describe_estimate_labels(origin: Mapping[str, Any]) -> str:
    files = ", ".join(origin.get("labels") or [])
    drawn = f", which {origin['sample']} drew" if origin.get("sample") else ""
    return (
        "Estimates use"
        f" {f'labels of their own from {files}' if files else 'the labels of the claims'}{drawn}."
    )


def _build_provenance_tables(results: Mapping[str, Any]) -> list[ReportTable]:
    about = results["about"]
    tables = []
    # Without labels, the number of attributable claims is unknown.
    rows = [
        row | ({} if row["n_labelled"] else {"n_attributable": None})
        for row in about.get("claims") or []
    ]
    evaluators = about.get("evaluators") or []
    published = recognise_publications(about.get("inputs") or [])
    statuses = [
        "verdicts",
        *(
            name
            for name in ("ok", *_FAILED_STATUSES)
            if any(row.get(f"n_{name}") for row in evaluators)
        ),
    ]
    if rows:
        columns = ["claims", "labelled", "attributable"]
        columns += [
            name for name in ("systems", "responses") if any(row[f"n_{name}"] for row in rows)
        ]
        body = [[row["dataset"], *(row[f"n_{name}"] for name in columns)] for row in rows]
        tables.append(build_plain_report_table(["dataset", *columns], body, "The claims."))
    # Published rates come with neither.
    if any(row.get("n_verdicts") or row.get("signature") for row in evaluators):
        has_signatures = any(row.get("signature") for row in evaluators)
        columns = [*statuses, "signature"] if has_signatures else statuses
        body = [
            [row["name"], *(row.get(f"n_{name}", row.get(name)) for name in columns)]
            for row in evaluators
        ]
        tables.append(
            build_plain_report_table(["evaluator", *columns], body, "The evaluators.", 40)
        )
    if about.get("reading"):
        body = [[" ".join(str(note).split())] for note in about["reading"]]
        tables.append(build_plain_report_table(["note"], body, "How the sources were read.", 20))
    if about.get("inputs"):
        # experiment.yaml has the whole paths.
        body = [[Path(row["path"]).name, str(row["checksum"])[:23]] for row in about["inputs"]]
        tables.append(build_plain_report_table(["file", "checksum"], body, "Inputs."))
    if published:
        body = [
            [one.name, f"github.com/{one.repository}", one.licence, one.cite] for one in published
        ]
        caption = "The published data; references.bib has the citations."
        tables.append(
            build_plain_report_table(
                ["publication", "repository", "licence", "cite"], body, caption
            )
        )
    return tables


def describe_graded_labels(about: Mapping[str, Any]) -> str:
    """How people's grades became labels, per data set; more grades than six are a scale, which no
    sentence lists."""
    sentences = []
    for one in about.get("graded_labels") or []:
        if one["rule"] is not None and len(one["words"]) <= 6:
            read = ", ".join(f"{row['grade']} ({row['label']})" for row in one["words"])
            sentences.append(
                f"{one['dataset']}: human grades were read as labels: {read}; rule: {one['rule']}."
            )
    return " ".join(sentences)
