"""How reports speak: no word, key or empty figure that readers stumble over, and no sentence that is too long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_statements import WORLDS, audit_world, make_world

from factaudit.audit import load_all_audits
from factaudit.cli.first_screen_text import format_terminal_first_screen
from factaudit.cli.result_display import display_estimated_rates
from factaudit.report.report_document import ReportDocument, build_report_document

#: Words that are not English, or not this field's; keys; and figures of nothing.
BANNED = re.compile(
    r"\bsurely\b|told (apart )?from|told apart|\btells? of\b|otherwise than|\b(is|are) asked\b(?! again)"
    r"|\bstands? at\b|\bbought\b|turned round|misorder|__\w+__|(?-i:\bNone\b)|\bnan\b"
    r"|\b(off|wrong) for 0\b|\bby 0\.0\b|\b0\.0 % of\b|\bof 0 \w|\b0 of 0\b|\b0 alike\b|\bn = 0\b|\b0 bootstrap",
    re.IGNORECASE,
)
#: Words of a sentence, or of a part between semicolons.
MOST_WORDS = 30
#: The paper's own sentences, which a reproduction sets beside its tables, and formulas.
QUOTED = {"reproduction-text"}


def list_document_texts(document: ReportDocument) -> Iterator[tuple[str, str]]:
    """Every text of a report, with its place: those of the screen, captions, headings of tables, cells of decisions."""
    yield from (("summary", text) for text in document.summary_paragraphs)
    yield from (("first screen", f"{one.word}: {one.sentence}") for one in document.first_screen.advice)
    for table in filter(None, (document.decision_table, document.evaluator_table)):
        yield "decisions", table.caption
        yield from (("decisions", text) for text in table.columns)
        yield from (("decisions", note) for line in table.rows for cell in line for note in cell.notes)
    for check in document.check_warnings:
        yield from ((f"finding {check.title}", str(one["statement"])) for one in check.findings)
    yield from (("finding", str(one["statement"])) for one in document.ok_findings)
    for section in document.sections:
        yield section.id, section.title
        yield from ((section.id, text) for text in section.paragraphs if not text.startswith("Signature"))
        yield from ((f"caption {section.id}", figure.caption) for figure in section.figures)
        for table in section.tables:
            yield f"caption {section.id}", table.caption
            yield from ((section.id, heading) for heading in table.columns)


def list_declared_texts() -> Iterator[tuple[str, str]]:
    for audit in load_all_audits().values():
        yield from ((audit.name, text) for text in (audit.title, audit.question, audit.text, audit.remedy))
        yield from ((audit.name, column.heading) for column in audit.columns.values())
        yield from ((audit.name, text) for check in audit.checks for text in (check.title, check.says, check.null))


def find_faults(texts: Iterator[tuple[str, str]]) -> list[str]:
    found = []
    for place, text in texts:
        if place in QUOTED:
            continue
        if (word := BANNED.search(text)) is not None:
            found.append(f"{place}: {word[0]!r} in {text}")
        if place.startswith("caption"):
            continue  # formulas and lists of methods
        sentences = [one for one in re.split(r"(?<=[.!?;])\s+", text) if len(one.split()) > MOST_WORDS]
        found += [f"{place}: {len(one.split())} words in {one}" for one in sentences]
    return found


@pytest.mark.parametrize("world", WORLDS)
def test_reports_and_terminal_speak_plainly(world: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = audit_world(make_world(world))
    document = build_report_document(results.to_dict(), tmp_path)
    assert find_faults(list_document_texts(document)) == []
    if "estimates" in results.audits:
        display_estimated_rates(results.audits)
    lines = [*format_terminal_first_screen(results), *capsys.readouterr().out.splitlines()]
    assert [line for line in lines if BANNED.search(line)] == []


def test_declarations_speak_plainly() -> None:
    assert find_faults(list_declared_texts()) == []


def test_what_is_banned_is_found() -> None:
    """The rules see what STYLE forbids, and let plain English pass."""
    for text in ("it is surely off", "off for 0 of 12 rates", "the mean of __macro__", "0.0 % of 6 pairs", "bought"):
        assert find_faults(iter([("x", text)])), text
    plain = "It reverses no pair of systems; in 7 of 30, only one side finds a significant difference."
    assert find_faults(iter([("x", plain)])) == []
    assert find_faults(iter([("x", " ".join(["word"] * (MOST_WORDS + 1)))]))
