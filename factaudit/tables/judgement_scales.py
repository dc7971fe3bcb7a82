"""What numbers and words of judgements mean: scales, thresholds and words, or the question which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import is_number_text
from factaudit.tables.column_mapping import ScoreTransform
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.judgement_words import map_label_words_to_binary
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, leave_columns_unread
from factaudit.tables.vocabulary import (
    find_unknown_words,
    find_vocabulary_words_in_column_name,
    is_name_of_doubtful_direction,
    is_reversed_column_name,
    normalise_vocabulary_words,
    parse_stated_range,
)

Scale = tuple[float, float] | ScoreTransform
#: Scales that judgements are commonly on, the likelier first.
_COMMON_SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (1, 3), (0, 2), (0, 3), (1, 4), (0, 4), (0, 20), (0, 100))
#: Of these a column that has both ends is on no other.
_SURE_SCALES = ((1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
#: Of more codes the user says by hand which is which.
_MAX_CODES = 4
#: Of grades of more levels not every cut is offered.
_MAX_LEVELS = 6
#: Names of judges that say one of three classes: entailment, neutral and contradiction.
_NLI_WORDS = {"nli", "mnli", "anli", "bert", "roberta", "deberta", "mdeberta", "bart", "entailment"}
#: Words of a column of negative logarithms of probabilities.
_NLL_WORDS = {"nll", "loss", "neg", "negative", "surprisal"}
#: Grades of schools: the best is 1 in some countries, and 5 or 6 in others.
_SCHOOL_GRADE_PATTERN = re.compile(r"\b(schul)?noten?\b|\bznamka|\bocena\b|\bgrades?\b")
#: A column that goes so high, and no higher than 100, is on the scale to 100.
_SURELY_PERCENT = 50


def find_score_scale(
    column: ColumnProfile, key: str, chosen_scale: Scale | None
) -> tuple[Scale | None, OpenQuestion | None]:
    """Not supported and supported on a column's scale, None for [0, 1] with 1 = supported; or the question which.

    key: what ``--scale`` calls the column.
    """
    if chosen_scale is not None:
        return (None if chosen_scale == (0, 1) else chosen_scale), None
    if column.low is None or column.high is None or column.kind == "binary":
        return None, None
    reverse = is_reversed_column_name(column.name)
    low, high = column.low, column.high
    if find_vocabulary_words_in_column_name("judges", column.name) & {"logit", "logits"}:
        return ("-logit" if reverse else "logit"), None
    if low >= 0 and high <= 1 and find_vocabulary_words_in_column_name("either_way", column.name):
        ends = ((1.0, 0.0), (0.0, 1.0))
        readings = [
            PossibleColumnReading(
                f"{key} runs from {a:g} (not supported) to {b:g} (supported)", {"scales": {key: [a, b]}}
            )
            for a, b in ends
        ]
        readings.append(leave_columns_unread([column.name]))
        text = f"{column.name!r}: high scores of some detectors of this name mean support, of others hallucination"
        return None, OpenQuestion(text, readings)
    if low >= 0 and high <= 1:
        return ((1.0, 0.0) if reverse else None), None
    if (stated := find_stated_range(column)) is not None and not is_school_grade(column):
        return _turn_scale(stated, reverse), None
    if (low, high) in _SURE_SCALES and column.kind == "grade":
        return _turn_scale((low, high), reverse), None
    if low >= 0 and _SURELY_PERCENT < high <= 100:
        return _turn_scale((0, 100), reverse), None
    if low == high:
        return None, None
    common = _COMMON_SCALES if stated is None else (stated,)
    found: list[tuple[float, float]] = [(float(a), float(b)) for a, b in common if a <= low and high <= b][:3]
    if column.n_different == 2 and column.kind == "grade" and found:  # two codes of classes
        found = [(low, high), *(one for one in found[:2] if one != (low, high))]
    reverse = reverse or is_school_grade(column)
    ranges = [(b, a) if reverse else (a, b) for a, b in found]
    ranges = [*ranges, *((b, a) for a, b in ranges[:1])]
    scales: list[tuple[str, Scale]] = [
        (f"{key} is on the scale from {a:g} (not supported) to {b:g} (supported)", (float(a), float(b)))
        for a, b in ranges
    ]
    if low < 0 < high:
        scales = [
            (f"{key} is a logit: above 0 is support", "logit"),
            (f"{key} is a logit: below 0 is support", "-logit"),
        ]
        scales = scales[::-1] if reverse else scales
    if high <= 0 < column.n_different - 2:
        scales.append((f"{key} is the logarithm of a probability: above log 1/2 is support", "log"))
    if low >= 0 and column.kind == "number" and _NLL_WORDS & {*normalise_vocabulary_words(column.name).split()}:
        scales.insert(0, (f"{key} is the negative logarithm of a probability: below -log 1/2 is support", "-log"))
    if not found or column.kind == "number":
        a, b = (high, low) if reverse else (low, high)
        scales.append((f"{key} is on the scale from {a:g} (not supported) to {b:g} (supported)", (a, b)))
    held = f"{low:g} to {high:g}"
    readings = [PossibleColumnReading(text, {"scales": {key: _plain_scale(scale)}}) for text, scale in scales]
    if {*column.words} == {"0", "1", "2"}:
        codes = [
            PossibleColumnReading(
                f"of {key} only the code {code} is support",
                {"scales": {key: [2.0 - code, float(code)]}, "thresholds": {key: abs(code - 0.5)}},
            )
            for code in (0, 2)
        ]
        is_nli = find_vocabulary_words_in_column_name("judges", column.name) & _NLI_WORDS
        readings = [*codes, *readings] if is_nli else [*readings, *codes]
    text = f"{column.name!r} holds numbers from {held}: the scale is not said"
    return None, OpenQuestion(text, [*readings, leave_columns_unread([column.name])])


def find_stated_range(column: ColumnProfile) -> tuple[float, float] | None:
    """The lowest and highest number that a column's name says that it may hold (``human (0-2)``), where it does."""
    stated = parse_stated_range(column.name)
    if stated is None or column.low is None or column.high is None or stated in ((0, 1), (1, 0)):
        return None
    return stated if stated[0] <= column.low and column.high <= stated[1] else None


def is_school_grade(column: ColumnProfile) -> bool:
    """Whether a column holds whole numbers from 1 to 5 or 6 and is called the grade of a school, of which the best may
    be 1 or the highest."""
    is_range = column.kind == "grade" and column.low is not None and column.low >= 1 and (column.high or 0) <= 6
    return is_range and bool(_SCHOOL_GRADE_PATTERN.search(normalise_vocabulary_words(column.name)))


def _turn_scale(scale: tuple[float, float], reverse: bool) -> Scale:
    low, high = map(float, scale)
    return (high, low) if reverse else (low, high)


def _plain_scale(scale: Scale) -> Any:
    return scale if isinstance(scale, str) else [float(one) for one in scale]


def scale_judgement_numbers(
    numbers: pd.Series, scale: tuple[float, float] | str, limit: float | None
) -> tuple[pd.Series, pd.Series, pd.Series | None]:
    """The support in [0, 1] that numbers of a scale stand for, whether each is beyond the limit, and their grades.

    limit: by default the scale's middle; of logits and logarithms, where support is 1/2. Grades are the numbers
    themselves, where the scale is not 0 to 1 and more is more support; else None. Numbers outside of the scale have a
    support outside of [0, 1].

    >>> support, beyond, grades = scale_judgement_numbers(pd.Series([1.0, 4.0]), (1, 5), None)
    >>> support.tolist(), beyond.tolist(), grades.tolist()
    ([0.0, 0.75], [0, 1], [1.0, 4.0])
    """
    if isinstance(scale, str):
        low, high = (1.0, -1.0) if scale.startswith("-") else (-1.0, 1.0)
        signed = high * numbers
        support = np.exp(signed) if scale.endswith("log") else 1 / (1 + np.exp(-signed))
        middle = high * np.log(0.5) if scale.endswith("log") else 0.0
    else:
        low, high = scale
        support = (numbers - low) / (high - low)
        middle = (low + high) / 2
    limit = middle if limit is None else limit
    beyond = numbers > limit if high > low else numbers < limit
    is_graded = not isinstance(scale, str) and low < high and (low, high) != (0, 1)
    return support, beyond.astype("Int8").mask(numbers.isna(), pd.NA), numbers if is_graded else None


def ask_about_doubtful_directions(
    labelled: Sequence[ColumnProfile], judged: Sequence[ColumnProfile], chosen: Mapping[str, Any]
) -> list[OpenQuestion]:
    """Asks of columns whose names may call an error what they say 1, yes, or a high score, of.

    Words that the names of a label and of an evaluator share (``Weak? (human)``, ``Weak? (model)``) say what was
    judged: where these words are not known, one question is about both columns. chosen: the scales that the user said.
    """
    turnable = [one for one in (*labelled, *judged) if one.name not in chosen and _can_be_turned(one)]
    shared = find_unknown_words(*(one.name for one in labelled)) & find_unknown_words(*(one.name for one in judged))
    alike = [one for one in turnable if find_unknown_words(one.name) & shared]
    groups = [[one] for one in turnable if one not in alike and is_name_of_doubtful_direction(one.name)]
    questions = []
    for columns in [*groups, alike] if alike else groups:
        names = ", ".join(repr(one.name) for one in columns)
        ends = {
            one.name: [0.0, 1.0] if one.low is None or one.kind == "share" else [one.low, one.high or 0.0]
            for one in columns
        }
        readings = [
            PossibleColumnReading(
                ", ".join(
                    f"{name} runs from {a:g} (not supported) to {b:g} (supported)" for name, (a, b) in scales.items()
                ),
                {"scales": scales},
            )
            for scales in ({name: [high, low] for name, (low, high) in ends.items()}, ends)
        ]
        questions.append(OpenQuestion(f"{names}: whether 1, yes or a high score means an error is not said", readings))
    return questions


def _can_be_turned(column: ColumnProfile) -> bool:
    """Whether its values say something else where they are read upside down."""
    if column.low is not None:
        return column.kind == "share" or column.low != column.high
    return map_label_words_to_binary(column, True) != map_label_words_to_binary(column, False)


def ask_grade_threshold_of_support(
    columns: Sequence[ColumnProfile], chosen_words: Mapping[str, int | None]
) -> list[OpenQuestion]:
    """Asks from which grade on a claim is attributable."""
    said = {normalise_vocabulary_words(word) for word in chosen_words}
    graded = [one for one in columns if one.low is not None and one.high is not None and one.kind != "binary"]
    graded = [
        one for one in graded if not one.words or not {normalise_vocabulary_words(word) for word in one.words} <= said
    ]
    if not graded:
        return []
    names = ", ".join(repr(one.name) for one in graded)
    low, high = min(one.low or 0.0 for one in graded), max(one.high or 0.0 for one in graded)
    words = [word.replace(",", ".") for one in graded for word in one.words]
    values = sorted({float(word) for word in words if is_number_text(word)})
    if len(values) == 2 and len(graded) == 1:
        a, b = (f"{value:g}" for value in values)
        return [
            OpenQuestion(
                f"{names} has the codes {a} and {b}: which is attributable is not said",
                [
                    PossibleColumnReading(f"{yes} is attributable, {no} not", {"labels": {yes: 1, no: 0}})
                    for yes, no in (((a, b), (b, a)) if (a, b) == ("1", "2") else ((b, a), (a, b)))
                ],
            )
        ]
    if low == high:
        return []  # whoever reads the labels says what was expected
    stated = next(filter(None, map(find_stated_range, graded)), None)
    is_whole = bool(values) and high > 1 and all(value == round(value) for value in values)
    is_coded = {0, 1} < {*values} and all(value == round(value) for value in values)
    if is_coded and len(graded) == 1 and len(values) <= _MAX_CODES and stated is None:
        return [_ask_about_label_codes(names, values)]
    near = [one for one in _COMMON_SCALES if one[0] <= low and high <= one[1]]
    bottom, top = stated or next((one for one in near if one == (low, high)), next(iter(near), (low, high)))
    middle = (bottom + top) / 2
    is_school = any(map(is_school_grade, graded))
    is_low_good = any(is_reversed_column_name(one.name) for one in graded)
    ups = [0.5, 0.99] if low >= 0 and high <= 1 else [middle, middle - 1 if top - bottom > 2 else bottom]
    downs: list[float] = []
    if is_whole and 1 < top - bottom <= _MAX_LEVELS:
        levels = [float(one) for one in range(round(bottom), round(top))]
        ups = sorted(levels, key=lambda one: abs(one - middle))
        downs = sorted(levels, key=lambda one: abs(one + 1 - middle)) if is_school or is_low_good else []
    ways: list[tuple[str, dict[str, Any]]] = [
        (f"above {one:g} is attributable", {"label_threshold": float(one)}) for one in ups
    ]
    turned: list[tuple[str, dict[str, Any]]] = [
        (
            f"up to {one:g} is attributable",
            {"labels": {f"{value}": int(value <= one) for value in range(round(bottom), round(top) + 1)}},
        )
        for one in downs
    ]
    text = f"{names} holds grades from {low:g} to {high:g}: from which on a claim is attributable is not said"
    return [OpenQuestion(text, [PossibleColumnReading(*way) for way in (*turned, *ways)])]


def _ask_about_label_codes(names: str, values: Sequence[float]) -> OpenQuestion:
    """0, 1 and a few more: codes of classes, a code for no label, or grades."""
    others = [f"{value:g}" for value in values if value not in (0, 1)]
    listed = ", ".join(others)
    readings = [
        PossibleColumnReading(
            f"only 1 is attributable, {text}", {"labels": {"0": 0, "1": 1, **dict.fromkeys(others, value)}}
        )
        for text, value in ((f"{listed} is not labelled", None), (f"{listed} is not", 0))
    ]
    if min(values) == 0 and max(values) < 10:
        codes = {"0": 1, "1": 0, **dict.fromkeys(others, 0)}
        readings.append(PossibleColumnReading("only 0 is attributable (as codes of NLI are)", {"labels": codes}))
        readings.append(
            PossibleColumnReading(f"above {max(values) - 1:g} is attributable", {"label_threshold": max(values) - 1})
        )
        readings.append(PossibleColumnReading("above 0 is attributable", {"label_threshold": 0.0}))
    said = ", ".join(f"{value:g}" for value in values)
    return OpenQuestion(f"{names} has the codes {said}: which is attributable is not said", readings)
