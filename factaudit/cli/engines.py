"""The engines: ``score`` (FActScore) and ``dscore`` (D-FActScore)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from factaudit.cli.options import MAX_COST, RUN_FOLDER, SYSTEM, example
from factaudit.cli.show import RUN, answer_run, fail_without_predictions
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb

if TYPE_CHECKING:
    from factaudit.runfolder import RunSettings

Experiment = TypeVar("Experiment", bound="RunSettings")

_LLM = click.option("--llm", metavar="NAME[:key=value,...]", help="e.g. gpt-4o-mini, or smollm2:base_url=local")
_KNOWLEDGE = click.option("--knowledge", help="The knowledge source: .db, or pages as .jsonl.")
_LIMIT = click.option("--limit", type=click.IntRange(min=1), help="Only the first so many.")
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
    cls=Verb,
    gives=RUN,
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
    help="retrieval (default), no-context, npm, or any evaluator (NAME[:key=value,...]). May be repeated.",
)
@click.option("--facts", help="Given facts: model or human (from annotations), or a file.")
@click.option("--conversation", is_flag=True, default=None, help="The lines are conversations.")
@click.option("--topic", help="What the turns of conversations are about; by default the LLM is asked.")
@_DEMOS
@_MISSING
@SYSTEM
@_LIMIT
@MAX_COST
@RUN_FOLDER
@_MORE
def score(responses: Sequence[str], out: Path, max_cost: float | None, settings: Sequence[str], **options: Any) -> None:
    """FActScore: decompose responses into atomic facts, retrieve passages, verify, score (Min et al. 2023)."""
    from factaudit.engines.factscore.settings import ScoreExperiment, run

    options["verifiers"] = list(options["verifiers"])
    experiment = _experiment(ScoreExperiment, "factscore", settings, responses=list(responses), **options)
    results = run(_limited(experiment, max_cost), out, progress=True, say=say)
    answer_run(results, out)
    fail_without_predictions(results)


@click.command(
    cls=Verb,
    gives=RUN,
    short_help="Compute D-FActScore.",
    epilog=example("factaudit dscore biographies.jsonl --knowledge wiki.db --llm gpt-4o-mini --out runs/ambig"),
)
@click.argument("biographies", nargs=-1, required=True)
@_KNOWLEDGE
@_LLM
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    help="llm (default), npm, or any evaluator (NAME[:key=value,...]). May be repeated; the first one's links count.",
)
@click.option(
    "--grouper", "groupers", multiple=True, help="llm (default), heuristic, one-group or given. May be repeated."
)
@_DEMOS
@_MISSING
@SYSTEM
@_LIMIT
@MAX_COST
@RUN_FOLDER
@_MORE
def dscore(
    biographies: Sequence[str], out: Path, max_cost: float | None, settings: Sequence[str], **options: Any
) -> None:
    """D-FActScore: group the facts by person, link each group to one entity, verify against it (Chiang & Lee 2024)."""
    from factaudit.engines.dfactscore.settings import DScoreExperiment, run

    options["groupers"], options["verifiers"] = list(options["groupers"]), list(options["verifiers"])
    experiment = _experiment(DScoreExperiment, "dfactscore", settings, biographies=list(biographies), **options)
    results = run(_limited(experiment, max_cost), out, progress=True, say=say)
    answer_run(results, out)
    fail_without_predictions(results)


COMMANDS = (score, dscore)
