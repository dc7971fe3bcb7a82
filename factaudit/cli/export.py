"""``export``: how does a run become LaTeX, JSON lines, a leaderboard or a new report?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli.options import PATH_TYPE, CommandGroup
from factaudit.cli.output import Outcome, verb

_RUN_ARGUMENT = click.argument("run_dir", metavar="RUN", type=PATH_TYPE)
_FOLDER_OPTION = click.option(
    "--out", type=PATH_TYPE, help="The folder to write.  [default: a new folder in RUN/export]"
)


@click.group("export", cls=CommandGroup, short_help="Write a run in another form.")
def export_group() -> None:
    """Write a run in another form.

    RUN is a folder that `factaudit audit` or `factaudit run` wrote.
    """


@verb(
    "latex",
    short_help="Tables and a paragraph on methods for a paper.",
    example="factaudit export latex runs/mine",
)
@_RUN_ARGUMENT
@_FOLDER_OPTION
def latex_command(run_dir: Path, out: Path | None) -> Outcome:
    """Write booktabs tables with their intervals, and a paragraph on methods with the signature of
    the run."""
    from factaudit.export.latex import export_latex

    return _list_files(export_latex(run_dir, out or run_dir / "export" / "latex"))


@verb(
    "jsonl",
    short_help="JSON lines for other programs.",
    example="factaudit export jsonl runs/mine",
)
@_RUN_ARGUMENT
@_FOLDER_OPTION
def jsonl_command(run_dir: Path, out: Path | None) -> Outcome:
    """Write a line for each claim, with its label and all verdicts."""
    from factaudit.export.jsonl import export_jsonl

    return _list_files(export_jsonl(run_dir, out or run_dir / "export" / "jsonl"))


@verb(
    "leaderboard",
    short_help="A web page that compares the evaluators of one run or several.",
    example="factaudit export leaderboard runs/a runs/b --out board",
)
@click.argument("run_dirs", type=PATH_TYPE, nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=PATH_TYPE, required=True, help="The folder to write.")
@click.option(
    "--title",
    default="Evaluators of factuality",
    show_default=True,
    help="The heading of the page.",
)
def leaderboard_command(run_dirs: tuple[Path, ...], out: Path, title: str) -> Outcome:
    """Write a web page with the balanced accuracy of each evaluator on each data set, its interval,
    and what the evaluator can be used for."""
    from factaudit.export.leaderboard import write_leaderboard

    return _list_files(write_leaderboard(run_dirs, out, title))


@verb(
    "report",
    short_help="The report of the run again, for example with PNG figures.",
    example="factaudit export report runs/mine --png",
)
@_RUN_ARGUMENT
@click.option("--png", is_flag=True, help="Write the figures as PNG, too.")
def report_command(run_dir: Path, png: bool) -> Outcome:
    """Write the report, its tables and its figures into the run folder again."""
    from factaudit.experiment.folder import RunFolder
    from factaudit.results import Results

    Results.load(run_dir)  # raises an error that says what is wrong, if anything is
    with RunFolder.open(run_dir) as run:
        return _list_files(run.render(png=png))


def _list_files(files: Sequence[Path]) -> Outcome:
    return Outcome(map(str, files), {"files": files})


export_group.add_section(
    "Forms", [latex_command, jsonl_command, leaderboard_command, report_command]
)
COMMANDS = (export_group,)
