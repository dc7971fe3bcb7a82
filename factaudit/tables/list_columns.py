"""Lists within rows that may hold labels, judgements or claims: what they could be is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factaudit.tables.nested_lists import flatten_nested_objects, join_words_of_claim, list_parallel_lists
from factaudit.tables.questions import OpenQuestion
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

Objects = Sequence[Sequence[Mapping[str, Any]]]
#: In lists of objects, names of who judged.
_OWNERS = (
    *(*COLUMN_NAMES["annotator"], *COLUMN_NAMES["evaluator"], "by", "created by", "completed by email"),
    *("completed by id", "reviewer", "user", "user id", "name", "key", "model version", "id"),
)
#: Further names of a claim in lists: RefChecker's subject, relation and object.
_CLAIM_PARTS = {"triplet", "triplets", "triple", "claims", "facts", "proposition"}


def ask_about_lists(table: TableRoles, mapped_columns: Mapping[str, str | Sequence[str]]) -> None:
    """Where a table has no labels, or no judgements, ask of the first list that has some, or claims.

    mapped_columns: column of ours to what the user said, which may be a path into a list.
    """
    known = {*table.roles, *mapped_columns}
    mapped = {path.partition("[]")[0] for path in mapped_columns.values() if isinstance(path, str)}
    sides = [] if "label" in known or table.people else ["people"]
    sides += [] if table.evaluators or {"score", "prediction"} & known else ["judges"]
    for column in table.list_free_columns():
        if column.kind != "list" or column.name in mapped:
            continue
        name = column.name
        lists = [flatten_nested_objects(cell) for cell in table.rows[name]]
        claims = _read_as_claims(table, name, lists, "claim" in known)
        readings = [] if claims is None else [claims]
        told = {one: has_vocabulary_word_in_column_name(one, name) for one in sides}
        readings += _read_as_judged(name, lists, sorted(sides, key=lambda side: not told[side]), any(told.values()))
        if readings:
            table.questions = table.questions if claims is None else []  # all else is asked of the claims
            text = f"{name!r} is a list that may hold claims, labels of people or what evaluators said"
            table.questions.append(OpenQuestion(text, [*readings, {"ignore": [name]}]))
            return


def _read_as_claims(table: TableRoles, name: str, lists: Objects, has_claims: bool) -> dict[str, Any] | None:
    """The reading by which each item of a list is a claim: texts beside other lists of as many values, or objects with
    a text each that is called a claim; where the rows have claims, texts only of a list that is called so."""
    last = normalise_vocabulary_words(name.rpartition(".")[2]).split()[-1:]
    may_be_texts = not has_claims or any(word.removesuffix("s") in COLUMN_NAMES["claim"] for word in last)
    for key in dict.fromkeys(key for cell in lists for one in cell for key in one):
        texts = [[join_words_of_claim(one.get(key)) for one in cell] for cell in lists]
        words = {*normalise_vocabulary_words(key).split(), normalise_vocabulary_words(key)}
        is_named = bool(words & {*COLUMN_NAMES["claim"], *_CLAIM_PARTS}) and any(len(cell) > 1 for cell in texts)
        is_text = all(isinstance(text, str) and " " in text.strip() for cell in texts for text in cell)
        is_meant = is_named if key else may_be_texts and bool(list_parallel_lists(table.rows, name))
        if is_text and is_meant and all(len({*cell}) == len(cell) for cell in texts):
            path = f"{name}[].{key}".removesuffix(".")
            return {"columns": {"claim": path}}
    return None


def _read_as_judged(name: str, lists: Objects, sides: Sequence[str], is_told: bool) -> list[dict[str, Any]]:
    """The readings by which each item of a list is what people, or evaluators, said of the row's claim."""
    objects = [one for cell in lists for one in cell]
    keys = [*dict.fromkeys(key for one in objects for key in one)]
    owner = _find_key(keys, _OWNERS)
    if owner is not None and any(len({str(one.get(owner)) for one in cell}) < len(cell) for cell in lists):
        owner = None  # no name of who judged
    named = _find_key(keys, [one for role in ("label", "score", "prediction") for one in COLUMN_NAMES[role]])
    worded = next((key for key in keys if _list_meanings(objects, key) == {0, 1}), None)
    numeric = next((key for key in keys if _has_numbers(objects, key)), None) if is_told or owner is not None else None
    varies = named is not None and len({str(one.get(named)) for one in objects}) > 1
    judged = worded if worded is not None else named if varies else numeric
    if judged is None:
        return []
    is_number = all(isinstance(one.get(judged), int | float) for one in objects)
    roles = {"people": ("label", "annotator"), "judges": ("score" if is_number else "prediction", "evaluator")}
    readings = []
    for side in sides:
        paths = zip(roles[side], (judged, owner), strict=True)
        columns = {ours: f"{name}[].{key}".removesuffix(".") for ours, key in paths if key is not None}
        readings.append({"columns": columns})
    return readings


def _list_meanings(objects: Sequence[Mapping[str, Any]], key: str) -> set[int | None]:
    values = [one.get(key) for one in objects]
    return {parse_label_word(value) if isinstance(value, str | bool) else None for value in values}


def _has_numbers(objects: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Whether a key's values are different numbers, which measure no other quality than support."""
    values = [one.get(key) for one in objects]
    others = any(has_vocabulary_word_in_column_name(kind, key) for kind in ("qualities", "measures"))
    return not others and all(isinstance(one, int | float) for one in values) and len({*values}) > 1


def _find_key(keys: Sequence[str], names: Sequence[str]) -> str | None:
    found = {normalise_vocabulary_words(key.rpartition(".")[2]): key for key in reversed(keys)}
    found |= {normalise_vocabulary_words(key): key for key in reversed(keys)}
    return next((found[name] for name in names if name in found), None)
