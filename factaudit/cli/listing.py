"""What there is: ``list evaluators``, ``list audits``, ``list formats``, ``list groupers``."""

from __future__ import annotations

from typing import Any

import click

from factaudit.cli.options import example
from factaudit.cli.terminal import say, titled
from factaudit.cli.verb import Verb, answer


@click.command(
    "list",
    cls=Verb,
    gives={
        "what": "string: evaluators, audits, formats or groupers",
        "entries": "array: name and summary (of an audit its question), and of evaluators needs, source, checked and"
        " example, of audits options and source, of formats options and example",
    },
    short_help="List the evaluators, audits, formats or groupers.",
    epilog=example("factaudit list evaluators"),
)
@click.argument("what", type=click.Choice(["evaluators", "audits", "formats", "groupers"]))
def list_command(what: str) -> None:
    """List the evaluators, audits, formats or groupers of D-FActScore, each with what it needs and a line to run it."""
    entries = {"evaluators": _evaluators, "audits": _audits, "formats": _formats, "groupers": _groupers}[what]()
    answer({"what": what, "entries": entries})


def _evaluators() -> list[dict[str, Any]]:
    from factaudit.evaluators.registry import entries

    told = []
    for entry in entries().values():
        named = entry.example or entry.name
        titled(entry.name, entry.summary)
        say(f"    needs   {entry.needs}")
        if entry.source:
            say(f"    source  {entry.source}")
        if entry.checked:
            say(f"    checked {entry.checked}")
        say(f"    run     factaudit judge CLAIMS --evaluator {named} --out VERDICTS")
        shown = {key: getattr(entry, key) for key in ("name", "summary", "needs", "source", "checked")}
        told.append(shown | {"example": named})
    return told


def _audits() -> list[dict[str, Any]]:
    from factaudit.audit import computable

    told = []
    for audit in computable().values():
        titled(audit.name, audit.question)
        options = {key: field.default for key, field in audit.options_model().model_fields.items()}
        if options:
            say(f"    options {', '.join(f'{key} (default {default!r})' for key, default in options.items())}")
        if audit.source:
            say(f"    source  {audit.source}")
        told.append({"name": audit.name, "summary": audit.question, "options": options, "source": audit.source})
    return told


def _formats() -> list[dict[str, Any]]:
    from factaudit.datasets import FORMATS

    told = []
    for name, format in FORMATS.items():
        titled(name, format.summary)
        say(f"    run     {format.example}")
        told.append({"name": name, "summary": format.summary, "options": format.options, "example": format.example})
    return told


def _groupers() -> list[dict[str, Any]]:
    from factaudit.engines.dfactscore.group import GROUPERS

    for name, summary in GROUPERS.items():
        titled(name, summary)
        say(f"    run     factaudit dscore BIOGRAPHIES --grouper {name} --out RUN")
    return [{"name": name, "summary": summary} for name, summary in GROUPERS.items()]


COMMANDS = (list_command,)
