"""What columns of judgements are: what people said, what something judged, or numbers of another kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import has_no_value, parse_judgement_numbers
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.column_roles import list_searchable_forms_of_column_name
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    COLUMN_NAMES,
    SOFT_MEASURES,
    find_vocabulary_words_in_column_name,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    normalise_label_word,
    normalise_vocabulary_words,
    parse_label_word,
    strip_column_name_values_hint,
)

#: Parts of a column's name that say in which way it holds what an evaluator said.
VERDICT_AFFIXES = (
    *("score", "label", "pred", "prediction", "verdict", "judgement", "judgment", "decision", "prob", "probability"),
    *("rating", "logit", "logits", "check", "pass", "passed", "result", "output", "vote", "urteil", "nota", "note"),
    *("punkte", "punktzahl", "wert", "success"),
)
#: Of these, what a name without separators may end in: judgeScore.
_HUMP_AFFIXES = ("score", "label", "verdict", "rating", "prediction")
#: "score du juge" is no score of "du juge".
_OF_PATTERN = re.compile(r"(of|du|de|des|del|della|der|von|van|do|da)[ _]")
#: The same in scripts without blanks.
_VERDICT_SUFFIXES = ("判定", "評価", "分数", "得分")
#: Headings over several evaluators.
_JUDGE_HEADINGS = {"feedback", "judges", "evaluators", "detectors", "models", "llms", "evaluator", "verdicts"}
#: Words for people that a judge's name may have, too: `gpt4_annotation`.
_LOOSE_PEOPLE_WORDS = {"annotation", "annotations", "annotated"}
#: Words for judges that people's columns may have, too: `human_judge`.
LOOSE_JUDGE_WORDS = {
    "adherence",
    "judge",
    "judges",
    "judged",
    "eval",
    "rubric",
    "grader",
    "faithfulness",
    "factuality",
    "groundedness",
}
#: Words for how a judge was run, which its name may have.
_JUDGE_SETTINGS = {"seed", "temperature", "top p", "top k", "lang", "language", "json", "cached", "threshold", "cutoff"}
#: Of words for judges, what is judged.
SUPPORT_WORDS = {"adherence", "faithfulness", "factuality", "groundedness", "entailment"}
#: Words that say whether a judge was called with success, or what it said.
_CALL_WORDS = {
    "error",
    "errors",
    "err",
    "failure",
    "failed",
    "fail",
    "refused",
    "ok",
    "success",
    "valid",
    "done",
    "flag",
    "pass",
    "passed",
    "parsed",
    "complete",
    "completed",
    "finished",
    "succeeded",
    "returned",
    "timeout",
    "retried",
    "cached",
    "usable",
    "skipped",
}
#: Metrics of overlap, and which of their numbers a column holds: `bertscore_f1`, `rouge2_precision`.
_OVERLAP_METRICS = frozenset({"bertscore", "rouge", "rouge1", "rouge2", "rougel", "chrf", "meteor"})
_OVERLAP_METRIC_PARTS = frozenset({"f1", "precision", "recall"})
#: The number of a form's question.
_QUESTION_NUMBER_PATTERN = re.compile(r"[Qq]\d+")
#: Words of what no person gives, "hallucination_prob".
_PROBABILITY_WORDS = {"prob", "probability", "proba"}
#: How often columns must agree to be the same.
_MIN_SAME_ROWS = 4


@dataclass
class TableReading:
    """What one table of a user's is taken for, column by column.

    ``roles``: column of ours to theirs. ``people``: columns of what one person said each. ``evaluators``: by name their
    columns (``score``, ``prediction``). ``unread``: columns that nothing reads, and why. ``label_evaluators``: the
    evaluators of the long form that are people; ``measures``: those that judge nothing of support, and what they are.
    ``kind``: of a table of ours, what it is.
    """

    name: str
    rows: pd.DataFrame
    profiles: dict[str, ColumnProfile]
    roles: dict[str, ColumnProfile] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    evaluators: dict[str, dict[str, str]] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    questions: list[OpenQuestion] = field(default_factory=list)
    label_evaluators: list[str] = field(default_factory=list)
    kind: str | None = None
    measures: dict[str, str] = field(default_factory=dict)

    def is_free(self, column: str) -> bool:
        """Whether nothing has been found out of a column."""
        said = {one.name for one in self.roles.values()} | {*self.people, *self.unread}
        return column not in said | {name for one in self.evaluators.values() for name in one.values()}

    def list_free_columns(self) -> list[ColumnProfile]:
        return [column for name, column in self.profiles.items() if self.is_free(name)]


#: Why nothing reads a column of a kind.
REASONS = {
    "measure": "a measure, no judgement",
    "time": "a time",
    "counter": "counts up",
    "constant": "never varies",
    "quality": "another quality than support",
    "answer": "a gold answer",
    "flag": "a property of the claim",
    "derived": "says whether a judge agreed with the labels",
}


def classify_judgement_column_by_name(column: ColumnProfile) -> str:
    """What a column of values that could be judgements is, by its name.

    One of the keys of `REASONS`, ``people``, ``judge``, ``label`` (a label, of people or not), ``plain`` (a score or
    verdict of whom the name does not say), ``both`` (people and a judge), ``unknown``.
    """
    name = column.name.rpartition("[].")[2]  # "claude2_response_kg[].human_label" is what people said of claude2's
    if column.is_time:
        return "time"
    if column.counts_up:
        return "counter"
    people, judges = (
        find_vocabulary_words_in_column_name("people", name),
        find_vocabulary_words_in_column_name("judges", name),
    )
    if not column.is_fine_score and _QUESTION_NUMBER_PATTERN.fullmatch(name):
        judges = frozenset()  # a form's second question, and not the metric of that name
    agrees = column.kind == "binary" and any(normalise_vocabulary_words(one).endswith("agree") for one in column.words)
    parts = _OVERLAP_METRIC_PARTS if judges & _OVERLAP_METRICS else frozenset()
    if "citation recall" in normalise_vocabulary_words(name):
        parts = _OVERLAP_METRIC_PARTS  # ALCE's: whether what is cited supports the sentence
    measured = re.sub(r"(?i)(\b|_)json\w*\.", ".", name)  # "gpt4_json.verdict", Kili's "jsonResponse.VERDICT"
    if find_vocabulary_words_in_column_name("measures", measured) - parts and not agrees:
        return "measure"
    if find_vocabulary_words_in_column_name("qualities", name) - parts:
        return "quality"
    if (
        has_vocabulary_word_in_column_name("soft_measures", list_searchable_forms_of_column_name(name)[-1])
        and not judges
        and not people
    ):
        return "measure"
    field = name.rpartition(".")[2]  # "reference_outputs.supported" is no reference answer
    is_label_field = field != name and any(
        has_vocabulary_word_in_column_name(kind, field) for kind in ("people", "labels")
    )
    is_label_field = is_label_field and column.kind == "binary"
    if name.startswith("GOLDEN:") or (has_vocabulary_word_in_column_name("answers", name) and not is_label_field):
        return "answer"  # GOLDEN: Toloka's control tasks
    keys = list_searchable_forms_of_column_name(name)
    if len(keys) > 1 and keys[-1] in SOFT_MEASURES:
        return "measure"  # "feedback_stats.human.n"
    if keys[0] in (*COLUMN_NAMES["score"], *COLUMN_NAMES["prediction"]):
        return "plain"
    is_doubtful = not people and has_vocabulary_word_in_column_name("doubtful_judgements", name)
    if is_doubtful and not has_vocabulary_word_in_column_name("labels", name) and not judges & SUPPORT_WORDS:
        return "unknown"
    if people and judges - LOOSE_JUDGE_WORDS:
        return "judge" if people <= _LOOSE_PEOPLE_WORDS else "both"
    if people:
        return "people"
    if judges and column.kind == "binary" and {*normalise_vocabulary_words(name).split()} & _CALL_WORDS:
        return "unknown"
    if judges:
        return "judge"
    if has_vocabulary_word_in_column_name("users", name) and column.kind == "binary":
        return "flag"
    if any(key in COLUMN_NAMES["score"] or key in COLUMN_NAMES["prediction"] for key in keys):
        return "plain"
    if has_vocabulary_word_in_column_name("labels", name) or any(key in COLUMN_NAMES["label"] for key in keys):
        is_of_judge = has_vocabulary_word_in_column_name("either_way", name) or {*keys[-1].split()} & _PROBABILITY_WORDS
        return "judge" if is_of_judge and column.kind == "share" and column.is_fine_score else "label"
    words = {*normalise_vocabulary_words(name).split()}
    if column.kind == "binary" and has_name_of_error(name) and not words & (_CALL_WORDS | {"flagged", "flags"}):
        return "label"
    if column.kind in ("name", "text", "id") and has_name_of_error(name):
        is_kind = has_vocabulary_word_in_column_name("kinds", name)  # "error_type": none, EntE, OutE
        if is_kind or (column.kind == "name" and column.n_different <= 3):
            return "label"
    is_named_score = extract_evaluator_name(name) != name or has_name_of_error(name)
    if column.is_fine_score and column.kind == "share" and is_named_score:
        return "judge"  # a score, and nobody gives 0.83
    if extract_evaluator_name(name) != name and column.kind != "number":
        return "unknown"
    first = normalise_vocabulary_words(name).split()[0] if normalise_vocabulary_words(name) else ""
    return "flag" if first in ("is", "has", "contains", "needs", "was") else "unknown"


def is_name_of_person(evaluator: str) -> bool:
    """Whether an evaluator's name is one of people ("human"), and of no judge."""
    judges = find_vocabulary_words_in_column_name("judges", evaluator) - LOOSE_JUDGE_WORDS
    return has_vocabulary_word_in_column_name("people", evaluator) and not judges


def find_measure_named_evaluators(names: Sequence[str]) -> dict[str, str]:
    """The evaluators of a long table whose names are those of measures (latency) or other qualities (helpfulness), and
    which; none where nothing would be left."""
    found: dict[str, str] = {}
    for name in names:
        judges = find_vocabulary_words_in_column_name("judges", name)
        parts = _OVERLAP_METRIC_PARTS if judges & _OVERLAP_METRICS else frozenset()
        for kind, words in (("measure", "measures"), ("quality", "qualities")):
            if find_vocabulary_words_in_column_name(words, name) - parts - _JUDGE_SETTINGS:
                found.setdefault(name, REASONS[kind])
    return found if len(found) < len(names) else {}


def extract_evaluator_name(column_name: str) -> str:
    """The evaluator's name in a column's: ``gpt4_score`` and ``pred_gpt4`` are gpt4's."""
    column_name = strip_column_name_values_hint(column_name)
    heading, dot, rest = column_name.partition(".")
    if dot and rest and normalise_vocabulary_words(heading) in _JUDGE_HEADINGS:
        return extract_evaluator_name(rest)
    for suffix in _VERDICT_SUFFIXES:
        if column_name.endswith(suffix) and len(column_name) > len(suffix):
            return column_name.removesuffix(suffix)
    if normalise_vocabulary_words(column_name).replace(" ", "") in find_vocabulary_words_in_column_name(
        "judges", column_name
    ):
        return column_name  # AlignScore
    if (bracketed := re.fullmatch(r"(.+\S)\s*\((\w+)\)", column_name)) and bracketed[2].lower() in VERDICT_AFFIXES:
        return bracketed[1]
    lower = column_name.lower()
    for affix in VERDICT_AFFIXES:
        for separator in ("_", "-", ".", " ", "/"):
            if lower.endswith(f"{separator}{affix}"):
                return column_name[: -len(affix) - 1]
            if lower.startswith(f"{affix}{separator}") and not _OF_PATTERN.match(lower[len(affix) + 1 :]):
                return re.sub(r"^\((.+)\)$", r"\1", column_name[len(affix) + 1 :])  # "Verdict (AI)"
        if affix in _HUMP_AFFIXES and re.search(rf"[a-z]{affix.capitalize()}$", column_name):
            return column_name[: -len(affix)]  # judgeScore
    return column_name


def take_threshold_beside_score(reading: TableReading, evaluator: str) -> float | None:
    """The one value of the column ``NAME_threshold``, which says where the scores of NAME are cut; the reading notes
    that the column is used."""
    wanted = normalise_vocabulary_words(evaluator)
    for column in reading.profiles.values():
        name, _, last = normalise_vocabulary_words(column.name).rpartition(" ")
        is_cut = name == wanted and last in ("threshold", "cutoff")
        if is_cut and column.n_different == 1 and column.low is not None:
            reading.unread[column.name] = f"where {evaluator}'s scores are cut"
            return column.low
    return None


def read_column_as_binary_judgements(rows: pd.DataFrame, column: ColumnProfile) -> np.ndarray:
    """What a column says of each row's claim as 1, 0 or NaN: words and numbers as they are read where nothing else is
    said."""
    values = rows[column.name]
    reverse = has_name_of_error(column.name)
    if column.kind == "binary":
        words = [None if has_no_value(value) else normalise_label_word(value) for value in values]
        minus = 0 if {*map(normalise_label_word, column.words)} == {"1", "-1"} else None
        found = [None if word is None else minus if word == "-1" else parse_label_word(word) for word in words]
        turned = [
            1 - said if said is not None and reverse and word in BARE_WORDS else said
            for word, said in zip(words, found, strict=True)
        ]
        return np.array([np.nan if said is None else said for said in turned], dtype=np.float64)
    numbers = parse_judgement_numbers(values).to_numpy()
    if not np.isfinite(numbers).any():
        return numbers
    low, high = np.nanmin(numbers), np.nanmax(numbers)
    limit = 0.5 if low >= 0 and high <= 1 else (low + high) / 2
    said = np.where(np.isnan(numbers), np.nan, (numbers > limit).astype(np.float64))
    return 1 - said if reverse else said


def has_numbers(column: ColumnProfile) -> bool:
    """Whether some of a column's words are numbers: then what is none of them is a mistake."""
    numbers = parse_judgement_numbers(pd.Series(column.words, dtype="object"))
    return column.is_half_numbers or bool(numbers.notna().any() and not numbers.dropna().isin([-1, 0, 1]).all())


def are_same(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether two columns say the same wherever both say anything."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return bool(both.sum() >= _MIN_SAME_ROWS and (first[both] == second[both]).all())


def detect_direction_of_threshold_between_columns(rows: pd.DataFrame, fine: ColumnProfile, coarse: np.ndarray) -> int:
    """1 where another column says 1 beyond some threshold on a column of numbers, -1 where below one, else 0."""
    numbers = parse_judgement_numbers(rows[fine.name]).to_numpy()
    both = np.isfinite(numbers) & ~np.isnan(coarse)
    high, low = numbers[both & (coarse == 1)], numbers[both & (coarse == 0)]
    if both.sum() < _MIN_SAME_ROWS or not len(high) or not len(low):
        return 0
    return int(high.min() > low.max()) - int(high.max() < low.min())


def choose_support_probability_column(reading: TableReading, columns: Sequence[ColumnProfile]) -> set[str]:
    """Of columns that sum to 1 in each row, the probabilities of one classifier's classes, take that of support; ask
    where no name says which it is. Returns the columns taken."""
    shares = [one for one in columns if one.kind == "share" and one.is_fine_score][:8]
    numbers = {one.name: parse_judgement_numbers(reading.rows[one.name]).to_numpy() for one in shares}
    taken: set[str] = set()
    for group in (group for size in (3, 2) for group in combinations(shares, size)):
        names = [one.name for one in group]
        total = np.sum([numbers[name] for name in names], axis=0)
        known = np.isfinite(total)
        if known.sum() < _MIN_SAME_ROWS or not (np.abs(total[known] - 1) < 0.02).all() or taken & {*names}:
            continue
        said = {name: _parse_class_name(name) for name in names}
        if all(value is None for value in said.values()):
            continue  # two evaluators that happen to
        support = [name for name in names if said[name] == 1] or [name for name in names if said[name] is None]
        if len(support) == 1:
            taken.add(support[0])
            others = [name for name in names if name != support[0]]
            reading.unread |= dict.fromkeys(others, f"the probability of another class than {support[0]}")
            continue
        readings = [
            PossibleColumnReading(
                f"{name} is the score of support", {"wide": [name], "unread": [n for n in names if n != name]}
            )
            for name in names
        ]
        reading.questions.append(OpenQuestion(f"{', '.join(names)} sum to 1: probabilities of classes", readings))
    return taken


def _parse_class_name(column_name: str) -> int | None:
    """Of which class, 1 or 0, a column's name says that it holds the probability."""
    words = re.findall(r"\w+", normalise_vocabulary_words(column_name))
    return 0 if has_name_of_error(column_name) else parse_label_word(words[-1]) if words else None


def explain_unread_number_columns(reading: TableReading, classes: Mapping[str, str]) -> None:
    """Say why columns of numbers are nothing that was judged."""
    for column in reading.list_free_columns():
        kind = classes.get(column.name)
        if kind in REASONS:
            reading.unread[column.name] = REASONS[kind]
        elif column.is_time or column.counts_up:
            reading.unread[column.name] = REASONS["time" if column.is_time else "counter"]
        elif column.n_different == 1 and kind is not None:
            reading.unread[column.name] = REASONS["constant"]
