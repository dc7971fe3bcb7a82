"""Reads the tables of one call, in any order, as claims, verdicts and annotations.

Tables that have factaudit's own columns are read as they are. All other tables are read by the
names of their columns (`factaudit.tables.mapping_proposal`), which raises a question where a name
can mean more than one thing.
"""

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

#: Names of a text that may be a claim or a document.
_MERE_TEXTS = {"text", "texts", "content", "output", "node output", "title"}
#: Columns in which a mapping can change what values mean.
_VALUE_COLUMNS = {"label", "score", "prediction"}
Report = Callable[[str], None]
NamedTable = tuple[str, pd.DataFrame]


@dataclass(frozen=True)
class OpenedTable:
    """One table of a call: its rows, and its name in messages. Objects in the cells of a table that
    is not in factaudit's format have become columns.

    is_log: the table comes from the log of an evaluation tool, and the columns of its claims
    already have factaudit's names. renamed: for each of these columns its name in the log.
    """

    name: str
    rows: pd.DataFrame
    is_log: bool = False
    renamed: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, source: Any, number: int, mapping: ColumnMapping) -> OpenedTable:
        """Open a path or a data frame. A table that was opened before is returned as it is."""
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
        """Whether a table with factaudit's columns must be read by names all the same. This is so
        for a log; for a table with a row for each judgement of a claim; for one in which annotators
        have names of models; and for one in which the user names columns of judgements."""
        may_repeat = kind == "claims" and bool({"annotator", "evaluator"} & {*self.columns})
        people = [] if kind != "annotations" else map(str, self.rows["annotator"].dropna().unique())
        if self.is_log or any(map(is_name_of_model, people)):
            return True
        if may_repeat and has_repeated_claims(self.rows):
            return True
        named = {name for one in given.evaluators.values() for name in one.columns}
        named |= {str(given.columns[ours]) for ours in _VALUE_COLUMNS if ours in given.columns}
        further = [name for name in self.columns if name not in CLAIM_COLUMNS]
        return bool(match_column_patterns(further, [*named, *given.evaluator, *given.people]))

    def rename(self, names: Mapping[str, str]) -> OpenedTable:
        """The table with the columns of a log renamed as in the log's own table, unless it has
        columns of that name."""
        known = {
            theirs: ours
            for theirs, ours in names.items()
            if theirs in self.columns and ours not in self.columns
        }
        return replace(self, rows=self.rows.rename(columns=known))

    def make_plain(self) -> NamedTable:
        """The name and the rows of the table, flat and without blank cells, as mappings read
        them."""
        rows = flatten_columns(self.rows) if self.is_ours else self.rows
        rows.attrs = self.rows.attrs
        return self.name, clear_blank_cells(rows)


@dataclass(frozen=True)
class LoadedTables:
    """Validated claims, verdicts and annotations, each None where there are none, and the mapping
    by which they were read (None where none was needed)."""

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
    """Read claims, verdicts and annotations from one source or several, in any order.

    Args:
        sources: paths or data frames (pandas, polars, PyArrow). Messages call frames ``table 1``,
            ``table 2``.
        mapping: what the user says of the columns: a `ColumnMapping`, its path or plain data. Where
            it says nothing, tables with factaudit's columns are read as they are, and all others
            by the names of their columns.
        report_line: called with each line about how columns are read, before anything can fail.
        needs_verdicts: claims without verdicts may have verdicts in further columns, so they are
            read by names.

    Raises `InputError` and `UsageError`.
    """
    given = ColumnMapping.from_source(mapping)
    inputs = [OpenedTable.open(source, at, given) for at, source in enumerate(sources, start=1)]
    kinds = classify_standard_tables([one.columns for one in inputs])
    if needs_verdicts and {*kinds} in ({"claims"}, {"verdicts", "annotations"}):
        # The verdicts stand beside the claims, or the claims are those that people labelled.
        kinds = [None] * len(inputs)
    kinds = [
        kind if kind and not one.needs_mapping(kind, given) else None
        for one, kind in zip(inputs, kinds, strict=True)
    ]
    if given == ColumnMapping() and _are_standard_tables(inputs, kinds):
        try:
            return _load_standard_tables(inputs, kinds, report_line)
        except InputError as error:
            # The columns are factaudit's, but a mapping may be needed for their values: words as
            # labels, or other scales.
            is_of_values = {problem.column for problem in error.problems} <= _VALUE_COLUMNS
            tables = [one.make_plain() for one in inputs]
            if not is_of_values or propose_column_mapping(tables, kinds, given).is_standard:
                raise error from None
    else:
        tables = [one.make_plain() for one in inputs]
    return _load_by_names(tables, kinds, given, report_line)


def _refuse_tables_of_documents(placed: Sequence[TableRoles], given: ColumnMapping) -> None:
    """Raise `InputError` for a table that only holds documents, to whose ids another table refers:
    the texts of the documents might be taken for claims."""
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
    """Read tables by the names of their columns. Raises `AmbiguousReadingError` if something
    remains open."""
    source = ", ".join(name for name, _ in tables)
    _check_mapped_columns(given, tables, source)

    proposal = propose_column_mapping(tables, own_kinds, given)
    _refuse_tables_of_documents(proposal.placed, given)
    placed = list_placed_columns(proposal.mapping, proposal.own_names)
    if proposal.questions:
        raise AmbiguousReadingError(source, proposal.questions, placed)
    # Reported first, so that users see how columns were read even if a value is wrong.
    _report_all(
        [
            *describe_mapping(proposal.mapping, proposal.own_names, proposal.meanings),
            *proposal.notes,
        ],
        report_line,
    )
    mapped = apply_mapping_to_tables(proposal.placed, proposal.mapping)
    _report_all(mapped.notes, report_line)
    if mapped.claims is not None:
        _report_repeated_claims(mapped.claims, report_line)
    if mapped.claims is not None and mapped.verdicts is not None:
        questions, lines = ask_about_directions(
            mapped.claims, mapped.verdicts, proposal.mapping, given
        )
        if questions:
            raise AmbiguousReadingError(source, questions, placed)
        _report_all(lines, report_line)
    return LoadedTables(mapped.claims, mapped.verdicts, proposal.mapping, mapped.annotations)


def _report_repeated_claims(claims: pd.DataFrame, report_line: Report) -> None:
    # Few claims have the text of another; only of these are the long documents compared.
    alike = claims[claims["claim"].duplicated(keep=False)]
    if n := int(alike.duplicated(["dataset", "system", "response_id", "doc", "claim"]).sum()):
        rows = "1 row has" if n == 1 else f"{n:,} rows have"
        report_line(f"repeated  {rows} the claim and document of another row; each counts")


def _report_all(lines: Sequence[str], report_line: Report) -> None:
    for line in lines:
        report_line(line)


def _are_standard_tables(inputs: Sequence[OpenedTable], kinds: Sequence[str | None]) -> bool:
    """Whether all tables have factaudit's columns, none of the wanted columns has another name, and
    all of them stand in the table of claims."""
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
    """Raise `InputError` if no table has a column that the mapping names, or if one table has two
    columns for one role."""
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
    """Read tables that have factaudit's columns. Reports columns whose names look like misspelt
    ones, and columns that may hold judgements."""
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
        report_unread_judgements([table, *verdicts], report_line)
    said = combine_annotations(people, people_names, table) if people else None
    if table is not None and said is not None:
        table = fill_labels_by_majority(table, said)
    return LoadedTables(table, judged, None, said)


def report_unread_judgements(tables: Sequence[pd.DataFrame], report_line: Report) -> None:
    """Report the columns that may hold judgements and are not read, because the verdicts stand in
    factaudit's columns, or in those of a published format."""
    own = {*OWN_COLUMNS["claims"], *OWN_COLUMNS["verdicts"]}
    further = {
        str(name): rows[name].head(MAX_PROFILED_ROWS).tolist()
        for rows in tables
        for name in rows
        if name not in own
    }
    if found := find_judged_columns(further):
        report_line(f"ignored   {', '.join(found)}: --evaluator or --people reads it")
