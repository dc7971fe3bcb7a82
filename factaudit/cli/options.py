"""What the verbs share: how groups list them, how their help ends, and the options that several of them take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factaudit.errors import hint

PATH: click.ParamType = click.Path(path_type=Path)

RUN_FOLDER = click.option("--out", type=PATH, required=True, help="The run folder.")
OVERRIDE = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the YAML.")
SYSTEM = click.option("--system", help="The system's name, where the file names none.")
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars; stops before they are passed, resumably.",
)


class Group(click.Group):
    """Commands in the order in which they were added, and a hint for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"no command {args[0]!r}{hint(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


def example(text: str) -> str:
    """The line that ends a command's help."""
    return f"\b\nExample:\n  {text}"
