"""``run`` and ``demo``: what does an experiment YAML find, and what will it cost? What does an
audit look like?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from factaudit.cli import options
from factaudit.cli.outcomes import make_cost_outcome, make_run_outcome
from factaudit.cli.output import Outcome, is_json_wanted, verb
from factaudit.cli.terminal import print_line


@verb(
    "run",
    short_help="Run an experiment from a YAML file.",
    example="factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1",
)
@click.argument("experiment", type=options.PATH_TYPE)
@click.option(
    "--out",
    type=options.PATH_TYPE,
    help="The run folder to write.  [default: runs/NAME-OF-THE-YAML]",
)
@options.OVERWRITE_OPTION
@options.SETTINGS_OPTION
@options.DRY_RUN_OPTION
@options.OFFLINE_OPTION
def run_command(
    experiment: Path, out: Path | None, overwrite: bool, settings: Sequence[str], dry_run: bool
) -> Outcome:
    """Run the experiment that a YAML file describes, and write a run folder with its results and
    report.

    If the folder already has this run and nothing has changed since, the experiment is not run
    again. Published data that the YAML names (`published:NAME`) is fetched once and kept in your
    cache folder.
    """
    from factaudit.settings.yaml_file import parse_yaml_set_options

    changed = parse_yaml_set_options(settings)
    if dry_run:
        from factaudit.experiment.run import read_experiment

        return make_cost_outcome(read_experiment(experiment, changed).estimate_cost())
    return _run_or_recognise(experiment, out or Path("runs") / experiment.stem, overwrite, changed)


def _run_or_recognise(
    experiment: Path, out: Path, overwrite: bool, settings: Mapping[str, Any]
) -> Outcome:
    """Run an experiment, or show the earlier result again if its folder holds the same run and
    nothing has changed. This check works without importing what a run needs."""
    from factaudit.experiment.unchanged import find_unchanged_run, make_yaml_run_key

    before = (
        None
        if is_json_wanted()
        else find_unchanged_run(out, make_yaml_run_key(experiment, settings))
    )
    if before is not None:
        return Outcome([*before["lines"], *before["screen"]])
    from factaudit.experiment.run import run

    results = run(
        experiment, out, settings=settings, progress=True, overwrite=overwrite, say=print_line
    )
    return make_run_outcome(results, out)


@verb(
    "demo",
    short_help="Audit four hallucination detectors on data that comes with factaudit.",
    example="factaudit demo",
)
@click.option(
    "--out",
    type=options.PATH_TYPE,
    default=Path("runs/demo"),
    show_default=True,
    help="The run folder.",
)
def demo_command(out: Path) -> Outcome:
    """Audit four hallucination detectors on 1,800 labelled responses of six systems (RAGTruth).

    The report says which detector you can use for what, and how often each system hallucinates.
    Nothing is downloaded and no key is needed.
    """
    from importlib.resources import as_file, files

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        done = _run_or_recognise(folder / "ragtruth.yaml", out, False, {})
    more = (
        "          audit your own file: factaudit audit FILE --label COLUMN --evaluator COLUMN"
        " --out runs/mine"
    )
    return Outcome([*done.lines, more], done.document, done.failure)


COMMANDS = (demo_command, run_command)
