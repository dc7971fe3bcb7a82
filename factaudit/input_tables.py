"""Any file in: known formats by what they hold, tables of ours as they are, others by a mapping."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets import FORMATS, convert
from factaudit.datasets.format_detection import (
    check_is_readable_format,
    detect_dataset_format,
    detect_json_format_of_table,
    is_annotated_responses_file,
)
from factaudit.errors import InputError, Problem, UsageError
from factaudit.tables import merge_claim_tables, merge_verdict_tables
from factaudit.tables.annotations import read_annotations
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping, match_column_patterns
from factaudit.tables.counts_table import is_counts_table
from factaudit.tables.direction_checks import ask_about_directions
from factaudit.tables.foreign_files import read_foreign_file
from factaudit.tables.header_rows import ALL_SHEETS
from factaudit.tables.list_columns import ask_about_parallel_lists
from factaudit.tables.log_joins import join_tables_to_log_claims, map_ids_of_log
from factaudit.tables.nested_lists import has_nested_paths, spread_nested_lists
from factaudit.tables.opened_tables import OpenedTable, list_column_names, load_pandas_frame
from factaudit.tables.questions import (
    AmbiguousReadingError,
    OpenQuestion,
    PossibleReading,
    ignore_columns,
    read_columns_as_evaluators,
    read_columns_as_people,
    settle_readings,
)
from factaudit.tables.table_loading import LoadedTables, load_tables
from factaudit.tables.unreadable_rows import collect_unreadable_rows
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    is_name_of_doubtful_direction,
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


def _ask_about_columns_beside_a_format(
    sources: Sequence[Any], given: ColumnMapping, columns: Mapping[str, Sequence[str]], n_claims: int
) -> None:
    """Raise `AmbiguousReadingError` where files of a known format hold judgements that it has no place for, and the
    mapping says nothing of them: whoever added them wants them read.

    columns: with the words of each whose words are no labels that are known.
    """
    names = [*columns]
    if not names or given.ignore or given.evaluator or "label" in given.columns:
        return
    listed = ", ".join(names)
    text = f"{listed}: by the name people or an evaluator judged there, and the format has no place for it"
    if len(sources) == 1 and (claims := _find_lists_of_claims_beside(sources[0], names)):
        _ask_about_a_format(sources, given, OpenQuestion(text, [*claims, ignore_columns(names)]), n_claims)
    offers = [read_columns_as_people(names)] if len(names) > 1 else []
    for name, words in columns.items():
        ways = [(f"{one!r} is attributable, the rest not", {w: int(w == one) for w in words}) for one in words]
        plain = [] if words else [read_columns_as_people([name])]
        turned = [
            PossibleReading(f"{name}: people's labels, {said}", {"columns": {"label": name}, "labels": labels})
            for said, labels in ways or [("1 and yes are not attributable", {"1": 0, "0": 1})]
        ]
        offers += turned + plain if is_reversed_column_name(name) else plain + turned
    offers += [read_columns_as_evaluators(names), ignore_columns(names)]
    _ask_about_a_format(sources, given, OpenQuestion(text, offers), n_claims)


def _find_lists_of_claims_beside(source: Any, names: Sequence[str]) -> list[PossibleReading]:
    """The readings by which each text of a list is a claim, where columns of judgements have a value for each."""
    rows = read_foreign_file(source)
    if not all(name in rows and any(isinstance(cell, list) for cell in rows[name]) for name in names):
        return []
    lists = {str(name): [cell for cell in rows[name] if isinstance(cell, list)] for name in rows.columns}
    found = [ask_about_parallel_lists(rows, name, its) for name, its in lists.items() if its]
    return [reading for question in found if question is not None for reading in question.readings]


def _ask_about_directions_in_a_format(
    sources: Sequence[Any], given: ColumnMapping, claims: pd.DataFrame, verdicts: pd.DataFrame
) -> None:
    """Raise `AmbiguousReadingError` where metrics of a framework's log say the opposite of the labels, or have names of
    which nobody knows what a high score means."""
    doubtful = [name for name in map(str, verdicts["evaluator"].unique()) if is_name_of_doubtful_direction(name)]
    doubtful = [name for name in doubtful if name not in (*given.scale, *given.high_is_error)]
    if doubtful:
        ways = [
            PossibleReading(f"{', '.join(doubtful)}: high scores mean {said}", {"scale": dict.fromkeys(doubtful, ends)})
            for said, ends in (("an error", [1.0, 0.0]), ("support", [0.0, 1.0]))
        ]
        text = f"{', '.join(doubtful)}: whether a high score means an error is not said"
        _ask_about_a_format(sources, given, OpenQuestion(text, ways), len(claims))
    evaluators = {
        str(name): EvaluatorColumnMapping(score=name, scale=(1.0, 0.0) if is_reversed_column_name(name) else None)
        for name in verdicts["evaluator"].unique()
    }
    for question in ask_about_directions(claims, verdicts, ColumnMapping(evaluators=evaluators), given)[0]:
        _ask_about_a_format(sources, given, question, len(claims))


def _ask_about_a_format(sources: Sequence[Any], given: ColumnMapping, question: OpenQuestion, n_claims: int) -> None:
    """Raise `AmbiguousReadingError` with the readings of a question that work."""
    data = given.model_dump(exclude_defaults=True, mode="json")

    def read_otherwise(settled: Mapping[str, Any]) -> LoadedTables:
        with collect_unreadable_rows():
            return _load_collected_input_tables(sources, settled, lambda line: None)

    readings = settle_readings([question], data, read_otherwise, n_claims)
    raise AmbiguousReadingError(name_input_sources(sources), [question], readings)


def _is_tools_own_name(name: str) -> bool:
    """Whether a column is called just a score or a verdict, as tools call sums of theirs: nobody added it."""
    return normalise_vocabulary_words(name) in {*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]}


def _load_collected_input_tables(
    sources: Sequence[Any], mapping: Any, report_line: Callable[[str], None], needs_verdicts: bool = False
) -> LoadedTables:
    given = ColumnMapping.from_source(mapping)
    if has_nested_paths(given):
        if len(sources) != 1:
            raise UsageError("a path into a list (annotations[].label) is for one table: give it alone")
        source, is_file = sources[0], isinstance(sources[0], str | Path)
        rows = read_foreign_file(source, given.sheet) if is_file else load_pandas_frame(source)
        table, spread = spread_nested_lists(rows, str(source) if is_file else "table 1", given)
        return load_tables([table], spread, report_line)
    formats = [detect_dataset_format(source) if isinstance(source, str | Path) else None for source in sources]
    for source, name in zip(sources, formats, strict=True):
        if name is None and isinstance(source, str | Path) and is_annotated_responses_file(source):
            command = suggest_score_command_for_annotated_responses(source)
            raise InputError(
                str(source), [Problem(f"FActScore's annotated responses, not claims yet: run `{command}`")]
            )
    for source in [one for one in sources if isinstance(one, str | Path) and "claim" not in given.columns]:
        check_is_readable_format(source)
        if (name := detect_json_format_of_table(source)) is not None:
            message = f"the columns of {name}, whose files are JSON: give that, or write a row for each claim"
            raise InputError(str(source), [Problem(f"{message} (claim, label), or say --claim COLUMN")])
    if not any(formats):
        return load_tables(sources, mapping, report_line, needs_verdicts)
    by_format: dict[str, list[Any]] = {}
    for source, name in zip(sources, formats, strict=True):
        by_format.setdefault(name or "", []).append(source)
    tables = by_format.pop("", [])
    options = {name: _convert_mapping_to_format_options(name, given) for name in by_format}
    if any(one is None for one in options.values()):
        report_line(f"format    {', '.join(by_format)} by its keys, but read as a table: the mapping says how")
        return load_tables(sources, mapping, report_line)
    claims, verdicts, annotations, unread = [], [], [], dict[str, tuple[str, ...]]()
    for name, paths in by_format.items():
        report_line(f"format    {name}: {FORMATS[name].summary}")
        converted = convert(name, paths, **options[name] or {})
        for note in converted.notes:
            report_line(f"          {note}")
        claims.append((name, converted.claims))
        judged = converted.verdicts
        if given.evaluator:
            known = [] if judged is None else [*map(str, judged["evaluator"].unique())]
            chosen = match_column_patterns(known, given.evaluator)
            if not all(match_column_patterns(chosen, [one]) for one in given.evaluator):
                report_line("          read as a table: it has not all the evaluators that you named")
                return load_tables(sources, mapping, report_line)
            judged = None if judged is None else judged[judged["evaluator"].isin(chosen)]
        if judged is not None and given.ignore:
            judged = judged[~judged["evaluator"].isin(given.ignore)]
        if judged is not None and "scales" in FORMATS[name].options:
            _ask_about_directions_in_a_format(sources, given, converted.claims, judged)
        verdicts += [] if judged is None or judged.empty else [(name, judged)]
        annotations += [] if converted.annotations is None else [converted.annotations]
        unread |= {name: one for name, one in converted.unread_judgements.items() if not _is_tools_own_name(name)}
    _ask_about_columns_beside_a_format(sources, given, unread, sum(len(table) for _, table in claims))
    if tables:
        of_logs = merge_claim_tables([table for _, table in claims], [name for name, _ in claims])
        opened = [one for at, each in enumerate(tables, 1) for one in OpenedTable.open(each, at, ColumnMapping())]
        loaded = load_tables(opened, map_ids_of_log(opened, of_logs), report_line)
        of_logs, loaded = join_tables_to_log_claims(of_logs, loaded, name_input_sources(tables), report_line)
        claims = [(", ".join(by_format), of_logs)]
        claims += [] if loaded.claims is None else [("tables", loaded.claims)]
        verdicts += [] if loaded.verdicts is None else [("tables", loaded.verdicts)]
        annotations += [] if loaded.annotations is None else [loaded.annotations]
    return LoadedTables(
        merge_claim_tables([table for _, table in claims], [name for name, _ in claims]),
        merge_verdict_tables([table for _, table in verdicts], [name for name, _ in verdicts]) if verdicts else None,
        given if given != ColumnMapping() else None,
        pd.concat(annotations, ignore_index=True) if annotations else None,
    )


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


def suggest_score_command_for_annotated_responses(path: str | Path) -> str:
    """The command that makes claims and verdicts of FActScore's annotated responses."""
    return (
        f"factaudit score {shlex.quote(str(path))} --facts human --knowledge KNOWLEDGE.db --llm MODEL --out runs/facts"
    )


def is_input_counts_file(path: Path, mapping: ColumnMapping | None = None) -> bool:
    """Whether a file holds published error rates (a table of counts), not claims; by the mapping's sheet."""
    given = mapping or ColumnMapping()
    if detect_dataset_format(path) is not None or given.sheet == ALL_SHEETS:
        return False
    with collect_unreadable_rows(), suppress(AmbiguousReadingError):  # whoever reads the file asks which sheet
        return is_counts_table(read_foreign_file(path, given.sheet))
    return False


def _convert_mapping_to_format_options(format_name: str, mapping: ColumnMapping) -> dict[str, Any] | None:
    """The mapping as options of a format; None where it says what the format has no options for."""
    said = mapping.model_dump(exclude_defaults=True)
    columns: dict[str, Any] = said.pop("columns", {})
    scales = said.pop("scale", {}) | dict.fromkeys(said.pop("high_is_error", ()), (1.0, 0.0))
    if any(isinstance(scale, str) for scale in scales.values()):
        return None  # logits
    columns |= {"scales": scales} if scales else {}
    columns |= {"labels": said.pop("labels")} if "labels" in said else {}
    for name in ("ignore", "evaluator"):  # of what the format's converter has found
        said.pop(name, None)
    if said:
        return None
    return columns if columns.keys() <= FORMATS[format_name].options.keys() else None
