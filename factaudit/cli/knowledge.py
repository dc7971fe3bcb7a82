"""Knowledge sources: ``knowledge build``; its ``--ambigbio`` writes biographies of ambiguous names from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.terminal import print_line
from factaudit.text.progress_lines import ProgressLines


@click.group(
    "knowledge", short_help="Build knowledge sources, and write biographies from them.", cls=options.CommandGroup
)
def knowledge_group() -> None:
    """Knowledge sources: the original's SQLite file is read as it is, and files of pages become one.

    `factaudit inspect SOURCE.db` says what one holds.
    """


@click.command(
    "build",
    cls=options.FlagSwitchedCommand,
    json_keys={
        "out": "string: the knowledge source",
        "n_pages": "integer",
        "n_passages": "integer",
        "tokenizer": "string: what passages were cut by",
    },
    short_help="Make a knowledge source of pages.",
    epilog=options.format_help_example("factaudit knowledge build pages.jsonl --out wiki.db"),
)
@click.argument("source", type=options.PATH_TYPE)
@click.option("--out", type=options.PATH_TYPE, required=True, help="The knowledge source to write.")
@click.option("--passage-tokens", type=click.IntRange(1), default=256, show_default=True, help="Tokens per passage.")
@click.option("--tokenizer", help="A RoBERTa tokenizer (folder or hub name).  [default: words between white space]")
@options.OFFLINE_OPTION
def knowledge_build_command(source: Path, out: Path, passage_tokens: int, tokenizer: str | None) -> None:
    """Make a knowledge source of pages in JSONL: {title, text | passages | redirect}. Resumes where it was killed."""
    from tqdm import tqdm

    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.knowledge.knowledge_builder import build_knowledge_source

    check_outputs_do_not_replace_inputs([source], out, f"{out}.partial")
    total_bytes = source.stat().st_size if source.is_file() else None
    lines = ProgressLines("knowledge", "MB read", shown=True)
    with tqdm(total=total_bytes, unit="B", unit_scale=True, disable=None) as bar:
        told = build_knowledge_source(
            source,
            out,
            passage_tokens=passage_tokens,
            tokenizer=tokenizer,
            show_progress=lambda read, pages: _display_knowledge_build_progress(bar, lines, total_bytes, read, pages),
        )
    print_line(f"{out}: {told['n_pages']:,} pages in {told['n_passages']:,} passages ({told['tokenizer']})")
    print_json_output({"out": out, **{key: told[key] for key in ("n_pages", "n_passages", "tokenizer")}})


def _display_knowledge_build_progress(
    progress_bar: Any, lines: ProgressLines, total_bytes: int | None, bytes_read: int, n_pages: int
) -> None:
    lines.show(bytes_read / 1e6, None if total_bytes is None else total_bytes / 1e6)
    progress_bar.update(bytes_read - progress_bar.n)
    progress_bar.set_postfix(pages=n_pages)


@click.command(
    "knowledge build --ambigbio --collect",
    cls=JsonOutputCommand,
    json_keys={"out": "string: the file", "n_names": "integer"},
    short_help="Gather names that several people share.",
    epilog=options.format_help_example(
        "factaudit knowledge build --ambigbio --collect --n 500 --seed 0 --out names.jsonl"
    ),
)
@click.option("--n", type=click.IntRange(1), default=500, show_default=True, help="How many names.")
@click.option("--seed", default=0, show_default=True, help="Of the draw among the pages.")
@click.option("--api", help="The MediaWiki API.  [default: English Wikipedia's]")
@click.option("--pause", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between requests.")
@click.option("--out", type=options.PATH_TYPE, required=True, help="JSONL of names with their candidates.")
def ambigbio_collect_command(n: int, seed: int, api: str | None, pause: float, out: Path) -> None:
    """Gather names that several people share from Wikipedia's disambiguation pages. Resumes where it was stopped."""
    from factaudit.engines.ambigbio import WIKIPEDIA_API, collect_ambigbio_names

    names = collect_ambigbio_names(out, n, seed=seed, api=api or WIKIPEDIA_API, pause=pause, say=print_line)
    print_line(f"{out}: {len(names):,} names")
    print_json_output({"out": out, "n_names": len(names)})


@click.command(
    "knowledge build --ambigbio",
    cls=options.FlagSwitchedCommand,
    json_keys={"out": "string: the file", "n_biographies": "integer"},
    short_help="Write biographies of ambiguous names.",
    epilog=options.format_help_example(
        "factaudit knowledge build --ambigbio names.jsonl --knowledge wiki.db --llm gpt-4o-mini --out bios.jsonl"
    ),
)
@click.argument("names", type=options.PATH_TYPE)
@click.option("--knowledge", type=options.PATH_TYPE, required=True, help="The knowledge source (.db).")
@click.option("--llm", required=True, metavar="NAME[:key=value,...]", help="e.g. llama:params.temperature=1")
@click.option("--demos", default="ambiguity", show_default=True, help="ambiguity, no-ambiguity, careful, or a file.")
@click.option("--whole", is_flag=True, help="Search the whole knowledge source, not only pages of the name.")
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="Passages per name.")
@options.SYSTEM_OPTION
@options.MAX_COST_OPTION
@click.option("--out", type=options.PATH_TYPE, required=True, help="JSONL that `score --people` reads.")
def knowledge_ambigbio_command(
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
    """AmbigBio: write biographies of names that several people share, by retrieval-augmented generation (MF Table 1).

    `--collect` gathers such names from Wikipedia (MF §2.1).
    """
    from factaudit.engines.ambigbio import generate_ambigbio_biographies, read_ambigbio_names
    from factaudit.files import check_outputs_do_not_replace_inputs
    from factaudit.knowledge.docdb import DocDB
    from factaudit.llm.batch_client import make_llm_client
    from factaudit.llm.settings import LLMSettings

    check_outputs_do_not_replace_inputs([names, knowledge, demos], out)
    client = make_llm_client(LLMSettings.from_value(llm), max_cost)
    with DocDB(knowledge) as source:
        rows = generate_ambigbio_biographies(
            read_ambigbio_names(names),
            source,
            client,
            out,
            demos=demos,
            k=k,
            whole=whole,
            system=system,
            say=print_line,
        )
    print_line(f"{out}: {len(rows):,} biographies")
    print_json_output({"out": out, "n_biographies": len(rows)})


knowledge_ambigbio_command.add_mode("--collect", ambigbio_collect_command)
knowledge_build_command.add_mode("--ambigbio", knowledge_ambigbio_command)
knowledge_group.add_command(knowledge_build_command)
COMMANDS = (knowledge_group,)
