"""Tells by a column's name what it may hold if it has no role: judgements of people, judgements of
an evaluator, or neither."""

from __future__ import annotations

import re
from collections.abc import Sequence

from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    EVALUATOR_AFFIXES,
    find_words_in_name,
    has_no_blanks,
    name_has_word,
    normalise_words,
    strip_values_hint,
)

#: Why a column holds no judgements, whatever its values.
REASONS = {
    "measure": "a measure, no judgement",
    "quality": "another quality than support",
    "answer": "a reference answer",
    "reason": "a reason",
    "time": "a time",
    "counter": "counts up",
    "constant": "never varies",
}
#: Parts of a dotted name that add nothing to the part before them.
_GENERIC_NAME_PARTS = ("text", "content", "value", "page content", "name")
#: Words that only the column of an evaluator has in its name, whatever the evaluator is called.
_SURE_AFFIXES = {"score", "prediction", "probability", "pred", "prob", "logit", "logits"}
#: First parts of the names of several evaluators' columns: ``judges.gpt4``.
_JUDGE_HEADINGS = {
    "feedback",
    "judges",
    "evaluators",
    "detectors",
    "models",
    "llms",
    "evaluator",
    "verdicts",
}
#: Words for people that the name of a judge may contain, and the other way round.
_LOOSE_PEOPLE = {"annotation", "annotations", "annotated"}
_LOOSE_JUDGES = {"judge", "judges", "judged", "eval", "rubric", "grader"}
#: The figures of a metric of overlap: ``bertscore_f1``.
_OVERLAP_PARTS = {"f1", "precision", "recall"}
_PLAIN_NAMES = {*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]}


def list_name_forms(column_name: str) -> list[str]:
    """The names by which a column may be found: its name and, if that is dotted (``input.text``),
    the last part that is not a mere "text"."""
    plain = strip_values_hint(re.sub(r"^(INPUT|OUTPUT|GOLDEN|ASSIGNMENT):", r"\1.", column_name))
    parts = [normalise_words(part) for part in plain.split(".")]
    telling = next((part for part in reversed(parts) if part not in _GENERIC_NAME_PARTS), parts[-1])
    return [normalise_words(plain), *([telling] if len(parts) > 1 else [])]


def find_known_form(column_name: str, known: Sequence[str]) -> str | None:
    """The form of a column's name that is among known names; None if there is none."""
    return next((form for form in list_name_forms(column_name) if form in known), None)


def classify_column_name(name: str, is_binary: bool = False) -> str:
    """What a column without a role may hold.

    ``people``; ``judge``; ``both``; ``label`` (no matter whose); ``support`` (the name says only
    what was judged: "faithfulness"); ``plain`` (a score or verdict, no matter whose); ``unknown``;
    or a key of `REASONS`.
    """
    whole, last = list_name_forms(name)[0], list_name_forms(name)[-1]
    people, judges, supports = (
        find_words_in_name(kind, name) for kind in ("people", "judges", "supports")
    )
    soft = find_words_in_name("soft_measures", last) if not people and not judges else None
    no_judgement = {
        "measure": is_measure(name) or soft,
        "quality": is_quality(name),
        "reason": find_words_in_name("reasons", last),
        "answer": find_words_in_name("answers", name),
    }
    if found := next((kind for kind, words in no_judgement.items() if words), None):
        return found
    if whole in _PLAIN_NAMES:
        return "plain"
    if whole in COLUMN_NAMES["system"]:
        return "unknown"  # "model" with yes and no
    if people:
        is_both = judges - _LOOSE_JUDGES - supports
        return "people" if not is_both else "judge" if people <= _LOOSE_PEOPLE else "both"
    is_doubtful = name_has_word("doubtful_judgements", name)
    if judges:
        is_call = is_binary and name_has_word("calls", name)
        return "unknown" if is_doubtful or is_call else "support" if judges <= supports else "judge"
    if last in COLUMN_NAMES["label"] or name_has_word("labels", name):
        return "label"
    if is_doubtful or name_has_word("users", last):
        return "unknown"
    stem, affix = split_evaluator_name(name)
    if affix in _SURE_AFFIXES and normalise_words(stem) not in COLUMN_NAMES["label"]:
        return "judge"
    return "plain" if last in _PLAIN_NAMES else "unknown"


def is_measure(name: str) -> bool:
    """Whether a name says that a column measures something and judges nothing: a time, a cost, a
    length, a confidence."""
    return bool(_find_no_judgement("measures", re.sub(r"(?i)(\b|_)json\w*\.", ".", name)))


def is_quality(name: str) -> bool:
    """Whether a name says that a column judges another quality than support."""
    return bool(_find_no_judgement("qualities", name))


def _find_no_judgement(kind: str, name: str) -> frozenset[str]:
    is_overlap = name_has_word("overlaps", name)
    return find_words_in_name(kind, name) - (_OVERLAP_PARTS if is_overlap else set())


def split_evaluator_name(column_name: str) -> tuple[str, str]:
    """The name of the evaluator in a column's name, and the part that says what the column holds
    ("" if there is none).

    >>> names = ("gpt4_score", "pred_gpt4", "gpt4Score", "AlignScore", "Verdict (AI)")
    >>> [split_evaluator_name(one) for one in names]
    [('gpt4', 'score'), ('gpt4', 'pred'), ('gpt4', 'score'), ('AlignScore', ''), ('AI', 'verdict')]
    """
    plain = re.sub(r"(\.(value|result|choices))+$", "", strip_values_hint(column_name))
    heading, dot, rest = plain.partition(".")
    if dot and rest and normalise_words(heading) in _JUDGE_HEADINGS:
        return split_evaluator_name(rest)
    if normalise_words(plain).replace(" ", "") in find_words_in_name("judges", plain):
        return plain, ""
    for affix in EVALUATOR_AFFIXES:
        if has_no_blanks(affix) and plain.endswith(affix) and plain != affix:
            return plain.removesuffix(affix), "verdict"
        behind = re.fullmatch(rf"(?i)(.+?)[\s_./-]+\(?{affix}\)?", plain)
        before = re.fullmatch(
            rf"(?i){affix}[\s_./-]+\(?(?!(?:of|du|de|des|del|der|von|van|do|da)[ _])(.+?)\)?", plain
        )
        if found := behind or before or re.fullmatch(rf"(.+[a-z0-9]){affix.capitalize()}", plain):
            return (plain if found[1].isdigit() else found[1]), affix
    return plain, ""


def is_name_of_person(evaluator: str) -> bool:
    """Whether an evaluator's name means people ("human") and no judge."""
    judges = (
        find_words_in_name("judges", evaluator)
        - _LOOSE_JUDGES
        - find_words_in_name("supports", evaluator)
    )
    return name_has_word("people", evaluator) and not judges


def is_name_of_model(annotator: str) -> bool:
    """Whether an annotator's name means a model or another judge, and no person."""
    is_judge = name_has_word("judges", annotator)
    return is_judge and not name_has_word("people", annotator)
