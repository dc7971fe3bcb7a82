"""From files as they lie to claims and verdicts: as they are where the columns are ours, else by a
mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem, suggest_known_name
from factaudit.tables.annotations import combine_annotations, fill_labels_by_majority
from factaudit.tables.column_kinds import is_name_of_model
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import MAX_PROFILED_ROWS, find_judged_columns
from factaudit.tables.direction_checks import ask_about_directions
from factaudit.tables.mapped_tables import apply_mapping_to_tables
from factaudit.tables.mapping_description import describe_mapping, list_placed_columns
from factaudit.tables.mapping_proposal import propose_column_mapping
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.plain_values import clear_blank_cells
from factaudit.tables.questions import AmbiguousReadingError
from factaudit.tables.reading import combine_claims, combine_verdicts
from factaudit.tables.roles import TableRoles
from factaudit.tables.schema import CLAIM_COLUMNS
from factaudit.tables.standard_columns import (
    OWN_COLUMNS,
    WANTED_CLAIM_COLUMNS,
    classify_standard_tables,
    find_misspelt_columns,
    find_other_names,
    has_repeated_claims,
)
from factaudit.tables.table_files import load_pandas_frame, read_table
from factaudit.tables.validation import REPEATED_ID_REMEDY
from factaudit.tables.vocabulary import normalise_words

#: Names of a text that may be a document as well as a claim.
_MERE_TEXTS = {"text", "texts", "content", "output", "node output", "title"}
#: Columns whose values a mapping can change.
_VALUE_COLUMNS = {"label", "score", "prediction"}
Report = Callable[[str], None]
NamedTable = tuple[str, pd.DataFrame]


@dataclass(frozen=True)
class OpenedTable:
    """One table of a call: what messages call it, and its rows; those of a table that is not ours
    are flat.

    is_log: of a tool's log, whose claims' columns have our names; renamed: their own names.
    """

    name: str
    rows: pd.DataFrame
    is_log: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, source: Any, number: int, mapping: ColumnMapping) -> OpenedTable:
        """The table of a source; one that was opened before is itself."""
        if isinstance(source, cls):
            return source
        if isinstance(source, str | Path):
            opened = cls(str(source), read_table(source, sheet=mapping.sheet))
        else:
            opened = cls(f"table {number}", load_pandas_frame(source))
        return opened if opened.is_ours else replace(opened, rows=flatten_columns(opened.rows))

    @property
    def columns(self) -> list[str]:
        return [*map(str, self.rows.columns)]

    @property
    def is_ours(self) -> bool:
        return classify_standard_tables([self.columns]) != [None]

    def needs_mapping(self, kind: str, given: ColumnMapping) -> bool:
        """Whether a table with our columns is read by names all the same: a log; one whose rows are
        each what somebody said of a claim; one with annotators that are called after models; one of
        which the user names judgements.
        """
        may_repeat = kind == "claims" and bool({"annotator", "evaluator"} & {*self.columns})
        people = [] if kind != "annotations" else map(str, self.rows["annotator"].dropna().unique())
        if self.is_log or any(map(is_name_of_model, people)):
            return True
        if may_repeat and has_repeated_claims(self.rows):
            return True
        named = {name for one in given.evaluators.values() for name in one.columns} | {
            *given.annotators.values()
        }
        named |= {str(given.columns[ours]) for ours in _VALUE_COLUMNS if ours in given.columns}
        further = [name for name in self.columns if name not in CLAIM_COLUMNS]
        return bool(match_column_patterns(further, [*named, *given.evaluator, *given.people]))

    def rename(self, names: Mapping[str, str]) -> OpenedTable:
        """The table with a log's columns called as in the log's own table, where it has none of
        that name."""
        known = {
            theirs: ours
            for theirs, ours in names.items()
            if theirs in self.columns and ours not in self.columns
        }
        return replace(self, rows=self.rows.rename(columns=known))

    def make_plain(self) -> NamedTable:
        """The table as mappings read it."""
        rows = flatten_columns(self.rows) if self.is_ours else self.rows
        rows.attrs = self.rows.attrs
        return self.name, clear_blank_cells(rows)


@dataclass(frozen=True)
class LoadedTables:
    """Validated claims, verdicts and annotations (None where there are none), and the mapping that
    made them (None: none needed)."""

    claims: pd.DataFrame | None
    verdicts: pd.DataFrame | None
    mapping: ColumnMapping | None = None
    annotations: pd.DataFrame | None = None


def load_tables(
    sources: Sequence[Any],
    mapping: Any = None,
    report_line: Report = lambda line: None,
    needs_verdicts: bool = False,
) -> LoadedTables:
    """Read claims and verdicts from one source or several, in any order.

    Args:
        sources: paths; or data frames (pandas, polars, PyArrow), which messages call ``table 1``,
        ``table 2``.
        mapping: what the user says of the columns: a `ColumnMapping`, its path or plain data. Where
        it says nothing,
            sources whose columns are all ours are read as they are; all else is read by names.
        report_line: is called with each line about how columns are read, before anything can fail.
        needs_verdicts: claims of ours without verdicts are read as others are where further columns
        may hold them.

    Raises `InputError` and `UsageError`.
    """
    given = ColumnMapping.from_source(mapping)
    inputs = [OpenedTable.open(source, at, given) for at, source in enumerate(sources, start=1)]
    kinds = classify_standard_tables([one.columns for one in inputs])
    if needs_verdicts and {*kinds} == {"claims"}:
        # What the evaluators say stands beside the claims, if anywhere.
        kinds = [None] * len(inputs)
    kinds = [
        kind if kind and not one.needs_mapping(kind, given) else None
        for one, kind in zip(inputs, kinds, strict=True)
    ]
    if given == ColumnMapping() and _are_standard_tables(inputs, kinds):
        try:
            return _load_standard_tables(inputs, kinds, report_line)
        except InputError as error:
            # The columns are ours; what they hold (words for labels, other scales) may still be
            # what a mapping is for.
            is_of_values = {problem.column for problem in error.problems} <= _VALUE_COLUMNS
            tables = [one.make_plain() for one in inputs]
            if not is_of_values or propose_column_mapping(tables, kinds, given).is_standard:
                raise error from None
    else:
        tables = [one.make_plain() for one in inputs]
    return _load_by_names(tables, kinds, given, report_line)


def _refuse_tables_of_documents(placed: Sequence[TableRoles], given: ColumnMapping) -> None:
    """Raise `InputError` for a table that only holds documents by their ids, which another table
    names: its texts might be taken for claims."""
    for one in placed:
        claim, doc = (one.roles.get(ours) for ours in ("claim", "doc"))
        key = one.roles.get("doc_id") or (None if claim else one.roles.get("claim_id"))
        is_claim = claim is not None and normalise_words(claim) not in _MERE_TEXTS
        is_judged = one.is_labelled or one.is_judged or one.unclear or "system" in one.roles
        is_named = any(key in other.rows for other in placed if other is not one)
        if one.kind or not key or not (claim or doc) or "claim" in given.columns:
            continue
        if is_named and not is_claim and not is_judged and one.rows[key].is_unique:
            message = (
                "it holds documents and no claims: join them to the claims (pandas:"
                f" claims.merge(documents, on={key!r}))"
            )
            raise InputError(one.name, [Problem(message)])


def _load_by_names(
    tables: Sequence[NamedTable],
    own_kinds: Sequence[str | None],
    given: ColumnMapping,
    report_line: Report,
) -> LoadedTables:
    """Read tables by what their columns' names say. Raises `AmbiguousReadingError` where something
    is open."""
    source = ", ".join(name for name, _ in tables)
    _check_mapped_columns(given, tables, source)

    proposal = propose_column_mapping(tables, own_kinds, given)
    _refuse_tables_of_documents(proposal.placed, given)
    placed = list_placed_columns(proposal.mapping, proposal.own_names)
    if proposal.questions:
        raise AmbiguousReadingError(source, proposal.questions, placed)
    # What was taken for what is said before anything can go wrong.
    _report_all(
        [*describe_mapping(proposal.mapping, proposal.own_names), *proposal.notes], report_line
    )
    mapped = apply_mapping_to_tables(proposal.placed, proposal.mapping)
    _report_all(mapped.notes, report_line)
    if mapped.claims is not None and mapped.verdicts is not None:
        questions, lines = ask_about_directions(
            mapped.claims, mapped.verdicts, proposal.mapping, given
        )
        if questions:
            raise AmbiguousReadingError(source, questions, placed)
        _report_all(lines, report_line)
    return LoadedTables(mapped.claims, mapped.verdicts, proposal.mapping, mapped.annotations)


def _report_all(lines: Sequence[str], report_line: Report) -> None:
    for line in lines:
        report_line(line)


def _are_standard_tables(inputs: Sequence[OpenedTable], kinds: Sequence[str | None]) -> bool:
    """Whether all are ours, and no column that audits need has another name or is the verdicts'."""
    of_claims = {
        name
        for one, kind in zip(inputs, kinds, strict=True)
        if kind == "claims"
        for name in one.columns
    }
    for one, kind in zip(inputs, kinds, strict=True):
        if kind is None or find_other_names(kind, one.columns, len(inputs) > 1):
            return False
        if (
            kind == "verdicts"
            and of_claims
            and {*WANTED_CLAIM_COLUMNS} & {*one.columns} - of_claims
        ):
            return False
    return True


def _check_mapped_columns(
    mapping: ColumnMapping, tables: Sequence[NamedTable], source: str
) -> None:
    """Raise `InputError` where a column that the mapping names is in none of the tables, or one has
    two for a role."""
    present = list(dict.fromkeys(str(column) for _, table in tables for column in table.columns))
    for ours, theirs in mapping.columns.items():
        names = [theirs] if isinstance(theirs, str) else theirs
        if not set(names) & set(present):
            message = (
                f"no column {names[0]!r} to map to {ours!r}{suggest_known_name(names[0], present)}"
            )
            raise InputError(source, [Problem(message)])
        for name, table in tables:
            if len(both := [one for one in names if one in table]) > 1:
                raise InputError(
                    name,
                    [Problem(f"for {ours!r} the mapping names {both!r}, and the table has both")],
                )


def _load_standard_tables(
    inputs: Sequence[OpenedTable], kinds: Sequence[str | None], report_line: Report
) -> LoadedTables:
    """Read tables that have our columns; report columns whose names look like misspelt ones that
    audits need, or that may hold judgements."""
    by_kind = {
        kind: [one for one, its in zip(inputs, kinds, strict=True) if its == kind]
        for kind in OWN_COLUMNS
    }
    for one in by_kind["claims"]:
        misspelt = find_misspelt_columns(one.columns)
        near = [f"{name} (did you mean {ours!r}?)" for name, ours in misspelt.items()]
        if near:
            report_line(f"unread    {'' if len(inputs) == 1 else f'{one.name}: '}{', '.join(near)}")
    (claims, claim_names), (verdicts, verdict_names), (people, people_names) = (
        ([one.rows for one in part], [one.name for one in part]) for part in by_kind.values()
    )
    table = combine_claims(claims, claim_names, REPEATED_ID_REMEDY) if claims else None
    judged = combine_verdicts(verdicts, verdict_names, table) if verdicts else None
    if table is not None and judged is not None:
        own = {*OWN_COLUMNS["claims"], *OWN_COLUMNS["verdicts"]}
        further = {
            str(name): rows[name].head(MAX_PROFILED_ROWS).tolist()
            for rows in (table, *verdicts)
            for name in rows
            if name not in own
        }
        if found := find_judged_columns(further):
            report_line(f"ignored   {', '.join(found)}: --evaluator or --people reads it")
    said = combine_annotations(people, people_names, table) if people else None
    if table is not None and said is not None:
        table = fill_labels_by_majority(table, said)
    return LoadedTables(table, judged, None, said)
