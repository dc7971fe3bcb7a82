"""A verb of the command line: what it did it says in lines or, asked by ``--format json``, as one JSON document.

A verb declares in ``json_keys`` what its document holds (the reference is made of it) and calls `print_json_output`
with it. Its lines go to standard error then: standard output holds the document alone, or nothing where the work failed
before there was an outcome. A test asks every verb.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from types import MappingProxyType
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
    """A command with ``--format``.

    json_keys: the keys of its JSON, each as ``TYPE: what it is`` in JSON's words for types (``integer or null: ...``);
    None where the verb prints a document that has a definition of its own, in either format. formats: further ones,
    each with what it is (`is_answer_format`).
    """

    def __init__(
        self,
        *arguments: Any,
        json_keys: Mapping[str, str] | None,
        formats: Mapping[str, str] = MappingProxyType({}),
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.json_keys = json_keys
        self.params.append(
            click.Option(
                ["--format", JSON_FLAG],
                type=click.Choice(["text", "json", *formats]),
                default="text",
                show_default=True,
                help="json: one document on standard output; messages go to standard error."
                + "".join(f" {name}: {told}" for name, told in formats.items()),
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


def is_answer_format(name: str) -> bool:
    """Whether the command under way was asked for this ``--format``."""
    return bool(click.get_current_context().meta[JSON_FLAG] == name)


def make_json_schema_name(command_path: str) -> str:
    """The name of a verb's documents: ``knowledge build`` gives ``factaudit.knowledge.build/1``, ``sample --plan``
    ``factaudit.sample.plan/1``."""
    return f"factaudit.{'.'.join(word.lstrip('-') for word in command_path.split())}/1"


def print_json_output(outcome: Mapping[str, Any]) -> None:
    """Give the outcome of the verb under way: printed where JSON is wanted. A failure may still follow.

    Undefined figures are null, keys and passwords ``***``; all beyond ASCII is escaped, so that no terminal obeys it.
    """
    context = click.get_current_context()
    verb = context.command
    assert isinstance(verb, JsonOutputCommand)
    if verb.json_keys is not None and outcome.keys() != verb.json_keys.keys():
        raise TypeError(f"{context.command_path}: gives {sorted(verb.json_keys)}, found {sorted(outcome)}")
    own = verb.json_keys is None
    if own or is_answer_format("json"):
        import json

        # The name of a form (`sample --plan`) has its command's.
        name = verb.name if " " in (verb.name or "") else context.command_path.partition(" ")[2]
        document = outcome if own else {"schema": make_json_schema_name(name or ""), **outcome}
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
