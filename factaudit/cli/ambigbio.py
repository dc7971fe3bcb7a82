"""AmbigBio: ``ambigbio collect``, ``ambigbio generate``."""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import MAX_COST, PATH, SYSTEM, Group, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import answer


@click.group(short_help="Collect ambiguous names, write biographies.", cls=Group)
def ambigbio() -> None:
    """AmbigBio: ambiguous names from Wikipedia, and biographies written for them (MF §5)."""


@ambigbio.command(
    "collect",
    gives={"out": "string: the file", "n_names": "integer"},
    short_help="Gather names that several people share.",
    epilog=example("factaudit ambigbio collect --n 500 --seed 0 --out names.jsonl"),
)
@click.option("--n", type=click.IntRange(1), default=500, show_default=True, help="How many names.")
@click.option("--seed", default=0, show_default=True, help="Of the draw among the pages.")
@click.option("--api", help="The MediaWiki API.  [default: English Wikipedia's]")
@click.option("--pause", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between requests.")
@click.option("--out", type=PATH, required=True, help="JSONL of names with their candidates.")
def ambigbio_collect(n: int, seed: int, api: str | None, pause: float, out: Path) -> None:
    """Gather names that several people share from Wikipedia's disambiguation pages. Resumes where it was stopped."""
    from factaudit.engines.ambigbio import API, collect

    names = collect(out, n, seed=seed, api=api or API, pause=pause, say=say)
    say(f"{out}: {len(names):,} names")
    answer({"out": out, "n_names": len(names)})


@ambigbio.command(
    "generate",
    gives={"out": "string: the file", "n_biographies": "integer"},
    short_help="Write biographies of ambiguous names.",
    epilog=example("factaudit ambigbio generate names.jsonl --knowledge wiki.db --llm gpt-4o-mini --out bios.jsonl"),
)
@click.argument("names", type=PATH)
@click.option("--knowledge", type=PATH, required=True, help="The knowledge source (.db).")
@click.option("--llm", required=True, metavar="NAME[:key=value,...]", help="e.g. llama:params.temperature=1")
@click.option("--demos", default="ambiguity", show_default=True, help="ambiguity, no-ambiguity, careful, or a file.")
@click.option("--whole", is_flag=True, help="Search the whole knowledge source, not only pages of the name.")
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="Passages per name.")
@SYSTEM
@MAX_COST
@click.option("--out", type=PATH, required=True, help="JSONL that `factaudit dscore` reads.")
def ambigbio_generate(
    names: Path,
    knowledge: Path,
    llm: str,
    demos: str,
    k: int,
    whole: bool,
    system: str | None,
    max_cost: float | None,
    out: Path,
) -> None:
    """Write biographies of ambiguous names by retrieval-augmented generation (MF Table 1)."""
    from factaudit.engines.ambigbio import generate, read_names
    from factaudit.files import spare
    from factaudit.knowledge.docdb import DocDB
    from factaudit.llm.gathering import connect
    from factaudit.llm.settings import LLMSettings

    spare([names, knowledge, demos], out)
    client = connect(LLMSettings.of(llm), max_cost)
    with DocDB(knowledge) as source:
        rows = generate(read_names(names), source, client, out, demos=demos, k=k, whole=whole, system=system, say=say)
    say(f"{out}: {len(rows):,} biographies")
    answer({"out": out, "n_biographies": len(rows)})


COMMANDS = (ambigbio,)
