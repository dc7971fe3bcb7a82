"""The mapping that tables need: what is certain, and the questions that only the user can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import zip_longest
from typing import Any

import pandas as pd

from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.column_kinds import REASONS
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.direction_checks import ask_whether_scores_are_of_support
from factaudit.tables.list_columns import ask_about_lists
from factaudit.tables.meanings import (
    Scale,
    ask_about_blank_labels,
    ask_about_direction,
    ask_about_grades,
    ask_about_shared_words,
    ask_about_words,
    find_score_scale,
    is_column_reversed,
    map_label_words,
)
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.questions import OpenQuestion, PossibleReading, merge_mapping_data
from factaudit.tables.roles import (
    check_named_evaluators,
    leave_out_other_evaluators,
    place_columns,
    place_standard_columns,
)
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import COLUMN_NAMES, normalise_vocabulary_words


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
    several = len(tables) > 1
    kinds = [kind for _, kind in zip_longest(tables, own_kinds)]
    has_labels = any(kind == "claims" and "label" in rows for (_, rows), kind in zip(tables, kinds, strict=True))
    placed: list[TableRoles] = []
    for (name, rows), kind in sorted(zip(tables, kinds, strict=True), key=lambda one: one[1] is None):
        rows = rows.set_axis(rows.columns.map(str), axis=1)
        if kind is not None:
            placed.append(place_standard_columns(name, rows, kind, several))
            leave_out_other_evaluators(placed[-1], given.evaluator)
            continue
        is_labelled = has_labels or any("label" in one.roles or one.people for one in placed)
        table = place_columns(name, rows, given, several, is_labelled)
        if not is_labelled and not several:
            ask_about_lists(table, given.columns)
        leave_out_other_evaluators(table, given.evaluator)
        placed.append(table)
    check_named_evaluators(placed, given.evaluator)
    columns = _list_role_columns(placed, given)
    certain = [
        column
        for one in placed
        for name, pair in one.evaluators.items()
        for column in ([name] if name in one.declared else pair.values())
    ]
    questions = [_name_certain_evaluators(question, certain) for one in placed for question in one.questions]
    scales: dict[str, Scale] = {}
    if not questions:
        scales, questions = _find_scales(placed, given)
    evaluators = _build_evaluators(placed, given, scales)
    labelled = [one.roles["label"] for one in placed if "label" in one.roles]
    labelled += [one.profiles[name] for one in placed for name in one.people]
    predicted = _list_prediction_columns(placed, given)
    worded = [one for one in (*labelled, *predicted) if one.low is None and one.kind != "empty"]
    worded = [one for one in worded if given.scale.get(one.name, (0, 1)) in ((0, 1), (1, 0))]
    if not questions:
        questions += [one for column in labelled for one in ask_about_grades(column, given)]
        questions += [one for column in labelled for one in ask_about_blank_labels(column, given)]
        questions += ask_about_shared_words(labelled, [*predicted, *_list_score_columns(placed)], given)
        for column in (*labelled, *predicted):
            questions += ask_about_direction(column, column.name, given)
        questions += ask_about_words(worded, given)
    labels, words = _map_words(worded, given)
    if not questions:
        questions += _ask_about_scores_beside_predictions(placed, given, scales, labels | given.labels, words)
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
    return MappingProposal(mapping, questions, _describe_what_is_missing(placed, columns, several), own_names)


def _name_certain_evaluators(question: OpenQuestion, certain: Sequence[str]) -> OpenQuestion:
    """Readings that name an evaluator name the certain ones, too: only those that are named are read."""
    readings = []
    for one in question.readings:
        mapping = dict(one.mapping)
        if "evaluator" in mapping:
            others = {*mapping.get("ignore", ()), *mapping.get("columns", {}).values()} - {*mapping["evaluator"]}
            own = [name for name in certain if name not in others]
            mapping["evaluator"] = [*dict.fromkeys([*own, *mapping["evaluator"]])]
        readings.append(PossibleReading(one.description, mapping))
    return OpenQuestion(question.text, readings)


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


def _list_prediction_columns(placed: Sequence[TableRoles], given: ColumnMapping) -> list[ColumnProfile]:
    """The columns that hold words or 0 and 1 of evaluators."""
    found = [one.roles[ours] for one in placed for ours in ("prediction",) if ours in one.roles]
    found += [one.profiles[p["prediction"]] for one in placed for p in one.evaluators.values() if "prediction" in p]
    own = [pair.prediction for pair in given.evaluators.values() if pair.prediction]
    found += [one.profiles[name] for one in placed for name in own if name in one.profiles]
    return found + [one.roles["score"] for one in placed if "score" in one.roles and one.roles["score"].low is None]


def _list_score_columns(placed: Sequence[TableRoles]) -> list[ColumnProfile]:
    return [one.profiles[pair["score"]] for one in placed for pair in one.evaluators.values() if "score" in pair]


def _find_scales(placed: Sequence[TableRoles], given: ColumnMapping) -> tuple[dict[str, Scale], list[OpenQuestion]]:
    """The scale of each evaluator, in the long form too; and the questions where it is open."""
    found: dict[str, Scale] = {}
    questions: list[OpenQuestion] = []
    for table in placed:
        scored = {name: pair["score"] for name, pair in table.evaluators.items() if "score" in pair}
        said = {name for name, one in table.declared.items() if one.scale is not None}
        columns = {name: table.profiles[column] for name, column in scored.items() if name not in said}
        if "score" in table.roles:
            columns |= _profile_scores_of_each_evaluator(table, table.roles["score"])
        for name, pair in given.evaluators.items():
            if pair.scale is None and pair.score in table.profiles:
                columns[name] = table.profiles[pair.score]
        for name, column in columns.items():
            directions = ask_about_direction(column, name, given)
            scale, open_scales = find_score_scale(column, name, given)
            questions += open_scales or directions
            if scale is not None:
                found[name] = scale
    return found, questions


def _profile_scores_of_each_evaluator(table: TableRoles, score: ColumnProfile) -> dict[str, ColumnProfile]:
    """The scores of each evaluator of a long table, as a column of its name."""
    evaluator = table.roles.get("evaluator")
    if evaluator is None:
        return {score.name: score}
    values, names = table.rows[score.name], table.rows[evaluator.name]
    left_out = {*table.people_evaluators, *table.left_out}
    return {
        name: profile_column_for_mapping(name, values[names.astype("str") == name])
        for name in dict.fromkeys(str(one) for one in names if not is_missing_value(one))
        if name not in left_out
    }


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
        reverse = is_column_reversed(column.name, given)
        words = map_label_words(column, reverse)
        words = {word: value for word, value in words.items() if normalise_vocabulary_words(word) not in said}
        if reverse:
            turned[column.name] = words
        else:
            labels |= words
    plain = ("0", "1", "true", "false")
    labels = {word: value for word, value in labels.items() if normalise_vocabulary_words(word) not in plain}
    return labels, turned


def _ask_about_scores_beside_predictions(
    placed: Sequence[TableRoles],
    given: ColumnMapping,
    scales: Mapping[str, Scale],
    labels: Mapping[str, int | None],
    words: Mapping[str, Mapping[str, int | None]],
) -> list[OpenQuestion]:
    """Asks, where an evaluator has predictions beside its scores and they do not follow from these, what the scores
    are."""
    questions = []
    for table in placed:
        pairs: dict[str, dict[str, Any]] = dict(table.evaluators)
        if "evaluator" not in table.roles and {"score", "prediction"} <= {*table.roles}:
            pairs[table.roles["prediction"].name] = {ours: table.roles[ours].name for ours in ("score", "prediction")}
        for name, pair in pairs.items():
            if len(pair) < 2 or {name, pair["score"]} & {*given.scale, *given.high_is_error}:
                continue
            columns = {kind: table.profiles[column] for kind, column in pair.items()}
            meant = {"1": 1, "0": 0, "true": 1, "false": 0, **labels, **words.get(pair["prediction"], {})}
            questions += ask_whether_scores_are_of_support(name, columns, table.rows, meant, scales.get(name))
    return questions


def _list_own_names_left_out(placed: Sequence[TableRoles]) -> list[str]:
    """Columns with a name of ours that no table reads: a mapping would read them by their names."""
    own = {*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator"}
    read = {name for one in placed for name in one.profiles if not one.is_free(name) and name not in one.ignored}
    return [*dict.fromkeys(name for one in placed if one.kind is None for name in one.profiles if name in own - read)]


def _describe_what_is_missing(
    placed: Sequence[TableRoles], columns: Mapping[str, Sequence[str]], several: bool
) -> list[str]:
    """Lines about roles that no column has, and columns that have none."""
    notes = []
    has_people = any(one.people or one.people_evaluators for one in placed)
    if not has_people and not {"annotator", "label"} & set(columns) and "claim" in columns:
        notes.append("labels  none found; name their column with --label")
    if "claim" not in columns and "label" in columns:
        notes.append(
            "text  no column found, so word overlap and chunking are not audited; to name one, add --claim COLUMN"
        )
    if "dataset" not in columns and {"claim", "label"} & set(columns):
        notes.append("dataset  the name of the file; if a column holds it, add --dataset COLUMN")
    unread = []
    for table in placed:
        where = f"{table.name}: " if several else ""
        for name in table.profiles:
            if name in table.ignored or table.is_free(name):
                near = find_nearest_schema_column(name)
                is_plain = table.ignored.get(name) in (None, REASONS["measure"])
                hint = f"did you mean {near!r}?" if near and near not in (name, *table.roles) and is_plain else ""
                why = hint or table.ignored.get(name, "")
                unread.append(f"{where}{name}" + (f" ({why})" if why else ""))
        unread += [f"{name} ({why})" for name, why in table.left_out.items()]
    return [*notes, f"ignored  {', '.join(unread)}"] if unread else notes


def find_nearest_schema_column(column_name: str) -> str | None:
    """The column of ours whose known names a column's is nearest to; None where none is near."""
    if near := get_close_matches(normalise_vocabulary_words(column_name), [*COLUMN_NAMES], n=1, cutoff=0.75):
        return near[0]
    known = {one: ours for ours, names in COLUMN_NAMES.items() for one in names}
    near = get_close_matches(normalise_vocabulary_words(column_name), list(known), n=1, cutoff=0.8)
    return known[near[0]] if near else None
