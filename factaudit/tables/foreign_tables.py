"""One table of a user's read: each column's role, with a reason, or a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from factaudit.tables.agreement_columns import ask_about_acceptance_of_verdicts, find_votes_behind_labels
from factaudit.tables.annotator_columns import (
    ask_about_annotators_that_judge,
    leave_out_answers_of_annotators,
    tell_people_from_judges,
)
from factaudit.tables.column_mapping import ColumnMapping, match_column_patterns
from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.column_roles import (
    LONG_FORM_ROLES,
    ask_whether_system_column_has_verdicts,
    ask_which_column_is_answer,
    ask_which_column_is_document,
    demote_repeated_claim_ids_to_doc_ids,
    explains_another_column,
    find_column_naming_the_evaluator,
    find_column_roles,
    find_repeated_claim_id_column,
    holds_names_of_people,
    is_said_by_profession,
    list_searchable_forms_of_column_name,
)
from factaudit.tables.judgement_columns import (
    TableReading,
    choose_support_probability_column,
    classify_judgement_column_by_name,
    explain_unread_number_columns,
    find_measure_named_evaluators,
    is_name_of_person,
)
from factaudit.tables.label_columns import (
    ask_about_judgement_of_own_answer,
    ask_about_scores_equal_to_labels,
    classify_what_annotators_said,
    find_annotator_label_columns,
    find_label_column,
)
from factaudit.tables.left_out_columns import ask_about_unknown_columns
from factaudit.tables.list_columns import ask_about_lists
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.score_verdict_pairs import (
    ask_about_constant_judge_columns,
    ask_about_repeated_claims,
    join_nameless_score_and_verdict,
    leave_out_numbers_against,
    pair_score_and_verdict_columns,
)
from factaudit.tables.standard_columns import OWN_COLUMNS, WANTED_CLAIM_COLUMNS, list_missing_standard_columns
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: More different values than this are no words that a label could be made of.
_MAX_LABEL_WORDS = 12


def read_standard_table(name: str, rows: pd.DataFrame, kind: str, has_others: bool) -> TableReading:
    """A table of ours: only its columns, and those that stand for one that it lacks, play a role.

    Beside others a table of verdicts may say what its claims do not: their labels, documents or systems.
    """
    own = (*OWN_COLUMNS[kind], *(WANTED_CLAIM_COLUMNS if kind == "verdicts" and has_others else ()))
    names = [str(column) for column in rows.columns]
    missing = list_missing_standard_columns(kind, names, has_others)
    profiles = {one: profile_column_for_mapping(one, rows[one]) for one in names if one in {*own, *missing.values()}}
    reading = TableReading(name, rows, profiles, kind=kind)
    reading.roles = {ours: profiles[ours] for ours in own if ours in profiles}
    reading.roles |= {ours: profiles[theirs] for ours, theirs in missing.items()}
    return reading


def read_foreign_table(
    name: str, rows: pd.DataFrame, mapping: ColumnMapping, has_others: bool, labels_elsewhere: bool = False
) -> TableReading:
    """A table of a user's. What the mapping says is not asked again.

    labels_elsewhere: another table has people's labels for certain.
    """
    profiles = {str(column): profile_column_for_mapping(str(column), rows[column]) for column in rows.columns}
    reading = TableReading(name, rows, profiles)
    reading.unread = dict.fromkeys((one for one in mapping.unread if one in profiles), "as you said")
    fixed = {
        ours: next((one for one in ([theirs] if isinstance(theirs, str) else theirs) if one in profiles), "")
        for ours, theirs in mapping.columns.items()
    }
    fixed = {ours: theirs for ours, theirs in fixed.items() if theirs}
    people = [column for column in mapping.annotators.values() if column in profiles]
    people += [one for one in match_column_patterns(profiles, mapping.people) if one not in people]
    wide = [one for one in match_column_patterns(profiles, mapping.wide) if one not in mapping.unread]
    own = {c for one in mapping.evaluators.values() for c in (one.score, one.prediction) if c in profiles}
    reading.people = people
    taken = {*people, *wide, *own, *reading.unread}
    reading.roles = find_column_roles(list(profiles.values()), fixed, taken)
    if mapping.people and "evaluator" in reading.roles:
        said = [*dict.fromkeys(map(str, rows[reading.roles["evaluator"].name].dropna()))]
        reading.label_evaluators = match_column_patterns(said, mapping.people)
    reading.questions += [] if "claim" in fixed else ask_which_column_is_answer(list(profiles.values()), reading.roles)
    reading.questions += [] if "doc" in fixed else ask_which_column_is_document(list(profiles.values()), reading.roles)
    reading.questions += [] if "system" in fixed else ask_whether_system_column_has_verdicts(reading.roles)
    chosen = bool(mapping.wide or mapping.evaluators)
    classes = _classify_columns(reading, taken, has_others)
    if not chosen:
        _find_long_form_judgements(reading, classes, fixed, has_others, labels_elsewhere)
    if not people and "annotator" not in reading.roles:
        find_annotator_label_columns(reading, classes)
    if "annotator" in reading.roles and "label" not in fixed:
        _find_annotator_labels(reading, classes)
    if not {"annotator", "evaluator"} & {*fixed} and not reading.label_evaluators:
        tell_people_from_judges(reading)
    if {"annotator", "response_id", "claim"} <= {*reading.roles} and "response_id" not in fixed:
        leave_out_answers_of_annotators(reading)
    if "annotator" in reading.roles and "annotator" not in fixed:
        ask_about_annotators_that_judge(reading)
    is_asked = ask_about_acceptance_of_verdicts(reading, classes)
    if "label" not in reading.roles and not is_asked:
        find_label_column(reading, classes, labels_elsewhere or bool(reading.label_evaluators))
    _find_evaluators_of_wide_table(reading, classes, mapping, wide, bool(labels_elsewhere))
    if not chosen and not {"score", "prediction"} & set(fixed):
        ask_about_scores_equal_to_labels(reading)
    if not labels_elsewhere and not has_others:
        ask_about_lists(reading, mapping.columns)
    explain_unread_number_columns(reading, classes)
    is_long = "evaluator" in reading.roles or {"score", "prediction"} & set(reading.roles)
    if not is_long:
        reading.roles = {ours: one for ours, one in reading.roles.items() if ours not in LONG_FORM_ROLES}
        if "annotator" not in reading.roles and (reading.evaluators or not has_others):
            demote_repeated_claim_ids_to_doc_ids(rows, reading.roles)
        if not has_others:
            ask_about_repeated_claims(reading)
    return reading


def _classify_columns(reading: TableReading, taken: set[str], has_others: bool) -> dict[str, str]:
    """The class of each column that could hold judgements and has no other role."""
    found = {}
    for column in reading.list_free_columns():
        if column.name in taken or holds_names_of_people(column) or explains_another_column(column, reading.profiles):
            continue
        if column.n_different < 2 and normalise_vocabulary_words(column.name) in COLUMN_NAMES["annotator"]:
            continue  # one person, by a number
        if column.kind in ("binary", "share", "grade", "number") or _has_label_words(column):
            found[column.name] = classify_judgement_column_by_name(column)
    said = [{*reading.profiles[name].words} for name, kind in found.items() if kind in ("judge", "people", "label")]
    for column in reading.list_free_columns():  # unknown words, but those of a judge
        if column.kind == "name" and column.name not in {*found, *taken} and {*column.words} in said:
            found[column.name] = "unknown"
    # `responses.ada.verdict` and `responses.eve.verdict`: what tells them apart is no word for a judge or a person.
    endings = [name.rpartition(".")[2] for name, kind in found.items() if kind in ("plain", "label") and "." in name]
    for name, kind in found.items():
        if kind in ("plain", "label") and endings.count(name.rpartition(".")[2]) > 1:
            found[name] = "unknown"
    if "judge" in found.values():
        unknown = [reading.profiles[name] for name, kind in found.items() if kind == "unknown"]
        found |= {one.name: "people" for one in unknown if is_said_by_profession(one)}
    return found | classify_what_annotators_said(reading, found, has_others)


def _has_label_words(column: ColumnProfile) -> bool:
    """Whether a column of few words that are not all known is called a label or a judge: "Consistent", "Unwanted"."""
    if column.kind not in ("name", "text", "id") or column.is_time:
        return False
    if has_vocabulary_word_in_column_name("reasons", column.name):
        return False
    if column.is_half_numbers and any(
        has_vocabulary_word_in_column_name(kind, column.name) for kind in ("people", "judges")
    ):
        return not has_vocabulary_word_in_column_name("measures", column.name)
    if not column.words:
        return False
    known = any(parse_label_word(word) is not None for word in column.words)
    known = known or (has_name_of_error(column.name) and "none" in map(str.lower, column.words))
    marks = column.n_different == 1 and column.n_missing > 0  # an "x" for some claims
    if not known and (
        (column.n_different < 2 and not marks) or {"truth", "gold"} & {*normalise_vocabulary_words(column.name).split()}
    ):
        return False
    called = any(has_vocabulary_word_in_column_name(kind, column.name) for kind in ("people", "judges", "labels"))
    called = called or normalise_vocabulary_words(column.name) in (*COLUMN_NAMES["label"], "verdict", "prediction")
    is_error = has_name_of_error(column.name)
    if is_error and not known and column.n_missing and not marks:
        return False  # of which kind an error is, where there is one
    called = called or (is_error and (known or 1 < column.n_different <= 3))  # an error's kind, or none
    short = column.mean_length <= 30 and len(column.words) <= _MAX_LABEL_WORDS
    repeated = column.n_different < 0.6 * _count_present(column) or known
    return short and called and repeated and not has_vocabulary_word_in_column_name("measures", column.name)


def _count_present(column: ColumnProfile) -> int:
    return max(1, column.n_present)


def _find_long_form_judgements(
    reading: TableReading,
    classes: dict[str, str],
    fixed: Mapping[str, str],
    has_others: bool,
    labels_elsewhere: bool,
) -> None:
    """Find what the evaluator named in each row said of the row's claim."""
    roles, rows = reading.roles, reading.rows
    if (
        not {"evaluator", "system"} & {*fixed}
        and "evaluator" not in roles
        and (column := find_column_naming_the_evaluator(rows, roles, reading.list_free_columns(), has_others))
        is not None
    ):
        if roles.get("system") == column and normalise_vocabulary_words(column.name).startswith("system"):
            text = f"each claim stands in a row for each of {column.name!r}: names of systems, or of evaluators"
            ways = [
                PossibleColumnReading(f"{column.name} names {ours}s", {"columns": {ours: column.name}})
                for ours in ("system", "evaluator")
            ]
            reading.questions.append(OpenQuestion(text, ways))
            return
        roles["evaluator"] = column
        roles.pop("system" if roles.get("system") == column else "", None)
    judgements = {
        ours: _find_unnamed_judgement_columns(reading, classes, ours, labels_elsewhere)
        for ours in ("score", "prediction")
    }
    for ours in ("score", "prediction"):
        if ours in roles:
            judgements[ours] = []
    if "evaluator" not in roles:
        others = [name for name, kind in classes.items() if kind == "judge" and reading.is_free(name)]
        if {"score", "prediction"} & set(fixed) or (not others and any(judgements.values())):
            _take_plain_columns(reading, judgements)
        return
    if not any(judgements.values()) and not {"score", "prediction"} & set(roles):
        stem = list_searchable_forms_of_column_name(roles["evaluator"].name)[-1].split()[0]
        named = [n for n, kind in classes.items() if kind in ("judge", "unknown") and reading.is_free(n)]
        near = [name for name in named if normalise_vocabulary_words(name).split()[0] == stem] or (
            named if len(named) == 1 else []
        )
        for name in near:
            kind = "prediction" if reading.profiles[name].kind in ("binary", "name") else "score"
            judgements[kind] = judgements[kind] or [reading.profiles[name]]
    _take_plain_columns(reading, judgements)
    if not {"score", "prediction"} & set(roles):
        column = roles.pop("evaluator")
        if _has_label_words(column):  # a judge's own words
            classes[column.name] = classify_judgement_column_by_name(column)
        return
    find_repeated_claim_id_column(rows, roles, reading.list_free_columns())
    values = [*dict.fromkeys(str(one) for one in rows[roles["evaluator"].name] if not is_missing_value(one))]
    if not reading.label_evaluators:
        reading.label_evaluators = [one for one in values if is_name_of_person(one)]
    reading.measures = find_measure_named_evaluators([one for one in values if one not in reading.label_evaluators])


def _take_plain_columns(reading: TableReading, judgements: Mapping[str, Sequence[ColumnProfile]]) -> None:
    for ours, columns in judgements.items():
        if columns and ours not in reading.roles:
            reading.roles[ours] = columns[0]


def _find_unnamed_judgement_columns(
    reading: TableReading, classes: Mapping[str, str], ours: str, labels_elsewhere: bool
) -> list[ColumnProfile]:
    """Columns called just ``score`` or ``verdict``, of whomsoever, the likelier first."""
    known = COLUMN_NAMES[ours]
    found = []
    for name, kind in classes.items():
        column = reading.profiles[name]
        key = list_searchable_forms_of_column_name(name)[0]
        if kind not in ("plain", "judge") or key not in known or not reading.is_free(name):
            continue
        if column.n_different == 1 < column.n_present and "evaluator" not in reading.roles:
            continue  # `prediction: true` of every claim: whether it is a judge's is asked
        is_fine = column.is_fine_score or "evaluator" in reading.roles
        if is_fine or labels_elsewhere or _is_judge_beside_labels(reading, classes):
            found.append((known.index(key), column))
    return [column for _, column in sorted(found, key=lambda one: one[0])]


def _is_judge_beside_labels(reading: TableReading, classes: Mapping[str, str]) -> bool:
    return "label" in reading.roles or any(kind in ("people", "label", "answer") for kind in classes.values())


def _find_annotator_labels(reading: TableReading, classes: Mapping[str, str]) -> None:
    """Where a column says who judged, the label is what they said."""
    known = COLUMN_NAMES["label"]
    free = [reading.profiles[name] for name, kind in classes.items() if kind in ("people", "label", "plain", "unknown")]
    free = [one for one in free if reading.is_free(one.name)]
    named = [
        one
        for one in free
        if list_searchable_forms_of_column_name(one.name)[-1] in known or classes[one.name] == "people"
    ]
    chosen = [one for one in named if one.n_different > 1] or named or free
    if chosen and max(one.n_different for one in chosen) == 1:
        return  # a label that never varies may be what was asked: `find_label_column` looks for the answer
    if len(chosen) == 1 or named:
        ranked = sorted(
            chosen,
            key=lambda one: (
                known.index(key) if (key := list_searchable_forms_of_column_name(one.name)[-1]) in known else 99
            ),
        )
        reading.roles["label"] = ranked[0]
    elif not chosen:
        reading.roles.pop("annotator")


def _find_evaluators_of_wide_table(
    reading: TableReading,
    classes: Mapping[str, str],
    mapping: ColumnMapping,
    wide: Sequence[str],
    labels_elsewhere: bool,
) -> None:
    """Find the evaluators of a wide table: columns of scores or verdicts that are nothing else."""
    if mapping.evaluators or mapping.wide:
        columns = [reading.profiles[name] for name in wide]
        reading.evaluators = pair_score_and_verdict_columns(reading, columns)
        left = [
            one for one in reading.list_free_columns() if classes.get(one.name) in ("judge", "plain", "unknown", "both")
        ]
        reading.unread |= dict.fromkeys((one.name for one in left), "not among the evaluators that you named")
        return
    if {"score", "prediction"} & set(reading.roles):
        left = [one for one in reading.list_free_columns() if classes.get(one.name) in ("judge", "plain")]
        reading.unread |= dict.fromkeys((one.name for one in left), "beside the column of scores")
        return
    if not {"claim", "claim_id", "label"} & set(reading.roles) and not reading.people:
        return
    asked = {
        name
        for one in reading.questions
        for choice in one.readings
        for name in _list_columns_named_by_mapping(choice.mapping)
    }
    free = [one for one in reading.list_free_columns() if one.name in classes and one.name not in asked]
    chosen = choose_support_probability_column(
        reading, [one for one in free if classes[one.name] in ("judge", "plain", "unknown")]
    )
    asked |= {
        name
        for one in reading.questions
        for choice in one.readings
        for name in _list_columns_named_by_mapping(choice.mapping)
    }
    free = [one for one in free if reading.is_free(one.name) and one.name not in asked]
    judges = [one for one in free if classes[one.name] in ("judge", "plain") or one.name in chosen]
    leave_out_numbers_against(reading, judges)
    judges = [one for one in judges if reading.is_free(one.name)]
    has_labels = bool("label" in reading.roles or reading.people or labels_elsewhere)
    unnamed = list[ColumnProfile]()
    if not has_labels and any(classes[one.name] == "judge" and one.is_fine_score for one in judges):
        # Grades of nobody beside a judge's scores: people's, if anybody's.
        unnamed = [one for one in judges if classes[one.name] == "plain" and one.kind == "grade"]
        judges = [one for one in judges if one not in unnamed]
    if not has_labels:  # "rating" beside "model_rating"
        named = [normalise_vocabulary_words(one.name) for one in judges if classes[one.name] == "judge"]
        for one in [one for one in judges if classes[one.name] == "plain" and one.name not in chosen]:
            if any(name.endswith(f" {normalise_vocabulary_words(one.name)}") for name in named):
                unnamed.append(one)
                judges.remove(one)
    constant = [one for one in judges if one.n_different == 1 and len(reading.rows) > 1]
    reading.evaluators = pair_score_and_verdict_columns(reading, [one for one in judges if one not in constant])
    join_nameless_score_and_verdict(reading)
    paired = {name for one in reading.evaluators.values() for name in one.values()}
    if not labels_elsewhere:
        ask_about_judgement_of_own_answer(reading)
    ask_about_constant_judge_columns(reading, [one for one in constant if one.name not in paired])
    unknown = [one for one in free if classes[one.name] in ("unknown", "both") and one.n_different > 1]
    unknown = [one for one in unknown if one.name not in chosen]
    unknown += unnamed
    unknown = [one for one in unknown if _can_be_judgement_column(one, reading, has_labels)]
    reading.people += (voters := find_votes_behind_labels(reading, unknown))
    unknown = [one for one in unknown if one.name not in voters]
    ask_about_unknown_columns(reading, unknown, has_labels)


def _can_be_judgement_column(column: ColumnProfile, reading: TableReading, has_labels: bool) -> bool:
    """Whether a column of an unknown name is like what people or evaluators say."""
    if column.kind in ("binary", "share", "name"):
        return True
    if column.kind != "grade" or column.low is None or column.high is None or column.low < 0 or column.high > 10:
        return False
    kinds = {reading.profiles[name].kind for one in reading.evaluators.values() for name in one.values()}
    return "grade" in kinds or not has_labels or not reading.evaluators


def _list_columns_named_by_mapping(mapping: Mapping[str, object]) -> list[str]:
    columns = mapping.get("columns", {})
    assert isinstance(columns, Mapping)
    listed = [mapping.get(key, ()) for key in ("unread", "wide", "people")]
    return [*columns.values(), *(name for names in listed for name in names)]  # type: ignore[attr-defined]
