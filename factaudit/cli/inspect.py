"""``inspect``: what is in a user's files, and how would they be read? Is an experiment YAML valid?"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.result_display import count_claims_and_verdicts_for_display
from factaudit.cli.terminal import print_line, print_titled_terminal_line
from factaudit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.tables.column_mapping import ColumnMapping
    from factaudit.tables.table_loading import LoadedTables


@click.command(
    "inspect",
    cls=JsonOutputCommand,
    short_help="Show what is in your files and how factaudit would read them.",
    example="factaudit inspect answers.csv judges.tsv --write mapping.yaml",
)
@click.argument("files", type=options.PATH_TYPE, nargs=-1, required=True)
@click.option(
    "--write",
    type=options.PATH_TYPE,
    metavar="MAPPING.yaml",
    help="Write the mapping to this file, so that you can read it, change it and use it.",
)
@click.option("--show", metavar="TITLE", help="Show the passages of this page of a knowledge source.")
@options.SETTINGS_OPTION
@options.add_mapping_options
def inspect_command(
    files: tuple[Path, ...], write: Path | None, show: str | None, settings: Sequence[str], mapping: ColumnMapping
) -> None:
    """Show what is in your files: what each column means, how the files join, and which commands to run next.

    Nothing is written unless you give --write, which saves how the columns are read (a mapping). An experiment YAML is
    checked without running anything. For a knowledge source (.db), the command shows how many pages it has and how it
    was made.
    """
    from factaudit.datasets.format_detection import detect_dataset_format, is_annotated_responses_file
    from factaudit.datasets.input_tables import load_input_tables
    from factaudit.files import check_outputs_do_not_replace_inputs, replace_file_atomically
    from factaudit.knowledge.docdb import is_docdb_sqlite_file
    from factaudit.tables.column_profiles import MAX_PROFILED_ROWS, profile_column_for_mapping
    from factaudit.tables.mapping_options import format_mapping_options
    from factaudit.tables.nested_columns import flatten_columns
    from factaudit.tables.questions import AmbiguousReadingError
    from factaudit.tables.table_files import read_tables
    from factaudit.tables.unreadable_rows import collect_unreadable_rows

    check_outputs_do_not_replace_inputs(files, write)
    if len(files) == 1 and files[0].suffix in (".yaml", ".yml"):
        _check_experiment(files[0], settings)
        return
    if show is not None or (len(files) == 1 and is_docdb_sqlite_file(files[0])):
        if len(files) > 1:
            raise UsageError("--show shows a page of one knowledge source; give one file SOURCE.db")
        _display_knowledge_source(files[0], show)
        return
    held, notes = list[dict[str, Any]](), list[str]()
    for path in files:
        if (name := detect_dataset_format(path)) is not None:
            print_titled_terminal_line(str(path), f"a file of the format {name}")
            held.append({"path": path, "format": name, "n_rows": None, "columns": []})
            continue
        tables = list[tuple[str, "pd.DataFrame"]]()
        with collect_unreadable_rows(), suppress(AmbiguousReadingError):  # the reading below asks for the sheet
            tables = [(title, flatten_columns(table)) for title, table in read_tables(path, mapping.sheet)]
        for title, table in tables:
            told = f"{len(table):,} rows, {len(table.columns)} columns"
            told += f"; of the first {MAX_PROFILED_ROWS:,} rows:" * (len(table) > MAX_PROFILED_ROWS)
            print_titled_terminal_line(title, told)
            columns = [profile_column_for_mapping(str(name), table[name]) for name in table.columns]
            for column in columns:
                print_line(f"    {column}")
            held.append({"path": path, "format": None, "n_rows": len(table), "columns": columns})
    print_line("")

    def note(line: str) -> None:
        notes.append(" ".join(line.split()))
        print_line(line)

    if all(one["format"] is None for one in held) and all(map(is_annotated_responses_file, files)):
        _display_score_commands_for_annotated_responses(files, held)
        return
    loaded = load_input_tables(files, mapping, note, needs_verdicts=True)
    _display_inspected_tables(loaded)
    made = loaded.mapping
    if write is not None:
        with replace_file_atomically(write) as temporary:
            temporary.write_text(
                "# How the files are read: see `factaudit inspect`.\n"
                + (made.to_yaml() if made is not None else "{}\n"),
                encoding="utf-8",
            )
        print_line(f"mapping   {write}")
    print_line("")
    names = shlex.join(map(str, files))
    said = mapping.model_dump(exclude_defaults=True, mode="json")
    options_said = ["--columns", str(write)] if write is not None else format_mapping_options(said)
    use = f" {shlex.join(options_said)}" if options_said else ""
    commands = []
    if write is None and made is not None:
        commands.append(f"factaudit inspect {names}{use} --write mapping.yaml")
    if loaded.verdicts is not None:
        lacking = "CLAIMS " * (loaded.claims is None)
        commands.append(f"factaudit audit {lacking}{names}{use} --out runs/mine")
    elif loaded.claims is not None:
        commands.append(f"factaudit judge {names}{use} --evaluator rouge2 --out verdicts.parquet")
    elif loaded.annotations is not None:
        commands.append(f"factaudit labels {names}{use} --claims CLAIMS --out labels.parquet")
    for command in commands:
        print_line(f"next      {command}")
    described = None if made is None else made.model_dump(exclude_defaults=True, mode="json")
    print_json_output(
        {
            "files": held,
            "mapping": described,
            "notes": notes,
            "written": write,
            "next": commands,
            **count_claims_and_verdicts_for_display(loaded.claims, loaded.verdicts),
        }
    )


def _display_score_commands_for_annotated_responses(paths: tuple[Path, ...], held: list[dict[str, Any]]) -> None:
    """FActScore's annotated responses become claims by its engine."""
    from factaudit.datasets.format_detection import suggest_score_command

    commands = [suggest_score_command(path) for path in paths]
    line = "responses with the facts that people annotated (FActScore): no claims yet"
    print_line(line)
    for command in commands:
        print_line(f"next      {command}")
    print_json_output({"files": held, "notes": [line], "next": commands})


def _check_experiment(path: Path, settings: Sequence[str]) -> None:
    """All that is wrong with an experiment YAML is raised together."""
    from factaudit.experiment.run import Experiment, read_experiment
    from factaudit.settings.yaml_file import parse_yaml_set_options
    from factaudit.text.display_text import format_count

    experiment = read_experiment(path, parse_yaml_set_options(settings))
    n_evaluators = len(experiment.evaluators) if isinstance(experiment, Experiment) else None
    told = "" if n_evaluators is None else f" ({format_count(n_evaluators, 'evaluator')} to run)"
    print_line(f"{path}: a valid experiment{told}")
    print_json_output({"files": [{"path": path, "format": "experiment"}], "n_evaluators": n_evaluators})


def _display_knowledge_source(path: Path, title: str | None) -> None:
    import yaml

    from factaudit.errors import FactauditError
    from factaudit.knowledge.docdb import DocDB
    from factaudit.text.display_text import format_count

    with DocDB(path) as source:
        info = source.info()
        page = None if title is None else source.find(title)
    if title is None:
        print_line(yaml.safe_dump(info, sort_keys=False, allow_unicode=True).rstrip())
    elif page is None:
        raise FactauditError(
            f"{path}: there is no page {title!r}; `factaudit inspect {path}` shows how many pages there are"
        )
    else:
        print_line(f"{page.title}: {format_count(len(page.passages), 'passage')}")
        for number, passage in enumerate(page.passages, start=1):
            print_line(f"\n[{number}] {passage}")
        info |= {"title": page.title, "passages": page.passages}
    print_json_output({"files": [{"path": path, "format": "knowledge source"}], "knowledge": info})


def _display_inspected_tables(loaded_tables: LoadedTables) -> None:
    from factaudit.text.display_text import format_count

    claims, verdicts = loaded_tables.claims, loaded_tables.verdicts
    if claims is not None:
        labelled = int(claims["label"].notna().sum())
        told = [f"{labelled:,} labelled" + (f" ({claims['label'].mean():.1%} attributable)" if labelled else "")]
        told += [
            format_count(claims[column].nunique(), noun)
            for column, noun in (("dataset", "dataset"), ("system", "system"), ("doc_id", "document"))
            if claims[column].notna().any()
        ]
        if without := int(claims["doc"].isna().sum()):
            told.append(f"{without:,} without a document's text")
        print_line(f"claims    {len(claims):,}: {', '.join(told)}")
    if (said := loaded_tables.annotations) is not None:
        people = format_count(said["annotator"].nunique(), "person", "people")
        print_line(
            f"people    {len(said):,} annotations of {people} on {format_count(said['claim_id'].nunique(), 'claim')}"
        )
    for evaluator, part in [] if verdicts is None else verdicts.groupby("evaluator", sort=False):
        scored = part["prediction"].notna()
        share = f", {part['prediction'].mean():.1%} attributable" if scored.any() else ""
        print_line(f"verdicts  {len(part):,} of {evaluator}: {int(scored.sum()):,} with a prediction{share}")


COMMANDS = (inspect_command,)
