"""From files as they lie to claims and verdicts: as they are where the columns are ours, else by a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, suggest_known_name
from factaudit.tables import CLAIM_COLUMNS
from factaudit.tables.annotations import combine_annotations
from factaudit.tables.cell_values import drop_checks_of_outputs
from factaudit.tables.column_kinds import find_judged_columns, is_name_of_model
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import MAX_PROFILED_ROWS
from factaudit.tables.direction_checks import ask_about_directions
from factaudit.tables.document_tables import join_document_tables, split_tables_of_same_claims
from factaudit.tables.header_rows import ALL_SHEETS
from factaudit.tables.mapped_tables import apply_mapping_to_tables
from factaudit.tables.mapping_description import describe_mapping
from factaudit.tables.mapping_proposal import propose_column_mapping
from factaudit.tables.nested_lists import has_nested_paths, spread_nested_lists
from factaudit.tables.opened_tables import OpenedTable
from factaudit.tables.plain_values import clear_blank_cells
from factaudit.tables.questions import (
    AmbiguousReadingError,
    OpenQuestion,
    PossibleReading,
    count_rows,
    settle_readings,
)
from factaudit.tables.reading import combine_claims, combine_verdicts
from factaudit.tables.standard_columns import (
    OWN_COLUMNS,
    WANTED_CLAIM_COLUMNS,
    classify_standard_tables,
    find_misspelt_standard_columns,
    has_repeated_claims_in_standard_columns,
    list_missing_standard_columns,
)

#: Columns whose values a mapping can change.
_VALUE_COLUMNS = {"label", "score", "prediction"}


@dataclass(frozen=True)
class LoadedTables:
    """Validated claims, verdicts and annotations (None where there are none), and the mapping that made them (None:
    none needed)."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    mapping: ColumnMapping | None = None
    annotations: pd.DataFrame | None = None


def load_tables(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Callable[[str], None] = lambda line: None,
    needs_verdicts: bool = False,
) -> LoadedTables:
    """Read claims and verdicts from one source or several, in any order.

    Args:
        sources: paths; or data frames (pandas, polars, PyArrow), which messages call ``table 1``, ``table 2``.
        mapping: what the user says of the columns: a `ColumnMapping`, its path or plain data. Where it says nothing,
            sources whose columns are all ours are read as they are; all else is read by names.
        report_line: is called with each line about how columns are read, before anything can fail.
        needs_verdicts: claims of ours without verdicts are read as others are where further columns may hold them.

    Raises `InputError` and `UsageError`.
    """
    given = ColumnMapping.from_source(mapping)
    try:
        inputs = [one for at, source in enumerate(sources, start=1) for one in OpenedTable.open(source, at, given)]
    except AmbiguousReadingError as error:
        raise _offer_sheets(error, sources, given, needs_verdicts) from None
    kinds = classify_standard_tables([one.columns for one in inputs])
    kinds = [
        None if one.is_log or (kind == "annotations" and _names_models(one)) else kind
        for one, kind in zip(inputs, kinds, strict=True)
    ]
    if needs_verdicts and {*kinds} == {"claims"}:
        kinds = [None] * len(inputs)  # what the evaluators say stands beside the claims, if anywhere
    if given == ColumnMapping() and _can_load_as_standard_tables(inputs, kinds):
        try:
            return _load_standard_tables(inputs, kinds, report_line)
        except InputError as error:
            # The columns are ours; what they hold (words for labels, other scales) may still be what a mapping is for.
            if {problem.column for problem in error.problems} - _VALUE_COLUMNS:
                raise error from None
            proposal = propose_column_mapping(*_list_tables_to_load(inputs, kinds), given)
            if proposal.is_standard:
                raise error from None
    tables, own = _list_tables_to_load(inputs, kinds)
    if len(tables) > 1 and not all(own) and "doc" not in given.columns:
        kinds_by_name = {name: kind for (name, _), kind in zip(tables, own, strict=True)}
        tables, lines = join_document_tables(tables, own)
        own = [kinds_by_name[name] for name, _ in tables]
        _report_reading(lines, report_line)
    if len(tables) > 1 and not any(own):
        tables, lines = split_tables_of_same_claims(tables)
        own = [None] * len(tables)
        _report_reading(lines, report_line)
    own = [
        None if _has_judgement_columns_in_mapping(given, rows) else kind
        for (_, rows), kind in zip(tables, own, strict=True)
    ]
    _check_mapped_columns(given, tables)
    for one in inputs:
        if one.note:
            report_line(one.note)
    return _read_tables_by_names(tables, own, given, report_line)


def _offer_sheets(
    error: AmbiguousReadingError, sources: Sequence[Any], given: ColumnMapping, needs_verdicts: bool
) -> AmbiguousReadingError:
    """The question which sheet of a workbook is meant, with each that can be read, and all of them together."""
    data = given.model_dump(exclude_defaults=True, mode="json")
    together = PossibleReading("all sheets together, each a table", {"sheet": ALL_SHEETS})
    question = OpenQuestion(error.questions[0].text, [together, *error.readings])
    readings = settle_readings(
        [question], data, lambda settled: load_tables(sources, settled, needs_verdicts=needs_verdicts), 0
    )
    return AmbiguousReadingError(error.source, error.questions, readings)


def _read_tables_by_names(
    tables: Sequence[tuple[str, pd.DataFrame]],
    own_kinds: Sequence[str | None],
    given: ColumnMapping,
    report_line: Callable[[str], None],
    is_trial: bool = False,
) -> LoadedTables:
    """Read tables by what their columns' names say. Raises `AmbiguousReadingError` where something is open.

    is_trial: the readings of what is open are not tried in turn.
    """
    source = ", ".join(name for name, _ in tables)
    data = given.model_dump(exclude_defaults=True, mode="json")

    def read_otherwise(settled: Mapping[str, Any]) -> LoadedTables:
        chosen, others, kinds = ColumnMapping.from_source(settled), tables, own_kinds
        if len(tables) == 1 and has_nested_paths(chosen, tables[0][1].columns):
            spread, chosen = spread_nested_lists(tables[0][1], source, chosen)
            others, kinds = [(source, spread)], [None]
        return _read_tables_by_names(others, kinds, chosen, lambda line: None, is_trial=True)

    def ask(questions: Sequence[OpenQuestion], placed: Sequence[str]) -> AmbiguousReadingError:
        if is_trial:
            return AmbiguousReadingError(source, questions, questions[0].readings)
        readings = settle_readings(questions, data, read_otherwise, count_rows(tables))
        return AmbiguousReadingError(source, questions, readings, placed)

    proposal = propose_column_mapping(tables, own_kinds, given)
    placed = describe_mapping(proposal.mapping, proposal.own_names)
    if proposal.questions:
        raise ask(proposal.questions, placed)
    # What was taken for what is said before anything can go wrong.
    _report_reading([*placed, *proposal.notes], report_line)
    mapped = apply_mapping_to_tables(tables, proposal.mapping, own_kinds)
    _report_reading(mapped.notes, report_line)
    if mapped.claims is not None and mapped.verdicts is not None:
        questions, lines = ask_about_directions(mapped.claims, mapped.verdicts, proposal.mapping, given)
        if questions:
            raise ask(questions, placed)
        _report_reading(lines, report_line)
    return LoadedTables(mapped.claims, mapped.verdicts, proposal.mapping, mapped.annotations)


def _report_reading(lines: Sequence[str], report_line: Callable[[str], None]) -> None:
    for line in lines:
        report_line(line)


def _list_tables_to_load(
    inputs: Sequence[OpenedTable], kinds: Sequence[str | None]
) -> tuple[list[tuple[str, pd.DataFrame]], list[str | None]]:
    """The tables as mappings read them, and what each is; claims that repeat are of no kind."""
    tables = [(one.name, drop_checks_of_outputs(clear_blank_cells(one.rows))) for one in inputs]
    own = [
        None
        if kind == "claims" and _may_repeat_claims(one) and has_repeated_claims_in_standard_columns(table)
        else kind
        for one, kind, (_, table) in zip(inputs, kinds, tables, strict=True)
    ]
    return tables, own


def _has_judgement_columns_in_mapping(mapping: ColumnMapping, table: pd.DataFrame) -> bool:
    """Whether the user names columns of a table that hold judgements: then it is not read by our columns alone."""
    named = {name for one in mapping.evaluators.values() for name in (one.score, one.prediction) if name}
    named |= {*mapping.annotators.values()}
    named |= {theirs for ours, theirs in mapping.columns.items() if ours in _VALUE_COLUMNS and isinstance(theirs, str)}
    return any(
        str(column) in named or match_column_patterns([str(column)], [*mapping.evaluator, *mapping.people])
        for column in table.columns
        if str(column) not in CLAIM_COLUMNS
    )


def _names_models(source: OpenedTable) -> bool:
    """Whether some annotators have names of models, so that the reader must say who is a person."""
    return "annotator" in source.rows and any(
        map(is_name_of_model, map(str, source.rows["annotator"].dropna().unique()))
    )


def _may_repeat_claims(source: OpenedTable) -> bool:
    return bool({"annotator", "evaluator"} & {*source.columns})


def _can_load_as_standard_tables(inputs: Sequence[OpenedTable], kinds: Sequence[str | None]) -> bool:
    """Whether all are ours, no column that audits need has another name or is the verdicts', and no claim repeats."""
    of_claims = {name for one, kind in zip(inputs, kinds, strict=True) if kind == "claims" for name in one.columns}
    for one, kind in zip(inputs, kinds, strict=True):
        if kind is None or list_missing_standard_columns(kind, one.columns, len(inputs) > 1):
            return False
        if kind == "verdicts" and of_claims and {*WANTED_CLAIM_COLUMNS} & {*one.columns} - of_claims:
            return False
        if kind == "claims" and _may_repeat_claims(one) and has_repeated_claims_in_standard_columns(one.rows):
            return False
    return True


def _check_mapped_columns(mapping: ColumnMapping, tables: Sequence[tuple[str, pd.DataFrame]]) -> None:
    """Raise `InputError` where a column that the mapping names is in none of the tables."""
    present = list(dict.fromkeys(str(column) for _, table in tables for column in table.columns))
    for ours, theirs in mapping.columns.items():
        names = [theirs] if isinstance(theirs, str) else theirs
        if not set(names) & set(present):
            message = f"no column {names[0]!r} to map to {ours!r}{suggest_known_name(names[0], present)}"
            raise InputError(", ".join(name for name, _ in tables), [Problem(message)])


def _load_standard_tables(
    inputs: Sequence[OpenedTable], kinds: Sequence[str | None], report_line: Callable[[str], None]
) -> LoadedTables:
    """Read tables that have our columns; report columns whose names look like misspelt ones that audits need."""
    by_kind = {kind: [one for one, its in zip(inputs, kinds, strict=True) if its == kind] for kind in OWN_COLUMNS}
    for one in by_kind["claims"]:
        misspelt = find_misspelt_standard_columns(one.columns)
        near = [f"{name} (did you mean {ours!r}?)" for name, ours in misspelt.items()]
        if near:
            report_line(f"unread  {'' if len(inputs) == 1 else f'{one.name}: '}{', '.join(near)}")
    claims, verdicts, people = ([one.read_own() for one in part] for part in by_kind.values())
    names = [[one.name for one in part] for part in by_kind.values()]
    table = combine_claims(claims, names[0]) if claims else None
    judged = combine_verdicts(verdicts, names[1], table) if verdicts else None
    if table is not None and judged is not None:
        own = {*OWN_COLUMNS["claims"], *OWN_COLUMNS["verdicts"]}
        further = {
            str(name): rows[name].head(MAX_PROFILED_ROWS).tolist()
            for rows in (table, *verdicts)
            for name in rows
            if name not in own
        }
        if found := find_judged_columns(further):
            _report_reading([f"ignored  {', '.join(found)}: --evaluator or --people reads it"], report_line)
    said = combine_annotations(people, names[2], table) if people else None
    return LoadedTables(table, judged, None, said)
