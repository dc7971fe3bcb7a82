"""``inspect``: what is in a user's files, and how would they be read? ``inspect --strict`` checks one."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli import options
from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.result_display import TABLE_JSON_KEYS, count_claims_and_verdicts_for_display
from factaudit.cli.terminal import print_line, print_titled_terminal_line
from factaudit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.tables.column_mapping import ColumnMapping
    from factaudit.tables.table_loading import LoadedTables


@click.command(
    "inspect",
    cls=options.FlagSwitchedCommand,
    json_keys={
        "files": "array: path, format (of a known one) or n_rows, and columns: name, kind,"
        " n_different, n_missing, words, low, high, mean_length (of the first 20,000 rows)",
        "mapping": "object or null: how columns that are not ours are read; null where they are ours",
        "notes": "array: what was taken for what, what was assumed, which columns nothing reads",
        **TABLE_JSON_KEYS,
        "written": "string or null: the mapping's file",
        "knowledge": "object or null: of a knowledge source: path, bytes, n_pages, n_redirects, indexed, signature, how"
        " it was made; with --page its title and passages",
        "next": "array: commands to run",
    },
    short_help="Show what is in your files and how factaudit would read them.",
    epilog=options.format_help_example("factaudit inspect answers.csv judges.tsv --write mapping.yaml"),
)
@click.argument("files", type=options.PATH_TYPE, nargs=-1, required=True)
@click.option(
    "--write",
    type=options.PATH_TYPE,
    metavar="MAPPING.yaml",
    help="Write the mapping to this file, so that you can read it, change it and use it.",
)
@click.option("--page", metavar="TITLE", help="Show the passages of this page of a knowledge source.")
@options.add_mapping_options
def inspect_command(files: tuple[Path, ...], write: Path | None, page: str | None, mapping: ColumnMapping) -> None:
    """Show what is in your files: what each column means, how the files join, and which commands to run next.

    The command writes no file, except the mapping with --write. For a knowledge source (.db), the command shows how
    many pages it has and how it was made.
    """
    from factaudit.datasets.format_detection import detect_dataset_format, is_annotated_responses_file
    from factaudit.files import check_outputs_do_not_replace_inputs, replace_file_atomically
    from factaudit.input_tables import load_input_tables
    from factaudit.knowledge.docdb import is_docdb_sqlite_file
    from factaudit.tables.column_profiles import MAX_PROFILED_ROWS, profile_column_for_mapping
    from factaudit.tables.foreign_files import read_foreign_tables
    from factaudit.tables.mapping_options import format_mapping_options
    from factaudit.tables.questions import AmbiguousReadingError
    from factaudit.tables.unreadable_rows import collect_unreadable_rows

    check_outputs_do_not_replace_inputs(files, write)
    if page is not None or (len(files) == 1 and is_docdb_sqlite_file(files[0])):
        if len(files) > 1:
            raise UsageError("--page shows a page of one knowledge source; give one file SOURCE.db")
        _display_knowledge_source(files[0], page)
        return
    held, notes = list[dict[str, Any]](), list[str]()
    for path in files:
        if (name := detect_dataset_format(path)) is not None:
            print_titled_terminal_line(str(path), f"a file of the format {name}")
            held.append({"path": path, "format": name, "n_rows": None, "columns": []})
            continue
        tables = list[tuple[str, "pd.DataFrame"]]()
        with collect_unreadable_rows(), suppress(AmbiguousReadingError):  # the reading below asks for the sheet
            tables = read_foreign_tables(path, mapping.sheet)
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
            "knowledge": None,
            "next": commands,
            **count_claims_and_verdicts_for_display(loaded.claims, loaded.verdicts),
        }
    )


def _display_score_commands_for_annotated_responses(paths: tuple[Path, ...], held: list[dict[str, Any]]) -> None:
    """FActScore's annotated responses become claims by its engine."""
    from factaudit.input_tables import suggest_score_command_for_annotated_responses

    commands = [suggest_score_command_for_annotated_responses(path) for path in paths]
    line = "responses with the facts that people annotated (FActScore): no claims yet"
    print_line(line)
    for command in commands:
        print_line(f"next      {command}")
    described = {"files": held, "mapping": None, "notes": [line], "written": None, "next": commands}
    print_json_output({**described, "knowledge": None, **count_claims_and_verdicts_for_display(None, None)})


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
    described: dict[str, Any] = {"mapping": None, "notes": [], "written": None, "next": [], "knowledge": info}
    held = [{"path": path, "format": "knowledge source", "n_rows": None, "columns": []}]
    print_json_output({"files": held, **described, **count_claims_and_verdicts_for_display(None, None)})


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


@click.command(
    "inspect --strict",
    cls=JsonOutputCommand,
    json_keys={
        "file": "string: what is valid",
        "kind": "string: experiment, claims, verdicts, or tables of both",
        "n_evaluators": "integer or null: an experiment's, to run",
        **TABLE_JSON_KEYS,
    },
    short_help="Only check whether a file is valid.",
    epilog=options.format_help_example("factaudit inspect --strict claims.jsonl --kind claims"),
)
@click.argument("file", type=options.PATH_TYPE)
@click.option(
    "--kind",
    type=click.Choice(["experiment", "claims", "verdicts"]),
    help="What the file is.  [default: found out from the file]",
)
@click.option("--claims", type=options.PATH_TYPE, help="The claims that the verdicts are about.")
@options.SETTINGS_OPTION
@options.add_mapping_options
def inspect_strict_command(
    file: Path, kind: str | None, claims: Path | None, settings: Sequence[str], mapping: ColumnMapping
) -> None:
    """Check whether an experiment YAML, a file of claims or a file of verdicts is valid, without running anything.

    If it is not, the command lists all problems and its exit code is 1.
    """
    from factaudit.experiment import Experiment, read_experiment
    from factaudit.input_tables import load_input_tables
    from factaudit.tables import read_claims, read_verdicts
    from factaudit.text.display_text import format_count
    from factaudit.yaml_file import parse_yaml_set_options

    n_evaluators, made, verdicts = None, None, None
    if kind is None:
        kind = "experiment" if file.suffix in (".yaml", ".yml") else "tables"
    if kind == "experiment":
        experiment = read_experiment(file, parse_yaml_set_options(settings))
        n_evaluators = len(experiment.evaluators) if isinstance(experiment, Experiment) else None
        told = "" if n_evaluators is None else f" ({format_count(n_evaluators, 'evaluator')} to run)"
        print_line(f"{file}: a valid experiment{told}")
    elif kind == "claims":
        made = read_claims(file)
    elif kind == "verdicts":
        verdicts = read_verdicts(file, claims=read_claims(claims) if claims else None)
    else:
        loaded = load_input_tables([file] if claims is None else [claims, file], mapping, print_line)
        made, verdicts = loaded.claims if claims is None else None, loaded.verdicts
    if made is not None:
        labelled, datasets = int(made["label"].notna().sum()), format_count(made["dataset"].nunique(), "dataset")
        print_line(f"{file}: {format_count(len(made), 'valid claim')}, {labelled:,} labelled, {datasets}")
    if verdicts is not None:
        print_line(
            f"{file}: {format_count(len(verdicts), 'valid verdict')} of {', '.join(verdicts['evaluator'].unique())}"
        )
    print_json_output(
        {
            "file": file,
            "kind": kind,
            "n_evaluators": n_evaluators,
            **count_claims_and_verdicts_for_display(made, verdicts),
        }
    )


inspect_command.add_mode("--strict", inspect_strict_command)
COMMANDS = (inspect_command,)
