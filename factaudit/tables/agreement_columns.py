"""Columns that say whether somebody agreed with a label, or with a judge: the label follows from both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.judgement_columns import (
    LOOSE_JUDGE_WORDS,
    REASONS,
    TableReading,
    are_same,
    read_column_as_binary_judgements,
)
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, leave_columns_unread
from factaudit.tables.vocabulary import (
    find_vocabulary_words_in_column_name,
    has_vocabulary_word_in_column_name,
    normalise_label_word,
    normalise_vocabulary_words,
)

#: Words of whether somebody agreed, in the names of columns and in their cells.
_AGREEMENT_NAMES = {"agree", "agrees", "agreement", "match", "matches"}
_AGREEMENT_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree"}

#: Words of whether somebody accepted what a metric said, in the names of columns.
_ACCEPTANCE_NAMES = {"accept", "accepts", "accepted", "acceptance", "acceptable", "approve", "approved", "approval"}
_ACCEPTANCE_NAMES |= {"agree", "agrees", "agreed", "concur", "concurs", "confirmed", "endorsed", "upheld"}
#: Words of a column that says whether a judge agreed with the labels.
_NAMES_OF_BEING_RIGHT = {"correct", "right", "hit", "same", "ok", "acc", "match", "agree"}
#: Of these, what a judge may say of a claim, too.
_RIGHT_WORDS = {"correct", "right"}


def ask_whether_labels_hold(reading: TableReading, columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Ask of columns beside the labels that say accept or reject (Prodigy's ``answer``). Returns those asked about."""
    label = reading.roles.get("label")
    asked = [
        one
        for one in columns
        if one.has_both_verdicts and {normalise_label_word(word) for word in one.words} <= _AGREEMENT_WORDS
    ]
    if label is None or label.kind != "binary":
        return []
    for column in asked:
        way = _read_as_agreement(column, label)
        text = f"{column.name!r} may say whether somebody agreed with {label.name!r}"
        reading.questions.append(OpenQuestion(text, [way, leave_columns_unread([column.name])]))
    return asked


def ask_about_agreement_with_judge(reading: TableReading, columns: Sequence[ColumnProfile]) -> None:
    """Ask, where nobody's labels are there, of columns whose names say whether somebody agreed with a judge."""
    judged = [reading.profiles[one["prediction"]] for one in reading.evaluators.values() if "prediction" in one]
    for column in columns:
        words = find_vocabulary_words_in_column_name("measures", column.name)
        if not words or not words <= _AGREEMENT_NAMES or reading.unread.get(column.name) != REASONS["measure"]:
            continue
        ways = [_read_as_agreement(column, one, {"wide": [one.name]}) for one in judged]
        text = f"{column.name!r} says by its name whether somebody agreed, not whether the claim is supported"
        reading.questions.append(OpenQuestion(text, [*ways, leave_columns_unread([column.name])]))


def ask_about_acceptance_of_verdicts(reading: TableReading, classes: Mapping[str, str]) -> bool:
    """Ask, where nobody's labels are there, of a column that says whether somebody accepted what a metric said
    (RAGAS's ``is_accepted`` beside ``metric_output``): the labels are what it said, turned round where it was not.

    Returns whether there is such a column.
    """
    if {"label", "annotator"} & {*reading.roles} or reading.people:
        return False
    if any(kind in ("people", "label") and not _is_name_of_acceptance(name) for name, kind in classes.items()):
        return False
    free = [one for one in reading.list_free_columns() if one.kind == "binary" and one.name in classes]
    accepted = [one for one in free if _is_name_of_acceptance(one.name)]
    judged = [one for one in free if classes[one.name] in ("judge", "plain", "unknown") and one not in accepted]
    judged += [one for ours, one in reading.roles.items() if ours == "prediction" and one.kind == "binary"]
    if len(accepted) != 1 or not judged:
        return False
    column = accepted[0]
    ways = [_read_as_agreement(column, one, {"wide": [one.name]}) for one in judged]
    label = PossibleColumnReading(f"{column.name} holds people's labels", {"columns": {"label": column.name}})
    text = f"{column.name!r} may say whether somebody accepted what {judged[0].name!r} says, or be people's labels"
    reading.questions.append(OpenQuestion(text, [*ways, label, leave_columns_unread([column.name])]))
    return True


def _is_name_of_acceptance(column_name: str) -> bool:
    return bool({*normalise_vocabulary_words(column_name).split()} & _ACCEPTANCE_NAMES)


def _read_as_agreement(
    column: ColumnProfile, judgements: ColumnProfile, evaluators: dict[str, list[str]] | None = None
) -> PossibleColumnReading:
    said = f"the labels are what {judgements.name} says, turned round where {column.name} says no"
    columns = {"label": judgements.name, "agreed": column.name}
    return PossibleColumnReading(said, {"columns": columns, **(evaluators or {})})


def find_columns_of_agreement(
    reading: TableReading, label: ColumnProfile, columns: Sequence[ColumnProfile]
) -> list[str]:
    """The columns that say in each row whether another one agreed with the labels, by their names and their values."""
    truth = read_column_as_binary_judgements(reading.rows, label)
    judged = {one.name: read_column_as_binary_judgements(reading.rows, one) for one in columns if one.kind == "binary"}
    found = []
    for name, said in judged.items():
        if name == label.name or not is_name_of_agreement(name):
            continue
        for other, verdict in judged.items():
            agreed = np.where(np.isnan(truth) | np.isnan(verdict), np.nan, (truth == verdict).astype(np.float64))
            if other not in (name, label.name) and np.nanmin(agreed, initial=1) == 0 and are_same(agreed, said):
                found.append(name)
                break
    return found


def is_name_of_agreement(column_name: str) -> bool:
    """Whether a column's name may say that a judge agreed with the labels: ``correct``, ``gpt4_match``."""
    return bool({*normalise_vocabulary_words(column_name).split()} & _NAMES_OF_BEING_RIGHT)


def ask_whether_label_says_who_was_right(reading: TableReading, label: ColumnProfile) -> None:
    """Ask of labels called ``correct`` beside ``prediction``: they may say whether that was right."""
    predicted = reading.roles.get("prediction")
    name = normalise_vocabulary_words(label.name).removeprefix("is ").removeprefix("was ")
    if predicted is None or predicted.kind != "binary" or name not in _NAMES_OF_BEING_RIGHT:
        return
    ways = [
        _read_as_agreement(label, predicted, {"wide": [predicted.name]}),
        PossibleColumnReading(f"{label.name} holds people's labels", {"columns": {"label": label.name}}),
    ]
    text = f"{label.name!r} may say whether {predicted.name!r} was right, or what people said of the claim"
    reading.questions.append(OpenQuestion(text, ways))


def drop_columns_of_agreement_with_labels(
    reading: TableReading, label: ColumnProfile, candidates: Sequence[ColumnProfile]
) -> None:
    """Leave out columns that say whether another one agreed with the labels; ask of a judge's that may."""
    reading.unread |= dict.fromkeys(find_columns_of_agreement(reading, label, candidates), REASONS["derived"])
    for name in [one.name for one in candidates if one.kind == "binary" and reading.is_free(one.name)]:
        judge = find_vocabulary_words_in_column_name("judges", name) - LOOSE_JUDGE_WORDS
        alone = not any(
            judge & find_vocabulary_words_in_column_name("judges", o) for o in reading.profiles if o != name
        )
        if judge and {*normalise_vocabulary_words(name).split()} & _RIGHT_WORDS and alone:
            readings = [
                PossibleColumnReading(f"{name} says what the judge found", {"wide": [name]}),
                PossibleColumnReading(f"{name} says whether the judge was right: read by nothing", {"unread": [name]}),
            ]
            text = f"{name!r} may be a judge's word, or say whether the judge agreed with {label.name!r}"
            reading.questions.append(OpenQuestion(text, readings))


def find_votes_behind_labels(reading: TableReading, columns: Sequence[ColumnProfile]) -> list[str]:
    """The columns, an odd number of the same kind, of which the labels are the majority in every row, though they
    differ in some: what people voted, whatever the columns are called, where people or a majority said the labels."""
    label = reading.roles.get("label")
    if label is None or not any(has_vocabulary_word_in_column_name(one, label.name) for one in ("people", "settled")):
        return []
    votes = [one for one in columns if one.kind == "binary"]
    if len(votes) < 3 or not len(votes) % 2:
        return []
    said = np.array([read_column_as_binary_judgements(reading.rows, one) for one in votes])
    shares = np.where(np.isnan(said).any(axis=0), np.nan, said.mean(axis=0))
    majority = np.where(np.isnan(shares), np.nan, (shares > 0.5).astype(np.float64))
    differ = (shares > 0) & (shares < 1)
    is_same = are_same(majority, read_column_as_binary_judgements(reading.rows, label))
    return [one.name for one in votes] if is_same and np.unique(majority[differ]).size == 2 else []
