"""Proposes how to read tables: what the names of their columns say for certain, and the questions
that only the user can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import pandas as pd

from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile, profile_column
from factaudit.tables.meanings import (
    Scale,
    ask_about_labels,
    ask_about_shared_words,
    group_by_scale,
    is_column_reversed,
    map_label_words,
    read_values,
)
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.role_questions import ask_about_columns, refuse_lists_of_judgements
from factaudit.tables.roles import (
    TableRoles,
    check_named_evaluators,
    leave_out_other_evaluators,
    place_columns,
    place_standard_columns,
)
from factaudit.tables.schema import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.vocabulary import normalise_words

#: Words that need no explanation.
_PLAIN_WORDS = ("0", "1", "true", "false")


@dataclass(frozen=True)
class MappingProposal:
    """How tables are read.

    placed: the roles of the columns of each table. questions: what is open; the mapping holds the
    rest. notes: what the tables lack, and which columns are ignored. own_names: columns in users'
    tables that already have factaudit's names. meanings: what the words in labels and predictions
    mean.
    """

    mapping: ColumnMapping
    placed: list[TableRoles]
    questions: list[OpenQuestion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    own_names: list[str] = field(default_factory=list)
    meanings: list[str] = field(default_factory=list)

    @property
    def is_standard(self) -> bool:
        """Whether the tables can be read as they are."""
        return self.mapping == ColumnMapping() and not self.questions and not self.meanings


def propose_column_mapping(
    tables: Sequence[tuple[str, pd.DataFrame]],
    own_kinds: Sequence[str | None] = (),
    given: ColumnMapping | None = None,
) -> MappingProposal:
    """Propose a mapping for tables (name, rows) that includes what the user said (``given``).

    own_kinds: the result of `classify_standard_tables` for each table. In tables with factaudit's
    columns, further columns have no role.
    """
    given = ColumnMapping() if given is None else given
    placed = _place_tables(tables, own_kinds, given)
    check_named_evaluators(placed, given.evaluator)
    questions = [question for one in placed for question in one.questions]
    labelled = [
        one.columns[name]
        for one in placed
        for name in (*one.people, one.roles.get("label"))
        if name
    ]
    unclear = {name for one in placed for name in one.unclear}
    for group in group_by_scale(labelled):
        if group[0].name not in unclear:
            questions += ask_about_labels(group, given)
    predicted, scored = _list_judgement_columns(placed, given)
    scales: dict[str, Scale] = {}
    numbers = {name: one for name, one in scored.items() if one.low is not None}
    for name, column in [*((one.name, one) for one in predicted), *numbers.items()]:
        scale, more = read_values(column, name, given)
        questions += more
        if name in scored and column.low is None and is_column_reversed(column.name, given):
            scale = (1.0, 0.0)  # 0 and 1 of an error
        scales |= {} if scale is None or name not in scored else {name: scale}
    questions = questions or ask_about_shared_words(labelled, [*predicted, *scored.values()], given)
    evaluators = dict(given.evaluators)
    for one in placed:
        evaluators |= one.evaluators
    columns = _list_role_columns(placed, given)
    data = merge_mapping_data(
        given.model_dump(
            exclude_defaults=True, exclude={"evaluator", "people", "columns", "evaluators"}
        ),
        {
            "columns": {
                ours: one[0] if len(one) == 1 else one
                for ours, one in columns.items()
                if one != [ours]
            },
            "evaluators": {
                name: (
                    one.model_dump(exclude_defaults=True)
                    | ({"scale": scales[name]} if name in scales else {})
                    | {
                        "threshold": given.threshold.get(
                            name, given.threshold.get(str(one.score), one.threshold)
                        )
                    }
                )
                for name, one in evaluators.items()
            },
            "people": [name for one in placed for name in (*one.people, *one.people_evaluators)],
            "scale": (
                {name: scale for name, scale in scales.items() if name not in evaluators}
                | given.scale
            ),
            "ignore": [
                *_list_own_names_left_out(placed),
                *(name for one in placed for name in one.left_out),
            ],
        },
    )
    mapping = ColumnMapping.from_source({key: value for key, value in data.items() if value})
    of_users = {ours for one in placed if one.kind is None for ours in one.roles}
    own_names = [ours for ours, names in columns.items() if names == [ours] and ours in of_users]
    notes = _describe_what_is_missing(placed, columns)
    meanings = _describe_meanings([*labelled, *predicted], given)
    return MappingProposal(mapping, placed, questions, notes, own_names, meanings)


def _place_tables(
    tables: Sequence[tuple[str, pd.DataFrame]],
    own_kinds: Sequence[str | None],
    given: ColumnMapping,
) -> list[TableRoles]:
    """The roles of the columns of each table. Tables with factaudit's columns come first, because
    other tables are read differently if there are labels."""
    several = len(tables) > 1
    kinds = [kind for _, kind in zip_longest(tables, own_kinds)]
    has_labels = any(
        kind == "claims" and "label" in rows for (_, rows), kind in zip(tables, kinds, strict=True)
    )
    placed: dict[int, TableRoles] = {}
    for at in sorted(range(len(tables)), key=lambda at: kinds[at] is None):
        (name, rows), kind = tables[at], kinds[at]
        rows = rows.set_axis(rows.columns.map(str), axis=1)
        if kind is not None:
            table = place_standard_columns(name, rows, kind, several, given)
        else:
            is_labelled = has_labels or any(
                "label" in one.roles or one.people for one in placed.values()
            )
            table = place_columns(name, rows, given, several, is_labelled)
            ask_about_columns(table, several, is_labelled)
            if not (table.is_labelled or is_labelled) or not (table.is_judged or several):
                refuse_lists_of_judgements(table)
        leave_out_other_evaluators(table, given.evaluator)
        placed[at] = table
    return [placed[at] for at in range(len(tables))]


def _list_role_columns(placed: Sequence[TableRoles], given: ColumnMapping) -> dict[str, list[str]]:
    """factaudit's name of each column to its names in the tables."""
    found: dict[str, list[str]] = {}
    for ours, name in [item for one in placed for item in one.roles.items()]:
        found.setdefault(ours, [])
        found[ours] += [] if name in found[ours] else [name]
    for ours, theirs in given.columns.items():
        found.setdefault(ours, [theirs] if isinstance(theirs, str) else theirs)
    return found


def _list_judgement_columns(
    placed: Sequence[TableRoles], given: ColumnMapping
) -> tuple[list[ColumnProfile], dict[str, ColumnProfile]]:
    """The columns in which evaluators judge: those that hold words, or 0 and 1; and those of
    scores, by evaluator.

    Scores on a known scale, from a log or a mapping, are left out.
    """
    predicted: list[ColumnProfile] = []
    scored: dict[str, ColumnProfile] = {}
    for table in placed:
        for name, one in {**given.evaluators, **table.evaluators}.items():
            predicted += [table.columns[one.prediction]] if one.prediction in table.columns else []
            if one.score in table.columns and one.scale is None:
                scored[name] = table.columns[one.score]
        score, prediction = (table.roles.get(ours) for ours in ("score", "prediction"))
        predicted += [table.columns[prediction]] if prediction is not None else []
        if score is not None and table.columns[score].low is None:
            predicted.append(table.columns[score])
        if score is not None and "evaluator" not in table.roles:
            scored[score] = table.columns[score]
        elif score is not None:
            values, who = table.rows[score], table.rows[table.roles["evaluator"]].astype("str")
            left_out = (*table.people_evaluators, *table.left_out)
            for name in table.list_values(table.roles["evaluator"]):
                if name not in left_out:
                    scored[name] = profile_column(name, values[who == name])
    return predicted, scored


def _describe_meanings(columns: Sequence[ColumnProfile], given: ColumnMapping) -> list[str]:
    """What the words in columns of labels and predictions mean. 0, 1, true and false need an
    explanation only where they mean the opposite, and then the column is named."""
    said = {normalise_words(word) for word in given.labels}
    found: dict[str, int | None] = {}
    turned: list[str] = []
    for column in columns:
        is_scaled = given.scale.get(column.name, (0, 1)) not in ((0, 1), (1, 0))
        if column.low is not None or is_scaled:
            continue
        is_reversed = is_column_reversed(column.name, given)
        meant = {
            word: value
            for word, value in map_label_words(column.words, is_reversed).items()
            if normalise_words(word) not in said
        }
        if is_reversed:
            listed = [
                f"{word} {'supported' if value else 'not supported'}"
                for word, value in meant.items()
            ]
            turned += [f"{column.name} ({', '.join(listed)})"] if listed else []
        else:
            found |= {
                word: value
                for word, value in meant.items()
                if normalise_words(word) not in _PLAIN_WORDS
            }
    meanings = [
        f"{word or 'blank'} = {'nothing' if value is None else value}"
        for word, value in {**found, **given.labels}.items()
    ]
    return [*meanings, *turned]


def _list_own_names_left_out(placed: Sequence[TableRoles]) -> list[str]:
    """Columns with factaudit's names that no table reads. They are ignored explicitly, because a
    mapping would read them by their names."""
    own = {*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator"}
    unread = [{*one.list_free_columns(), *one.ignored} for one in placed]
    read = {
        name
        for one, left in zip(placed, unread, strict=True)
        for name in one.columns
        if name not in left
    }
    return [
        *dict.fromkeys(
            name for one in placed if one.kind is None for name in one.columns if name in own - read
        )
    ]


def _describe_what_is_missing(
    placed: Sequence[TableRoles], columns: Mapping[str, Sequence[str]]
) -> list[str]:
    """Lines about roles without a column, and about columns without a role."""
    notes = []
    has_people = any(one.people or one.people_evaluators for one in placed)
    if not has_people and not {"annotator", "label"} & {*columns} and "claim" in columns:
        notes.append("labels    none found; name their column with --label")
    if "claim" not in columns and "label" in columns:
        notes.append(
            "text      no column found, so word overlap and chunking are not audited; to name one,"
            " add --claim COLUMN"
        )
    if "dataset" not in columns and {"claim", "label"} & {*columns}:
        notes.append(
            "dataset   the name of the file; if a column has the names of data sets, add --dataset"
            " COLUMN"
        )
    unread = []
    for table in placed:
        where = f"{table.name}: " if len(placed) > 1 else ""
        free = {
            name: table.ignored.get(name) for name in (*table.list_free_columns(), *table.ignored)
        }
        left = [(f"{where}{name}", free[name]) for name in table.columns if name in free] + [
            *table.left_out.items()
        ]
        unread += [name + (f" ({why})" if why else "") for name, why in left]
    return [*notes, f"ignored   {', '.join(unread)}"] if unread else notes
