"""Asks whose judgements a column holds if its name does not say so for certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.column_kinds import (
    REASONS,
    find_known_form,
    is_name_of_model,
    list_name_forms,
)
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.meanings import ask_about_labels, group_by_scale, read_values
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    find_words_in_name,
    has_name_of_error,
    name_has_word,
    normalise_words,
    parse_label_word,
)

#: Names of a column that may say whether an evaluator was right.
_NAMES_OF_BEING_RIGHT = {
    "correct",
    "is correct",
    "right",
    "incorrect",
    "is incorrect",
    "wrong",
    "is wrong",
}
#: The words of an annotator who accepts or rejects a suggested label, and the names of such a
#: column.
_ACCEPTANCE_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree", "ignore"}
_ACCEPTANCE_NAMES = {
    "accepted",
    "acceptance",
    "approved",
    "approval",
    "agreed",
    "agrees",
    "confirmed",
    "endorsed",
}
#: Names of fields of objects that may hold claims or judgements.
_TELLING_FIELDS = {
    name for role in ("claim", "label", "score", "prediction") for name in COLUMN_NAMES[role]
}
#: First words in the name of a property that a claim may have.
_PROPERTY_WORDS = ("is", "has", "contains", "needs", "was")
#: With more columns than this, the user must say which is which.
_MAX_OFFERED = 3
#: So many replies of a judge are read to see whether they state verdicts.
_MAX_REPLIES = 50


def ask_about_columns(table: TableRoles, has_others: bool, has_labels: bool) -> None:
    """Ask about columns that are in doubt, and about columns that look like judgements of nobody in
    particular.

    has_others: there are several tables. has_labels: another table certainly has labels by people.
    """
    given = table.given
    if "label" not in given.columns:
        _doubt_other_judgements(table)
    has = (table.is_labelled or has_labels, table.is_judged)
    # Further columns raise no question.
    is_ours = {"dataset", "claim", "label"} <= {*table.columns}
    is_said = has[0] and (given.evaluator or given.evaluators)
    if not is_ours and not is_said and (not has_others or "claim" in table.roles):
        left_out = [
            name
            for name, why in table.ignored.items()
            if why == REASONS.get(table.columns[name].calls)
        ]
        for name in (*table.list_free_columns(), *left_out):
            column = table.columns[name]
            if _may_be_judged(column, table.rows[name], *has):
                is_label = "label" in given.columns and column.calls in ("label", "people")
                table.doubt(
                    [] if is_label else [name],
                    "labels of people, what an evaluator said, or neither",
                )
    for why in dict.fromkeys(table.unclear.values()):
        own = [table.columns[name] for name in table.columns if table.unclear.get(name) == why]
        _ask_whose_they_are(table, own, why, *has)
        has = (True, has[1])  # the likeliest answer to the first question names the labels
    table.ignored = {name: why for name, why in table.ignored.items() if name not in table.unclear}
    if "annotator" in table.roles and not given.people and "annotator" not in given.columns:
        _ask_about_named_models(table)
    if not {"evaluator", "annotator", "system"} & {*given.columns}:
        _ask_about_repeated_claims(table)


def _doubt_other_judgements(table: TableRoles) -> None:
    """Doubt columns that may say whether an evaluator was right, or whether somebody agreed with
    another column."""
    label = table.roles.get("label")
    if (
        label is not None
        and table.is_judged
        and list_name_forms(label)[-1] in _NAMES_OF_BEING_RIGHT
    ):
        table.doubt(
            [label], "may say whether the claim is supported, or whether the evaluator was right"
        )
    for name, column in table.columns.items():
        words = {normalise_words(word) for word in column.words}
        is_called = bool({*normalise_words(name).split()} & _ACCEPTANCE_NAMES)
        if (words and words <= _ACCEPTANCE_WORDS) or (column.kind == "binary" and is_called):
            what = "may say whether somebody agreed with another column"
            table.doubt([name], f"{what}: then write a column of the labels that follow")


def _may_be_judged(
    column: ColumnProfile, texts: pd.Series, is_labelled: bool, is_judged: bool
) -> bool:
    """Whether a column without a role may hold labels or the judgements of an evaluator.

    If the table has both already, the column must look like judgements. If one is missing, any
    column with few words may be it, and so may a measure that can be one of support ("accuracy").
    """
    calls, name = column.calls, column.name
    if calls in ("time", "counter", "reason"):
        return False
    if calls == "judge" and not is_judged and column.kind == "text":
        # Either words, or the replies of a judge. Other texts are the answers of a system.
        return column.has_few_words or any(map(find_verdict_in_reply, texts[:_MAX_REPLIES]))
    is_error = has_name_of_error(name)
    if calls in REASONS:
        if is_labelled and calls == "answer":
            return column.looks_judged and column.kind == "binary"
        if is_labelled:
            is_of_judge = name_has_word("judges", name) and not is_judged
            return is_of_judge and (column.looks_judged or column.low is not None)
        doubtful = find_words_in_name("doubtful_measures", name)
        may_be_support = doubtful or calls == "answer" or is_error
        is_measure = (
            calls != "answer"
            and not is_error
            and bool(find_words_in_name("measures", name) - doubtful)
        )
        return (
            column.looks_judged
            and not is_measure
            and bool(column.n_different == 2 or may_be_support)
        )
    varies = column.n_different > 1 or (column.n_present > 0 and column.n_missing > 0)
    is_worded = (
        column.has_few_words
        and column.n_different < column.n_present
        and not column.has_questions
        and varies
    )
    is_telling = calls != "unknown" or is_error
    if is_labelled and is_judged:
        is_property = normalise_words(name).startswith(_PROPERTY_WORDS)
        is_label = is_worded and find_known_form(name, COLUMN_NAMES["label"]) is not None
        return is_label or (
            column.looks_judged and (is_telling or (column.kind != "grade" and not is_property))
        )
    if is_labelled or is_judged:
        return (
            column.looks_judged or is_worded or (is_telling and column.low is not None and varies)
        )
    return (column.looks_judged and column.kind != "grade") or (is_telling and is_worded)


def _ask_whose_they_are(
    table: TableRoles,
    columns: Sequence[ColumnProfile],
    why: str,
    is_labelled: bool,
    is_judged: bool,
) -> None:
    """Ask whose judgements some columns hold. Each answer also says what their values mean."""
    names = [one.name for one in columns]
    has_claims = bool({"claim", "claim_id"} & {*table.roles, *table.given.columns})
    certain = [name for name, one in table.evaluators.items() if not {*one.columns} & {*names}]
    labels: list[dict[str, Any]] = []
    for name in names[:_MAX_OFFERED]:
        others = [one for one in names if one != name]
        left = [one for one in others if is_judged or (one in table.ignored and has_claims)]
        rest = {
            "evaluator": [one for one in others if one not in left],
            "ignore": left,
            "people": table.people,
        }
        rest = {key: own for key, own in rest.items() if own}
        # Without texts and ids, a row is a claim if it is labelled and judged.
        labels += (
            [{"columns": {"label": name}, **rest}] if has_claims or is_judged or others else []
        )
    people = [{"people": names}] if len(names) > 1 and has_claims else []
    ignored = [{"ignore": names}] if has_claims or (is_labelled and is_judged) else []
    can_judge = (has_claims or is_labelled) and "annotator" not in table.roles
    evaluators = [{"evaluator": [*certain, *names]}] if can_judge else []
    if is_labelled and is_judged:
        answers = [*ignored, *evaluators, *labels, *people]
    elif is_labelled:
        answers = [*evaluators, *labels, *people, *ignored]
    else:
        answers = [*labels, *people, *evaluators, *ignored]
    if answers:
        held = ", ".join(f"{one.name} ({one.describe_values()})" for one in columns[:4])
        complete = [_add_meanings(one, columns, table.given) for one in answers]
        table.questions.append(OpenQuestion(f"{held}: {why}", complete))


def _add_meanings(
    answer: Mapping[str, Any], columns: Sequence[ColumnProfile], given: ColumnMapping
) -> Mapping[str, Any]:
    """An answer, with the likeliest meaning of the values in the columns that it gives a role."""
    people = [answer.get("columns", {}).get("label"), *answer.get("people", ())]
    labelled = [one for one in columns if one.name in people]
    judged = [one for one in columns if one.name in answer.get("evaluator", ())]
    for group in [*group_by_scale(labelled), *([one] for one in judged)]:
        data = given.model_dump(exclude_defaults=True, mode="json")
        mapping = ColumnMapping.from_source(merge_mapping_data(data, answer))
        is_label = group[0].name in people
        questions = (
            ask_about_labels(group, mapping)
            if is_label
            else read_values(group[0], group[0].name, mapping)[1]
        )
        for question in questions:
            answer = merge_mapping_data(answer, question.answers[0])
    return answer


def _ask_about_named_models(table: TableRoles) -> None:
    column, label = table.roles["annotator"], table.roles["label"]
    values = table.list_values(column)
    models = [one for one in values if is_name_of_model(one)]
    if models:
        kind = "prediction" if table.columns[label].kind == "binary" else "score"
        people = [one for one in values if one not in models]
        apart = {"columns": {"evaluator": column, kind: label}} | (
            {"people": people} if people else {}
        )
        text = f"{column!r} names {', '.join(map(repr, models))}: a model, or a person"
        table.questions.append(
            OpenQuestion(text, [apart, {"columns": {"annotator": column, "label": label}}])
        )


def _ask_about_repeated_claims(table: TableRoles) -> None:
    """Ask if each claim stands in a row for each value of another column, which may be systems,
    evaluators or annotators."""
    roles = table.roles
    if "claim" not in roles or {"annotator", "evaluator"} & {*roles} or table.people:
        return
    if "system" in roles and "model" not in normalise_words(roles["system"]):
        return  # the name says that they are systems
    keys = [roles[ours] for ours in ("claim", "doc") if ours in roles]
    rows = table.rows.astype("str")
    if not rows.duplicated(keys, keep=False).all():
        return
    n_times = {*rows.groupby(keys).size()}
    judged = [
        (kind, name) for one in table.evaluators.values() for kind, name in one.judgements.items()
    ]
    judged += [(ours, roles[ours]) for ours in ("score", "prediction") if ours in roles]
    used = [name for ours, name in roles.items() if ours != "system"]
    said = judged or [
        ("label", name)
        for name, one in table.columns.items()
        if name not in used and one.looks_judged
    ]
    for name, column in table.columns.items():
        is_key = name not in used and {column.n_different} == n_times
        if is_key and len(said) == 1 and not rows.duplicated([*keys, name]).any():
            told = {"evaluator" if judged else "annotator": name, said[0][0]: said[0][1]}
            text = f"each claim stands in {column.n_different} rows, which {name} tells apart: "
            text += "who judged, how often it was asked, or which system wrote the claim"
            answers = [{"columns": told}, {"columns": {"system": name}}]
            if judged and column.is_whole:
                answers.insert(0, {"columns": {"repeat": name}})
            table.questions = [OpenQuestion(text, answers)]
            return


def refuse_lists_of_judgements(table: TableRoles) -> None:
    """Raise `InputError` for a column whose lists may hold claims, labels or judgements of
    evaluators.

    This is for tables without labels or without judgements, which may be in that list.
    """
    for name in table.list_free_columns():
        column = table.columns[name]
        fields: dict[str, set[int | None]] = {}
        if column.kind == "list":
            for cell in table.rows[name]:
                for key, value in _list_innermost_values(cell):
                    fields.setdefault(key, set()).add(parse_label_word(value))
        elif column.words:
            votes = [re.split("[;|,]", word) for word in column.words]
            words = {parse_label_word(vote) for cell in votes for vote in cell}
            if None not in words and all(len(cell) > 1 for cell in votes):
                fields[""] = words
        names = {normalise_words(field) for field in fields}
        is_called = column.calls in ("people", "judge", "both", "label", "plain")
        if (fields and is_called) or names & _TELLING_FIELDS or {0, 1} in fields.values():
            message = (
                "a cell holds several values, which may be what people or evaluators said: write a"
                f" row for each (pandas: table.explode({name!r})), or say --ignore {name}"
            )
            raise InputError(table.name, [Problem(message, column=name)])


def _list_innermost_values(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested lists and objects, each with the nearest key."""
    if isinstance(value, list):
        for one in value:
            yield from _list_innermost_values(one, key)
    elif isinstance(value, dict):
        for inner, one in value.items():
            yield from _list_innermost_values(one, str(inner))
    else:
        yield key, value
