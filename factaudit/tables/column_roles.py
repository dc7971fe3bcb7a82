"""Which columns hold texts, ids and names: by what they are called, where what they hold fits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import pandas as pd

from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.plain_values import is_missing_value
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
    strip_column_name_values_hint,
)

#: Columns of ours that hold judgements, which `judgement_columns` tells apart.
_JUDGEMENT_ROLES = ("label", "score", "prediction")
#: Columns of ours that are read only beside an evaluator's name.
LONG_FORM_ROLES = ("evaluator", "status", "raw", "chunk_scores", "repeat")
#: Names of the content of whatever the name before it says.
_GENERIC_NAME_PARTS = ("text", "content", "value", "page content", "name")
#: Names of a column that may say who judged, or anything else.
_LOOSE_EVALUATOR_NAMES = ("name", "key", "feedback key", "score name", "criterion")
#: Last words of names of columns that say who somebody was; what a person who judges is called.
_NAME_WORDS = ("name", "names", "by", "email", "initials", "source", "origin")
_ACTING_PEOPLE = ("editor", "reviewer", "rater", "coder", "worker", "annotator", "assessor", "labeler", "labeller")
#: ``J.``, ``MK``, ``Ana``, ``ana@example.org``.
_PERSON_PATTERN = re.compile(r"[A-Z]{2,3}|([A-Z]\.)+|[A-Z][a-z]+( [A-Z][a-z]*\.?)?|\S+@\S+")
#: What a table with an answer key calls it, and what it calls the answer that was given.
_KEY_NAMES, _GIVEN_NAMES = (
    ("answer", "answers", "answer text"),
    ("response", "output", "outputs", "completion", "generation"),
)

#: What holds the claims where nothing else does, and is the document beside what is called a sentence.
_MERE_TEXTS = {"text", "texto", "texte", "testo", "tekst", "текст", "文本", "本文", "텍스트"}


def find_column_roles(
    profiles: Sequence[ColumnProfile], fixed_roles: Mapping[str, str], taken_columns: Collection[str]
) -> dict[str, ColumnProfile]:
    """Column of ours to the column that plays its role; each column once, exact names first.

    fixed_roles: what the user said. taken_columns: the user gave them another role.
    """
    by_name = {column.name: column for column in profiles}
    found = {ours: by_name[theirs] for ours, theirs in fixed_roles.items() if theirs in by_name}
    used = {*taken_columns, *fixed_roles.values()}
    free = [column for column in profiles if column.name not in used]
    names = {key: column for column in reversed(free) for key in list_searchable_forms_of_column_name(column.name)[1:]}
    names |= {list_searchable_forms_of_column_name(column.name)[0]: column for column in reversed(free)}
    ranked = sorted(
        (place, order, ours, name)
        for order, (ours, known) in enumerate(COLUMN_NAMES.items())
        for place, name in enumerate(known)
        if name in names and ours not in _JUDGEMENT_ROLES
    )
    for _, _, ours, name in ranked:
        column = names[name]
        if ours == "system" and _has_words_of_another_column(column, free):
            continue  # what the model said of claims, as people did
        if ours not in found and column.name not in used and _can_fill_mapping_role(ours, column):
            found[ours] = column
            used.add(column.name)
    for ours in ("claim", "doc"):  # `Passage shown`, where it is the only one
        words = {name for name in COLUMN_NAMES[ours] if " " not in name}
        near = [
            one
            for one in free
            if one.name not in used and _has_word_of(one.name, words) and _can_fill_mapping_role(ours, one)
        ]
        near = [one for one in near if one.kind in ("text", "name", "list") and not one.name.rstrip().endswith("?")]
        if ours not in found and len(near) == 1:
            found[ours] = near[0]
            used.add(near[0].name)
    texts = [one for one in free if one.name not in used and normalise_vocabulary_words(one.name) in _MERE_TEXTS]
    if "claim" in found and "doc" not in found and len(texts) == 1 and _can_fill_mapping_role("doc", texts[0]):
        found["doc"] = texts[0]
    return found


def ask_which_column_is_answer(
    profiles: Sequence[ColumnProfile], roles: Mapping[str, ColumnProfile]
) -> list[OpenQuestion]:
    """Asks where a table has a column ``answer``, which may be the key, beside the answer of a model."""
    claim = roles.get("claim")
    if claim is None or list_searchable_forms_of_column_name(claim.name)[-1] not in _GIVEN_NAMES:
        return []
    others = [
        one
        for one in profiles
        if one.kind == "text" and list_searchable_forms_of_column_name(one.name)[-1] in _KEY_NAMES
    ]
    if not others:
        return []
    both = (claim, others[0])
    return [
        OpenQuestion(
            f"{claim.name!r} and {others[0].name!r} both hold answers: one may be the answer key",
            [
                PossibleColumnReading(f"the claims stand in {one.name!r}", {"columns": {"claim": one.name}})
                for one in both
            ],
        )
    ]


def ask_which_column_is_document(
    profiles: Sequence[ColumnProfile], roles: Mapping[str, ColumnProfile]
) -> list[OpenQuestion]:
    """Asks where a table has references, which may be reference answers, and a longer text that nothing reads."""
    doc, claim = roles.get("doc"), roles.get("claim")
    if doc is None or claim is None or normalise_vocabulary_words(doc.name) not in ("reference", "references"):
        return []
    used = {one.name for one in roles.values()}
    longer = 1.5 * claim.mean_length
    texts = [one for one in profiles if one.kind == "text" and one.mean_length > longer and one.name not in used]
    if not texts:
        return []
    return [
        OpenQuestion(
            f"{doc.name!r} may hold documents, or reference answers beside {texts[0].name!r}",
            [
                PossibleColumnReading(f"the documents stand in {one.name!r}", {"columns": {"doc": one.name}})
                for one in (texts[0], doc)
            ],
        )
    ]


def ask_whether_system_column_has_verdicts(roles: Mapping[str, ColumnProfile]) -> list[OpenQuestion]:
    """Asks where a column of systems holds 0 and 1, or letters for yes and no, which a model may have said."""
    column = roles.get("system")
    if column is None or not column.has_both_verdicts:
        return []
    held = " and ".join(map(repr, column.words[:2]))
    return [
        OpenQuestion(
            f"{column.name!r} has {held}: names of systems, or what a model says",
            [
                PossibleColumnReading(f"{column.name} names systems", {"columns": {"system": column.name}}),
                PossibleColumnReading(f"{column.name} is an evaluator", {"wide": [column.name]}),
            ],
        )
    ]


def demote_repeated_claim_ids_to_doc_ids(rows: pd.DataFrame, roles: dict[str, ColumnProfile]) -> None:
    """Take ids that repeat in a table of a row per claim for the ids of documents: each system has a claim on each."""
    column = roles.get("claim_id")
    if column is not None and rows[column.name].duplicated().any():
        del roles["claim_id"]
        roles.setdefault("doc_id", column)


def list_searchable_forms_of_column_name(column_name: str) -> list[str]:
    """What a column may be found by: its name; of a dotted one (``input.text``) the last part but a mere "text"."""
    column_name = re.sub(
        r"^(INPUT|OUTPUT|GOLDEN|ASSIGNMENT):", r"\1.", strip_column_name_values_hint(column_name)
    )  # Toloka's
    parts = [normalise_vocabulary_words(part) for part in column_name.split(".")]
    telling = next((part for part in reversed(parts) if part not in _GENERIC_NAME_PARTS), parts[-1])
    return [normalise_vocabulary_words(column_name), *([telling] if len(parts) > 1 else [])]


def _has_word_of(column_name: str, words: Collection[str]) -> bool:
    return bool({*normalise_vocabulary_words(column_name).split()} & {*words})


def _has_words_of_another_column(column: ColumnProfile, others: Sequence[ColumnProfile]) -> bool:
    """Whether another column, not of systems or of which is preferred, has the same few words."""
    return column.n_different > 1 and any(
        {*one.words} == {*column.words} != set()
        and not any(has_vocabulary_word_in_column_name(kind, one.name) for kind in ("judges", "qualities"))
        for one in others
        if one != column
    )


def _can_fill_mapping_role(role: str, column: ColumnProfile) -> bool:
    name = normalise_vocabulary_words(column.name)
    if column.kind == "empty":
        return role == name.replace(" ", "_")
    if role.endswith("_id") and column.has_both_verdicts and not {*column.words} <= {"0", "1"}:
        return column.n_different == column.n_present  # T and F, again and again, are no ids
    if role in ("claim", "doc"):
        if column.has_questions or (
            has_vocabulary_word_in_column_name("answers", column.name) and name not in COLUMN_NAMES["doc"]
        ):
            return False
        sentences = column.mean_length >= 15 or any(" " in word.strip() for word in column.words)
        texts = column.kind == "text" or (column.kind in ("name", "id") and sentences)
        return not column.is_time and (
            texts
            or (role == "doc" and column.kind == "list")
            or (name == role and column.kind not in ("binary", "share"))
        )
    if role == "claim_id":
        spaced = any(" " in word.strip() for word in column.words) or column.mean_length > 80
        return (
            column.kind in ("id", "text", "name", "grade", "number", "binary", "share")
            and not spaced
            and not (column.kind == "share" and column.n_different > 2)
        )
    if role == "system":
        heading = column.name.rpartition(".")[0]
        if has_vocabulary_word_in_column_name("judges", heading) and "model" not in heading:
            return False  # "judge.model" says who judged
        plain = name in ("system", "model", "model name", "system name", "system id")
        if column.has_both_verdicts and any(len(word) > 1 for word in column.words):
            return False  # "yes" and "no" are no systems
        return column.mean_length < 80 and (
            column.kind in ("name", "id", "text") or (plain and column.kind in ("binary", "grade"))
        )
    if role == "evaluator":
        return column.mean_length < 80 and column.kind in ("name", "id", "text")
    if role in ("dataset", "task", "split", "topic", "entity", "group"):
        if role == "dataset" and name == "data" and column.kind == "text":
            return False  # doccano's text
        return column.kind not in ("list", "share") and column.mean_length < 80
    said = {parse_label_word(word) for word in column.words if len(word) > 3} - {None}
    if role == "annotator" and (column.n_different == column.n_present > 1 or column.has_both_verdicts or said):
        return False  # respondents of a form, one a row; or what the annotator said
    if role in ("response_id", "doc_id", "annotator", "fact_id"):
        return column.kind != "list" and (column.is_whole or not column.is_fine_score)
    return True


def find_column_naming_the_evaluator(
    rows: pd.DataFrame,
    roles: Mapping[str, ColumnProfile],
    free_columns: Sequence[ColumnProfile],
    has_other_tables: bool,
) -> ColumnProfile | None:
    """The column (``model``, ``name``) that says who judged: each claim repeats once for each of its values."""
    named = [
        one
        for one in free_columns
        if one.kind == "name"
        and (normalise_vocabulary_words(one.name) in _LOOSE_EVALUATOR_NAMES or _names_people_and_judges(one))
    ]
    keys = [roles[key].name for key in ("doc", "claim") if key in roles] if "claim" in roles else []
    if not keys and "claim_id" in roles and has_other_tables:
        keys = [roles["claim_id"].name]
    for column in [*([roles["system"]] if "system" in roles else []), *named]:
        if not keys or column.n_different < 2:
            continue
        cells = rows[[*keys, column.name]].map(lambda cell: "" if is_missing_value(cell) else str(cell))
        times = cells.groupby(keys)[column.name].nunique()
        if len(rows) > len(times) and (times == column.n_different).all() and not cells.duplicated().any():
            return column
    return None


def holds_names_of_people(column: ColumnProfile) -> bool:
    """Whether a column says by its name that its cells are names of people (``checked_by``) or whence labels are
    (``label_source``), or may do so (``editor``) and has nothing but names and initials in its cells: who judged, and
    not what they said."""
    *first, last = normalise_vocabulary_words(column.name).split() or [""]
    said = [one for one in column.words if len(one.strip(".")) > 1 and parse_label_word(one) is not None]
    are_names = not said and bool(column.words) and all(_PERSON_PATTERN.fullmatch(word) for word in column.words)
    is_worded = column.kind in ("name", "text", "id") and not said
    return (bool(first) and last in _NAME_WORDS and is_worded) or (last in _ACTING_PEOPLE and are_names)


def is_said_by_profession(column: ColumnProfile) -> bool:
    """Whether a column is called after people whose work may be to judge, and has verdicts: no flags, and not whether
    they agreed with something."""
    is_called = has_vocabulary_word_in_column_name("professions", column.name)
    is_called = is_called and not {*normalise_vocabulary_words(column.name).split()} & {"agent", "agents"}
    is_flag = {word.lower() for word in column.words} <= {"0", "1", "true", "false"}
    return (
        is_called
        and column.has_both_verdicts
        and not is_flag
        and not has_vocabulary_word_in_column_name("measures", column.name)
    )


def explains_another_column(column: ColumnProfile, names: Iterable[str]) -> bool:
    """Whether a column is called the reason of another one (``judge_reason`` beside ``judge``), whatever its words."""
    *stem, last = normalise_vocabulary_words(column.name).split() or [""]
    is_reason = bool(stem) and has_vocabulary_word_in_column_name("reasons", last)
    return is_reason and " ".join(stem) in map(normalise_vocabulary_words, names)


def _names_people_and_judges(column: ColumnProfile) -> bool:
    return all(
        any(has_vocabulary_word_in_column_name(kind, word) for word in column.words) for kind in ("people", "judges")
    )


def find_column_telling_people_from_judges(
    rows: pd.DataFrame, who: ColumnProfile, free_columns: Sequence[ColumnProfile]
) -> ColumnProfile | None:
    """The column (``rater_type``: human, model) that says of each who judged whether it is a person."""
    for column in free_columns:
        if column.kind == "name" and column.name != who.name and _names_people_and_judges(column):
            said = rows[column.name].groupby(rows[who.name].astype("str"))
            if said.nunique().max() == 1 and said.count().min() > 0:
                return column
    return None


def find_repeated_claim_id_column(
    rows: pd.DataFrame, roles: dict[str, ColumnProfile], free_columns: Sequence[ColumnProfile]
) -> None:
    """Of a row per claim and evaluator take the id that repeats for that of the claim, not the row's own."""
    column, evaluator = roles.get("claim_id"), roles["evaluator"]
    if column is None or evaluator.n_different < 2 or rows[column.name].duplicated().any():
        return
    names = [one for one in COLUMN_NAMES["claim_id"] if one != normalise_vocabulary_words(column.name)]
    others = [
        one
        for one in free_columns
        if list_searchable_forms_of_column_name(one.name)[-1] in names and one.kind in ("id", "name", "text")
    ]
    others = [one for one in others if rows[one.name].duplicated().any()]
    others = [one for one in others if not rows.duplicated([one.name, evaluator.name]).any()]
    if others:
        roles["claim_id"] = others[0]
    elif "claim" in roles:
        del roles["claim_id"]
