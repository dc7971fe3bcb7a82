"""The report as GitHub Markdown, for a repository."""

from __future__ import annotations

import re

from factaudit.audit.core.rows import Row
from factaudit.audit.core.words import UNDEFINED
from factaudit.report.content import Document, Section
from factaudit.report.pictures import Picture
from factaudit.report.summary import evidence
from factaudit.report.tables import Cell, Table
from factaudit.text.printable import count

#: A Markdown table shows so many rows; its CSV has all.
MAX_ROWS = 50


def to_markdown(document: Document) -> str:
    """The whole document; figures by relative path, all text escaped."""
    parts = [f"# {escape(document.title)}", *map(escape, document.lead[:1])]
    if document.decisions:
        parts.append(_table(document.decisions))
    parts += map(escape, document.lead[1:])
    if document.glance:
        parts.append(_table(document.glance))
    if document.checks or document.well:
        parts.append("## Findings")
        if document.headlines:
            parts.append(
                "\n".join(
                    _finding(each.finding, f"{each.check.title}: {each.statement}") for each in document.headlines
                )
            )
            told = "; ".join(f"{escape(check.title)} ({check.counts()})" for check in document.checks)
            parts.append(f"What was found, by check: {told}.")
        more = sum(len(check.findings) for check in document.checks) - len(document.headlines)
        more_text = f"{count(more, 'more warning')} and " if more else ""
        parts.append(
            f"{more_text}{count(len(document.well), 'check')} without a warning: [findings](tables/findings.csv)"
        )
    for section in document.sections:
        parts += _section(section)
    return "\n\n".join(parts) + "\n"


def _finding(each: Row, statement: str) -> str:
    text = f"- **{escape(str(each.get('severity', '')))}** {escape(statement)}"
    return f"{text} ({escape(evidence(each))})" if each.get("evidence") else text


def _section(section: Section) -> list[str]:
    parts = [f"## {escape(section.title)}", *map(escape, section.text)]
    parts += [_picture(picture) for picture in section.pictures]
    parts += [_table(table) for table in section.tables]
    parts += [_merged(each) for each in section.merged]
    return parts


def _merged(each: Row) -> str:
    people = [person["title"] for person in each["people"]]
    lines = [f"**{escape(each['name'])}**" + (f" ({escape(each['system'])})" if each["system"] else "")]
    for fact in each["facts"]:
        about = "not supported" if fact["person"] is None else people[fact["person"]]
        text = f"**{escape(fact['text'])}**" if fact["elsewhere"] else escape(fact["text"])
        lines.append(f"- {text} ({escape(about)})")
    return "\n".join([lines[0], "", *lines[1:]])


def _picture(picture: Picture) -> str:
    return f"![{escape(picture.alt)}](figures/{picture.stem}.svg)\n\n*{escape(picture.caption)}*"


def _table(table: Table) -> str:
    lines = [
        "| " + " | ".join(map(escape, table.columns)) + " |",
        "|" + "|".join("---:" if numeric else "---" for numeric in table.numeric) + "|",
    ]
    lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in table.rows[:MAX_ROWS]]
    text = "\n".join(lines) + f"\n\n*{escape(' '.join([table.caption, *_notes(table)]))}*"
    if table.file:
        shown = min(len(table.rows), MAX_ROWS)
        first = f"The first {shown} of {table.total:,} rows; all: " if shown < table.total else "As a file: "
        text += f"\n\n{first}[{escape(table.file)}]({table.file})"
    return text


def _notes(table: Table) -> list[str]:
    return [note.split(";")[0].rstrip(".") + "." for note in table.notes]


def _cell(cell: Cell) -> str:
    text = escape(cell.text) + "".join(f" <sub>{escape(note)}</sub>" for note in cell.notes)
    return f"{text} <sub>{escape(cell.why)}</sub>" if cell.text == UNDEFINED and cell.why else text


def escape(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no table cell ends, one line."""
    text = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]|~$])", r"\\\1", text)
    # At the start of a line these would be a heading, a list or a rule.
    text = re.sub(r"^([#+=-])", r"\\\1", text)
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", text)
