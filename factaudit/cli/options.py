"""What the verbs share: how groups list them, how their help ends, and the options that several of them take."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import click

from factaudit.cli.verb import Verb
from factaudit.errors import hint

PATH: click.ParamType = click.Path(path_type=Path)

#: More would take hours and move no digit that is shown (`factaudit.runfolder.MAX_REPLICATES`).
REPLICATES = click.IntRange(0, 1_000_000)

RUN_FOLDER = click.option("--out", type=PATH, required=True, help="The run folder.")
OVERRIDE = click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the YAML.")
PNG = click.option("--png", is_flag=True, help="Write the figures as PNG, too.")
SYSTEM = click.option("--system", help="The system's name, where the file names none.")
SEED = click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
RULE = click.option(
    "--rule", default="majority", show_default=True, help="How several annotators' labels become one; or one's name."
)
MAX_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars; stops before they are passed, resumably.",
)


def mapping_options(verb: Any) -> Any:
    """The options that say how files whose columns are not ours are to be read: the verb gets ``mapping``."""

    @functools.wraps(verb)
    def with_mapping(
        columns: tuple[str, ...],
        labels: str | None,
        scale: str | None,
        threshold: float | None,
        label_threshold: float | None,
        wide: tuple[str, ...],
        **others: Any,
    ) -> Any:
        from factaudit.intake.load import parse_settings

        mapping = parse_settings(columns, labels, scale, threshold, label_threshold, wide)
        return verb(mapping=mapping, **others)

    for option in reversed(_MAPPING):
        with_mapping = option(with_mapping)
    return with_mapping


_MAPPING = (
    click.option(
        "--map",
        "columns",
        multiple=True,
        metavar="OURS=THEIRS",
        help="A column of yours for one of ours (claim=sentence), or a mapping.yaml that `inspect --write` wrote.",
    ),
    click.option("--labels", metavar="WORD=1,WORD=0", help="What the labels' words mean."),
    click.option("--label-threshold", type=float, help="Labels are grades: above this is attributable."),
    click.option("--scale", metavar="LOW:HIGH", help="Of scores outside [0, 1]; 1:0 where 1 is hallucinated."),
    click.option("--threshold", type=float, help="On that scale; a score above it predicts attributable."),
    click.option("--wide", multiple=True, metavar="PATTERN", help="Columns that are evaluators each: 'judge_*'."),
)


class Group(click.Group):
    """Commands in the order in which they were added, each a `Verb`, and a hint for a misspelt one."""

    command_class = Verb

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"no command {args[0]!r}{hint(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


def example(text: str) -> str:
    """The line that ends a command's help."""
    return f"\b\nExample:\n  {text}"
