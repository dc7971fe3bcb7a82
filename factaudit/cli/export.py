"""``export``: how does a run become LaTeX, JSON lines or a leaderboard?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH_TYPE
from factaudit.cli.output import Outcome, verb
from factaudit.errors import UsageError

#: Export formats that are not a file made from one run, with a description.
RUN_EXPORT_FORMS = {
    "report": "the tables, figures and report of the run folder again, in the run folder",
    "leaderboard": (
        "of one run or several: a static page of evaluators by data sets with balanced accuracy,"
        " intervals, and what each can be used for"
    ),
}
_EXPORT_FORMS = (*RUN_EXPORT_FORMS, "latex", "jsonl")


@verb(
    "export",
    short_help="Write a run as LaTeX, a leaderboard page, JSON lines or a report.",
    example="factaudit export runs/mine --to latex",
)
@click.argument("run_dirs", type=PATH_TYPE, nargs=-1, required=True, metavar="RUN...")
@click.option(
    "--to", "form", type=click.Choice(_EXPORT_FORMS), required=True, help="The format to write."
)
@click.option(
    "--out",
    type=PATH_TYPE,
    help="The folder to write; --to leaderboard needs it.  [default: RUN/export/FORMAT]",
)
@click.option("--title", help="The heading of the leaderboard.")
@click.option("--png", is_flag=True, help="With --to report: write the figures as PNG, too.")
def export_command(
    run_dirs: tuple[Path, ...], form: str, out: Path | None, title: str | None, png: bool
) -> Outcome:
    """Export a run.

    Formats: report (the tables, figures and pages of the report), latex (tables and a paragraph on
    methods for a paper), jsonl (JSON lines for other programs) and leaderboard (a web page from one
    run or several, with the balanced accuracy of each evaluator on each data set and what each
    evaluator can be used for).
    """
    from factaudit.export import export_run
    from factaudit.export.leaderboard import write_leaderboard

    for option, is_given, only in (
        ("--title", title is not None, "leaderboard"),
        ("--png", png, "report"),
    ):
        if is_given and form != only:
            raise UsageError(f"{option} goes with --to {only}")
    if (out is None) if form == "leaderboard" else (out is not None and form == "report"):
        raise UsageError(
            f"--to {form} {'needs' if out is None else 'writes into the run folder, and takes no'}"
            " --out"
        )
    if form != "leaderboard" and len(run_dirs) > 1:
        raise UsageError(
            f"--to {form} takes one run, found {len(run_dirs)}: only --to leaderboard takes several"
        )
    if form == "report":
        from factaudit.experiment.folder import RunFolder
        from factaudit.results import Results

        Results.load(run_dirs[0])  # raises an error that says what is wrong, if anything is
        with RunFolder.open(run_dirs[0]) as run:
            files = run.render(png=png)
        return Outcome(
            [f"{run_dirs[0] / 'report.html'} ({len(files)} files)"], {"form": form, "files": files}
        )
    if form == "leaderboard" and out is not None:
        files = write_leaderboard(run_dirs, out, title or "Evaluators of factuality")
    else:
        files = export_run(run_dirs[0], form, out)
    return Outcome(map(str, files), {"form": form, "files": files})


COMMANDS = (export_command,)
