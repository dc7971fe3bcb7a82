"""``run``: what does an experiment YAML find? ``run --dry-run``: what will it cost?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from factaudit.cli import options
from factaudit.cli.result_display import RUN_JSON_KEYS, display_expected_costs, display_run_results, render_run_figures
from factaudit.cli.terminal import print_line


@click.command(
    "run",
    cls=options.FlagSwitchedCommand,
    json_keys=RUN_JSON_KEYS,
    short_help="Run an experiment from a YAML file.",
    epilog=options.format_help_example("factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1"),
)
@click.argument("experiment", type=options.PATH_TYPE)
@click.option("--out", type=options.PATH_TYPE, help="The run folder to write.  [default: runs/NAME-OF-THE-YAML]")
@options.OVERWRITE_OPTION
@options.SETTINGS_OPTION
@options.PNG_OPTION
@options.OFFLINE_OPTION
def run_command(experiment: Path, out: Path | None, overwrite: bool, settings: Sequence[str], png: bool) -> None:
    """Run the experiment that a YAML file describes, and write a run folder with its results and report.

    A second run reuses what has not changed. Published data that the YAML names (`published:NAME`) is fetched once and
    kept in your cache folder.
    """
    from factaudit.experiment import run as run_experiment
    from factaudit.yaml_file import parse_yaml_set_options

    out = out or Path("runs") / experiment.stem
    changed = parse_yaml_set_options(settings)
    results = run_experiment(experiment, out, settings=changed, progress=True, overwrite=overwrite, say=print_line)
    if png:
        render_run_figures(out)
    display_run_results(results, out)


def _display_run_cost(experiment: Path, settings: Sequence[str], prices: Path | None, **others: Any) -> None:
    from factaudit.experiment import estimate_experiment_cost
    from factaudit.yaml_file import parse_yaml_set_options

    display_expected_costs(estimate_experiment_cost(experiment, prices, parse_yaml_set_options(settings)))


run_command.add_dry_run(_display_run_cost, "factaudit run experiments/compare_evaluators.yaml --dry-run")
COMMANDS = (run_command,)
