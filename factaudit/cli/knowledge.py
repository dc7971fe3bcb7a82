"""``knowledge``: how do pages become a knowledge source?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb


@verb(
    "knowledge",
    short_help="Build a knowledge source from a file of pages.",
    example="factaudit knowledge pages.jsonl --out wiki.db",
)
@click.argument("source", type=options.PATH_TYPE)
@click.option("--out", type=options.PATH_TYPE, required=True, help="The knowledge source to write.")
@click.option(
    "--passage-tokens",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="The length of a passage in tokens.",
)
@click.option(
    "--tokenizer",
    help=(
        "A RoBERTa tokenizer (folder or hub name) that counts the tokens.  [default: each word"
        " counts as one token]"
    ),
)
@options.OFFLINE_OPTION
def knowledge_command(
    source: Path, out: Path, passage_tokens: int, tokenizer: str | None
) -> Outcome:
    """Build a knowledge source from a file with one JSON object per page: {title, text | passages |
    redirect}.

    The SQLite file of the original FActScore can be used as it is. `factaudit inspect SOURCE.db`
    shows what a knowledge source contains.
    """
    from factaudit.files import check_outputs
    from factaudit.knowledge.knowledge_builder import build_knowledge_source

    check_outputs([source], out)
    told = build_knowledge_source(
        source, out, passage_tokens=passage_tokens, tokenizer=tokenizer, progress=True
    )
    line = (
        f"{out}: {told['n_pages']:,} pages in {told['n_passages']:,} passages ({told['tokenizer']})"
    )
    return Outcome(
        [line], {"out": out, **{key: told[key] for key in ("n_pages", "n_passages", "tokenizer")}}
    )


COMMANDS = (knowledge_command,)
