"""The one question about columns: whose judgements those hold whose names do not say it for certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.column_kinds import REASONS, find_known_form, list_name_forms
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.meanings import ask_about_label, ask_about_prediction, find_score_scale
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    find_vocabulary_words,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: Names of a label that may say whether an evaluator was right.
_NAMES_OF_BEING_RIGHT = {"correct", "is correct", "right", "incorrect", "is incorrect", "wrong", "is wrong"}
#: What an annotator says who accepts, or rejects, a label that was suggested; and what such a column is called.
_ACCEPTANCE_WORDS = {"accept", "accepted", "reject", "rejected", "agree", "disagree", "ignore"}
_ACCEPTANCE_NAMES = {"accepted", "acceptance", "approved", "approval", "agreed", "agrees", "confirmed", "endorsed"}
#: First words of the name of a property that a claim has or has not.
_PROPERTY_WORDS = ("is", "has", "contains", "needs", "was")
#: So many replies of a judge are looked at for a verdict.
_N_REPLIES = 50
#: Of more columns the user says by hand which is which.
_MAX_OFFERED = 3


def states_verdicts(table: TableRoles, column: ColumnProfile, share: float = 1.0) -> bool:
    """Whether all of a column's texts are a judge's replies that begin with a verdict, or a share of them state one."""
    texts = [one for one in table.rows[column.name].head(_N_REPLIES) if isinstance(one, str) and one.strip()]
    stated = 0
    for text in texts:
        verdict = find_verdict_in_reply(text)
        is_first = verdict is not None and (share < 1 or text.strip(" \"'*").startswith(verdict))
        stated += is_first or parse_label_word(text) is not None
    return column.kind == "text" and bool(texts) and stated >= share * len(texts)


def doubt_columns_about_other_judgements(table: TableRoles) -> None:
    """Doubt columns that may say whether an evaluator was right, or whether somebody accepted what another one says."""
    label = table.roles.get("label")
    if label is not None and table.is_judged and list_name_forms(label.name)[-1] in _NAMES_OF_BEING_RIGHT:
        table.doubt([label], "may say whether the claim is supported, or whether the evaluator was right")
    for column in table.profiles.values():
        words = {normalise_vocabulary_words(word) for word in column.words}
        is_called = {*normalise_vocabulary_words(column.name).split()} & _ACCEPTANCE_NAMES
        if (words and words <= _ACCEPTANCE_WORDS) or (column.kind == "binary" and is_called):
            what = "may say whether somebody agreed with another column"
            table.doubt([column], f"{what}: then write a column of the labels that follow")


def ask_about_unclear_columns(
    table: TableRoles, given: ColumnMapping, kinds: Mapping[str, str], has_labels: bool
) -> None:
    """Ask about the columns that are in doubt, and those that look judged where nobody says by whom.

    kinds: of the columns that had no role, what `classify_column` says.
    """
    is_labelled, is_judged = table.is_labelled or has_labels, table.is_judged or bool(given.evaluators)
    if not (is_labelled and (given.evaluator or given.evaluators)):
        for name, kind in kinds.items():
            column = table.profiles[name]
            is_left_out = kind in REASONS and table.ignored.get(name) == REASONS[kind]
            if not (table.is_free(name) or is_left_out) or kind in ("time", "counter", "reason"):
                continue
            if "label" in given.columns and kind in ("label", "people"):
                continue
            is_reply = kind == "judge" and not is_judged and states_verdicts(table, column, 0.5)
            if is_reply or _may_be_judged(column, kind, is_labelled, is_judged):
                table.doubt([column], "labels of people, what an evaluator said, or neither")
    if table.unclear:
        columns = [table.profiles[name] for name in table.unclear]
        for why in dict.fromkeys(table.unclear.values()):
            own = [one for one in columns if table.unclear[one.name] == why]
            _ask_whose_they_are(table, own, why, given, (is_labelled, is_judged))
        table.ignored = {name: why for name, why in table.ignored.items() if name not in table.unclear}


def _may_be_judged(column: ColumnProfile, kind: str, is_labelled: bool, is_judged: bool) -> bool:
    """Whether a column that has no role may hold labels or what an evaluator said.

    Where both are there, it must look judged; where one is missing, few words of any kind may be it, and so may a
    measure that can be one of support ("accuracy").
    """
    name = column.name
    varies = column.n_different > 1 or (column.n_present > 0 and column.n_missing > 0)
    has_few_words = column.has_few_words and column.n_different < column.n_present and not column.has_questions
    is_number = column.low is not None
    if kind in ("measure", "quality", "answer"):
        is_doubtful = has_vocabulary_word_in_column_name("doubtful_measures", name) or kind == "answer"
        if is_labelled:
            is_of_judge = has_vocabulary_word_in_column_name("judges", name) and not is_judged
            return (is_of_judge and (column.looks_judged or is_number)) or (
                kind == "answer" and column.kind == "binary" and column.n_different > 1
            )
        is_doubtful = is_doubtful or column.n_different == 2 or has_name_of_error(name)
        is_surely_none = find_vocabulary_words("measures", name) - find_vocabulary_words("doubtful_measures", name)
        is_doubtful = is_doubtful and (not is_surely_none or kind == "answer" or has_name_of_error(name))
        return is_doubtful and column.n_different > 1 and (column.looks_judged or is_number)
    is_telling = kind != "unknown" or has_name_of_error(name)
    if is_labelled and is_judged:
        if find_known_form(name, COLUMN_NAMES["label"]) and has_few_words and varies:
            return True  # LABEL_0 and LABEL_1 beside how sure a classifier is
        is_property = normalise_vocabulary_words(name).split()[0] in _PROPERTY_WORDS if name.strip() else False
        return column.looks_judged and (is_telling or (column.kind != "grade" and not is_property))
    if not is_labelled and not is_judged:  # claims that nobody judged, or not in a way that we know
        return (column.looks_judged and column.kind != "grade") or (is_telling and has_few_words and varies)
    return column.looks_judged or (has_few_words and varies) or (is_telling and is_number and varies)


def _ask_whose_they_are(
    table: TableRoles, columns: Sequence[ColumnProfile], why: str, given: ColumnMapping, has: tuple[bool, bool]
) -> None:
    """Ask whose judgements some columns hold; each answer says what their values mean, too.

    has: whether there are labels, and judgements.
    """
    names = [one.name for one in columns]
    is_labelled, is_judged = has
    certain = [
        column
        for name, pair in table.evaluators.items()
        for column in ([name] if name in table.declared else pair.values())
        if column not in names
    ]
    has_claims = bool({"claim", "claim_id"} & {*table.roles, *given.columns})
    labels: list[Mapping[str, Any]] = []
    for name in names[:_MAX_OFFERED]:
        others = [one for one in names if one != name]
        judged = [] if is_judged else [one for one in others if one not in table.ignored or not has_claims]
        left = [one for one in others if one not in judged]
        rest = {key: own for key, own in (("evaluator", judged), ("ignore", left)) if own}
        if has_claims or is_judged or others:  # without texts and ids a row is a claim where it is labelled and judged
            labels.append({"columns": {"label": name}, **rest})
    people = [{"people": names}] if len(names) > 1 and has_claims else []
    ignored = [{"ignore": names}] if has_claims or (is_labelled and is_judged) else []
    can_judge = (has_claims or is_labelled) and "annotator" not in table.roles
    evaluators = [{"evaluator": [*certain, *names]}] if can_judge else []
    is_fine = all(one.low is not None and not one.is_whole for one in columns)
    if (is_labelled and is_judged) or table.questions:
        answers = [*ignored, *evaluators, *labels, *people]
    elif not is_judged and (is_labelled or is_fine):
        answers = [*evaluators, *labels, *people, *ignored]
    else:
        answers = [*labels, *people, *evaluators, *ignored]
    if answers:
        held = ", ".join(f"{one.name} ({one.describe_values()})" for one in columns[:4])
        complete = [_add_meanings(one, columns, given) for one in answers]
        table.questions.append(OpenQuestion(f"{held}: {why}", complete))


def _add_meanings(
    answer: Mapping[str, Any], columns: Sequence[ColumnProfile], given: ColumnMapping
) -> Mapping[str, Any]:
    """An answer with the likeliest meanings of the values of the columns that it gives a role."""
    label = answer.get("columns", {}).get("label")
    for column in columns:
        data = given.model_dump(exclude_defaults=True, mode="json")
        mapping = ColumnMapping.from_source(merge_mapping_data(data, answer))
        questions: Sequence[OpenQuestion] = []
        if column.name == label or column.name in answer.get("people", ()):
            questions = ask_about_label(column, mapping)
        elif column.name in answer.get("evaluator", ()):
            _, scales = find_score_scale(column, column.name, mapping)
            questions = scales or ask_about_prediction(column, column.name, mapping)
        for question in questions:
            answer = merge_mapping_data(answer, question.answers[0])
    return answer


def ask_about_repeated_claims(table: TableRoles) -> None:
    """Ask where each claim stands in a row for each value of another column: systems, evaluators, or annotators."""
    roles = table.roles
    if "claim" not in roles or {"annotator", "evaluator"} & {*roles} or table.people:
        return
    if "system" in roles and "model" not in normalise_vocabulary_words(roles["system"].name):
        return  # systems, by their name
    keys = [roles[ours].name for ours in ("claim", "doc") if ours in roles]
    rows = table.rows.astype("str")
    if not rows.duplicated(keys, keep=False).all():
        return
    n_times = rows.groupby(keys).size()
    used = {one.name for ours, one in roles.items() if ours != "system"}
    judged = [(kind, name) for pair in table.evaluators.values() for kind, name in pair.items()]
    judged += [(ours, roles[ours].name) for ours in ("score", "prediction") if ours in roles]
    others = [("label", one.name) for one in table.profiles.values() if one.name not in used and one.looks_judged]
    said = judged or others
    for name, column in table.profiles.items():
        is_key = name not in used and {column.n_different} == {*n_times}
        if is_key and len(said) == 1 and not rows.duplicated([*keys, name]).any():
            told = {"evaluator" if judged else "annotator": name, said[0][0]: said[0][1]}
            text = f"each claim stands in {column.n_different} rows, which {name} tells apart"
            answers = [{"columns": told}, {"columns": {"system": name}}]
            table.questions = [OpenQuestion(f"{text}: who judged, or which system wrote the claim", answers)]
            return
