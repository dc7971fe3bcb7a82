"""A run in other forms: ``export``, and several runs as one page: ``leaderboard``."""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.options import PATH, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer

_FORMS = ("latex", "figures", "every-eval-ever", "inspect", "jsonl")


@click.command(
    cls=Verb,
    gives={"form": "string: the form", "files": "array: what was written"},
    short_help="Write a run for a paper or another tool.",
    epilog=example("factaudit export runs/mine --to latex"),
)
@click.argument("run_dir", type=PATH)
@click.option("--to", "form", type=click.Choice(_FORMS), required=True, help="The form.")
@click.option("--out", type=PATH, help="A folder.  [default: RUN_DIR/export/FORM]")
def export(run_dir: Path, form: str, out: Path | None) -> None:
    """Write a run as LaTeX tables and a methods paragraph, as figures of two widths (PDF and SVG), for Every Eval Ever,
    as Inspect's logs, or as JSON lines.
    """
    from factaudit.export import export as export_run

    files = export_run(run_dir, form, out)
    for path in files:
        say(str(path))
    answer({"form": form, "files": files})


@click.command(
    cls=Verb,
    gives={"files": "array: the page, and leaderboard.json with what it shows"},
    short_help="One page of evaluators by data sets.",
    epilog=example("factaudit leaderboard runs/a runs/b --out board"),
)
@click.argument("run_dirs", type=PATH, nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=PATH, required=True, help="A folder: index.html and leaderboard.json.")
@click.option("--title", default="Evaluators of factuality", show_default=True)
def leaderboard(run_dirs: tuple[Path, ...], out: Path, title: str) -> None:
    """Write a static page of evaluators by data sets: balanced accuracy, intervals, and what each may be used for."""
    from factaudit.export.leaderboard import write_leaderboard

    files = write_leaderboard(run_dirs, out, title)
    for path in files:
        say(str(path))
    answer({"files": files})


COMMANDS = (export, leaderboard)
