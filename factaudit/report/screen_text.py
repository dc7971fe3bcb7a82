"""How does the first screen look as plain text, on a terminal or where Python prints results?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from factaudit.audit.screen import DEFAULT_TITLE, Screen, compose_screen
from factaudit.report.document import compose_report_remarks

#: The width of the first screen in characters.
SCREEN_WIDTH = 100
#: The width of a column heading, which may contain an evaluator's name.
MAX_HEAD_WIDTH = 24


def wrap_terminal_paragraph(
    paragraph: str, indent: str = "", width: int = SCREEN_WIDTH
) -> list[str]:
    """A paragraph as lines for a terminal. A number is never separated from its per cent sign.
    indent: the beginning of the first line; the other lines begin with as many spaces."""
    bound = paragraph.replace(" %", "\u00a0%")
    lines = textwrap.wrap(bound, width, initial_indent=indent, subsequent_indent=" " * len(indent))
    return [line.replace("\u00a0%", " %") for line in lines]


def describe_run(results: Mapping[str, Any], folder: Path) -> list[str]:
    """What the terminal shows after a run: the first screen, and what to do next."""
    lines = [
        "",
        *format_terminal_screen(results),
        "",
        f"next      open {folder / 'report.html'}",
    ]
    if (folder / "claims.parquet").is_file():
        lines.append(f"          look at single claims: factaudit view {folder}")
    return lines


def format_terminal_screen(results: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a run's first screen for a terminal. results: the content of
    ``results.json``."""
    screen = compose_screen(results)
    title = str(results["about"].get("title") or DEFAULT_TITLE)
    head = screen.size if title == DEFAULT_TITLE else f"{title}: {screen.size}"
    yield from wrap_terminal_paragraph(head)
    if not screen.is_answer:  # for example a run of an engine, whose own sentences are the answer
        for paragraph in compose_report_remarks(results):
            yield from ("", *wrap_terminal_paragraph(paragraph))
    elif screen.columns:
        yield ""
        yield from _format_terminal_screen_table(screen)
    if screen.advice:
        yield ""
    width = max((len(one.word) for one in screen.advice), default=0) + 2
    for one in screen.advice:
        yield from wrap_terminal_paragraph(one.sentence, one.word.ljust(width))


def _format_terminal_screen_table(screen: Screen) -> Iterator[str]:
    """The table, at most `SCREEN_WIDTH` wide. Long names are shortened in the middle."""
    heads = [[_cut_in_middle(head[at], MAX_HEAD_WIDTH) for head in screen.columns] for at in (0, 1)]
    lines = [line for line in heads if any(line)] + screen.rows
    widths = [max(len(line[at]) for line in lines) for at in range(len(screen.columns))]
    widths[0] = max(12, min(widths[0], SCREEN_WIDTH - sum(width + 2 for width in widths[1:])))
    for line in lines:
        name, cells = _cut_in_middle(line[0], widths[0]), line[1:]
        columns = [
            name.ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)),
        ]
        yield "  ".join(columns).rstrip()
    if screen.more_rows:
        n_rows = len(screen.rows) + len(screen.more_rows)
        yield f"These are the first {len(screen.rows)} of {n_rows}; the report has all."


def _cut_in_middle(name: str, width: int) -> str:
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - half]}…{name[-half:]}"
