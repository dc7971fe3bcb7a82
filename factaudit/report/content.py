"""What stands in a report, as data: sections with text, tables and figures. HTML and Markdown only lay it out.

Sections of audits are made from the audits' declarations and from their rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factaudit.audit import declaration
from factaudit.audit.core.declare import Audit, columns_of, in_order
from factaudit.audit.core.rows import Row, repeats
from factaudit.report.pictures import Picture, defined, pictures
from factaudit.report.summary import Headline, Warned, checks, decisions, glance, headlines, lead
from factaudit.report.tables import Table, plain_table, result_table
from factaudit.text.printable import count


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    text: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    #: D-FActScore's paragraphs with their facts by person (`factaudit.engines.dfactscore.run.merged_paragraphs`).
    merged: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """A report, ready to be laid out. All text is plain: whoever lays it out escapes it."""

    title: str
    lead: list[str]
    #: What each evaluator may be used for, then its figures.
    decisions: Table | None
    glance: Table | None
    #: What to warn of, by check; and the findings that are well.
    checks: list[Warned]
    #: The findings to read first, and the figures that carry them.
    headlines: list[Headline]
    carrying: list[Picture]
    well: list[Row]
    sections: list[Section]
    signature: str
    version: str


def build(results: Mapping[str, Any], run_dir: Path) -> Document:
    """The document of a ``results.json``'s content; nothing is drawn yet."""
    about = results["about"]
    audits = sorted((declaration(name, rows) for name, rows in results["audits"].items()), key=lambda a: a.place)
    # What an engine has to say is what its run was about.
    sections = [_given_section(i, given, run_dir) for i, given in enumerate(results.get("sections") or [])]
    sections += [_audit_section(audit, results) for audit in audits]
    sections += [_calls(results["calls"])] if results.get("calls") else []
    sections.append(_provenance(results))
    sections = [section for section in sections if section.text or section.tables or section.pictures]
    warnings, well = checks(results)
    first = headlines(warnings)
    return Document(
        title=about.get("title") or "Evaluators compared",
        lead=lead(results),
        decisions=decisions(results),
        glance=glance(results),
        checks=warnings,
        headlines=first,
        carrying=_carrying(first, sections),
        well=well,
        sections=sections,
        signature=results["signature"],
        version=str(about.get("factaudit", "")),
    )


#: So many figures open the report.
MOST_CARRYING = 2


def _carrying(first: Sequence[Headline], sections: Sequence[Section]) -> list[Picture]:
    """The figures of the audits whose findings open the report, those of most findings first; else the first ones."""
    found = Counter(headline.check.audit.replace("_", "-") for headline in first)
    drawn = [section for section in sections if section.pictures]
    # An engine's own section says what its run was about.
    drawn.sort(key=lambda section: (not section.id.startswith("section-"), -found[section.id]))
    return [section.pictures[0] for section in drawn[:MOST_CARRYING]]


def _audit_section(audit: Audit, results: Mapping[str, Any]) -> Section:
    about, slug = results["about"], audit.name.replace("_", "-")
    evaluators = [row["name"] for row in about.get("evaluators", [])]
    rows = [row for row in results["audits"][audit.name] if not repeats(row)]
    rows = in_order(rows, columns_of(audit.columns, rows), evaluators)
    if not rows:
        return Section(slug, audit.title, [audit.text, "Nothing to compute on: this audit has no rows."])
    if audit.plots and not any(defined(rows, plot) for plot in audit.plots):
        why = next((str(row["reason"]) for row in rows if row.get("reason")), "no reason given")
        text = f"Undefined on these claims ({why}). The rows are in tables/{audit.name}.csv."
        return Section(slug, audit.title, [audit.text, text])
    shown, note = (rows, "") if audit.readable is None else audit.readable(rows)
    paragraphs = [audit.text] if audit.text else []
    if audit.remarks is not None:
        own = {check.id for check in audit.checks}
        paragraphs += audit.remarks(rows, [each for each in results.get("findings") or [] if each.get("id") in own])
    drawn = pictures(audit, shown, evaluators, about)
    # The figure's caption has the formula already.
    caption = " ".join(filter(None, [f"{audit.title}.", "" if drawn else audit.formula, note]))
    table = result_table(shown, audit.columns, caption, f"tables/{audit.name}.csv")
    return Section(slug, audit.title, paragraphs, drawn, [table])


# --- what is not an audit --------------------------------------------------------------------------------------------


def _given_section(position: int, given: Mapping[str, Any], run_dir: Path) -> Section:
    """A section that an engine contributed: {title, text, table: {columns, rows} or null, figure: "name.svg" or null}.

    ``text`` is a string or a list of paragraphs. The figure's files are in the run folder's ``figures``.
    """
    title = str(given.get("title") or "More")
    text = given.get("text") or []
    table, stem = given.get("table"), given.get("figure")
    tables = [plain_table(table["columns"], table["rows"], title)] if table else []
    pictures = []
    # Only a plain name of a file that is there: results are data, and must not make the report read other files.
    if stem and Path(stem).name == stem and (run_dir / "figures" / stem).is_file():
        pictures = [Picture(Path(stem).stem, title, title)]
    paragraphs = [text] if isinstance(text, str) else list(text)
    return Section(f"section-{position + 1}", title, paragraphs, pictures, tables, list(given.get("merged") or []))


def _calls(calls: Sequence[Row]) -> Section:
    table = result_table(calls, {}, "Calls to language models. Cached calls cost nothing.", "tables/calls.csv")
    known = [row["cost"] for row in calls if row.get("cost") is not None]
    text = f"{count(sum(row.get('calls') or 0 for row in calls), 'call')}"
    text += f", {sum(row.get('cached_calls') or 0 for row in calls):,} answered from the cache"
    text += f"; cost {sum(known):.4g}" if known else "; cost unknown"
    if possible := sum(row.get("possible_cost") or 0.0 for row in calls):
        text += f", {possible:.4g} of it for calls whose reply never came, and which may not have been charged"
    missing = len(calls) - len(known)
    text += f" (unknown for {count(missing, 'evaluator')})." if known and missing else "."
    return Section("calls", "Calls and cost", [text], [], [table])


def _provenance(results: Mapping[str, Any]) -> Section:
    about = results["about"]
    tables = []
    if about.get("claims"):
        columns = ["dataset", "task", "claims", "labelled", "attributable", "systems", "responses"]
        keys = ["dataset", "task", *(f"n_{key}" for key in columns[2:])]
        tables.append(plain_table(columns, [[row.get(key) for key in keys] for row in about["claims"]], "Claims."))
    if about.get("evaluators"):
        columns = ["evaluator", "verdicts", "ok", "unparsed", "refused", "error", "skipped", "signature"]
        keys = ["name", *(f"n_{key}" for key in columns[1:-1]), "signature"]
        rows = [[row.get(key) for key in keys] for row in about["evaluators"]]
        tables.append(plain_table(columns, rows, "Evaluators: what became of their verdicts, and how they were made."))
    if about.get("inputs"):
        rows = [[row.get("path"), row.get("checksum")] for row in about["inputs"]]
        tables.append(plain_table(["file", "checksum"], rows, "Inputs."))
    parts = [f"factaudit {about.get('factaudit', '')}", f"seed {about.get('seed')}"]
    if about.get("replicates") is not None:
        parts.append(count(about["replicates"], "bootstrap replicate"))
    text = [", ".join(parts) + ".", f"Signature: {results['signature']}"]
    return Section("provenance", "Where the figures come from", text, [], tables)
