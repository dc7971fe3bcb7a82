"""What a column may hold by its name: what people judged, what an evaluator said, or a measure that judges nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from factaudit.tables.column_profiles import ColumnProfile, profile_column_for_mapping
from factaudit.tables.vocabulary import (
    COLUMN_NAMES,
    find_vocabulary_words_in_column_name,
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
    parse_label_word,
    strip_column_name_values_hint,
)

#: Names of the content of whatever the name before it says.
_GENERIC_NAME_PARTS = ("text", "content", "value", "page content", "name")


#: How the name of an evaluator's column says what it holds.
_AFFIXES = (
    *("score", "prediction", "probability", "pred", "prob", "verdict", "judgement", "judgment", "decision", "label"),
    *("rating", "logits", "logit", "output", "result", "passed", "pass", "check", "vote", "urteil", "nota"),
    *(name for role in ("score", "prediction") for name in COLUMN_NAMES[role] if " " not in name and name != "preds"),
)


#: The same in scripts without blanks; and headings over several evaluators.
_GLUED_AFFIXES = ("判定", "評価", "分数", "得分")


_JUDGE_HEADINGS = {"feedback", "judges", "evaluators", "detectors", "models", "llms", "evaluator", "verdicts"}


#: Of these, those that only an evaluator's column has, whoever it is.
_SURE_AFFIXES = {"score", "prediction", "probability", "pred", "prob", "logit", "logits"}


#: Words for people that a judge's name may have, and for judges that a person's may.
_LOOSE_PEOPLE = {"annotation", "annotations", "annotated"}


_LOOSE_JUDGES = {"judge", "judges", "judged", "eval", "rubric", "grader", "adherence"}


#: Of words for judges, what is judged: people may have judged it, too.
SUPPORT_WORDS = {"adherence", "faithfulness", "factuality", "groundedness", "entailment"}


#: Metrics of overlap, and which of their numbers a column holds: `bertscore_f1`, `rouge2_precision`.
_OVERLAP_METRICS = {"bertscore", "rouge", "rouge1", "rouge2", "rougel", "chrf", "meteor"}


_OVERLAP_PARTS = {"f1", "precision", "recall"}


#: Words that say whether a judge was called with success, or what it said.
_CALL_WORDS = {
    *("error", "errors", "err", "failure", "failed", "fail", "refused", "ok", "success", "valid", "done", "flag"),
    *(
        "correct",
        "right",
        "match",
        "hit",
        "pass",
        "passed",
        "parsed",
        "complete",
        "completed",
        "finished",
        "succeeded",
        "returned",
        "timeout",
        "usable",
    ),
}


#: Why a column is no judgement.
REASONS = {
    "measure": "a measure, no judgement",
    "quality": "another quality than support",
    "answer": "a reference answer",
    "reason": "a reason",
    "time": "a time",
    "counter": "counts up",
    "constant": "never varies",
}


#: Different words than so many are no words of labels.
MAX_LABEL_WORDS = 12


def list_name_forms(column_name: str) -> list[str]:
    """What a column may be found by: its name; of a dotted one (``input.text``) the last part but a mere "text"."""
    plain = strip_column_name_values_hint(re.sub(r"^(INPUT|OUTPUT|GOLDEN|ASSIGNMENT):", r"\1.", column_name))
    parts = [normalise_vocabulary_words(part) for part in plain.split(".")]
    telling = next((part for part in reversed(parts) if part not in _GENERIC_NAME_PARTS), parts[-1])
    return [normalise_vocabulary_words(plain), *([telling] if len(parts) > 1 else [])]


def find_known_form(column_name: str, known: Sequence[str]) -> str | None:
    """The form of a column's name that is among known ones; None where none is."""
    return next((form for form in list_name_forms(column_name) if form in known), None)


def classify_column(column: ColumnProfile) -> str:
    """What a column that has no role may be, by its name.

    ``people``, ``judge``, ``both``, ``label`` (of whomever), ``support`` (what was judged: "faithfulness"), ``plain``
    (a score or verdict of whomever), ``unknown``, or a key of `REASONS`.
    """
    name = column.name.rpartition("[].")[2]
    forms = list_name_forms(name)
    people = find_vocabulary_words_in_column_name("people", name)
    judges = find_vocabulary_words_in_column_name("judges", name)
    parts = _OVERLAP_PARTS if judges & _OVERLAP_METRICS else set()
    if column.is_time:
        return "time"
    if column.counts_up:
        return "counter"
    if find_vocabulary_words_in_column_name("measures", re.sub(r"(?i)(\b|_)json\w*\.", ".", name)) - parts:
        return "measure"
    if find_vocabulary_words_in_column_name("qualities", name) - parts:
        return "quality"
    if not people and not judges and has_vocabulary_word_in_column_name("soft_measures", forms[-1]):
        return "measure"
    if has_vocabulary_word_in_column_name("reasons", forms[-1]):
        return "reason"
    if has_vocabulary_word_in_column_name("answers", name):
        return "answer"
    if forms[0] in (*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]):
        return "plain"
    if forms[0] in COLUMN_NAMES["system"]:
        return "unknown"  # "model" with yes and no
    if people:
        is_both = judges - _LOOSE_JUDGES - SUPPORT_WORDS
        return "people" if not is_both else "judge" if people <= _LOOSE_PEOPLE else "both"
    is_doubtful = has_vocabulary_word_in_column_name("doubtful_judgements", name)
    is_call = column.kind == "binary" and {*re.findall(r"\w+", normalise_vocabulary_words(name))} & _CALL_WORDS
    if judges:
        is_question = re.fullmatch(r"[Qq]\d+", name) and not column.is_fine_score  # a form's second question
        is_quality = judges <= SUPPORT_WORDS and not column.is_fine_score  # whoever judged it
        is_doubtful = is_doubtful and not judges & SUPPORT_WORDS
        if is_call or is_doubtful or is_question:
            return "unknown"
        return "support" if is_quality else "judge"
    if forms[-1] in COLUMN_NAMES["label"] or has_vocabulary_word_in_column_name("labels", name):
        return "label"
    stem, affix = split_evaluator_name(name)
    is_doubtful = is_doubtful or has_vocabulary_word_in_column_name("users", forms[-1])
    if affix in _SURE_AFFIXES and not is_doubtful and normalise_vocabulary_words(stem) not in COLUMN_NAMES["label"]:
        return "judge"
    return "plain" if forms[-1] in (*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]) else "unknown"


def split_evaluator_name(column_name: str) -> tuple[str, str]:
    """The evaluator's name in a column's, and what the rest says that it holds ("" where the name is all).

    >>> [split_evaluator_name(one) for one in ("gpt4_score", "pred_gpt4", "judgeScore", "AlignScore", "Verdict (AI)")]
    [('gpt4', 'score'), ('gpt4', 'pred'), ('judge', 'score'), ('AlignScore', ''), ('AI', 'verdict')]
    """
    plain = re.sub(r"(\.(value|result|choices))+$", "", strip_column_name_values_hint(column_name))
    heading, dot, rest = plain.partition(".")
    if dot and rest and normalise_vocabulary_words(heading) in _JUDGE_HEADINGS:
        return split_evaluator_name(rest)
    if normalise_vocabulary_words(plain).replace(" ", "") in find_vocabulary_words_in_column_name("judges", plain):
        return plain, ""
    if (glued := next((one for one in _GLUED_AFFIXES if plain.endswith(one)), "")) and plain != glued:
        return plain.removesuffix(glued), "verdict"
    for affix in _AFFIXES:
        if found := re.fullmatch(rf"(?i)(.+?)[\s_./-]+\(?{affix}\)?", plain):
            return found[1], affix
        if found := re.fullmatch(rf"(?i){affix}[\s_./-]+\(?(.+?)\)?", plain):
            return (
                (found[1], affix)
                if not re.match(r"(of|du|de|des|del|der|von|van|do|da)[ _]", found[1])
                else (plain, "")
            )
        if found := re.fullmatch(rf"(.+[a-z]){affix.capitalize()}", plain):
            return found[1], affix
    return plain, ""


def looks_judged(column: ColumnProfile) -> bool:
    """Whether a column's values could be what somebody said of claims: words for a label, or varying numbers."""
    if column.n_different < 2 or column.is_time or column.counts_up:
        return False
    is_grade = column.kind == "grade" and column.low is not None and column.low >= -1 and (column.high or 0) <= 10
    return column.kind in ("binary", "share") or is_grade


def has_words_of_labels(column: ColumnProfile) -> bool:
    """Whether a column holds few words, one of which at least is a label's."""
    is_short = column.kind in ("name", "text", "id") and 0 < len(column.words) <= MAX_LABEL_WORDS
    return is_short and column.mean_length <= 30 and any(parse_label_word(word) is not None for word in column.words)


def can_hold_labels(column: ColumnProfile) -> bool:
    """Whether a column that is called a label may hold labels."""
    if column.kind in ("binary", "share", "grade", "number"):
        return not column.is_time and not column.counts_up
    is_short = 0 < len(column.words) <= MAX_LABEL_WORDS and column.mean_length <= 40
    return column.kind in ("name", "text", "id") and is_short


def is_name_of_person(evaluator: str) -> bool:
    """Whether an evaluator's name is one of people ("human"), and of no judge."""
    judges = find_vocabulary_words_in_column_name("judges", evaluator) - _LOOSE_JUDGES - SUPPORT_WORDS
    return has_vocabulary_word_in_column_name("people", evaluator) and not judges


def is_name_of_model(annotator: str) -> bool:
    """Whether an annotator's name is one of a model or another judge, and of no person."""
    is_judge = has_vocabulary_word_in_column_name("judges", annotator)
    return is_judge and not has_vocabulary_word_in_column_name("people", annotator)


def list_measures(evaluators: set[str]) -> dict[str, str]:
    """The evaluators of a long table whose names are those of measures (latency) or of other qualities (helpfulness),
    and which; none where nothing would be left."""
    found: dict[str, str] = {}
    for name in sorted(evaluators):
        judges = find_vocabulary_words_in_column_name("judges", name)
        parts = _OVERLAP_PARTS if judges & _OVERLAP_METRICS else set()
        for kind, words in (("measure", "measures"), ("quality", "qualities")):
            if find_vocabulary_words_in_column_name(words, name) - parts:
                found.setdefault(name, REASONS[kind])
    return found if len(found) < len(evaluators) else {}


def find_judged_columns(
    columns: Mapping[str, Sequence[object]], kinds: Sequence[str] = ("people", "judge", "both")
) -> dict[str, ColumnProfile]:
    """The columns, by name, in which people or evaluators judged, single values or lists of them, by `classify_column`;
    those that no name tells of where their words are opposite verdicts, too."""
    found = {}
    for name, values in columns.items():
        if normalise_vocabulary_words(name) == "status":
            continue  # whether a call went well
        cells = [one for cell in values for one in (cell if isinstance(cell, list) else [cell])]
        column = profile_column_for_mapping(name, pd.Series(cells, dtype="object"))
        names_judge = normalise_vocabulary_words(name) in (*COLUMN_NAMES["annotator"], *COLUMN_NAMES["evaluator"])
        kind = classify_column(column)
        is_lettered = kind == "people" and column.kind == "name" and column.n_different == 2  # C and I
        if not (column.is_judgement or is_lettered) or column.n_different < 2:
            continue
        if names_judge and not column.has_both_verdicts:
            continue
        if kind in kinds or (kind == "unknown" and column.has_opposite_verdicts):
            found[name] = column
    return found
