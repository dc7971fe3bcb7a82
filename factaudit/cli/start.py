"""The first hour: ``demo``, ``init``; ``init --schema`` for editors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import PATH_TYPE, FlagSwitchedCommand, add_mapping_options, format_help_example
from factaudit.cli.result_display import RUN_JSON_KEYS, display_run_results
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping


@click.command(
    "demo",
    cls=JsonOutputCommand,
    json_keys=RUN_JSON_KEYS,
    short_help="Audit four detectors on data that ships.",
    epilog=format_help_example("factaudit demo"),
)
@click.option("--out", type=PATH_TYPE, default=Path("runs/demo"), show_default=True, help="The run folder.")
def demo_command(out: Path) -> None:
    """Audit four hallucination detectors on 1,800 labelled responses of six systems (RAGTruth).

    Nothing is downloaded and no key is needed. Which detector may be trusted for what, and how often does each system
    hallucinate? The report says.
    """
    from importlib.resources import as_file, files

    from factaudit.experiment import run

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        display_run_results(run(folder / "ragtruth.yaml", out, progress=True, say=print_line), out)
    print_line(f"\nnext      open {out / 'report.html'}; then your own files: factaudit init FILE...")


@click.command(
    "init",
    cls=FlagSwitchedCommand,
    json_keys={"yaml": "string: the experiment YAML", "editor_schema": "string: the JSON schema beside it"},
    short_help="Write an experiment YAML for your files.",
    epilog=format_help_example("factaudit init answers.csv judges.csv"),
)
@click.argument("files", type=PATH_TYPE, nargs=-1)
@click.option("--out", type=PATH_TYPE, default=Path("experiment.yaml"), show_default=True, help="The YAML.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@add_mapping_options
def init_command(files: tuple[Path, ...], out: Path, force: bool, mapping: ColumnMapping) -> None:
    """Write a commented experiment YAML for files of any shape, and beside it the schema that editors check it by.

    Without files: a blank one, with every kind of input as a comment.
    """
    from factaudit.files import check_outputs_do_not_replace_inputs, write_json, write_text
    from factaudit.start.experiment_schema import make_experiment_schema
    from factaudit.start.starter_yaml import EDITOR_SCHEMA_NAME, make_blank_starter_yaml, make_starter_yaml

    check_outputs_do_not_replace_inputs(files, out, out.parent / EDITOR_SCHEMA_NAME)
    if out.exists() and not force:
        raise UsageError(f"{out} is there already: give another with --out, or write over it with --force")
    text = make_starter_yaml(files, out, mapping, print_line) if files else make_blank_starter_yaml(out)
    write_json(out.parent / EDITOR_SCHEMA_NAME, make_experiment_schema())
    write_text(out, text)  # last: where it is there, the command is refused
    print_line(f"\n{out}\nnext      {'' if files else 'name your files in it, then '}factaudit run {out}")
    print_json_output({"yaml": out, "editor_schema": out.parent / EDITOR_SCHEMA_NAME})


@click.command(
    "init --schema",
    cls=JsonOutputCommand,
    json_keys=None,
    short_help="Print the JSON schema of experiment YAMLs.",
    epilog=format_help_example("factaudit init --schema > experiment.schema.json"),
)
def schema_command() -> None:
    """Print the JSON schema of experiment YAMLs, by which an editor completes and checks them."""
    from factaudit.start.experiment_schema import make_experiment_schema

    print_json_output(make_experiment_schema())


init_command.add_mode("--schema", schema_command)
COMMANDS = (demo_command, init_command)
