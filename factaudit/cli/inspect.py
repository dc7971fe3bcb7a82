"""``inspect``: what is in a user's files, and how would they be read? Is an experiment YAML
valid?"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.output import Outcome, verb

if TYPE_CHECKING:
    from factaudit.tables.column_mapping import ColumnMapping
    from factaudit.tables.table_loading import LoadedTables


@verb(
    "inspect",
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
) -> Outcome:
    """Show what is in your files: what each column means, how the files join, and which commands to
    run next.

    Nothing is written unless you give --write, which saves how the columns are read (a mapping). An
    experiment YAML is checked without running anything. For a knowledge source (.db), the command
    shows how many pages it has and how it was made.
    """
    from factaudit.datasets.format_detection import (
        detect_dataset_format,
        is_annotated_responses_file,
        suggest_score_command,
    )
    from factaudit.datasets.input_tables import load_input_tables
    from factaudit.files import check_outputs, write_text
    from factaudit.knowledge.docdb import is_docdb_sqlite_file

    check_outputs(files, write)
    if files[0].suffix in (".yaml", ".yml"):
        from factaudit.experiment.run import read_experiment
        from factaudit.settings.yaml_file import parse_yaml_set_options

        # Raises one error that lists everything that is wrong.
        read_experiment(files[0], parse_yaml_set_options(settings))
        return Outcome(
            [f"{files[0]}: a valid experiment"],
            {"files": [{"path": files[0], "format": "experiment"}]},
        )
    if is_docdb_sqlite_file(files[0]):
        return _inspect_knowledge_source(files[0])
    held = [one for path in files for one in _profile_file(path, mapping)]
    found: dict[str, Any] = {
        "files": held,
        "mapping": None,
        "notes": [],
        "written": write,
        "n_claims": None,
    }
    if all(map(is_annotated_responses_file, files)) and not any(map(detect_dataset_format, files)):
        commands = [suggest_score_command(path) for path in files]
        lines = ["responses with the facts that people annotated (FActScore): no claims yet"]
        return Outcome(
            [*lines, *(f"next      {one}" for one in commands)], found | {"next": commands}
        )
    notes: list[str] = []
    loaded = load_input_tables(files, mapping, notes.append, needs_verdicts=True)
    commands = _suggest_commands(files, loaded, mapping, write)
    found |= {
        "notes": [" ".join(line.split()) for line in notes],
        "next": commands,
        **_count_tables(loaded),
    }
    lines = [*_describe_columns(held, loaded.mapping), "", *notes, *_describe_tables(loaded)]
    if loaded.mapping is not None:
        found["mapping"] = loaded.mapping.model_dump(exclude_defaults=True, mode="json")
    if write is not None:
        text = "{}\n" if loaded.mapping is None else loaded.mapping.to_yaml()
        write_text(write, f"# How the files are read: see `factaudit inspect`.\n{text}")
        lines.append(f"mapping   {write}")
    return Outcome([*lines, "", *(f"next      {one}" for one in commands)], found)


def _profile_file(path: Path, mapping: ColumnMapping) -> list[dict[str, Any]]:
    """What each column of a file holds, for the JSON output."""
    from factaudit.datasets.format_detection import detect_dataset_format
    from factaudit.tables.column_profiles import profile_column
    from factaudit.tables.nested_columns import flatten_columns
    from factaudit.tables.questions import AmbiguousReadingError
    from factaudit.tables.table_files import read_table
    from factaudit.tables.unreadable_rows import collect_unreadable_rows

    if (name := detect_dataset_format(path)) is not None:
        return [{"path": path, "title": str(path), "format": name, "n_rows": None, "columns": []}]
    held: list[dict[str, Any]] = []
    # The reader of the file asks for the sheet.
    with collect_unreadable_rows(), suppress(AmbiguousReadingError):
        table = flatten_columns(read_table(path, sheet=mapping.sheet))
        profiles = [profile_column(str(name), table[name]) for name in table.columns]
        columns = [{"name": one.name, "values": one.describe_values()} for one in profiles]
        held = [
            {
                "path": path,
                "title": str(path),
                "format": None,
                "n_rows": len(table),
                "columns": columns,
            }
        ]
    return held


def _describe_columns(
    held: Sequence[dict[str, Any]], mapping: ColumnMapping | None
) -> Iterator[str]:
    """The columns of each file as lines: their names, how they are read (also stored in ``held``),
    and what they hold."""
    from factaudit.tables.column_mapping import ColumnMapping
    from factaudit.tables.column_profiles import MAX_PROFILED_ROWS
    from factaudit.tables.mapping_description import describe_roles

    for one in held:
        if one["format"] is not None:
            yield f"{one['title']}: a file of the format {one['format']}"
            continue
        told = f"{one['n_rows']:,} rows, {len(one['columns'])} columns"
        yield f"{one['title']}: {told}" + f"; of the first {MAX_PROFILED_ROWS:,} rows:" * (
            one["n_rows"] > MAX_PROFILED_ROWS
        )
        roles = describe_roles(
            mapping or ColumnMapping(), [column["name"] for column in one["columns"]]
        )
        for column in one["columns"]:
            column["read_as"] = roles[column["name"]]
        rows = [("column", "read as", "values")]
        rows += [(column["name"], column["read_as"], column["values"]) for column in one["columns"]]
        widths = [max(len(row[at]) for row in rows) for at in range(2)]
        for name, role, values in rows:
            yield f"  {name:<{widths[0]}}  {role:<{widths[1]}}  {values}"


def _suggest_commands(
    files: Sequence[Path], loaded: LoadedTables, mapping: ColumnMapping, write: Path | None
) -> list[str]:
    """The commands to run next on files that can be read."""
    from factaudit.tables.mapping_options import format_mapping_options

    said = format_mapping_options(mapping.model_dump(exclude_defaults=True, mode="json"))
    names = shlex.join(
        [*map(str, files), *(["--columns", str(write)] if write is not None else said)]
    )
    commands = []
    if write is None and loaded.mapping is not None:
        commands.append(f"factaudit inspect {names} --write mapping.yaml")
    if loaded.verdicts is not None:
        commands.append(
            f"factaudit audit {'CLAIMS ' * (loaded.claims is None)}{names} --out runs/mine"
        )
    elif loaded.claims is not None:
        commands.append(f"factaudit judge {names} --evaluator rouge2 --out verdicts.parquet")
    elif loaded.annotations is not None:
        commands.append(f"factaudit audit CLAIMS {names} --out runs/labels")
    return commands


def _count_tables(loaded: LoadedTables) -> dict[str, Any]:
    """The numbers of claims and verdicts that were read, for the JSON output."""
    counts: dict[str, Any] = {
        "n_claims": None,
        "n_labelled": None,
        "n_verdicts": None,
        "evaluators": [],
    }
    if loaded.claims is not None:
        counts |= {
            "n_claims": len(loaded.claims),
            "n_labelled": int(loaded.claims["label"].notna().sum()),
        }
    if loaded.verdicts is not None:
        counts["n_verdicts"] = len(loaded.verdicts)
        counts["evaluators"] = [
            {
                "evaluator": name,
                "n_verdicts": len(part),
                "n_predictions": int(part["prediction"].notna().sum()),
            }
            for name, part in loaded.verdicts.groupby("evaluator", sort=False)
        ]
    return counts


def _describe_tables(loaded: LoadedTables) -> Iterator[str]:
    """The numbers of claims, annotations and verdicts that were read, as lines."""
    from factaudit.text.display_text import format_count

    if (claims := loaded.claims) is not None:
        labelled = claims["label"].notna().sum()
        parts = [
            f"{labelled:,} labelled"
            + (f" ({claims['label'].mean():.1%} attributable)" if labelled else "")
        ]
        for column, noun in (("dataset", "dataset"), ("system", "system"), ("doc_id", "document")):
            if claims[column].notna().any():
                parts.append(format_count(claims[column].nunique(), noun))
        if without := int(claims["doc"].isna().sum()):
            parts.append(f"{without:,} without a document's text")
        yield f"claims    {len(claims):,}: {', '.join(parts)}"
    if (said := loaded.annotations) is not None:
        people = format_count(said["annotator"].nunique(), "person", "people")
        yield (
            f"people    {len(said):,} annotations of {people} on"
            f" {format_count(said['claim_id'].nunique(), 'claim')}"
        )
    if (verdicts := loaded.verdicts) is not None:
        for name, part in verdicts.groupby("evaluator", sort=False):
            scored = part["prediction"].notna().sum()
            share = f", {part['prediction'].mean():.1%} attributable" if scored else ""
            yield f"verdicts  {len(part):,} of {name}: {scored:,} with a prediction{share}"


def _inspect_knowledge_source(path: Path) -> Outcome:
    import yaml

    from factaudit.knowledge.docdb import DocDB

    with DocDB(path) as source:
        info = source.info()
    text = yaml.safe_dump(info, sort_keys=False, allow_unicode=True).rstrip()
    return Outcome(
        [text], {"files": [{"path": path, "format": "knowledge source"}], "knowledge": info}
    )


COMMANDS = (inspect_command,)
