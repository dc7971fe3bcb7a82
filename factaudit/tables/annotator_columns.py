"""Columns that say who judged: which of these are people, and which are models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from factaudit.tables.column_roles import find_column_telling_people_from_judges
from factaudit.tables.judgement_columns import TableReading, is_name_of_person
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import has_vocabulary_word_in_column_name


def tell_people_from_judges(reading: TableReading) -> None:
    """Where a column says of each annotator or evaluator whether it is a person, take what people said for labels."""
    roles = reading.roles
    who = roles.get("annotator", roles.get("evaluator"))
    said = roles.get("label") if "annotator" in roles else roles.get("score", roles.get("prediction"))
    if who is None or said is None:
        return
    kinds = [one for name, one in reading.profiles.items() if reading.is_free(name) or one == roles.get("label")]
    column = find_column_telling_people_from_judges(reading.rows, who, [one for one in kinds if one != said])
    if column is None:
        return
    by_name = dict(zip(reading.rows[who.name].astype("str"), reading.rows[column.name].astype("str"), strict=True))
    reading.label_evaluators = [name for name, kind in by_name.items() if is_name_of_person(kind)]
    reading.unread[column.name] = "says who is a person"
    if "annotator" in roles:
        roles["evaluator"] = roles.pop("annotator")
        roles["prediction" if said.kind == "binary" else "score"] = roles.pop("label")


def list_annotators_like_models(annotators: Iterable[Any]) -> list[str]:
    """Of annotators, those whose names are of models or other judges, and of no person."""
    return [
        one
        for one in dict.fromkeys(str(one) for one in annotators if not is_missing_value(one))
        if has_vocabulary_word_in_column_name("judges", one) and not has_vocabulary_word_in_column_name("people", one)
    ]


def ask_about_annotators_that_judge(reading: TableReading) -> None:
    """Ask where a column of annotators names what looks like a model."""
    column, label = reading.roles["annotator"], reading.roles.get("label")
    values = [*dict.fromkeys(str(one) for one in reading.rows[column.name] if not is_missing_value(one))]
    models = list_annotators_like_models(values)
    if not models or label is None:
        return
    kind = "prediction" if label.kind == "binary" else "score"
    apart: dict[str, Any] = {"columns": {"evaluator": column.name, kind: label.name}}
    people = [one for one in values if one not in models]
    who = f", {', '.join(people)} people" if people else ""
    reading.questions.append(
        OpenQuestion(
            f"{column.name!r} names {', '.join(map(repr, models))}: a model, or a person",
            [
                PossibleColumnReading(
                    f"{', '.join(models)}: evaluators{who}", apart | ({"people": people} if people else {})
                ),
                PossibleColumnReading("all are people", {"columns": {"annotator": column.name, "label": label.name}}),
            ],
        )
    )


def leave_out_answers_of_annotators(reading: TableReading) -> None:
    """Where a survey's answers have ids (Qualtrics' ``ResponseId``), these are of people, not of a system's text."""
    ids, who, claims = (reading.rows[reading.roles[ours].name] for ours in ("response_id", "annotator", "claim"))
    n_people_of_id, n_people_of_claim = (who.groupby(key.astype(str)).nunique() for key in (ids, claims))
    if n_people_of_id.max() == 1 and n_people_of_claim.median() > 1:
        reading.unread[reading.roles.pop("response_id").name] = "the answer of a person"
