"""The replies that were paid for: ``cache info``, ``cache export``, ``cache prune``."""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH, Group, example
from factaudit.cli.terminal import say
from factaudit.errors import UsageError

_FILE = click.option("--file", "file", type=PATH, help="The cache.  [default: $FACTAUDIT_CACHE or .cache/factaudit]")


@click.group(short_help="Look after the replies that were paid for.", cls=Group)
def cache() -> None:
    """The replies that language models have given: kept in one SQLite file, never bought twice."""


@cache.command("info", short_help="What the cache holds.", epilog=example("factaudit cache info"))
@_FILE
def cache_info(file: Path | None) -> None:
    """How many replies of which models the cache holds."""
    import yaml

    from factaudit.llm import cache as store

    say(yaml.safe_dump(store.info(file or store.default_path()), sort_keys=False, allow_unicode=True).rstrip())


@cache.command(
    "export", short_help="Write every reply as a line of JSON.", epilog=example("factaudit cache export replies.jsonl")
)
@click.argument("out", type=PATH)
@_FILE
def cache_export(out: Path, file: Path | None) -> None:
    """Write every reply as a line of JSON."""
    from factaudit.files import spare
    from factaudit.llm import cache as store

    file = file or store.default_path()
    spare([file], out)
    say(f"{out}: {store.export(file, out):,} replies")


@cache.command(
    "prune", short_help="Delete replies.", epilog=example("factaudit cache prune --older-than 90 --model gpt-4o-mini")
)
@click.option("--older-than", type=float, metavar="DAYS", help="Only replies older than so many days.")
@click.option("--model", help="Only replies of this model.")
@_FILE
def cache_prune(older_than: float | None, model: str | None, file: Path | None) -> None:
    """Delete replies, and give the space back."""
    from factaudit.llm import cache as store

    if older_than is None and model is None:
        raise UsageError("say which replies to delete: --older-than DAYS, --model NAME, or both")
    removed = store.prune(file or store.default_path(), older_than=older_than, model=model)
    say(f"{removed:,} replies deleted")


COMMANDS = (cache,)
