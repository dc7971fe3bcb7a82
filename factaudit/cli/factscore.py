"""``factscore`` and ``dfactscore``: what are the FActScore and the D-FActScore of texts?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.outcomes import make_cost_outcome, make_run_outcome
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.files import resolve_path

if TYPE_CHECKING:
    from factaudit.experiment.folder import RunSettings

_RESPONSES = click.argument("responses", nargs=-1, required=True)
_FIRST_OPTIONS = (
    click.option(
        "--knowledge",
        metavar="FILE",
        help=(
            "The pages to check facts against: a .jsonl file, or a .db file made by `factaudit"
            " knowledge` or by the authors of FActScore."
        ),
    ),
    click.option(
        "--llm",
        metavar="NAME[:key=value,...]",
        help="The language model, for example gpt-4o-mini or smollm2:base_url=local.",
    ),
    click.option(
        "--verifier",
        "verifiers",
        multiple=True,
        metavar="NAME[:key=value,...]",
        help=(
            "What verifies the facts: retrieval (the default: the language model with retrieved"
            " passages), no-context (the language model without passages), npm (the masked language"
            " model of the original FActScore; needs the extra hf), retrieval+npm (both have to"
            " support a fact) or any evaluator. Repeat the option for several."
        ),
    ),
    click.option(
        "--facts",
        type=click.Choice(["model", "human"]),
        help=(
            "Do not split the texts, but use facts that are in your file: model for facts that a"
            " model wrote, human for facts that a person wrote."
        ),
    ),
)
_LAST_OPTIONS = (
    click.option(
        "--demos",
        metavar="FILE",
        help=(
            "A file of examples that show the model how to split a sentence into facts.  [default:"
            " our own]"
        ),
    ),
    click.option(
        "--missing",
        type=click.Choice(["skip", "wikipedia"]),
        help=(
            "If the knowledge source has no page about a topic: leave the text unscored (skip, the"
            " default) or fetch the page from Wikipedia (wikipedia; the topic is sent there)."
        ),
    ),
    click.option("--limit", type=click.IntRange(min=1), help="Score only the first N texts."),
    click.option(
        "--max-cost",
        type=click.FloatRange(min=0, min_open=True),
        help=(
            "Stop before the calls cost more than this many US dollars. Run the command again to"
            " continue."
        ),
    ),
    click.option("--out", type=options.PATH_TYPE, help="The run folder."),
    options.OVERWRITE_OPTION,
    options.DRY_RUN_OPTION,
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help=(
            "Any other setting, named as in an experiment YAML, for example system=NAME (of lines"
            " that name no system; by default the name of the file), gamma=0 (no length penalty),"
            " k=3 (passages per fact), seed=1 or replicates=500."
        ),
    ),
)


def _add_options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        for decorate in reversed(decorators):
            function = decorate(function)
        return function

    return add


@verb(
    "factscore",
    short_help="Compute the FActScore of texts.",
    example=(
        "factaudit factscore responses.jsonl --knowledge enwiki.db --llm gpt-4o-mini --out"
        " runs/bios"
    ),
)
@_RESPONSES
@_add_options(*_FIRST_OPTIONS)
@click.option(
    "--vary",
    multiple=True,
    metavar="KEY=VALUE,VALUE",
    help=(
        "Score again with other values of a setting, to see how much the scores and the order of"
        " the systems change. For example k=1,3 (passages per fact) or gamma=0,10 (length penalty)."
    ),
)
@_add_options(*_LAST_OPTIONS)
def factscore_command(vary: Sequence[str], **given: Any) -> Outcome:
    """Compute FActScore (Min et al. 2023): the share of supported facts, with a penalty for texts
    with few facts.

    A language model splits each text into atomic facts. For each fact, passages are found in the
    knowledge source, and a verifier says whether they support it.
    """
    from factaudit.engines.runs import FactScoreExperiment
    from factaudit.settings.yaml_file import parse_option_of_varied_settings

    if vary:
        given["variants"] = parse_option_of_varied_settings(vary)
    return _score(FactScoreExperiment, "factscore", **given)


@verb(
    "dfactscore",
    short_help="Compute the D-FActScore of texts that may mix up people with the same name.",
    example=(
        "factaudit dfactscore biographies.jsonl --knowledge wiki.db --llm gpt-4o-mini --out"
        " runs/people"
    ),
)
@_RESPONSES
@_add_options(*_FIRST_OPTIONS)
@click.option(
    "--grouper",
    type=click.Choice(["llm", "given"]),
    help=(
        "What groups the facts by person: llm (a language model, the default) or given (the groups"
        " in your file)."
    ),
)
@_add_options(*_LAST_OPTIONS)
def dfactscore_command(**given: Any) -> Outcome:
    """Compute D-FActScore (Chiang & Lee 2024), which is lower than FActScore if a text mixes facts
    about several people with the same name.

    A language model splits each text into atomic facts and groups them by the person that they seem
    to be about. Each group is checked against one person's page.
    """
    from factaudit.engines.runs import DFactScoreExperiment

    return _score(DFactScoreExperiment, "dfactscore", **given)


def _score(
    model: type[RunSettings],
    block: str,
    *,
    out: Path | None,
    overwrite: bool,
    dry_run: bool,
    max_cost: float | None,
    settings: Sequence[str],
    **given: Any,
) -> Outcome:
    """Run an engine on its block of an experiment. ``given``: the keys of the block that the
    options set."""
    from factaudit.experiment.run import run
    from factaudit.settings.yaml_file import check_yaml_settings, parse_yaml_set_options
    from factaudit.settings.yaml_paths import YamlPathKind, find_yaml_path_options

    listed = {
        key: list(value) if isinstance(value, tuple) else value for key, value in given.items()
    }
    inside: dict[str, Any] = {
        key: value for key, value in listed.items() if value not in (None, [])
    }
    whole: dict[str, Any] = {block: inside} | ({} if max_cost is None else {"max_cost": max_cost})
    for key, value in parse_yaml_set_options(settings).items():
        target = whole if key in model.model_fields and key != block else inside
        target[key.removeprefix(f"{block}.")] = value
    # The experiment.yaml of the run can be run from any folder.
    block_class: Any = model.model_fields[block].annotation
    kinds = find_yaml_path_options(block_class)
    paths = {key for key, kind in kinds.items() if kind is YamlPathKind.PATH}
    for given_by_key in (inside, inside.get("variants", {})):
        for key in paths & given_by_key.keys():
            given_by_key[key] = _make_absolute(given_by_key[key])
    experiment = check_yaml_settings(model, whole)
    if dry_run:
        return make_cost_outcome(experiment.estimate_cost())
    out = options.check_out_is_given(out)
    results = run(experiment, out, progress=True, overwrite=overwrite, say=print_line)
    return make_run_outcome(results, out)


def _make_absolute(paths: Any) -> Any:
    """A path, or a list of paths, relative to the working directory. Published data keep their
    name."""
    from factaudit.publications.register import is_reference

    if isinstance(paths, list):
        return [_make_absolute(path) for path in paths]
    is_path = isinstance(paths, str) and not is_reference(paths)
    return str(resolve_path(paths)) if is_path else paths


COMMANDS = (factscore_command, dfactscore_command)
