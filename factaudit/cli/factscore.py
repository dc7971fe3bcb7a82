"""``score`` and ``score --dfactscore``: what are the FActScore and the D-FActScore of texts?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from factaudit.cli.options import (
    MAX_COST_OPTION,
    OVERWRITE_OPTION,
    RUN_FOLDER_OPTION,
    SYSTEM_OPTION,
    FlagSwitchedCommand,
    format_help_example,
)
from factaudit.cli.result_display import (
    RUN_JSON_KEYS,
    check_displayed_run_has_predictions,
    display_cached_calls,
    display_expected_costs,
    display_run_json,
    display_score_warnings,
)
from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.results import Results
    from factaudit.run_folder import RunSettings

EngineExperiment = TypeVar("EngineExperiment", bound="RunSettings")
_LLM_OPTION = click.option(
    "--llm",
    metavar="NAME[:key=value,...]",
    help="The language model, for example gpt-4o-mini or smollm2:base_url=local.",
)
_KNOWLEDGE_OPTION = click.option(
    "--knowledge", help="The pages to check facts against: a .db that `factaudit knowledge build` made, or a .jsonl."
)
_LIMIT_OPTION = click.option("--limit", type=click.IntRange(min=1), help="Score only the first N texts.")
_DEMOS_OPTION = click.option(
    "--demos", help="A file of examples that show the model how to split a sentence into facts.  [default: our own]"
)
_MISSING_TOPICS_OPTION = click.option(
    "--missing",
    type=click.Choice(["error", "skip", "wikipedia"]),
    help="What to do with a topic that the knowledge source has no page about.  [default: skip]",
)
_OTHER_SETTINGS_OPTION = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Any other setting, named as in an experiment YAML, for example gamma=0 (no length penalty), k=3, seed=1 or"
    " replicates=500.",
)


def _add_engine_options(command_function: Any) -> Any:
    options = (
        *(_DEMOS_OPTION, _MISSING_TOPICS_OPTION, SYSTEM_OPTION, _LIMIT_OPTION, MAX_COST_OPTION, RUN_FOLDER_OPTION),
        OVERWRITE_OPTION,
        _OTHER_SETTINGS_OPTION,
    )
    for option in reversed(options):
        command_function = option(command_function)
    return command_function


def _parse_scoring_engine_options(
    model: type[EngineExperiment], block: str, max_cost: float | None, settings: Sequence[str], options: dict[str, Any]
) -> EngineExperiment:
    """What options and ``--set`` describe: keys of the whole run, or of the engine's block."""
    from factaudit.yaml_file import check_yaml_settings, parse_option_of_varied_settings, parse_yaml_set_options

    if pairs := options.pop("vary", ()):
        options = options | {"variants": parse_option_of_varied_settings(pairs)}
    listed = {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}
    inside = {key: value for key, value in listed.items() if value not in (None, [])}
    whole: dict[str, Any] = {block: inside} | ({} if max_cost is None else {"max_cost": max_cost})
    for key, value in parse_yaml_set_options(settings).items():
        (whole if key in model.model_fields and key != block else inside)[key.removeprefix(f"{block}.")] = value
    return check_yaml_settings(model, whole)


def _display_scoring_engine_run(results: Results, out: Path) -> None:
    display_score_warnings(results)
    display_cached_calls(results.calls)
    display_run_json(results, out)
    check_displayed_run_has_predictions(results)


@click.command(
    "score",
    cls=FlagSwitchedCommand,
    json_keys=RUN_JSON_KEYS,
    short_help="Compute FActScore or D-FActScore of texts.",
    epilog=format_help_example(
        "factaudit score responses.jsonl --knowledge enwiki.db --llm gpt-4o-mini --out runs/bios"
    ),
)
@click.argument("responses", nargs=-1, required=True)
@_KNOWLEDGE_OPTION
@_LLM_OPTION
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    help="What verifies the facts: retrieval (the language model with retrieved passages; the default), no-context "
    "(without passages), npm (the masked language model of the original, extra hf) or any evaluator "
    "(NAME[:key=value,...]). Repeat the option for several.",
)
@click.option(
    "--facts",
    help="Use these facts instead of splitting the texts: a file or, for annotated texts, 'model' or 'human'.",
)
@click.option("--conversation", is_flag=True, default=None, help="The lines of the file are conversations.")
@click.option("--topic", help="What the turns of the conversations are about.  [default: the language model is asked]")
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help="Score again with other values of a setting (k=1,3 or parser=original), to see how far scores and their "
    "order change.",
)
@_add_engine_options
def score_command(out: Path, overwrite: bool, max_cost: float | None, settings: Sequence[str], **options: Any) -> None:
    """Compute FActScore (Min et al. 2023).

    A language model splits each text into atomic facts. For each fact, passages are found in the knowledge source, and
    a verifier says whether they support it. The score is the share of supported facts, with a penalty for responses
    with fewer than ten facts.
    """
    from factaudit.engines.runs import FactScoreExperiment
    from factaudit.experiment import run

    experiment = _parse_scoring_engine_options(FactScoreExperiment, "factscore", max_cost, settings, options)
    _display_scoring_engine_run(run(experiment, out, progress=True, overwrite=overwrite, say=print_line), out)


@click.command(
    "score --dfactscore",
    cls=FlagSwitchedCommand,
    json_keys=RUN_JSON_KEYS,
    short_help="Compute D-FActScore.",
    epilog=format_help_example(
        "factaudit score --dfactscore biographies.jsonl --knowledge wiki.db --llm gpt-4o-mini --out runs/ambig"
    ),
)
@click.argument("biographies", nargs=-1, required=True)
@_KNOWLEDGE_OPTION
@_LLM_OPTION
@click.option(
    "--verifier",
    "verifiers",
    multiple=True,
    help="What checks the facts: llm (default), npm or any evaluator (NAME[:key=value,...]). Repeat the option "
    "for several; the first one links the groups.",
)
@click.option(
    "--grouper",
    "groupers",
    multiple=True,
    help="What groups the facts by person: llm (default), given or one-group. Repeat the option for several.",
)
@_add_engine_options
def score_people_command(
    out: Path, overwrite: bool, max_cost: float | None, settings: Sequence[str], **options: Any
) -> None:
    """Compute D-FActScore (Chiang & Lee 2024), which notices when a text merges the facts of two people.

    The facts of each text are grouped by the person that they seem to be about. Each group is linked to the page that
    supports most of its facts, and each fact is checked against that page.
    """
    from factaudit.engines.runs import DFactScoreExperiment
    from factaudit.experiment import run

    experiment = _parse_scoring_engine_options(DFactScoreExperiment, "dfactscore", max_cost, settings, options)
    _display_scoring_engine_run(run(experiment, out, progress=True, overwrite=overwrite, say=print_line), out)


def _display_scoring_calls(max_cost: float | None, settings: Sequence[str], **options: Any) -> None:
    from factaudit.engines.runs import DFactScoreExperiment, FactScoreExperiment
    from factaudit.engines.scoring_calls import count_scoring_calls

    del options["out"], options["overwrite"]
    model, block = (
        (DFactScoreExperiment, "dfactscore") if "biographies" in options else (FactScoreExperiment, "factscore")
    )
    experiment = _parse_scoring_engine_options(model, block, max_cost, settings, options)
    display_expected_costs(count_scoring_calls(experiment))


score_people_command.add_dry_run(
    _display_scoring_calls,
    "factaudit score --dfactscore biographies.jsonl --llm gpt-4o-mini --dry-run",
    is_priced=False,
)
score_command.add_mode("--dfactscore", score_people_command)
score_command.add_dry_run(
    _display_scoring_calls, "factaudit score responses.jsonl --llm gpt-4o-mini --dry-run", is_priced=False
)
COMMANDS = (score_command,)
