"""The report as GitHub Markdown, for a repository."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from factaudit.audit.core.figure_formatting import UNDEFINED_MARK
from factaudit.audit.core.result_rows import Row
from factaudit.audit.screen import Screen
from factaudit.report.report_document import ReportDocument, ReportSection
from factaudit.report.report_tables import ReportTable, ReportTableCell
from factaudit.report.summary import format_report_summary_finding_evidence
from factaudit.text.display_text import format_count

#: A Markdown table shows so many rows; its CSV has all.
MAX_MARKDOWN_ROWS = 50


def render_markdown_report(document: ReportDocument) -> str:
    """The whole document; figures by relative path, all text escaped."""
    parts = [f"# {escape_markdown(document.title)}"]
    if document.screen.is_answer:
        parts += render_markdown_first_screen(document.screen)
    else:
        parts += map(escape_markdown, document.summary_paragraphs[:1])
    if document.decision_table:
        parts.append(_render_markdown_table(document.decision_table))
    parts += map(escape_markdown, document.summary_paragraphs[1:])
    if document.evaluator_table:
        parts.append(_render_markdown_table(document.evaluator_table))
    if document.check_warnings or document.ok_findings:
        parts.append("## Findings")
        if document.headline_findings:
            parts.append(
                "\n".join(
                    _render_markdown_finding(each.finding, f"{each.check.title}: {each.statement}")
                    for each in document.headline_findings
                )
            )
        more = sum(len(check.findings) for check in document.check_warnings) - len(document.headline_findings)
        counts = [f"{format_count(more, 'more finding')} to heed"] if more else []
        counts += [document.format_ok_counts()] if document.ok_findings else []
        parts.append(f"{'; '.join(counts) or 'As a file'}: [findings](tables/findings.csv)")
    for section in document.sections:
        parts += _render_markdown_section(section)
    return "\n\n".join(parts) + "\n"


def render_markdown_first_screen(screen: Screen) -> list[str]:
    """The first screen as paragraphs: size, table, notes and advice."""
    heads = [escape_markdown(" ".join(filter(None, head))) for head in screen.columns]
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    lines = [*lines, *(f"| {' | '.join(map(escape_markdown, row))} |" for row in screen.rows)] if heads else []
    advice = [f"- **{one.word}** {escape_markdown(one.sentence)}" for one in screen.advice]
    note = f"{screen.describe_shown_rows()}; the files in `tables` have all." if screen.more_rows else ""
    parts = [escape_markdown(screen.size), "\n".join(lines), note, "\n".join(advice)]
    return [part for part in parts if part]


def _render_markdown_finding(finding: Row, statement: str) -> str:
    text = f"- **{escape_markdown(str(finding.get('severity', '')))}** {escape_markdown(statement)}"
    if not finding.get("evidence"):
        return text
    return f"{text} ({escape_markdown(format_report_summary_finding_evidence(finding))})"


def _render_markdown_section(section: ReportSection) -> list[str]:
    parts = [f"## {escape_markdown(section.title)}", *map(escape_markdown, section.paragraphs)]
    for figure in section.figures:
        caption = escape_markdown(" ".join(filter(None, [figure.caption, figure.formula])))
        parts.append(f"![{escape_markdown(figure.alt)}](figures/{figure.stem}.svg)\n\n*{caption}*")
    # The heading has the table's title already.
    parts += [
        _render_markdown_table(replace(table, caption=table.caption.removeprefix(f"{section.title}.").strip()))
        for table in section.tables
    ]
    parts += [_render_merged_biography_paragraph(each) for each in section.merged_paragraphs]
    return parts


def _render_merged_biography_paragraph(merged_paragraph: Row) -> str:
    people = [person["title"] for person in merged_paragraph["people"]]
    lines = [
        f"**{escape_markdown(merged_paragraph['name'])}**"
        + (f" ({escape_markdown(merged_paragraph['system'])})" if merged_paragraph["system"] else "")
    ]
    for fact in merged_paragraph["facts"]:
        about = "not supported" if fact["person"] is None else people[fact["person"]]
        text = f"**{escape_markdown(fact['text'])}**" if fact["elsewhere"] else escape_markdown(fact["text"])
        lines.append(f"- {text} ({escape_markdown(about)})")
    return "\n".join([lines[0], "", *lines[1:]])


def _render_markdown_table(table: ReportTable) -> str:
    lines = [
        "| " + " | ".join(map(escape_markdown, table.columns)) + " |",
        "|" + "|".join("---:" if numeric else "---" for numeric in table.numeric_columns) + "|",
    ]
    lines += ["| " + " | ".join(_render_markdown_row_cells(row)) + " |" for row in table.rows[:MAX_MARKDOWN_ROWS]]
    text = "\n".join(lines)
    # Reasons stand in their cells here: nothing is to be pointed at.
    notes = [note for note in table.notes if not note.startswith("A dash")]
    if told := " ".join(filter(None, [table.caption, *notes])):
        text += f"\n\n*{escape_markdown(told)}*"
    if table.file:
        shown = min(len(table.rows), MAX_MARKDOWN_ROWS)
        first = f"The first {shown} of {table.total:,} rows; all: " if shown < table.total else "As a file: "
        text += f"\n\n{first}[{escape_markdown(table.file)}]({table.file})"
    return text


def _render_markdown_row_cells(row: Sequence[ReportTableCell]) -> list[str]:
    """The row's reason stands once, at its first undefined figure."""
    undefined = [cell for cell in row if cell.text == UNDEFINED_MARK and cell.reason]
    cells = []
    for cell in row:
        notes = [*cell.notes, *([cell.reason] if undefined and cell is undefined[0] else [])]
        cells.append(escape_markdown(cell.text) + "".join(f" <sub>{escape_markdown(note)}</sub>" for note in notes))
    return cells


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no table cell ends, one line."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", text)
    # At the start of a line these would be a heading, a list or a rule.
    text = re.sub(r"^([#+=-])", r"\\\1", text)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)
