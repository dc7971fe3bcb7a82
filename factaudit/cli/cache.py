"""``cache`` and ``cache --prune``: which replies of language models are stored, and which should be deleted?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import PATH_TYPE, FlagSwitchedCommand, format_help_example
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError

_CACHE_FILE_OPTION = click.option(
    "--file", "file", type=PATH_TYPE, help="The cache file.  [default: $FACTAUDIT_CACHE or .cache/factaudit/llm.sqlite]"
)


@click.command(
    "cache",
    cls=FlagSwitchedCommand,
    json_keys={
        "path": "string: the cache",
        "bytes": "integer: its size",
        "replies": "integer: in all",
        "open_batches": "integer: batches that were submitted and not yet read",
        "models": "array: model, revision, server, replies, prompt_tokens, completion_tokens, oldest, newest",
    },
    short_help="Show or delete the stored replies of language models.",
    epilog=format_help_example("factaudit cache"),
)
@_CACHE_FILE_OPTION
def cache_command(file: Path | None) -> None:
    """Show how many replies of which language models are stored. They are kept in one SQLite file, so
    that no reply is paid for twice.
    """
    import yaml

    from factaudit.llm import reply_cache as store

    found = store.summarise_reply_cache(file or store.default_cache_path())
    print_line(yaml.safe_dump(found, sort_keys=False, allow_unicode=True).rstrip())
    print_json_output(found)


@click.command(
    "cache --prune",
    cls=JsonOutputCommand,
    json_keys={"deleted": "integer: replies, or files"},
    short_help="Delete stored replies.",
    epilog=format_help_example("factaudit cache --prune --older-than 90 --model gpt-4o-mini"),
)
@click.option(
    "--older-than", type=float, metavar="DAYS", help="Delete only replies that are older than this many days."
)
@click.option("--model", help="Delete only replies of this model.")
@click.option("--published", is_flag=True, help="Delete the published data that was fetched, not the replies.")
@_CACHE_FILE_OPTION
def cache_prune_command(older_than: float | None, model: str | None, published: bool, file: Path | None) -> None:
    """Delete stored replies, or the published data that was fetched, and free the disk space."""
    if published:
        from factaudit.publications.fetching import delete_fetched_published_files

        if older_than is not None or model is not None:
            raise UsageError("--published cannot be combined with --older-than or --model, which choose replies")
        deleted = delete_fetched_published_files()
        print_line(f"{deleted:,} published files deleted")
        print_json_output({"deleted": deleted})
        return
    from factaudit.llm import reply_cache as store

    if older_than is None and model is None:
        raise UsageError("expected --older-than DAYS, --model NAME or both: they say which replies to delete")
    removed = store.prune_cached_replies(file or store.default_cache_path(), older_than=older_than, model=model)
    print_line(f"{removed:,} replies deleted")
    print_json_output({"deleted": removed})


cache_command.add_mode("--prune", cache_prune_command)
COMMANDS = (cache_command,)
