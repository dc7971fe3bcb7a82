"""``run``: what does an experiment YAML find, and what will it cost?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, is_json_wanted
from factaudit.cli.result_display import display_expected_costs, display_run_results
from factaudit.cli.terminal import print_line


@click.command(
    "run",
    cls=JsonOutputCommand,
    short_help="Run an experiment from a YAML file.",
    example="factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1",
)
@click.argument("experiment", type=options.PATH_TYPE)
@click.option("--out", type=options.PATH_TYPE, help="The run folder to write.  [default: runs/NAME-OF-THE-YAML]")
@options.OVERWRITE_OPTION
@options.SETTINGS_OPTION
@options.DRY_RUN_OPTION
@options.OFFLINE_OPTION
def run_command(experiment: Path, out: Path | None, overwrite: bool, settings: Sequence[str], dry_run: bool) -> None:
    """Run the experiment that a YAML file describes, and write a run folder with its results and report.

    If the folder already has this run and nothing has changed since, the experiment is not run again.
    Published data that the YAML names (`published:NAME`) is fetched once and kept in your cache folder.
    """
    from factaudit.settings.yaml_file import parse_yaml_set_options

    out = out or Path("runs") / experiment.stem
    changed = parse_yaml_set_options(settings)
    if not dry_run and display_unchanged_run(experiment, out, changed):
        return
    from factaudit.experiment.run import read_experiment
    from factaudit.experiment.run import run as run_experiment

    if dry_run:
        display_expected_costs(read_experiment(experiment, changed).estimate_cost())
        return
    results = run_experiment(experiment, out, settings=changed, progress=True, overwrite=overwrite, say=print_line)
    display_run_results(results, out)


def display_unchanged_run(experiment: Path, out: Path, settings: Mapping[str, Any]) -> bool:
    """Show the run of a folder again where nothing has changed since; whether that is so.

    It is told without what a run imports.
    """
    from factaudit.experiment.unchanged import find_unchanged_run, make_yaml_run_key

    before = None if is_json_wanted() else find_unchanged_run(out, make_yaml_run_key(experiment, settings))
    for line in (*before["lines"], *before["screen"]) if before is not None else ():
        print_line(line)
    return before is not None


COMMANDS = (run_command,)
