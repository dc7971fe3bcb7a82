"""The first hour: ``demo``, ``init``, and the ``schema`` of experiment YAMLs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import PATH, example, mapping_options
from factaudit.cli.show import RUN, show_results
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer
from factaudit.errors import UsageError

if TYPE_CHECKING:
    from factaudit.intake.mapping import Mapping


@click.command(
    cls=Verb, gives=RUN, short_help="Audit four detectors on data that ships.", epilog=example("factaudit demo")
)
@click.option("--out", type=PATH, default=Path("runs/demo"), show_default=True, help="The run folder.")
def demo(out: Path) -> None:
    """Audit four hallucination detectors on 1,800 labelled responses of six systems (RAGTruth).

    Nothing is downloaded and no key is needed. Which detector may be trusted for what, and how often does each system
    hallucinate? The report says.
    """
    from importlib.resources import as_file, files

    from factaudit.experiment import run

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        show_results(run(folder / "ragtruth.yaml", out, progress=True, say=say), out)
    say(f"\nnext      open {out / 'report.html'}; then your own files: factaudit init FILE...")


@click.command(
    cls=Verb,
    gives={"yaml": "string: the experiment YAML", "editor_schema": "string: the JSON schema beside it"},
    short_help="Write an experiment YAML for your files.",
    epilog=example("factaudit init answers.csv judges.csv"),
)
@click.argument("files", type=PATH, nargs=-1)
@click.option("--out", type=PATH, default=Path("experiment.yaml"), show_default=True, help="The YAML.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@mapping_options
def init(files: tuple[Path, ...], out: Path, force: bool, mapping: Mapping) -> None:
    """Write a commented experiment YAML for files of any shape, and beside it the schema that editors check it by.

    Without files: a blank one, with every kind of input as a comment.
    """
    from factaudit.files import spare, write_json, write_text
    from factaudit.start.init import SCHEMA_NAME, blank_yaml, experiment_yaml
    from factaudit.start.schema import experiment_schema

    spare(files, out, out.parent / SCHEMA_NAME)
    if out.exists() and not force:
        raise UsageError(f"{out} is there already: give another with --out, or write over it with --force")
    write_text(out, experiment_yaml(files, out, mapping, say) if files else blank_yaml(out))
    write_json(out.parent / SCHEMA_NAME, experiment_schema())
    say(f"\n{out}\nnext      {'' if files else 'name your files in it, then '}factaudit run {out}")
    answer({"yaml": out, "editor_schema": out.parent / SCHEMA_NAME})


@click.command(
    cls=Verb,
    gives=None,
    short_help="Print the JSON schema of experiment YAMLs.",
    epilog=example("factaudit schema > experiment.schema.json"),
)
def schema() -> None:
    """Print the JSON schema of experiment YAMLs, by which an editor completes and checks them."""
    from factaudit.start.schema import experiment_schema

    answer(experiment_schema())


COMMANDS = (demo, init, schema)
