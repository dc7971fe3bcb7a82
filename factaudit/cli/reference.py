"""docs/reference.md, made of what the code declares: commands, evaluators, formats, forms of export.

``python -m factaudit.cli.reference docs/reference.md`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from factaudit.cli.app import cli
from factaudit.cli.verb import Verb, schema_of
from factaudit.datasets import FORMATS
from factaudit.evaluators.registry import ours
from factaudit.export import FORMS
from factaudit.files import write_text

_FORMAT = """\
Every command takes `--format json`: standard output is then one JSON document, and what is said goes to standard error.
It has the keys that stand with the command, all of them every time, and `schema`, whose number rises when a key goes or
changes its meaning; further keys may come. An undefined figure is null. Where the work fails before there is an
outcome, standard output is empty; the exit code is 0 (done), 1 (the work failed) or 2 (wrong usage) in either format.
`factaudit schema` prints the JSON schema of experiment YAMLs as it is.
"""


def page() -> str:
    """The whole page."""
    parts = [
        "# Reference\n",
        "<!-- Made by `python -m factaudit.cli.reference docs/reference.md`: change the declarations. -->\n",
        "The audits are on [a page of their own](audits.md).\n",
        "## Commands\n",
        _FORMAT,
        *_commands(cli, "factaudit"),
        "## Evaluators\n",
        "| name | what it does | needs | example |\n|---|---|---|---|",
        *(_row(f"`{e.name}`", e.summary, e.needs, f"`{e.example or e.name}`") for e in ours()),
        "\n## Formats that are converted\n",
        *(_format(name) for name in FORMATS),
        "## Forms that are exported\n",
        "| `--to` | |\n|---|---|",
        *(_row(f"`{name}`", text) for name, (_, text) in FORMS.items()),
    ]
    return "\n".join(parts) + "\n"


def _commands(group: click.Group, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
            continue
        text = cleandoc((command.help or "").replace("\b", ""))
        given = [one.metavar or str(one.name).upper() for one in command.params if isinstance(one, click.Argument)]
        yield f"### `{' '.join([path, name, *given])}`\n\n{text}\n"
        options = [
            one for one in command.params if isinstance(one, click.Option) and one.help and one.name != "answer_format"
        ]
        if options:
            yield "| option | |\n|---|---|"
            yield from (_row(f"`{', '.join((*one.opts, *one.secondary_opts))}`", one.help or "") for one in options)
            yield ""
        if isinstance(command, Verb) and command.gives is not None:
            yield f"`--format json` gives `{schema_of(f'{path} {name}'.partition(' ')[2])}`:\n"
            yield "| key | type | |\n|---|---|---|"
            for key, told in command.gives.items():
                kind, _, meaning = told.partition(":")
                yield _row(f"`{key}`", kind, meaning.strip())
            yield ""


def _format(name: str) -> str:
    one = FORMATS[name]
    lines = [f"### `{name}`\n\n{one.summary}.\n\n```\n{one.example}\n```\n"]
    if one.options:
        lines += ["| `--option` | |\n|---|---|", *(_row(f"`{key}`", text) for key, text in one.options.items()), ""]
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), page())
