"""What there is: ``list evaluators``, ``list audits``, ``list formats``."""

from __future__ import annotations

import click

from factaudit.cli.options import example
from factaudit.cli.terminal import say, titled


@click.command(
    "list", short_help="List the evaluators, audits or formats.", epilog=example("factaudit list evaluators")
)
@click.argument("what", type=click.Choice(["evaluators", "audits", "formats"]))
def list_command(what: str) -> None:
    """List the evaluators, audits or formats, each with what it needs and a line to run it."""
    {"evaluators": _evaluators, "audits": _audits, "formats": _formats}[what]()


def _evaluators() -> None:
    from factaudit.evaluators.registry import entries

    for entry in entries().values():
        titled(entry.name, entry.summary)
        say(f"    needs   {entry.needs}")
        if entry.source:
            say(f"    source  {entry.source}")
        if entry.checked:
            say(f"    checked {entry.checked}")
        say(f"    run     factaudit judge CLAIMS --evaluator {entry.example or entry.name} --out VERDICTS")


def _audits() -> None:
    from factaudit.audit import computable

    for audit in computable().values():
        titled(audit.name, audit.question)
        fields = audit.options_model().model_fields
        if fields:
            say(f"    options {', '.join(f'{key} (default {f.default!r})' for key, f in fields.items())}")
        if audit.source:
            say(f"    source  {audit.source}")


def _formats() -> None:
    from factaudit.datasets import FORMATS

    for name, format in FORMATS.items():
        titled(name, format.summary)
        say(f"    run     {format.example}")


COMMANDS = (list_command,)
