"""Columns that say whether somebody agreed with a label, or with a judge: the label follows from both."""

from __future__ import annotations

from collections.abc import Sequence

from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.judgement_columns import REASONS, TableReading
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, leave_columns_unread
from factaudit.tables.vocabulary import find_vocabulary_words_in_column_name, normalise_label_word

#: Words of whether somebody agreed, in the names of columns and in their cells.
_AGREEMENT_NAMES = {"agree", "agrees", "agreement", "match", "matches"}
_AGREEMENT_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree"}


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


def _read_as_agreement(
    column: ColumnProfile, judgements: ColumnProfile, evaluators: dict[str, list[str]] | None = None
) -> PossibleColumnReading:
    said = f"the labels are what {judgements.name} says, turned round where {column.name} says no"
    columns = {"label": judgements.name, "agreed": column.name}
    return PossibleColumnReading(said, {"columns": columns, **(evaluators or {})})
