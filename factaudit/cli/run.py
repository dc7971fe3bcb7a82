"""``run``: what does an experiment find, and what will it cost?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli import options
from factaudit.cli.outcomes import make_cost_outcome, make_run_outcome
from factaudit.cli.output import Outcome, is_json_wanted, verb
from factaudit.cli.terminal import print_line

#: What the demo says last.
_DEMO_LINE = (
    "          audit your own file: factaudit audit FILE --label COLUMN --evaluator COLUMN"
    " --out runs/mine"
)


@verb(
    "run",
    short_help="Run an experiment from a YAML file, or the demo.",
    example="factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1",
)
@click.argument("experiment", type=options.PATH_TYPE, metavar="EXPERIMENT|demo")
@click.option(
    "--out", type=options.PATH_TYPE, help="The run folder.  [default: runs/NAME-OF-THE-YAML]"
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

    `factaudit run demo` runs the experiment that comes with factaudit: it audits four hallucination
    detectors on 1,800 labelled responses of six systems (RAGTruth). Nothing is downloaded and no
    key is needed.

    If the folder already has this run and nothing has changed since, the experiment is not run
    again. Published data that the YAML names (`published:NAME`) is fetched once and kept in your
    cache folder.
    """
    from factaudit.experiment.unchanged import find_unchanged_run, make_yaml_run_key
    from factaudit.settings.yaml_file import parse_yaml_set_options
    from factaudit.start import DEMO_EXPERIMENT, DEMO_NAME

    out = out or Path("runs") / experiment.stem
    is_demo = str(experiment) == DEMO_NAME and not experiment.is_file()
    path = DEMO_EXPERIMENT if is_demo else experiment
    changed = parse_yaml_set_options(settings)
    if dry_run:
        from factaudit.experiment.run import read_experiment

        return make_cost_outcome(read_experiment(path, changed).estimate_cost())
    more = [_DEMO_LINE] * is_demo
    # An unchanged run is recognised without importing what a run needs.
    before = None if is_json_wanted() else find_unchanged_run(out, make_yaml_run_key(path, changed))
    if before is not None:
        return Outcome([*before["lines"], *before["screen"], *more])
    from factaudit.experiment.run import run

    results = run(path, out, settings=changed, progress=True, overwrite=overwrite, say=print_line)
    done = make_run_outcome(results, out)
    return Outcome([*done.lines, *more], done.document, done.failure)


COMMANDS = (run_command,)
