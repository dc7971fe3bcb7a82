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
from factaudit.cli.terminal import print_line, print_titled_terminal_line

if TYPE_CHECKING:
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
@options.SETTINGS_OPTION
@options.add_mapping_options
def inspect_command(
    files: tuple[Path, ...], write: Path | None, settings: Sequence[str], mapping: ColumnMapping
) -> None:
    """Show what is in your files: what each column means, how the files join, and which commands to run next.

    Nothing is written unless you give --write, which saves how the columns are read (a mapping). An experiment YAML is
    checked without running anything. For a knowledge source (.db), the command shows how many pages it has and how it
    was made.
    """
    from factaudit.datasets.format_detection import (
        detect_dataset_format,
        is_annotated_responses_file,
        suggest_score_command,
    )
    from factaudit.datasets.input_tables import load_input_tables
    from factaudit.files import check_outputs_do_not_replace_inputs, write_text
    from factaudit.knowledge.docdb import is_docdb_sqlite_file

    check_outputs_do_not_replace_inputs(files, write)
    if files[0].suffix in (".yaml", ".yml"):
        _check_experiment(files[0], settings)
        return
    if is_docdb_sqlite_file(files[0]):
        _display_knowledge_source(files[0])
        return
    held = [one for path in files for one in _profile_file(path, mapping)]
    found: dict[str, Any] = {"files": held, "mapping": None, "notes": [], "written": write, "n_claims": None}
    if all(map(is_annotated_responses_file, files)) and not any(map(detect_dataset_format, files)):
        print_line("responses with the facts that people annotated (FActScore): no claims yet")
        commands = [suggest_score_command(path) for path in files]
    else:
        notes: list[str] = []
        loaded = load_input_tables(files, mapping, notes.append, needs_verdicts=True)
        found["notes"] = [" ".join(line.split()) for line in notes]
        _display_columns(held, loaded.mapping, notes)
        found |= _display_inspected_tables(loaded)
        if loaded.mapping is not None:
            found["mapping"] = loaded.mapping.model_dump(exclude_defaults=True, mode="json")
        if write is not None:
            text = "{}\n" if loaded.mapping is None else loaded.mapping.to_yaml()
            write_text(write, f"# How the files are read: see `factaudit inspect`.\n{text}")
            print_line(f"mapping   {write}")
        print_line("")
        commands = _suggest_commands(files, loaded, mapping, write)
    for command in commands:
        print_line(f"next      {command}")
    print_json_output(found | {"next": commands})


def _profile_file(path: Path, mapping: ColumnMapping) -> list[dict[str, Any]]:
    """What a file holds, by its columns, shown and as JSON has it."""
    from factaudit.datasets.format_detection import detect_dataset_format
    from factaudit.tables.column_profiles import profile_column_for_mapping
    from factaudit.tables.nested_columns import flatten_columns
    from factaudit.tables.questions import AmbiguousReadingError
    from factaudit.tables.table_files import read_tables
    from factaudit.tables.unreadable_rows import collect_unreadable_rows

    if (name := detect_dataset_format(path)) is not None:
        return [{"path": path, "title": str(path), "format": name, "n_rows": None, "columns": []}]
    held = []
    with collect_unreadable_rows(), suppress(AmbiguousReadingError):  # whoever reads the file asks for the sheet
        for title, whole in read_tables(path, mapping.sheet):
            table = flatten_columns(whole)
            profiles = [profile_column_for_mapping(str(name), table[name]) for name in table.columns]
            columns = [{"name": one.name, "values": one.describe_values()} for one in profiles]
            held.append({"path": path, "title": title, "format": None, "n_rows": len(table), "columns": columns})
    return held


def _display_columns(held: Sequence[dict[str, Any]], mapping: ColumnMapping | None, notes: Sequence[str]) -> None:
    """Each file's columns: what they are called, what they were taken for, and what they hold; then the notes."""
    from factaudit.tables.column_mapping import ColumnMapping
    from factaudit.tables.column_profiles import MAX_PROFILED_ROWS
    from factaudit.tables.mapping_description import describe_roles

    for one in held:
        if one["format"] is not None:
            print_titled_terminal_line(one["title"], f"a file of the format {one['format']}")
            continue
        told = f"{one['n_rows']:,} rows, {len(one['columns'])} columns"
        told += f"; of the first {MAX_PROFILED_ROWS:,} rows:" * (one["n_rows"] > MAX_PROFILED_ROWS)
        print_titled_terminal_line(one["title"], told)
        roles = describe_roles(mapping or ColumnMapping(), [column["name"] for column in one["columns"]])
        for column in one["columns"]:
            column["read_as"] = roles[column["name"]]
        rows = [("column", "read as", "values")]
        rows += [(column["name"], column["read_as"], column["values"]) for column in one["columns"]]
        widths = [max(len(row[at]) for row in rows) for at in range(2)]
        for name, role, values in rows:
            print_line(f"  {name:<{widths[0]}}  {role:<{widths[1]}}  {values}")
    print_line("")
    for line in notes:
        print_line(line)


def _suggest_commands(
    files: Sequence[Path], loaded: LoadedTables, mapping: ColumnMapping, write: Path | None
) -> list[str]:
    """What to run next on files that are read so."""
    from factaudit.tables.mapping_options import format_mapping_options

    said = format_mapping_options(mapping.model_dump(exclude_defaults=True, mode="json"))
    names = shlex.join([*map(str, files), *(["--columns", str(write)] if write is not None else said)])
    commands = []
    if write is None and loaded.mapping is not None:
        commands.append(f"factaudit inspect {names} --write mapping.yaml")
    if loaded.verdicts is not None:
        commands.append(f"factaudit audit {'CLAIMS ' * (loaded.claims is None)}{names} --out runs/mine")
    elif loaded.claims is not None:
        commands.append(f"factaudit judge {names} --evaluator rouge2 --out verdicts.parquet")
    elif loaded.annotations is not None:
        commands.append(f"factaudit labels {names} --claims CLAIMS --out labels.parquet")
    return commands


def _display_inspected_tables(loaded: LoadedTables) -> dict[str, Any]:
    """How many claims, annotations and verdicts were read, shown and as JSON has it."""
    from factaudit.text.display_text import format_count

    told: dict[str, Any] = {"n_claims": None, "n_labelled": None, "n_verdicts": None, "evaluators": []}
    if (claims := loaded.claims) is not None:
        labelled = int(claims["label"].notna().sum())
        told |= {"n_claims": len(claims), "n_labelled": labelled}
        parts = [f"{labelled:,} labelled" + (f" ({claims['label'].mean():.1%} attributable)" if labelled else "")]
        for column, noun in (("dataset", "dataset"), ("system", "system"), ("doc_id", "document")):
            if claims[column].notna().any():
                parts.append(format_count(claims[column].nunique(), noun))
        if without := int(claims["doc"].isna().sum()):
            parts.append(f"{without:,} without a document's text")
        print_line(f"claims    {len(claims):,}: {', '.join(parts)}")
    if (said := loaded.annotations) is not None:
        people = format_count(said["annotator"].nunique(), "person", "people")
        n_claims = format_count(said["claim_id"].nunique(), "claim")
        print_line(f"people    {len(said):,} annotations of {people} on {n_claims}")
    if (verdicts := loaded.verdicts) is not None:
        told["n_verdicts"] = len(verdicts)
        for name, part in verdicts.groupby("evaluator", sort=False):
            n, scored = len(part), int(part["prediction"].notna().sum())
            told["evaluators"].append({"evaluator": name, "n_verdicts": n, "n_predictions": scored})
            share = f", {part['prediction'].mean():.1%} attributable" if scored else ""
            print_line(f"verdicts  {n:,} of {name}: {scored:,} with a prediction{share}")
    return told


def _check_experiment(path: Path, settings: Sequence[str]) -> None:
    """All that is wrong with an experiment YAML is raised together."""
    from factaudit.experiment.run import read_experiment
    from factaudit.settings.yaml_file import parse_yaml_set_options

    read_experiment(path, parse_yaml_set_options(settings))
    print_line(f"{path}: a valid experiment")
    print_json_output({"files": [{"path": path, "format": "experiment"}]})


def _display_knowledge_source(path: Path) -> None:
    import yaml

    from factaudit.knowledge.docdb import DocDB

    with DocDB(path) as source:
        info = source.info()
    print_line(yaml.safe_dump(info, sort_keys=False, allow_unicode=True).rstrip())
    print_json_output({"files": [{"path": path, "format": "knowledge source"}], "knowledge": info})


COMMANDS = (inspect_command,)
