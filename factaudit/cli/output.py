"""How does a verb answer? In lines for people or, with ``--format json``, as one JSON document.

A verb returns an `Outcome`, which `Verb` prints. With ``--format json`` its lines go to standard
error, and standard output holds only the document; it is empty if the work failed before there was
an outcome. A test checks this for every verb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import click

from factaudit.cli.terminal import print_line, redirect_lines_to_stderr
from factaudit.text.display_text import mask_secrets_in_text

#: The name of the parameter ``--format``.
JSON_FLAG = "answer_format"
#: The key in a context's ``meta`` for the arguments of the command line, as the user gave them.
ARGUMENTS_KEY = "factaudit.arguments"


@dataclass(frozen=True)
class Outcome:
    """What a verb did: lines for people, and the document for ``--format json``.

    failure: why the command fails although its work is done; it is printed last.
    """

    lines: Iterable[str] = ()
    document: Mapping[str, Any] = field(default_factory=dict)
    failure: Exception | None = None


class ColumnOption(click.Option):
    """An option that says how the user's columns are read. The help lists these options separately,
    because many verbs have them."""


class Verb(click.Command):
    """A command with ``--format`` whose function returns an `Outcome` and whose help ends with an
    example.

    example: a command line.
    """

    def __init__(self, name: str, *, example: str = "", **more: Any) -> None:
        super().__init__(name, epilog=f"\b\nExample:\n  {example}", **more)
        self.params.append(
            click.Option(
                ["--format", JSON_FLAG],
                type=click.Choice(["text", "json"]),
                default="text",
                show_default=True,
                help="json: one document on standard output; messages go to standard error.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS_KEY] = list(args)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {
            "Options": [],
            "How your columns are read": [],
        }
        for one in self.get_params(ctx):
            if isinstance(one, click.Option) and (record := one.get_help_record(ctx)) is not None:
                sections[
                    "How your columns are read" if isinstance(one, ColumnOption) else "Options"
                ].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> None:
        ctx.meta[JSON_FLAG] = ctx.params.pop(JSON_FLAG)
        with redirect_lines_to_stderr(is_json_wanted()):
            outcome: Outcome = super().invoke(ctx)
            for line in outcome.lines:
                print_line(line)
        if is_json_wanted():
            import json

            document = make_json_value(
                {"schema": f"{'.'.join(ctx.command_path.split())}/1", **outcome.document}
            )
            click.echo(json.dumps(document, indent=1, allow_nan=False))
        if outcome.failure is not None:
            raise outcome.failure


def verb(
    name: str, short_help: str, example: str
) -> Callable[[Callable[..., Outcome]], click.Command]:
    """Make a command from a function that returns an `Outcome`."""
    return click.command(name, cls=Verb, short_help=short_help, example=example)


def is_json_wanted() -> bool:
    """Whether the current verb should answer with a JSON document."""
    return click.get_current_context().meta[JSON_FLAG] == "json"


def make_json_value(value: Any) -> Any:
    """A value as a JSON document holds it: undefined figures are null, keys and passwords are
    ``***``."""
    if isinstance(value, str | Path):
        return mask_secrets_in_text(str(value))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): make_json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [make_json_value(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return make_json_value(asdict(value))
    return make_json_value(value.tolist())  # a scalar of NumPy
