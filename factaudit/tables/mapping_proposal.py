"""The mapping that tables need: what their columns' names say for certain, and what only the user can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import pandas as pd

from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.list_columns import ask_about_lists
from factaudit.tables.meanings import (
    Scale,
    ask_about_label,
    ask_about_prediction,
    ask_about_shared_words,
    find_score_scale,
    is_column_reversed,
    map_label_words,
)
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.roles import (
    check_named_evaluators,
    leave_out_other_evaluators,
    place_columns,
    place_standard_columns,
)
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import normalise_vocabulary_words


@dataclass(frozen=True)
class MappingProposal:
    """The mapping of tables. ``questions``: what is open, the mapping holds the rest. ``notes``: what the tables lack,
    and which columns are not read. ``own_names``: columns that have our names already."""

    mapping: ColumnMapping
    questions: list[OpenQuestion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    own_names: list[str] = field(default_factory=list)

    @property
    def is_standard(self) -> bool:
        """The tables have our columns already, and nothing is to be mapped."""
        return self.mapping == ColumnMapping() and not self.questions


def propose_column_mapping(
    tables: Sequence[tuple[str, pd.DataFrame]],
    own_kinds: Sequence[str | None] = (),
    given: ColumnMapping | None = None,
) -> MappingProposal:
    """The mapping that tables (name, rows) need, around what the user gave.

    own_kinds: of each table what `classify_standard_tables` says; in a table of ours further columns have no role.
    """
    given = ColumnMapping() if given is None else given
    placed = _place_tables(tables, own_kinds, given)
    check_named_evaluators(placed, given.evaluator)
    labelled = [one.roles["label"] for one in placed if "label" in one.roles]
    labelled += [one.profiles[name] for one in placed for name in one.people]
    predicted, scored = _list_judgement_columns(placed, given)
    unclear = {name for one in placed for name in one.unclear}
    questions = [question for one in placed for question in one.questions]
    questions += [one for column in labelled if column.name not in unclear for one in ask_about_label(column, given)]
    questions += [one for column in predicted.values() for one in ask_about_prediction(column, column.name, given)]
    scales: dict[str, Scale] = {}
    for name, column in scored.items():
        scale, open_scales = find_score_scale(column, name, given)
        questions += open_scales
        scales |= {} if scale is None else {name: scale}
    worded = [one for one in (*labelled, *predicted.values()) if one.low is None and one.kind != "empty"]
    worded = [one for one in worded if given.scale.get(one.name, (0, 1)) in ((0, 1), (1, 0))]
    labels, words = _map_words(worded, given)
    if not questions:
        questions += ask_about_shared_words(labelled, [*predicted.values(), *scored.values()], given)
    evaluators = _build_evaluators(placed, given, scales)
    columns = _list_role_columns(placed, given)
    data = merge_mapping_data(
        given.model_dump(exclude_defaults=True, exclude={"evaluator", "people", "columns"}),
        {
            "columns": {ours: one[0] if len(one) == 1 else one for ours, one in columns.items() if one != [ours]},
            "labels": {**labels, **given.labels},
            "words": {**words, **given.words},
            "evaluators": {name: one.model_dump(exclude_defaults=True) for name, one in evaluators.items()},
            "annotators": {
                name: name for one in placed for name in one.people if name not in given.annotators.values()
            },
            "scale": {name: scale for name, scale in scales.items() if name not in evaluators} | given.scale,
            "people_evaluators": [name for one in placed for name in one.people_evaluators],
            "ignore": [*_list_own_names_left_out(placed), *(name for one in placed for name in one.left_out)],
        },
    )
    mapping = ColumnMapping.from_source({key: value for key, value in data.items() if value})
    own_names = [ours for ours, names in columns.items() if names == [ours]]
    return MappingProposal(mapping, questions, _describe_what_is_missing(placed, columns), own_names)


def _place_tables(
    tables: Sequence[tuple[str, pd.DataFrame]], own_kinds: Sequence[str | None], given: ColumnMapping
) -> list[TableRoles]:
    """What each table is taken for, tables of ours first: whether they have labels matters for the others."""
    several = len(tables) > 1
    kinds = [kind for _, kind in zip_longest(tables, own_kinds)]
    has_labels = any(kind == "claims" and "label" in rows for (_, rows), kind in zip(tables, kinds, strict=True))
    placed: list[TableRoles] = []
    for (name, rows), kind in sorted(zip(tables, kinds, strict=True), key=lambda one: one[1] is None):
        rows = rows.set_axis(rows.columns.map(str), axis=1)
        if kind is not None:
            placed.append(place_standard_columns(name, rows, kind, several))
        else:
            is_labelled = has_labels or any("label" in one.roles or one.people for one in placed)
            placed.append(place_columns(name, rows, given, several, is_labelled))
            if not is_labelled and not several:
                ask_about_lists(placed[-1], given.columns)
        leave_out_other_evaluators(placed[-1], given.evaluator)
    return placed


def _list_role_columns(placed: Sequence[TableRoles], given: ColumnMapping) -> dict[str, list[str]]:
    """Column of ours to theirs, in any of the tables."""
    found: dict[str, list[str]] = {}
    for one in placed:
        for ours, column in one.roles.items():
            if column.name not in found.setdefault(ours, []):
                found[ours].append(column.name)
    for ours, theirs in given.columns.items():
        found.setdefault(ours, [theirs] if isinstance(theirs, str) else theirs)
    return found


def _list_judgement_columns(
    placed: Sequence[TableRoles], given: ColumnMapping
) -> tuple[dict[str, ColumnProfile], dict[str, ColumnProfile]]:
    """The columns of evaluators: by their names those that hold words or 0 and 1, and by evaluator those of scores.

    Scores of a log whose scale it says itself are left out.
    """
    predicted: dict[str, ColumnProfile] = {}
    scored: dict[str, ColumnProfile] = {}
    for table in placed:
        pairs = {name: one.model_dump() for name, one in given.evaluators.items()} | table.evaluators
        said = {name for name, one in {**given.evaluators, **table.declared}.items() if one.scale is not None}
        for name, pair in pairs.items():
            if pair.get("prediction") in table.profiles:
                predicted[pair["prediction"]] = table.profiles[pair["prediction"]]
            if pair.get("score") in table.profiles and name not in said:
                scored[name] = table.profiles[pair["score"]]
        score, prediction = table.roles.get("score"), table.roles.get("prediction")
        predicted |= {} if prediction is None else {prediction.name: prediction}
        if score is not None:
            predicted |= {score.name: score} if score.low is None else {}
            scored |= _profile_scores_of_each_evaluator(table, score)
    return predicted, scored


def _profile_scores_of_each_evaluator(table: TableRoles, score: ColumnProfile) -> dict[str, ColumnProfile]:
    """The scores of each evaluator of a long table, as a column of its name."""
    evaluator = table.roles.get("evaluator")
    if evaluator is None:
        return {score.name: score}
    values, who = table.rows[score.name], table.rows[evaluator.name].astype("str")
    names = [one for one in table.list_values(evaluator) if one not in (*table.people_evaluators, *table.left_out)]
    return {name: profile_column_for_mapping(name, values[who == name]) for name in names}


def _build_evaluators(
    placed: Sequence[TableRoles], given: ColumnMapping, scales: Mapping[str, Scale]
) -> dict[str, EvaluatorColumnMapping]:
    found = {
        name: one if one.scale or name not in scales else one.model_copy(update={"scale": scales[name]})
        for name, one in given.evaluators.items()
    }
    for table in placed:
        for name, pair in table.evaluators.items():
            threshold = given.threshold.get(name, given.threshold.get(pair.get("score", "")))
            own = table.declared.get(name) or EvaluatorColumnMapping.model_validate(pair)
            found[name] = own.model_copy(update={"scale": scales.get(name, own.scale), "threshold": threshold})
    return found


def _map_words(
    columns: Sequence[ColumnProfile], given: ColumnMapping
) -> tuple[dict[str, int | None], dict[str, dict[str, int | None]]]:
    """What words mean in all columns, and in those whose name or direction turns them round."""
    labels: dict[str, int | None] = {}
    turned: dict[str, dict[str, int | None]] = {}
    said = {normalise_vocabulary_words(word) for word in given.labels}
    for column in columns:
        is_reversed = is_column_reversed(column.name, given)
        words = map_label_words(column, is_reversed)
        words = {word: value for word, value in words.items() if normalise_vocabulary_words(word) not in said}
        if is_reversed:
            turned[column.name] = words
        else:
            labels |= words
    plain = ("0", "1", "true", "false")
    return {word: one for word, one in labels.items() if normalise_vocabulary_words(word) not in plain}, turned


def _list_own_names_left_out(placed: Sequence[TableRoles]) -> list[str]:
    """Columns with a name of ours that no table reads: a mapping would read them by their names."""
    own = {*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator"}
    read = {name for one in placed for name in one.profiles if not one.is_free(name) and name not in one.ignored}
    return [*dict.fromkeys(name for one in placed if one.kind is None for name in one.profiles if name in own - read)]


def _describe_what_is_missing(placed: Sequence[TableRoles], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines about roles that no column has, and columns that have none."""
    notes = []
    has_people = any(one.people or one.people_evaluators for one in placed)
    if not has_people and not {"annotator", "label"} & {*columns} and "claim" in columns:
        notes.append("labels    none found; name their column with --label")
    if "claim" not in columns and "label" in columns:
        notes.append(
            "text      no column found, so word overlap and chunking are not audited; to name one, add --claim COLUMN"
        )
    if "dataset" not in columns and {"claim", "label"} & {*columns}:
        notes.append("dataset   the name of the file; if a column has the names of data sets, add --dataset COLUMN")
    unread = []
    for table in placed:
        where = f"{table.name}: " if len(placed) > 1 else ""
        for name in table.profiles:
            if name in table.ignored or table.is_free(name):
                why = table.ignored.get(name)
                unread.append(f"{where}{name}" + (f" ({why})" if why else ""))
        unread += [f"{name} ({why})" for name, why in table.left_out.items()]
    return [*notes, f"ignored   {', '.join(unread)}"] if unread else notes
