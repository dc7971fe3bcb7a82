"""Any file in: known formats by what they hold, tables of ours as they are, others by a mapping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets import FORMATS, Conversion, convert
from factaudit.datasets.format_detection import check_is_readable, detect_dataset_format
from factaudit.datasets.logs import read_log
from factaudit.errors import UsageError
from factaudit.tables.annotations import read_annotations
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.counts_table import is_counts_table
from factaudit.tables.nested_lists import has_nested_paths
from factaudit.tables.questions import (
    AmbiguousReadingError,
    OpenQuestion,
)
from factaudit.tables.table_files import ALL_SHEETS, read_table
from factaudit.tables.table_loading import LoadedTables, OpenedTable, list_column_names, load_tables
from factaudit.tables.unreadable_rows import collect_unreadable_rows
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    is_reversed_column_name,
    normalise_vocabulary_words,
)


def load_input_tables(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Callable[[str], None] = lambda line: None,
    needs_verdicts: bool = False,
) -> LoadedTables:
    """`load_tables` that knows the formats of `FORMATS`: files of one are converted, the others read as tables.

    The mapping's columns that are options of the format (``claim``, ``doc``, ``label``, ``system``) are paths of fields
    (``metadata.context``). A mapping that says more has the files read as tables, and one with a path into a list
    (``annotations[].label``) a file as a table with a column for each annotator or evaluator. Raises `InputError` and
    `UsageError`.
    """
    with collect_unreadable_rows() as left_out:
        loaded = _load_collected_input_tables(sources, mapping, report_line, needs_verdicts)
    for note in left_out.list_notes():
        report_line(f"rows      {note}")
    return loaded


def _ask_about_columns_beside_a_format(sources: Sequence[Any], given: ColumnMapping, names: Sequence[str]) -> None:
    """Raise `AmbiguousReadingError` where files of a known format hold judgements that it has no place for, and the
    mapping says nothing of them: whoever added them wants them read."""
    if not names or given.ignore or given.evaluator or "label" in given.columns:
        return
    answers: list[dict[str, Any]] = [{"people": [*names]}] if len(names) > 1 else []
    for name in names:
        plain = {"columns": {"label": name}}
        turned = {**plain, "high_is_error": [name]}
        answers += [turned, plain] if is_reversed_column_name(name) else [plain, turned]
    answers += [{"evaluator": [*names]}, {"ignore": [*names]}]
    text = f"{', '.join(names)}: by the name people or an evaluator judged there, and the format has no place for it"
    raise AmbiguousReadingError(name_input_sources(sources), [OpenQuestion(text, answers)])


def _is_tools_own_name(name: str) -> bool:
    """Whether a column is called just a score or a verdict, as tools call sums of theirs: nobody added it."""
    return normalise_vocabulary_words(name) in {*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]}


def _load_collected_input_tables(
    sources: Sequence[Any], mapping: Any, report_line: Callable[[str], None], needs_verdicts: bool = False
) -> LoadedTables:
    given = ColumnMapping.from_source(mapping)
    if has_nested_paths(given):
        return load_tables(sources, given, report_line, needs_verdicts)
    by_format: dict[str, list[Any]] = {}
    for source in sources:
        name = None
        if isinstance(source, str | Path):
            name = detect_dataset_format(source)
            check_is_readable(Path(source), "claim" in given.columns)
        by_format.setdefault(name or "", []).append(source)
    tables = by_format.pop("", [])
    if not by_format:
        return load_tables(sources, mapping, report_line, needs_verdicts)
    published = [name for name in by_format if not FORMATS[name].is_log]
    if published and given.model_dump(exclude_defaults=True).keys() - {"ignore", "evaluator"}:
        report_line(f"format    {', '.join(published)} by its keys, but read as a table: the mapping says how")
        return load_tables(sources, mapping, report_line)
    opened: list[Any] = []
    renamed: dict[str, str] = {}
    for name, paths in by_format.items():
        report_line(f"format    {name}: {FORMATS[name].summary}")
        if FORMATS[name].is_log:
            opened.append(read_log(name, paths, given))
            renamed |= opened[-1].renamed
            continue
        converted = _convert_published_data(sources, name, paths, given, report_line)
        if converted is None:
            report_line("          read as a table: it has not all the evaluators that you named")
            return load_tables(sources, mapping, report_line)
        if len(sources) == len(paths):
            return LoadedTables(
                converted.claims, converted.verdicts, given if given != ColumnMapping() else None, converted.annotations
            )
        parts = {"claims": converted.claims, "verdicts": converted.verdicts, "annotations": converted.annotations}
        opened += [
            OpenedTable(f"{name}: {what}", table) for what, table in parts.items() if table is not None and len(table)
        ]
    for at, source in enumerate(tables, start=1):
        opened += [one.rename(renamed) for one in OpenedTable.open(source, at, given)]
    return load_tables(opened, given, report_line)


def _convert_published_data(
    sources: Sequence[Any],
    name: str,
    paths: Sequence[Any],
    given: ColumnMapping,
    report_line: Callable[[str], None],
) -> Conversion | None:
    """Files of a published data set converted, with the evaluators that the user wants; None where it lacks one."""
    converted = convert(name, paths)
    for note in converted.notes:
        report_line(f"          {note}")
    unread = [column for column in converted.unread_judgements if not _is_tools_own_name(column)]
    _ask_about_columns_beside_a_format(sources, given, unread)
    judged = converted.verdicts
    known = [] if judged is None else [*map(str, judged["evaluator"].unique())]
    chosen = match_column_patterns(known, given.evaluator or ["*"])
    if not all(match_column_patterns(chosen, [one]) for one in given.evaluator):
        return None
    if judged is not None:
        judged = judged[judged["evaluator"].isin([one for one in chosen if one not in given.ignore])]
    return replace(converted, verdicts=None if judged is None or judged.empty else judged)


def load_input_claims(source: str | Path, mapping: Any, report_line: Callable[[str], None]) -> pd.DataFrame:
    """`load_input_tables` of a file that must hold claims. Raises `UsageError` where it has none."""
    claims = load_input_tables([source], mapping, report_line).claims
    if claims is None:
        raise UsageError(f"{source}: no claims in it; `factaudit inspect {source}` shows what it holds")
    return claims


def name_input_sources(sources: Sequence[Any]) -> str:
    """The files among sources, for a message."""
    return ", ".join(str(one) for one in sources if isinstance(one, str | Path)) or "what was given"


@dataclass(frozen=True)
class JudgedInputClaims:
    """Claims that somebody or something judged."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    annotations: pd.DataFrame | None


def load_judged_input_claims(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Callable[[str], None] = lambda line: None,
    label_files: Sequence[Path] = (),
) -> JudgedInputClaims:
    """`load_input_tables` of what must hold claims and verdicts. Raises `UsageError` where either is missing.

    label_files: what people said of the claims, in place of what the sources hold of it.
    """
    loaded = load_input_tables(sources, mapping, report_line, needs_verdicts=True)
    if loaded.claims is None or loaded.verdicts is None:
        missing, option = ("claims", "--claim COLUMN") if loaded.claims is None else ("verdicts", "--evaluator COLUMN")
        raise UsageError(
            f"{name_input_sources(sources)}: no {missing} in it: say {option}, or name the file that has them"
        )
    said = read_annotations(*label_files, claims=loaded.claims) if label_files else loaded.annotations
    return JudgedInputClaims(loaded.claims, loaded.verdicts, said)


def load_input_annotations(
    sources: Sequence[str | Path],
    claims: str | Path | None = None,
    mapping: Any = None,
    report_line: Callable[[str], None] = lambda line: None,
) -> tuple[pd.DataFrame | None, pd.DataFrame]:
    """What people said, of files of ours or of any shape, and the claims that it is of where they are known."""
    columns = [list_column_names(source, mapping) for source in sources]
    if all({"label", "grade"} & {*names} and "claim_id" in names for names in columns):
        table = None if claims is None else load_input_tables([claims], mapping, report_line).claims
        return table, read_annotations(*sources, claims=table)
    loaded = load_input_tables([*([] if claims is None else [claims]), *sources], mapping, report_line)
    if loaded.annotations is None:
        names = ", ".join(map(str, sources))
        raise UsageError(
            f"{names}: no columns of several people in it: say --people COLUMN for each, or --columns annotator=COLUMN"
        )
    return loaded.claims, loaded.annotations


def is_input_counts_file(path: Path, mapping: ColumnMapping | None = None) -> bool:
    """Whether a file holds published error rates (a table of counts), not claims; by the mapping's sheet."""
    given = mapping or ColumnMapping()
    if detect_dataset_format(path) is not None or given.sheet == ALL_SHEETS:
        return False
    with collect_unreadable_rows(), suppress(AmbiguousReadingError):  # whoever reads the file asks which sheet
        return is_counts_table(read_table(path, sheet=given.sheet))
    return False
