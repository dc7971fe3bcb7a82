"""A verb of the command line: what it did it says in lines or, asked by ``--format json``, as one JSON document.

A verb calls `print_json_output` with its outcome. Its lines go to standard error then: standard output holds the
document alone, or nothing where the work failed before there was an outcome. A test asks every verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import click

from factaudit.cli.terminal import redirect_lines_to_stderr
from factaudit.text.display_text import mask_secrets_in_text

#: The name of the parameter ``--format``.
JSON_FLAG = "answer_format"
#: In a context's ``meta``: the arguments of the command line, as they were given.
ARGUMENTS_KEY = "factaudit.arguments"


class ColumnOption(click.Option):
    """An option that says how the user's columns are read; the help lists these apart, since many verbs have them."""


class JsonOutputCommand(click.Command):
    """A command with ``--format``, whose help ends with an example.

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
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], "How your columns are read": []}
        for one in self.get_params(ctx):
            if isinstance(one, click.Option) and (record := one.get_help_record(ctx)) is not None:
                sections["How your columns are read" if isinstance(one, ColumnOption) else "Options"].append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:
        ctx.meta[JSON_FLAG] = ctx.params.pop(JSON_FLAG)
        with redirect_lines_to_stderr(ctx.meta[JSON_FLAG] != "text"):
            return super().invoke(ctx)


def is_json_wanted() -> bool:
    """Whether the verb under way is to answer with a JSON document."""
    return click.get_current_context().meta[JSON_FLAG] == "json"


def print_json_output(outcome: Mapping[str, Any]) -> None:
    """Give the outcome of the verb under way: printed where JSON is wanted. A failure may still follow.

    Undefined figures are null, keys and passwords ``***``; all beyond ASCII is escaped, so that no terminal obeys it.
    """
    if is_json_wanted():
        import json

        document = {"schema": f"factaudit.{click.get_current_context().command.name}/1", **outcome}
        click.echo(json.dumps(_convert_to_json_output_value(document), indent=1, allow_nan=False))


def _convert_to_json_output_value(value: Any) -> Any:
    if isinstance(value, str | Path):
        return mask_secrets_in_text(str(value))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _convert_to_json_output_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_convert_to_json_output_value(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _convert_to_json_output_value(asdict(value))
    return _convert_to_json_output_value(value.tolist())  # numpy's
