"""The verbs of the engines: FActScore, D-FActScore, their knowledge source, and AmbigBio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from factaudit.runfolder import RunSettings

Experiment = TypeVar("Experiment", bound="RunSettings")

_PATH = click.Path(path_type=Path)
_OUT = click.option("--out", type=_PATH, required=True, help="The run folder.")
_LLM = click.option("--llm", metavar="NAME[,key=value,...]", help="e.g. gpt-4o-mini, or smollm2,base_url=local")
_KNOWLEDGE = click.option("--knowledge", help="The knowledge source: .db, or pages as .jsonl.")
_SYSTEM = click.option("--system", help="The system's name, where the file names none.")
_LIMIT = click.option("--limit", type=click.IntRange(min=1), help="Only the first so many.")
_COST = click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    help="US dollars; stops before they are passed, resumably.",
)
_DEMOS = click.option("--demos", help="A file of demonstrations for decomposing, in place of our own.")
_MISSING = click.option(
    "--missing",
    type=click.Choice(["error", "skip", "wikipedia"]),
    help="What to do with topics that the knowledge source lacks.  [default: skip]",
)
_MORE = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other setting, as an experiment YAML names it: gamma=0, k=3, seed=1, replicates=500.",
)


def example(text: str) -> str:
    """The line that ends a command's help."""
    return f"\b\nExample:\n  {text}"


def _experiment(model: type[Experiment], block: str, settings: Sequence[str], **options: Any) -> Experiment:
    """The experiment that options and ``--set`` describe: keys of the whole run, or of the engine's block."""
    from factaudit.yamlfile import check, parse_settings

    inside = {key: value for key, value in options.items() if value not in (None, [])}
    whole: dict[str, Any] = {block: inside}
    for key, value in parse_settings(settings).items():
        (whole if key in model.model_fields and key != block else inside)[key.removeprefix(f"{block}.")] = value
    return check(model, whole)


def _limited(experiment: Experiment, max_cost: float | None) -> Experiment:
    return experiment if max_cost is None else experiment.model_copy(update={"max_cost": max_cost})


@click.command(
    short_help="Compute FActScore.",
    epilog=example("factaudit score responses.jsonl --knowledge enwiki.db --llm gpt-4o-mini --out runs/bios"),
)
@click.argument("responses", nargs=-1, required=True)
@_KNOWLEDGE
@_LLM
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    help="retrieval (default), no-context, or any evaluator (NAME[:key=value,...]). May be repeated.",
)
@click.option("--facts", help="Given facts: model or human (from annotations), or a file.")
@_DEMOS
@_MISSING
@_SYSTEM
@_LIMIT
@_COST
@_OUT
@_MORE
def score(responses: Sequence[str], out: Path, max_cost: float | None, settings: Sequence[str], **options: Any) -> None:
    """FActScore: decompose responses into atomic facts, retrieve passages, verify, score (Min et al. 2023)."""
    from factaudit.engines.factscore.settings import ScoreExperiment, run

    options["verifiers"] = list(options["verifiers"])
    experiment = _experiment(ScoreExperiment, "factscore", settings, responses=list(responses), **options)
    run(_limited(experiment, max_cost), out, progress=True, say=click.echo)


@click.command(
    short_help="Compute D-FActScore.",
    epilog=example("factaudit dscore biographies.jsonl --knowledge wiki.db --llm gpt-4o-mini --out runs/ambig"),
)
@click.argument("biographies", nargs=-1, required=True)
@_KNOWLEDGE
@_LLM
@click.option("--verifier", help="llm (default), or any evaluator (NAME[:key=value,...]).")
@click.option(
    "--grouper", "groupers", multiple=True, help="llm (default), heuristic, one-group or given. May be repeated."
)
@_DEMOS
@_MISSING
@_SYSTEM
@_LIMIT
@_COST
@_OUT
@_MORE
def dscore(
    biographies: Sequence[str], out: Path, max_cost: float | None, settings: Sequence[str], **options: Any
) -> None:
    """D-FActScore: group the facts by person, link each group to one entity, verify against it (Chiang & Lee 2024)."""
    from factaudit.engines.dfactscore.settings import DScoreExperiment, run

    options["groupers"] = list(options["groupers"])
    experiment = _experiment(DScoreExperiment, "dfactscore", settings, biographies=list(biographies), **options)
    run(_limited(experiment, max_cost), out, progress=True, say=click.echo)


# ------------------------------------------------------------------------------------------------- knowledge


@click.group(short_help="Build and look into knowledge sources.")
def knowledge() -> None:
    """Knowledge sources: the original's SQLite file is read as it is, and files of pages become one."""


@knowledge.command(
    "build",
    short_help="Make a knowledge source of pages.",
    epilog=example("factaudit knowledge build pages.jsonl --out wiki.db"),
)
@click.argument("source", type=_PATH)
@click.option("--out", type=_PATH, required=True, help="The knowledge source to write.")
@click.option("--passage-tokens", type=click.IntRange(1), default=256, show_default=True, help="Tokens per passage.")
@click.option("--tokenizer", help="A RoBERTa tokenizer (folder or hub name).  [default: words between white space]")
def knowledge_build(source: Path, out: Path, passage_tokens: int, tokenizer: str | None) -> None:
    """Make a knowledge source of pages in JSONL: {title, text | passages | redirect}. Resumes where it was killed."""
    from tqdm import tqdm

    from factaudit.knowledge.build import build

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
    click.echo(f"{out}: {told['n_pages']:,} pages in {told['n_passages']:,} passages ({told['tokenizer']})")


def _show(bar: Any, read: int, pages: int) -> None:
    bar.update(read - bar.n)
    bar.set_postfix(pages=pages)


@knowledge.command(
    "info", short_help="What a knowledge source holds.", epilog=example("factaudit knowledge info wiki.db")
)
@click.argument("file", type=_PATH)
def knowledge_info(file: Path) -> None:
    """What a knowledge source holds, and how it was made."""
    import yaml

    from factaudit.knowledge.docdb import DocDB

    with DocDB(file) as source:
        click.echo(yaml.safe_dump(source.info(), sort_keys=False, allow_unicode=True).rstrip())


@knowledge.command(
    "lookup",
    short_help="Show the passages of one page.",
    epilog=example("factaudit knowledge lookup wiki.db 'Ada Lovelace'"),
)
@click.argument("file", type=_PATH)
@click.argument("title")
def knowledge_lookup(file: Path, title: str) -> None:
    """Show the passages of one page."""
    from factaudit.datasets.sources import count
    from factaudit.errors import FactauditError
    from factaudit.knowledge.docdb import DocDB

    with DocDB(file) as source:
        page = source.find(title)
    if page is None:
        raise FactauditError(f"{file}: no page is called {title!r}")
    click.echo(f"{page.title}: {count(len(page.passages), 'passage')}")
    for number, passage in enumerate(page.passages, start=1):
        click.echo(f"\n[{number}] {passage}")


# -------------------------------------------------------------------------------------------------- ambigbio


@click.group(short_help="Collect ambiguous names, write biographies.")
def ambigbio() -> None:
    """AmbigBio: ambiguous names from Wikipedia, and biographies written for them (MF §5)."""


@ambigbio.command(
    "collect",
    short_help="Gather names that several people share.",
    epilog=example("factaudit ambigbio collect --n 500 --seed 0 --out names.jsonl"),
)
@click.option("--n", type=click.IntRange(1), default=500, show_default=True, help="How many names.")
@click.option("--seed", default=0, show_default=True, help="Of the draw among the pages.")
@click.option("--api", help="The MediaWiki API.  [default: English Wikipedia's]")
@click.option("--pause", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds between requests.")
@click.option("--out", type=_PATH, required=True, help="JSONL of names with their candidates.")
def ambigbio_collect(n: int, seed: int, api: str | None, pause: float, out: Path) -> None:
    """Gather names that several people share from Wikipedia's disambiguation pages. Resumes where it was stopped."""
    from factaudit.engines.dfactscore.ambigbio import API, collect

    names = collect(out, n, seed=seed, api=api or API, pause=pause, say=click.echo)
    click.echo(f"{out}: {len(names):,} names")


@ambigbio.command(
    "generate",
    short_help="Write biographies of ambiguous names.",
    epilog=example("factaudit ambigbio generate names.jsonl --knowledge wiki.db --llm gpt-4o-mini --out bios.jsonl"),
)
@click.argument("names", type=_PATH)
@click.option("--knowledge", type=_PATH, required=True, help="The knowledge source (.db).")
@click.option("--llm", required=True, metavar="NAME[,key=value,...]", help="e.g. gpt-4o-mini")
@click.option("--demos", default="ambiguity", show_default=True, help="ambiguity, no-ambiguity, or a file.")
@click.option("--k", type=click.IntRange(1), default=5, show_default=True, help="Passages per name.")
@_SYSTEM
@_COST
@click.option("--out", type=_PATH, required=True, help="JSONL that `factaudit dscore` reads.")
def ambigbio_generate(
    names: Path,
    knowledge: Path,
    llm: str,
    demos: str,
    k: int,
    system: str | None,
    max_cost: float | None,
    out: Path,
) -> None:
    """Write biographies of ambiguous names by retrieval-augmented generation (MF Table 1)."""
    from factaudit.engines.dfactscore.ambigbio import generate, read_names
    from factaudit.knowledge.docdb import DocDB
    from factaudit.llm.settings import LLMSettings

    client = LLMSettings.of(llm).client(max_cost)
    with DocDB(knowledge) as source:
        rows = generate(read_names(names), source, client, out, demos=demos, k=k, system=system, say=click.echo)
    click.echo(f"{out}: {len(rows):,} biographies")


#: Added to the command line's own verbs, in this order.
COMMANDS: tuple[click.Command, ...] = (score, dscore, knowledge, ambigbio)
