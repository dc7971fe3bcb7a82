"""Lists within rows that may hold labels, judgements or claims: what they could be is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from factaudit.tables.nested_lists import flatten_nested_objects, join_words_of_claim, list_parallel_lists
from factaudit.tables.questions import OpenQuestion, PossibleReading, ignore_columns
from factaudit.tables.table_roles import TableRoles
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

#: In lists of objects, further names of who judged.
_LIST_OWNERS = {
    "annotator": (
        "by",
        "created by",
        "completed by",
        "completed by email",
        "completed by id",
        "reviewer",
        "user",
        "user id",
        "name",
        "id",
    ),
    "evaluator": ("name", "key", "model version", "id"),
}
#: Whose words name a list of objects of a kind.
_SIDES = {"label": ("people", "labels"), "score": ("judges",), "prediction": ("judges",)}
#: What platforms call where a score came from: their page, a program.
_SOURCES = {"people": ("ui", "annotation"), "judges": ("sdk", "api", "eval", "code", "online_scoring")}
#: Further names of a claim in lists: RefChecker's subject, relation and object.
_CLAIM_PARTS = {"triplet", "triplets", "triple", "claims", "facts", "proposition"}
#: What a list may hold, by the column of ours that its values are.
_LIST_CONTENTS = {
    "label": "labels of people",
    "score": "judgements of evaluators",
    "prediction": "judgements of evaluators",
}


def ask_about_lists(table: TableRoles, mapped_columns: Mapping[str, str | Sequence[str]]) -> None:
    """Where a table has no labels, or no judgements, ask of lists that have some.

    mapped_columns: column of ours to what the user said, which may be a path into a list.
    """
    known = {*table.roles, *mapped_columns}
    paths = [path for theirs in mapped_columns.values() for path in ([theirs] if isinstance(theirs, str) else theirs)]
    wanted = [] if "label" in known or table.people else ["label"]
    has_judges = table.evaluators or {"score", "prediction"} & known
    wanted += [] if has_judges else ["score", "prediction"]
    for column in [one for one in table.list_free_columns() if one.kind == "list"]:
        if any(path.startswith(f"{column.name}[]") for path in paths):
            continue
        lists = [cell for cell in table.rows[column.name] if isinstance(cell, list)]
        may_be_claims = "claim" not in known or _is_named_claims(column.name)
        question = ask_about_parallel_lists(table.rows, column.name, lists) if may_be_claims else None
        question = question or _ask_about_lists_of_words(column.name, lists, wanted)
        question = question or _ask_about_lists_of_objects(column.name, [*map(flatten_nested_objects, lists)], wanted)
        if question is None:
            continue
        if "claim" in question.readings[0].mapping["columns"]:  # all else is asked of the claims
            table.questions = []
        table.questions.append(question)
        return


def _is_named_claims(list_name: str) -> bool:
    """Whether a list is called by a name of claims in the plural: ``response_claims``, ``facts``."""
    last = normalise_vocabulary_words(list_name.rpartition(".")[2]).split()[-1:]
    return any(word.endswith("s") and word.removesuffix("s") in COLUMN_NAMES["claim"] for word in last)


def ask_about_parallel_lists(rows: pd.DataFrame, name: str, lists: Sequence[Sequence[Any]]) -> OpenQuestion | None:
    """Asks whether the texts of lists are claims, where other lists have a number or a word for each."""
    is_text = any(lists) and all(isinstance(one, str) and " " in one.strip() for cell in lists for one in cell)
    beside = list_parallel_lists(rows, name) if is_text else []
    if not beside:
        return None
    claims = PossibleReading(f"each of {name} is a claim", {"columns": {"claim": f"{name}[]"}})
    return OpenQuestion(f"{name!r} is a list of texts, {', '.join(beside)} beside it of as many values", [claims])


def _ask_about_lists_of_words(name: str, lists: Sequence[Sequence[Any]], wanted: Sequence[str]) -> OpenQuestion | None:
    """Asks whose words ``["supported", "refuted"]`` are; of lists that never differ nothing."""
    words = {str(one) for cell in lists for one in cell}
    if not words or len({str(cell) for cell in lists}) < 2 or any(parse_label_word(one) is None for one in words):
        return None
    roles = [ours for ours in ("label", "prediction") if ours in wanted]
    if has_vocabulary_word_in_column_name("judges", name):
        roles = roles[::-1]
    readings = [
        PossibleReading(f"{name} has {_LIST_CONTENTS[ours]}", {"columns": {ours: f"{name}[]"}}) for ours in roles
    ]
    text = f"{name!r} is a list of words like {min(words)!r}"
    return OpenQuestion(text, [*readings, ignore_columns([name])]) if readings else None


def _ask_about_lists_of_objects(
    name: str, lists: Sequence[Sequence[Any]], wanted: Sequence[str]
) -> OpenQuestion | None:
    """Asks what the objects of lists are, where one of their keys is that of a label or a judgement."""
    objects = [one for cell in lists for one in cell]
    keys = [*dict.fromkeys(str(key) for one in objects if isinstance(one, Mapping) for key in one)]
    for ours in wanted:
        owner = "annotator" if ours == "label" else "evaluator"
        named = {
            role: _find_object_key(keys, [*COLUMN_NAMES[role], *_LIST_OWNERS.get(role, ())]) for role in (ours, owner)
        }
        if any(len({str(one.get(named[owner])) for one in cell}) < len(cell) for cell in lists):
            named[owner] = None  # no name of who judged
        values = {str(one.get(named[ours] or "")) for one in objects if isinstance(one, Mapping)}
        is_called = any(has_vocabulary_word_in_column_name(side, name) for side in _SIDES[ours])
        if (is_called or named[owner] is not None) and (named[ours] is None or (ours == "label" and len(values) < 2)):
            # a worker's "response": "yes"
            named[ours] = _find_key_of_judgements(objects, is_called or ours != "label") or named[ours]
        if named[ours] is None:
            continue
        if ours == "score" and (worded := _find_key_of_judgements(objects, False)) is not None:
            ours, named = "prediction", {"prediction": worded, owner: named[owner]}  # the score says how sure it is
        paths = {role: f"{name}[].{key}" for role, key in named.items() if key is not None}
        readings = [PossibleReading(f"{name} has {_LIST_CONTENTS[ours]}", {"columns": paths})]
        if "label" in wanted and (apart := _read_people_and_judges_of_lists(name, keys, lists)) is not None:
            readings.insert(0, apart)
        if (claim := _find_claim_key_of_list_objects(keys, lists)) is not None:
            path = {"columns": {"claim": f"{name}[].{claim}"}}
            if named[owner] is None:  # of each claim, and not of each annotator
                readings = []
            readings.insert(0, PossibleReading(f"each of {name} is a claim, its text in {claim!r}", path))
        readings.append(ignore_columns([name]))
        return OpenQuestion(f"{name!r} is a list of objects with {named[ours]!r}", readings)
    return None


def _read_people_and_judges_of_lists(
    name: str, keys: Sequence[str], lists: Sequence[Sequence[Any]]
) -> PossibleReading | None:
    """The reading by which some objects hold what people said, others what evaluators did, where a key says so of each
    (Phoenix's ``annotator_kind``, Opik's ``source``); None where no key does."""
    objects = [one for cell in lists for one in cell if isinstance(one, Mapping)]
    said = _find_key_of_judgements(objects, True)
    for key in keys if said is not None else ():
        kinds = {str(one.get(key)) for one in objects}
        people = {kind for kind in kinds if _names_a_side("people", kind)}
        if not people or not kinds - people or any(not _names_a_side("judges", kind) for kind in kinds - people):
            continue
        owner = key
        if (called := _find_object_key(keys, ["name", "key", *COLUMN_NAMES["annotator"]])) is not None:
            by_people, by_judges = (
                {str(one.get(called)) for one in objects if (str(one.get(key)) in people) is is_person}
                for is_person in (True, False)
            )
            owner, people = (called, by_people) if by_people.isdisjoint(by_judges) else (key, people)
        if any(len({str(one.get(owner)) for one in cell}) < len(cell) for cell in lists):
            continue  # several of a kind, of whom nothing says who they are
        kind = "prediction" if any(isinstance(one.get(said), str) for one in objects) else "score"
        listed, others = ", ".join(sorted(people)), ", ".join(sorted({str(one.get(owner)) for one in objects} - people))
        return PossibleReading(
            f"{name} has what people ({listed}) and what evaluators ({others}) said",
            {"columns": {"evaluator": f"{name}[].{owner}", kind: f"{name}[].{said}"}, "people": sorted(people)},
        )
    return None


def _names_a_side(side: str, kind: str) -> bool:
    return kind.lower() in _SOURCES[side] or has_vocabulary_word_in_column_name(side, kind)


def _find_claim_key_of_list_objects(keys: Sequence[str], lists: Sequence[Sequence[Any]]) -> str | None:
    """The key under which the objects of each list have a text each of its own, and which is called a claim."""
    for key in keys:
        words = {*normalise_vocabulary_words(key).split(), normalise_vocabulary_words(key)}
        texts = [[join_words_of_claim(one.get(key)) for one in cell if isinstance(one, Mapping)] for cell in lists]
        if (
            words & {*COLUMN_NAMES["claim"], *_CLAIM_PARTS}
            and all(isinstance(text, str) and " " in text for cell in texts for text in cell)
            and all(len({*cell}) == len(cell) for cell in texts)
            and any(len(cell) > 1 for cell in texts)
        ):
            return key
    return None


def _find_key_of_judgements(objects: Sequence[Any], may_be_numbers: bool) -> str | None:
    """The key under which all objects have words that say 1 or 0, where both occur, or else, where they may, different
    numbers, and which is called no other quality than support, nor a number of another kind."""
    rows = [one for one in objects if isinstance(one, Mapping)]
    found = []
    for key in rows[0] if rows else ():
        values = [one.get(key) for one in rows]
        said = {parse_label_word(value) if isinstance(value, str | bool) else None for value in values}
        is_number = all(isinstance(one, int | float) for one in values) and len({*values}) > 1
        others = any(has_vocabulary_word_in_column_name(kind, str(key)) for kind in ("qualities", "measures"))
        if said == {0, 1} or (may_be_numbers and is_number and not others):
            found.append((said != {0, 1}, str(key)))
    return min(found)[1] if found else None


def _find_object_key(keys: Sequence[str], names: Sequence[str]) -> str | None:
    found = {normalise_vocabulary_words(key.rpartition(".")[2]): key for key in reversed(keys)}
    found |= {normalise_vocabulary_words(key): key for key in reversed(keys)}
    return next((found[name] for name in names if name in found), None)
