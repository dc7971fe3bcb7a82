"""A verb of the command line: what it did it says in lines or, asked by ``--format json``, as one JSON document.

A verb declares in ``gives`` what its document holds (docs/reference.md is made of it) and calls `answer` with it. Its
lines go to standard error then: standard output holds the document alone, or nothing where the work failed before there
was an outcome. A test asks every verb.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import click

from factaudit.cli.terminal import lines_aside
from factaudit.text.printable import without_secrets

_JSON = "answer_format"


class Verb(click.Command):
    """A command with ``--format``.

    gives: the keys of its JSON, each as ``TYPE: what it is`` in JSON's words for types (``integer or null: ...``); None
    where the verb prints a document that has a definition of its own, in either format.
    """

    def __init__(self, *arguments: Any, gives: Mapping[str, str] | None, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.gives = gives
        self.params.append(
            click.Option(
                ["--format", _JSON],
                type=click.Choice(["text", "json"]),
                default="text",
                show_default=True,
                help="json: one document on standard output; what is said goes to standard error.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        as_json = ctx.params.pop(_JSON) == "json"
        ctx.meta[_JSON] = as_json
        with lines_aside(as_json):
            return super().invoke(ctx)


def schema_of(path: str) -> str:
    """The name of a verb's documents: ``knowledge build`` gives ``factaudit.knowledge.build/1``."""
    return f"factaudit.{'.'.join(path.split())}/1"


def answer(found: Mapping[str, Any]) -> None:
    """Give the outcome of the verb under way: printed where JSON is wanted. A failure may still follow.

    Undefined figures are null, keys and passwords ``***``; all beyond ASCII is escaped, so that no terminal obeys it.
    """
    context = click.get_current_context()
    verb = context.command
    assert isinstance(verb, Verb)
    if verb.gives is not None and found.keys() != verb.gives.keys():
        raise TypeError(f"{context.command_path}: gives {sorted(verb.gives)}, found {sorted(found)}")
    own = verb.gives is None
    if own or context.meta[_JSON]:
        document = found if own else {"schema": schema_of(context.command_path.partition(" ")[2]), **found}
        click.echo(json.dumps(_plain(document), indent=1, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, str | Path):
        return without_secrets(str(value))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    return _plain(value.tolist())  # numpy's
