"""From a user's files to claims, verdicts and annotations.

A file that is known by what it holds is converted (published data) or read by its recipe (the log
of a tool). All other files are tables: `factaudit.tables` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets import Conversion, convert
from factaudit.datasets.format_detection import (
    check_is_readable,
    describe_known_format,
    detect_dataset_format,
)
from factaudit.datasets.logs import LOG_RECIPES, read_log
from factaudit.errors import UsageError
from factaudit.tables.annotations import read_annotations
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.counts_table import is_counts_table
from factaudit.tables.questions import AmbiguousReadingError
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import (
    LoadedTables,
    OpenedTable,
    load_tables,
    report_unread_judgements,
)
from factaudit.tables.unreadable_rows import collect_unreadable_rows

Report = Callable[[str], None]


def load_input_tables(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Report = lambda line: None,
    needs_verdicts: bool = False,
) -> LoadedTables:
    """`load_tables` that knows published data and logs: published files are converted, logs are
    read by their recipes, and the others as tables.

    The mapping's columns of a log are paths of fields (``metadata.context``). Where the mapping
    says how published data are to be read, they are read as tables. Raises `InputError` and
    `UsageError`.
    """
    given = ColumnMapping.from_source(mapping)
    with collect_unreadable_rows() as left_out:
        loaded = _load_known_formats(sources, given, report_line, needs_verdicts)
    for note in left_out.list_notes():
        report_line(f"rows      {note}")
    return loaded


def _load_known_formats(
    sources: Sequence[Any], given: ColumnMapping, report_line: Report, needs_verdicts: bool
) -> LoadedTables:
    by_format: dict[str | None, list[Any]] = {}
    for source in sources:
        name = None
        if isinstance(source, str | Path):
            name = detect_dataset_format(source)
            check_is_readable(Path(source), "claim" in given.columns)
        by_format.setdefault(name, []).append(source)
    tables = by_format.pop(None, [])
    has_roles = given.model_dump(exclude_defaults=True).keys() - {"ignore", "evaluator"}
    opened: list[OpenedTable] = []
    renamed: dict[str, str] = {}
    for name, paths in by_format.items():
        assert name is not None
        report_line(f"format    {name}: {describe_known_format(name)}")
        if name in LOG_RECIPES:
            opened.append(read_log(name, paths, given))
            renamed |= opened[-1].renamed
            continue
        converted = None if has_roles else _convert_published_data(name, paths, given, report_line)
        if converted is None:
            report_line("          read as a table: your options say how")
            tables += paths
        elif len(sources) == len(paths):
            said = None if given == ColumnMapping() else given
            return LoadedTables(converted.claims, converted.verdicts, said, converted.annotations)
        else:
            held = (converted.claims, converted.verdicts, converted.annotations)
            opened += [OpenedTable(name, table) for table in held if table is not None]
    for at, source in enumerate(tables, start=1):
        opened.append(OpenedTable.open(source, at, given).rename(renamed))
    return load_tables(opened, given, report_line, needs_verdicts and not by_format)


def _convert_published_data(
    name: str, paths: Sequence[Any], given: ColumnMapping, report_line: Report
) -> Conversion | None:
    """Files of a published data set converted, with the evaluators that the user wants; None where
    it lacks one."""
    converted = convert(name, paths)
    for note in converted.notes:
        report_line(f"          {note}")
    if converted.verdicts is None:
        return None if given.evaluator else converted
    evaluators = converted.verdicts["evaluator"]
    chosen = match_column_patterns(evaluators.unique(), given.evaluator or ["*"])
    if not all(match_column_patterns(chosen, [one]) for one in given.evaluator):
        return None
    further = converted.claims.drop(columns=given.ignore, errors="ignore")
    report_unread_judgements([further], report_line)
    judged = converted.verdicts[evaluators.isin(chosen) & ~evaluators.isin(given.ignore)]
    return replace(converted, verdicts=None if judged.empty else judged)


def name_input_sources(sources: Sequence[Any]) -> str:
    """The files among sources, for a message."""
    return ", ".join(str(one) for one in sources if isinstance(one, str | Path)) or "what was given"


def load_input_claims(source: str | Path, mapping: Any, report_line: Report) -> pd.DataFrame:
    """`load_input_tables` of a file that must hold claims. Raises `UsageError` where it has
    none."""
    claims = load_input_tables([source], mapping, report_line).claims
    if claims is None:
        raise UsageError(
            f"{source}: no claims in it; `factaudit inspect {source}` shows what it holds"
        )
    return claims


def load_judged_input_claims(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Report = lambda line: None,
    label_files: Sequence[Path] = (),
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None]:
    """`load_input_tables` of what must hold claims and verdicts: these, and the annotations. Raises
    `UsageError` where claims or verdicts are missing.

    label_files: annotations to be read in place of those that the sources hold.
    """
    loaded = load_input_tables(sources, mapping, report_line, needs_verdicts=True)
    if loaded.claims is None or loaded.verdicts is None:
        missing = "verdicts in it: say --evaluator"
        if loaded.claims is None:
            missing = "claims in it: say --claim"
        raise UsageError(
            f"{name_input_sources(sources)}: no {missing} COLUMN, or name the file that has them"
        )
    said = loaded.annotations
    if label_files:
        said = read_annotations(*label_files, claims=loaded.claims)
    return loaded.claims, loaded.verdicts, said


def is_input_counts_file(path: Path, mapping: ColumnMapping | None = None) -> bool:
    """Whether a file holds published error rates (a table of counts), not claims; by the mapping's
    sheet."""
    sheet = None if mapping is None else mapping.sheet
    if detect_dataset_format(path) is not None:
        return False
    # Whoever reads the file asks which sheet.
    with collect_unreadable_rows(), suppress(AmbiguousReadingError):
        return is_counts_table(read_table(path, sheet=sheet))
    return False
