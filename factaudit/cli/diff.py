"""``diff``: what changed between two runs, and did a judge get worse?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import exit_command_with_two_on_errors, print_line

if TYPE_CHECKING:
    from factaudit.diff import RunDiff
    from factaudit.tables.column_mapping import ColumnMapping


@verb(
    "diff",
    short_help="Show what changed between two runs, and fail if a judge got worse.",
    example=(
        "factaudit diff runs/judge-v1 runs/judge-v2 --fail-on 'bacc<-0.02' --warn-on 'flips>0.1'"
    ),
)
@click.argument("before", type=options.PATH_TYPE)
@click.argument("after", type=options.PATH_TYPE)
@click.option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="LIMIT",
    help=(
        "Exit with 1 if a change is significantly beyond this limit, for example 'bacc<-0.02':"
        " balanced accuracy fell by more than 2 points."
    ),
)
@click.option(
    "--warn-on",
    "warn_on",
    multiple=True,
    metavar="LIMIT",
    help="Like --fail-on, but only warns: it never changes the exit code.",
)
@click.option(
    "--pair",
    "pairs",
    multiple=True,
    metavar="OLD=NEW",
    help="Compare these two evaluators, if the name has changed between the runs.",
)
@click.option(
    "--out",
    type=options.PATH_TYPE,
    help=(
        "Also write the comparison to this file: as Markdown for a pull request (.md), else as"
        " JSON."
    ),
)
@options.add_mapping_options
def diff_command(
    before: Path,
    after: Path,
    fail_on: Sequence[str],
    warn_on: Sequence[str],
    pairs: Sequence[str],
    out: Path | None,
    mapping: ColumnMapping,
) -> Outcome:
    """Compare the verdicts, rates, findings and costs of two runs on the claims that both have
    judged.

    BEFORE and AFTER are run folders or files of judged claims; a file is audited first. Evaluators
    with the same name are compared, and --pair names further pairs. If exactly one evaluator of
    each run is left over, the two are compared, and the output says so. A change is the figure in
    AFTER minus the figure in BEFORE, averaged over data sets.

    You can set a limit for flips (the share of verdicts that changed) or for the change in bacc,
    tpr, tnr, ppr (the share of claims that pass), bias (the absolute bias) or unscored (the share
    of claims without a verdict).

    The exit code is 1 if the whole 95 % interval of a change is beyond a limit of --fail-on, and 2
    if such a limit cannot be checked or nothing can be compared. Use it in CI when a judge is
    updated.
    """
    from dataclasses import asdict

    from factaudit.diff.render import describe_run_diff, render_run_diff_markdown
    from factaudit.errors import FactauditError, UsageError
    from factaudit.files import write_json, write_text

    with exit_command_with_two_on_errors():
        found = _diff_runs_or_files_for_command(before, after, pairs, out, mapping)
        # A misspelt condition is an error before anything is written.
        verdict = found.judge(fail_on, warn_on)
        answer = {**asdict(found), "verdict": asdict(verdict)}
        if out is not None and out.suffix == ".md":
            write_text(out, render_run_diff_markdown(found, verdict))
        elif out is not None:
            write_json(out, answer)
    failure: FactauditError | None = None
    if verdict.failing:
        failure = FactauditError("; ".join(verdict.failing))
    elif verdict.undecided:
        failure = UsageError(f"--fail-on cannot be checked: {'; '.join(verdict.undecided)}")
    return Outcome([*verdict.lines(), *describe_run_diff(found)], answer, failure)


def _diff_runs_or_files_for_command(
    before: Path, after: Path, pairs: Sequence[str], out: Path | None, mapping: ColumnMapping
) -> RunDiff:
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from factaudit.diff import diff_runs
    from factaudit.files import check_outputs

    check_outputs([before, after], out)
    with TemporaryDirectory() as folder:
        runs = [
            (
                _audit_file_for_diff_command(path, Path(folder) / side, mapping)
                if path.is_file()
                else path
            )
            for path, side in ((before, "before"), (after, "after"))
        ]
        return replace(diff_runs(*runs, pairs=pairs), before=str(before), after=str(after))


def _audit_file_for_diff_command(path: Path, folder: Path, mapping: ColumnMapping) -> Path:
    """Audit a file of claims and verdicts, with the audits that are compared, and return its run
    folder."""
    from factaudit.experiment.run import Experiment
    from factaudit.experiment.run import run as run_experiment

    experiment = Experiment(
        claims=[str(path.resolve())], mapping=mapping.model_dump(exclude_defaults=True, mode="json")
    )
    print_line(f"file      {path}", error=True)  # the first line of the output must be the verdict

    def report_line(line: str) -> None:
        if str(folder) not in line:  # its report is deleted when the command ends
            print_line(line, error=True)

    run_experiment(experiment, folder, say=report_line)
    return folder


COMMANDS = (diff_command,)
