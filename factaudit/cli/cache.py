"""The replies that were paid for: ``cache info``, ``cache export``, ``cache prune``."""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH, Group, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import answer
from factaudit.errors import UsageError

_FILE = click.option("--file", "file", type=PATH, help="The cache.  [default: $FACTAUDIT_CACHE or .cache/factaudit]")


@click.group(short_help="Look after the replies that were paid for.", cls=Group)
def cache() -> None:
    """The replies that language models have given: kept in one SQLite file, never bought twice."""


@cache.command(
    "info",
    gives={
        "path": "string: the cache",
        "bytes": "integer: its size",
        "replies": "integer: in all",
        "open_batches": "integer: batches that were submitted and not yet read",
        "models": "array: model, revision, replies, prompt_tokens, completion_tokens, oldest and newest (ISO dates)",
    },
    short_help="What the cache holds.",
    epilog=example("factaudit cache info"),
)
@_FILE
def cache_info(file: Path | None) -> None:
    """How many replies of which models the cache holds."""
    import yaml

    from factaudit.llm import cache as store

    found = store.info(file or store.default_path())
    say(yaml.safe_dump(found, sort_keys=False, allow_unicode=True).rstrip())
    answer(found)


@cache.command(
    "export",
    gives={"out": "string: the file", "replies": "integer: how many it has"},
    short_help="Write every reply as a line of JSON.",
    epilog=example("factaudit cache export replies.jsonl"),
)
@click.argument("out", type=PATH)
@_FILE
def cache_export(out: Path, file: Path | None) -> None:
    """Write every reply as a line of JSON."""
    from factaudit.files import spare
    from factaudit.llm import cache as store

    file = file or store.default_path()
    spare([file], out)
    replies = store.export(file, out)
    say(f"{out}: {replies:,} replies")
    answer({"out": out, "replies": replies})


@cache.command(
    "prune",
    gives={"deleted": "integer: replies"},
    short_help="Delete replies.",
    epilog=example("factaudit cache prune --older-than 90 --model gpt-4o-mini"),
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
    answer({"deleted": removed})


COMMANDS = (cache,)
