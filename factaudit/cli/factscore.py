"""``score``: what are the FActScore and the D-FActScore of texts?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand
from factaudit.cli.result_display import display_expected_costs, display_score_warnings, finish_displayed_run
from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.experiment.folder import RunSettings

EngineExperiment = TypeVar("EngineExperiment", bound="RunSettings")


@click.command(
    "score",
    cls=JsonOutputCommand,
    short_help="Compute FActScore or D-FActScore of texts.",
    example="factaudit score responses.jsonl --knowledge enwiki.db --llm gpt-4o-mini --out runs/bios",
)
@click.argument("responses", nargs=-1, required=True)
@click.option(
    "--dfactscore",
    is_flag=True,
    help="Compute D-FActScore, which is lower if a text mixes facts about several people with the same name.",
)
@click.option(
    "--knowledge",
    help="The pages to check facts against: a .db (of `factaudit knowledge`, or the original FActScore's) or a .jsonl.",
)
@click.option(
    "--llm",
    metavar="NAME[:key=value,...]",
    help="The language model, for example gpt-4o-mini or smollm2:base_url=local.",
)
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    help="What verifies the facts: retrieval (the default: the language model with retrieved passages), no-context "
    "(the language model without passages), npm (the masked language model of the original FActScore; needs the extra "
    "hf) or "
    "any evaluator (NAME[:key=value,...]). Repeat the option for several.",
)
@click.option(
    "--facts",
    type=click.Choice(["model", "human"]),
    help="Do not split the texts, but use facts that are in your file: model for facts that a model wrote, human for "
    "facts that a person wrote.",
)
@click.option(
    "--conversation",
    is_flag=True,
    default=None,
    help="Each line of the file is a conversation; every turn of the assistant is scored as a text.",
)
@click.option("--topic", help="What the turns of the conversations are about.  [default: the language model is asked]")
@click.option(
    "--grouper",
    help="What groups the facts by person for D-FActScore: llm (a language model, the default), given (the groups in "
    "your file) or one-group (all facts are about one person).",
)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="Score again with other values of a setting, to see how much the scores and the order of the systems change. "
    "For example k=1,3 (passages per fact) or gamma=0,10 (length penalty).",
)
@click.option(
    "--demos", help="A file of examples that show the model how to split a sentence into facts.  [default: our own]"
)
@click.option(
    "--missing",
    type=click.Choice(["error", "skip", "wikipedia"]),
    help="If the knowledge source has no page about a topic: stop (error), leave the text unscored (skip, the default) "
    "or fetch the page from Wikipedia (wikipedia; the topic is sent there).",
)
@click.option("--system", help="The name of the system, if the file does not have it.")
@click.option("--limit", type=click.IntRange(min=1), help="Score only the first N texts.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop before the calls cost more than this many US dollars. Run the command again to continue.",
)
@click.option("--out", type=options.PATH_TYPE, help="The run folder.")
@options.OVERWRITE_OPTION
@click.option("--dry-run", is_flag=True, help="Only say how many calls the run will make at most. Nothing is sent.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other setting, named as in an experiment YAML, for example gamma=0 (no length penalty), k=3 (passages "
    "per fact), seed=1 or replicates=500.",
)
def score_command(
    responses: Sequence[str],
    dfactscore: bool,
    out: Path | None,
    overwrite: bool,
    dry_run: bool,
    max_cost: float | None,
    settings: Sequence[str],
    **given: Any,
) -> None:
    """Compute FActScore (Min et al. 2023) or, with --dfactscore, D-FActScore (Chiang & Lee 2024).

    A language model splits each text into atomic facts. For each fact, passages are found in the knowledge source,
    and a verifier says whether they support it. FActScore is the share of supported facts, with a penalty for texts
    with few facts. For D-FActScore, facts are grouped by the person that they seem to be about, and each group is
    checked against one person's page.
    """
    from factaudit.engines.runs import DFactScoreExperiment, FactScoreExperiment
    from factaudit.experiment.run import run

    given["responses"] = responses
    experiment: RunSettings
    if dfactscore:
        experiment = _parse_scoring_engine_options(DFactScoreExperiment, "dfactscore", max_cost, settings, given)
    else:
        experiment = _parse_scoring_engine_options(FactScoreExperiment, "factscore", max_cost, settings, given)
    if dry_run:
        display_expected_costs(experiment.estimate_cost())
        return
    out = options.check_out_is_given(out)
    results = run(experiment, out, progress=True, overwrite=overwrite, say=print_line)
    display_score_warnings(results)
    finish_displayed_run(results, out)


def _parse_scoring_engine_options(
    model: type[EngineExperiment], block: str, max_cost: float | None, settings: Sequence[str], given: dict[str, Any]
) -> EngineExperiment:
    """What options and ``--set`` describe: keys of the whole run, or of the engine's block."""
    from factaudit.settings.yaml_file import (
        check_yaml_settings,
        parse_option_of_varied_settings,
        parse_yaml_set_options,
    )

    if pairs := given.pop("vary"):
        given["variants"] = parse_option_of_varied_settings(pairs)
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
    inside = {key: value for key, value in listed.items() if value not in (None, [])}
    whole: dict[str, Any] = {block: inside} | ({} if max_cost is None else {"max_cost": max_cost})
    for key, value in parse_yaml_set_options(settings).items():
        (whole if key in model.model_fields and key != block else inside)[key.removeprefix(f"{block}.")] = value
    return check_yaml_settings(model, whole)


COMMANDS = (score_command,)
