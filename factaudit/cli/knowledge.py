"""Knowledge sources: ``knowledge build``, ``knowledge info``, ``knowledge lookup``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factaudit.cli.options import PATH, Group, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import answer


@click.group(short_help="Build and look into knowledge sources.", cls=Group)
def knowledge() -> None:
    """Knowledge sources: the original's SQLite file is read as it is, and files of pages become one."""


@knowledge.command(
    "build",
    gives={
        "out": "string: the knowledge source",
        "n_pages": "integer",
        "n_passages": "integer",
        "tokenizer": "string: what passages were cut by",
    },
    short_help="Make a knowledge source of pages.",
    epilog=example("factaudit knowledge build pages.jsonl --out wiki.db"),
)
@click.argument("source", type=PATH)
@click.option("--out", type=PATH, required=True, help="The knowledge source to write.")
@click.option("--passage-tokens", type=click.IntRange(1), default=256, show_default=True, help="Tokens per passage.")
@click.option("--tokenizer", help="A RoBERTa tokenizer (folder or hub name).  [default: words between white space]")
def knowledge_build(source: Path, out: Path, passage_tokens: int, tokenizer: str | None) -> None:
    """Make a knowledge source of pages in JSONL: {title, text | passages | redirect}. Resumes where it was killed."""
    from tqdm import tqdm

    from factaudit.files import spare
    from factaudit.knowledge.build import build

    spare([source], out, f"{out}.partial")
    with tqdm(
        total=source.stat().st_size if source.is_file() else None, unit="B", unit_scale=True, disable=None
    ) as bar:
        told = build(
            source,
            out,
            passage_tokens=passage_tokens,
            tokenizer=tokenizer,
            progress=lambda read, pages: _show(bar, read, pages),
        )
    say(f"{out}: {told['n_pages']:,} pages in {told['n_passages']:,} passages ({told['tokenizer']})")
    answer({"out": out, **{key: told[key] for key in ("n_pages", "n_passages", "tokenizer")}})


def _show(bar: Any, read: int, pages: int) -> None:
    bar.update(read - bar.n)
    bar.set_postfix(pages=pages)


@knowledge.command(
    "info",
    gives={"info": "object: path, bytes, n_pages, n_redirects, indexed, signature, and how it was made"},
    short_help="What a knowledge source holds.",
    epilog=example("factaudit knowledge info wiki.db"),
)
@click.argument("file", type=PATH)
def knowledge_info(file: Path) -> None:
    """What a knowledge source holds, and how it was made."""
    import yaml

    from factaudit.knowledge.docdb import DocDB

    with DocDB(file) as source:
        info = source.info()
    say(yaml.safe_dump(info, sort_keys=False, allow_unicode=True).rstrip())
    answer({"info": info})


@knowledge.command(
    "lookup",
    gives={"title": "string: the page's", "passages": "array: texts"},
    short_help="Show the passages of one page.",
    epilog=example("factaudit knowledge lookup wiki.db 'Ada Lovelace'"),
)
@click.argument("file", type=PATH)
@click.argument("title")
def knowledge_lookup(file: Path, title: str) -> None:
    """Show the passages of one page."""
    from factaudit.errors import FactauditError
    from factaudit.knowledge.docdb import DocDB
    from factaudit.text.printable import count

    with DocDB(file) as source:
        page = source.find(title)
    if page is None:
        raise FactauditError(f"{file}: no page is called {title!r}")
    say(f"{page.title}: {count(len(page.passages), 'passage')}")
    for number, passage in enumerate(page.passages, start=1):
        say(f"\n[{number}] {passage}")
    answer({"title": page.title, "passages": page.passages})


COMMANDS = (knowledge,)
