"""``demo``: what does an audit look like, on data that comes with factaudit?"""

from __future__ import annotations

from pathlib import Path

import click

from factaudit.cli.json_output import JsonOutputCommand
from factaudit.cli.options import PATH_TYPE
from factaudit.cli.result_display import display_run_results
from factaudit.cli.run import display_unchanged_run
from factaudit.cli.terminal import print_line


@click.command(
    "demo",
    cls=JsonOutputCommand,
    short_help="Audit four hallucination detectors on data that comes with factaudit.",
    example="factaudit demo",
)
@click.option("--out", type=PATH_TYPE, default=Path("runs/demo"), show_default=True, help="The run folder.")
def demo_command(out: Path) -> None:
    """Audit four hallucination detectors on 1,800 labelled responses of six systems (RAGTruth).

    The report says which detector you can use for what, and how often each system hallucinates. Nothing is downloaded
    and no key is needed.
    """
    from importlib.resources import as_file, files

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        experiment = folder / "ragtruth.yaml"
        if not display_unchanged_run(experiment, out, {}):
            from factaudit.experiment.run import run

            display_run_results(run(experiment, out, progress=True, say=print_line), out)
    print_line("          audit your own file: factaudit audit FILE --label COLUMN --evaluator COLUMN --out runs/mine")


COMMANDS = (demo_command,)
