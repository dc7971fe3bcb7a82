"""The mapping that tables need: what is certain, and the questions that only the user can answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import zip_longest

import pandas as pd

from factaudit.tables import CLAIM_COLUMNS, VERDICT_COLUMNS
from factaudit.tables.column_mapping import ColumnMapping, EvaluatorColumnMapping
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.direction_checks import ask_whether_scores_are_of_support
from factaudit.tables.foreign_tables import read_foreign_table, read_standard_table
from factaudit.tables.judgement_columns import TableReading, has_numbers, take_threshold_beside_score
from factaudit.tables.judgement_scales import (
    Scale,
    ask_about_doubtful_directions,
    ask_grade_threshold_of_support,
    find_score_scale,
)
from factaudit.tables.judgement_words import (
    ask_about_blank_labels,
    ask_about_opposite_words,
    ask_meaning_of_judgement_words,
    is_judgement_column_reversed,
    map_label_words_to_binary,
)
from factaudit.tables.left_out_columns import ask_about_columns_left_out
from factaudit.tables.nested_lists import list_keys_of_nested_objects
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, merge_mapping_data
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
)


@dataclass(frozen=True)
class MappingProposal:
    """The mapping of tables. ``questions``: what is open, the mapping holds the rest. ``notes``: what the tables lack,
    and which columns nothing reads: why, or the column of ours that its name is near to."""

    mapping: ColumnMapping
    questions: list[OpenQuestion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_standard(self) -> bool:
        """The tables have our columns already, and nothing is to be mapped."""
        return self.mapping == ColumnMapping() and not self.questions


def propose_column_mapping(
    tables: Sequence[tuple[str, pd.DataFrame]],
    own_kinds: Sequence[str | None] = (),
    chosen_mapping: ColumnMapping | None = None,
) -> MappingProposal:
    """The mapping that tables (name, rows) need, around what the user chose.

    own_kinds: of each table what `classify_standard_tables` says; in a table of ours further columns have no role.
    """
    chosen = ColumnMapping() if chosen_mapping is None else chosen_mapping
    several = len(tables) > 1
    kinds = [kind for _, kind in zip_longest(tables, own_kinds)]
    has_own_labels = any(kind == "claims" and "label" in rows for (_, rows), kind in zip(tables, kinds, strict=True))
    readings: list[TableReading] = []
    for (name, rows), kind in sorted(zip(tables, kinds, strict=True), key=lambda one: one[1] is None):
        rows = rows.set_axis(rows.columns.map(str), axis=1)
        if kind is not None:
            readings.append(read_standard_table(name, rows, kind, several))
        else:
            labelled = has_own_labels or any("label" in one.roles or one.people for one in readings)
            readings.append(read_foreign_table(name, rows, chosen, several, labelled))
    for one in readings:
        if {"ground_truth", "judgement"} <= one.profiles.keys() and "ground_truth" not in chosen.scales:
            one.questions.append(_ask_about_direction_of_halueval_results(one))
    if not any(one.questions for one in readings):
        ask_about_columns_left_out(readings, chosen)
    return _build_proposal(readings, chosen, several)


def _ask_about_direction_of_halueval_results(reading: TableReading) -> OpenQuestion:
    """Asks what yes means in these two columns, and in others of the same words."""
    words = {*reading.profiles["ground_truth"].words, *reading.profiles["judgement"].words}
    alike = [name for name, one in reading.profiles.items() if one.kind == "binary" and {*one.words} <= words]
    names = [*dict.fromkeys(["ground_truth", "judgement", *(one for one in alike if not has_name_of_error(one))])]
    readings = [
        PossibleColumnReading(f"yes in {', '.join(names)} means {said}", {"scales": dict.fromkeys(names, scale)})
        for said, scale in (("a hallucination, as HaluEval's does", [1.0, 0.0]), ("attributable", [0.0, 1.0]))
    ]
    return OpenQuestion("'ground_truth' and 'judgement' are the columns of HaluEval's results", readings)


def _build_proposal(readings: Sequence[TableReading], chosen: ColumnMapping, has_several: bool) -> MappingProposal:
    data = chosen.model_dump(exclude_defaults=True, exclude={"auto", "wide", "people", "columns"})
    columns: dict[str, list[str]] = {}
    for one in readings:
        for ours, column in one.roles.items():
            if column.name not in columns.setdefault(ours, []):
                columns[ours].append(column.name)
    for ours, theirs in chosen.columns.items():
        columns.setdefault(ours, [theirs] if isinstance(theirs, str) else theirs)
    questions = [question for one in readings for question in one.questions]
    certain = [name for one in readings for pair in one.evaluators.values() for name in pair.values()]
    questions = [_add_unquestioned_evaluators_to_readings(question, certain) for question in questions]
    named = {*chosen.annotators.values()}
    people = {name: name for one in readings for name in one.people if name not in named}
    scales = _find_evaluator_score_scales(readings, chosen, questions)
    evaluators = _build_evaluator_mappings(readings, chosen, scales)
    labelled = [one.roles["label"] for one in readings if "label" in one.roles]
    labelled += [one.profiles[name] for one in readings for name in one.people]
    predicted = [one.roles["prediction"] for one in readings if "prediction" in one.roles]
    predicted += [
        one.profiles[p["prediction"]] for one in readings for p in one.evaluators.values() if "prediction" in p
    ]
    predicted += [one.roles["agreed"] for one in readings if "agreed" in one.roles]
    nested = [c.prediction for c in chosen.evaluators.values() if c.prediction]
    predicted += [one.profiles[name] for one in readings for name in nested if name in one.profiles]
    predicted += [
        one.roles["score"] for one in readings if "score" in one.roles and one.roles["score"].kind == "binary"
    ]
    labels, words = _map_judgement_words([*labelled, *predicted], chosen)
    if chosen.label_threshold is None and not questions:
        questions += ask_grade_threshold_of_support(
            [one for one in labelled if one.n_different or one.kind == "grade"], chosen.labels
        )
    if len(labelled) == 1 and not questions:
        questions += ask_about_blank_labels(labelled[0], chosen.labels)
    worded = [one for one in [*labelled, *predicted] if one.low is None and one.kind != "empty"]
    worded = [one for one in worded if one.kind == "binary" or not has_numbers(one)]
    if not questions:
        questions += ask_about_opposite_words(worded, chosen.labels, chosen.scales)
    if not questions and chosen.scale is None:
        scored = [
            one.profiles[pair["score"]] for one in readings for pair in one.evaluators.values() if "score" in pair
        ]
        questions += ask_about_doubtful_directions(labelled, [*predicted, *scored], chosen.scales)
    questions += ask_meaning_of_judgement_words(worded, chosen.labels) if not questions or chosen.labels else []
    for one in readings:
        for name, pair in _list_scores_with_predictions(one).items():
            score, said = pair["score"], words.get(pair["prediction"].name, {})
            scale = scales.get(name, scales.get(score.name))
            is_chosen = {name, score.name} & {*chosen.scales} or chosen.scale is not None
            if not is_chosen and (scale is not None or score.kind == "share"):
                meant = {"1": 1, "0": 0, "true": 1, "false": 0} | labels | said | chosen.labels
                questions += ask_whether_scores_are_of_support(name, pair, one.rows, meant, scale)
    renamed = {ours: names for ours, names in columns.items() if names != [ours]}
    left_out = [name for one in readings for name in one.label_evaluators]
    data = merge_mapping_data(
        data,
        {
            "columns": {ours: names[0] if len(names) == 1 else names for ours, names in renamed.items()},
            "labels": {**labels, **chosen.labels},
            "words": {**words, **chosen.words},
            "evaluators": {name: one.model_dump(exclude_defaults=True) for name, one in evaluators.items()},
            "annotators": {**people, **chosen.annotators},
            "scales": {**{k: v for k, v in scales.items() if k not in evaluators}, **chosen.scales},
            "people_evaluators": left_out,
            "unread": [
                *_list_schema_columns_left_unread(readings),
                *(name for one in readings for name in one.measures),
            ],
        },
    )
    read = {*people.values(), *(name for one in evaluators.values() for name in (one.score, one.prediction))}
    unread = [
        _describe_unread_column(one, column, has_several)
        for one in readings
        for column in one.profiles.values()
        if column.name not in read
    ]
    unread += [f"{name} ({why})" for one in readings for name, why in one.measures.items()]
    notes = _describe_missing_column_roles(columns, bool(people or named or left_out))
    if listed := [text for text in unread if text]:
        notes.append(f"unread  {', '.join(listed)}")
    return MappingProposal(ColumnMapping.from_source(data), questions, notes)


def _list_scores_with_predictions(reading: TableReading) -> dict[str, dict[str, ColumnProfile]]:
    """By evaluator the columns of those that have both scores and predictions of their own."""
    pairs: dict[str, dict[str, ColumnProfile]] = {}
    pairs |= {name: {kind: reading.profiles[one] for kind, one in p.items()} for name, p in reading.evaluators.items()}
    if "evaluator" not in reading.roles and "prediction" in reading.roles:
        named = {kind: one for kind, one in reading.roles.items() if kind in ("score", "prediction")}
        pairs[named["prediction"].name] = named
    return {name: pair for name, pair in pairs.items() if len(pair) == 2 and pair["score"].low is not None}


def _describe_missing_column_roles(columns: Mapping[str, Sequence[str]], has_people: bool) -> list[str]:
    notes = []
    if not has_people and not {"annotator", "label"} & set(columns) and "claim" in columns:
        notes.append("labels  none: no column was taken for people's labels (--map label=COLUMN)")
    if "claim" not in columns and "label" in columns:
        notes.append("claims  without text: no column was taken for it (--map claim=COLUMN)")
    if "dataset" not in columns and {"claim", "label"} & set(columns):
        notes.append("dataset  the file's name, since no column says it (--map dataset=COLUMN)")
    return notes


def _list_schema_columns_left_unread(readings: Sequence[TableReading]) -> list[str]:
    """Columns with a name of ours that no table reads: a mapping would read them by their names."""
    own = {*CLAIM_COLUMNS, *VERDICT_COLUMNS, "annotator"}
    read = {name for one in readings for name in one.profiles if not one.is_free(name) and name not in one.unread}
    foreign = [one for one in readings if one.kind is None]
    return [*dict.fromkeys(name for one in foreign for name in one.profiles if name in own - read)]


def _add_unquestioned_evaluators_to_readings(question: OpenQuestion, certain: Sequence[str]) -> OpenQuestion:
    """Readings that name one more evaluator name the certain ones too: only those named are read."""
    readings = []
    for one in question.readings:
        wide = one.mapping.get("wide")
        mapping = dict(one.mapping) if wide is None else {**one.mapping, "wide": [*dict.fromkeys([*certain, *wide])]}
        readings.append(PossibleColumnReading(one.description, mapping))
    return OpenQuestion(question.text, readings)


def _find_evaluator_score_scales(
    readings: Sequence[TableReading], chosen: ColumnMapping, questions: list[OpenQuestion]
) -> dict[str, Scale]:
    """The scale of each evaluator, in the long form too; a question where it is open."""
    found: dict[str, Scale] = {}
    for one in readings:
        profiles = {name: one.profiles[pair["score"]] for name, pair in one.evaluators.items() if "score" in pair}
        score = one.roles.get("score")
        if score is not None and score.kind != "binary":
            profiles |= _profile_mapped_scores_by_evaluator(one, score)
        for name, nested in chosen.evaluators.items():  # of lists, of which nobody said a scale
            if nested.scale is None and "[]" in (nested.score or "") and nested.score in one.profiles:
                profiles[name] = one.profiles[nested.score]
        for name, profile in profiles.items():
            said = chosen.scales.get(name, chosen.scales.get(profile.name, chosen.scale))
            scale, question = find_score_scale(profile, name, said)
            if scale is not None:
                found[name] = scale
            if question is not None:
                questions.append(question)
    return found


def _profile_mapped_scores_by_evaluator(reading: TableReading, score: ColumnProfile) -> dict[str, ColumnProfile]:
    """The scores of each evaluator of a long table, as a column of its name."""
    evaluator = reading.roles.get("evaluator")
    if evaluator is None:
        return {score.name: score}
    values, names = reading.rows[score.name], reading.rows[evaluator.name]
    found = {}
    for name in dict.fromkeys(str(one) for one in names if not is_missing_value(one)):
        if name not in (*reading.label_evaluators, *reading.measures):
            found[name] = profile_column_for_mapping(name, values[names.astype("str") == name])
    return found


def _build_evaluator_mappings(
    readings: Sequence[TableReading], chosen: ColumnMapping, scales: Mapping[str, Scale]
) -> dict[str, EvaluatorColumnMapping]:
    found = {
        name: one if one.scale or name not in scales else one.model_copy(update={"scale": scales[name]})
        for name, one in chosen.evaluators.items()
    }
    for one in readings:
        for name, pair in one.evaluators.items():
            threshold = chosen.thresholds.get(name, chosen.thresholds.get(pair.get("score", "")))
            if threshold is None and "prediction" not in pair and chosen.threshold is None:
                threshold = take_threshold_beside_score(one, name)
            found[name] = EvaluatorColumnMapping(**pair, scale=scales.get(name), threshold=threshold)
    return found


def _map_judgement_words(
    columns: Sequence[ColumnProfile], chosen: ColumnMapping
) -> tuple[dict[str, int | None], dict[str, dict[str, int | None]]]:
    """What words mean in all columns, and in those whose name or scale turns them round."""
    labels: dict[str, int | None] = {}
    turned: dict[str, dict[str, int | None]] = {}
    said = {normalise_vocabulary_words(word) for word in chosen.labels}
    for column in columns:
        if column.low is not None or not column.words:
            continue
        reverse = is_judgement_column_reversed(column.name, chosen.scales)
        words = {
            w: v
            for w, v in map_label_words_to_binary(column, reverse).items()
            if normalise_vocabulary_words(w) not in said
        }
        if reverse:
            turned[column.name] = words
        else:
            labels |= words
    plain = {
        word: value
        for word, value in labels.items()
        if normalise_vocabulary_words(word) not in ("0", "1", "true", "false")
    }
    return plain, turned


def find_nearest_schema_column(column_name: str) -> str | None:
    """The column of ours whose known names a column's is nearest to; None where none is near."""
    if near := get_close_matches(normalise_vocabulary_words(column_name), [*COLUMN_NAMES], n=1, cutoff=0.75):
        return near[0]
    known = {one: ours for ours, names in COLUMN_NAMES.items() for one in names}
    near = get_close_matches(normalise_vocabulary_words(column_name), list(known), n=1, cutoff=0.8)
    return known[near[0]] if near else None


def _describe_unread_column(reading: TableReading, column: ColumnProfile, has_several: bool) -> str | None:
    name = column.name
    if not reading.is_free(name) and name not in reading.unread:
        return None
    where = f"{reading.name}: " if has_several else ""
    near = find_nearest_schema_column(name)
    near = "doc_id" if near == "doc" and column.kind != "text" else near  # what is no text names documents
    if name not in reading.unread and (keys := [*filter(None, list_keys_of_nested_objects(reading.rows[name]))]):
        return f"{where}{name} (a list of objects: --map label={name}[].{_choose_key(keys)}, or score=)"
    reason = reading.unread.get(name) or (f"did you mean {near!r}?" if near and near not in reading.roles else "")
    return f"{where}{name}" + (f" ({reason})" if reason else "")


def _choose_key(keys: Sequence[str]) -> str:
    """Of the keys of objects the first that is called no other quality than support, nor a number of another kind."""
    others = ("qualities", "measures")
    return next((one for one in keys if not any(has_vocabulary_word_in_column_name(k, one) for k in others)), keys[0])
