"""What numbers and words of judgements mean: scales, thresholds and words, or the question which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import find_verdict_in_reply, is_number_text
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading, leave_columns_unread
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    find_vocabulary_words_in_column_name,
    is_name_of_doubtful_direction,
    is_reversed_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)

Scale = tuple[float, float] | Literal["logit", "-logit"]
#: Scales that judgements are commonly on, the likelier first.
_COMMON_SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (1, 3), (0, 2), (0, 3), (1, 4), (0, 4), (0, 20), (0, 100))
#: Of these a column that has both ends is on no other.
_SURE_SCALES = ((1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
#: Of more unknown words the user says by hand which is which.
_MAX_WORD_READINGS = 4
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
    if (low, high) in _SURE_SCALES and column.kind == "grade":
        return _turn_scale((low, high), reverse), None
    if low >= 0 and _SURELY_PERCENT < high <= 100:
        return _turn_scale((0, 100), reverse), None
    if low == high:
        return None, None
    found: list[tuple[float, float]] = [(float(a), float(b)) for a, b in _COMMON_SCALES if a <= low and high <= b][:3]
    if column.n_different == 2 and column.kind == "grade" and found:  # two codes of classes
        found = [(low, high), *(one for one in found[:2] if one != (low, high))]
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
    if not found or column.kind == "number":
        a, b = (high, low) if reverse else (low, high)
        scales.append((f"{key} is on the scale from {a:g} (not supported) to {b:g} (supported)", (a, b)))
    held = f"{low:g} to {high:g}"
    readings = [PossibleColumnReading(text, {"scales": {key: _plain_scale(scale)}}) for text, scale in scales]
    text = f"{column.name!r} holds numbers from {held}: the scale is not said"
    return None, OpenQuestion(text, [*readings, leave_columns_unread([column.name])])


def _turn_scale(scale: tuple[float, float], reverse: bool) -> Scale:
    low, high = map(float, scale)
    return (high, low) if reverse else (low, high)


def _plain_scale(scale: Scale) -> Any:
    return scale if isinstance(scale, str) else [float(one) for one in scale]


def scale_judgement_numbers(
    numbers: pd.Series, scale: tuple[float, float] | str, limit: float | None
) -> tuple[pd.Series, pd.Series, pd.Series | None]:
    """The support in [0, 1] that numbers of a scale stand for, whether each is beyond the limit, and their grades.

    limit: by default the scale's middle. Grades are the numbers themselves, where the scale is not 0 to 1 and more is
    more support; else None. Numbers outside of the scale have a support outside of [0, 1].

    >>> support, beyond, grades = scale_judgement_numbers(pd.Series([1.0, 4.0]), (1, 5), None)
    >>> support.tolist(), beyond.tolist(), grades.tolist()
    ([0.0, 0.75], [0, 1], [1.0, 4.0])
    """
    if isinstance(scale, str):
        low, high = (-1.0, 1.0) if scale == "logit" else (1.0, -1.0)
        support = 1 / (1 + np.exp(-numbers if scale == "logit" else numbers))
    else:
        low, high = scale
        support = (numbers - low) / (high - low)
    limit = (low + high) / 2 if limit is None else limit
    beyond = numbers > limit if high > low else numbers < limit
    is_graded = not isinstance(scale, str) and low < high and (low, high) != (0, 1)
    return support, beyond.astype("Int8").mask(numbers.isna(), pd.NA), numbers if is_graded else None


def is_judgement_column_reversed(column_name: str, scales: Mapping[str, Any]) -> bool:
    """Whether 1 and yes in a column mean not supported: as the user says, else by its name."""
    chosen = scales.get(column_name)
    if chosen is not None and not isinstance(chosen, str):
        return bool(chosen[0] > chosen[1])
    return is_reversed_column_name(column_name)


def list_reading_of_turned_labels(column: ColumnProfile, scales: Mapping[str, Any]) -> list[PossibleColumnReading]:
    """The reading by which a column of labels says the opposite; none where its words are verdicts, which say the same
    under any name, or the user said which way it is."""
    if (
        column.name in scales
        or column.low is not None
        or map_label_words_to_binary(column, True) == map_label_words_to_binary(column, False)
    ):
        return []
    reverse = is_judgement_column_reversed(column.name, scales)
    said = "attributable" if reverse else "not attributable"
    mapping = {"scales": {column.name: [0.0, 1.0] if reverse else [1.0, 0.0]}}
    return [PossibleColumnReading(f"1 and yes in {column.name} are {said}", mapping)]


def map_label_words_to_binary(column: ColumnProfile, is_reversed: bool) -> dict[str, int | None]:
    """Each word of a column as 1 or 0; words that say neither are left out."""
    found: dict[str, int | None] = {}
    for word in _list_telling_words(column):
        value, known = parse_label_word(word), normalise_vocabulary_words(word)
        if is_reversed and known == "none":
            found[word] = 1
        elif value is not None:
            found[word] = 1 - value if is_reversed and known in BARE_WORDS else value
    return found


def _list_telling_words(column: ColumnProfile) -> list[str]:
    """The words of a column, without the "neutral" of a scale from agree to disagree, which is no verdict of NLI."""
    agrees = any(normalise_vocabulary_words(word).endswith("agree") for word in column.words)
    return [word for word in sorted(column.words) if not (agrees and normalise_vocabulary_words(word) == "neutral")]


def ask_meaning_of_judgement_words(
    columns: Sequence[ColumnProfile], chosen_words: Mapping[str, int | None]
) -> list[OpenQuestion]:
    """Asks what words mean that say neither 1 nor 0."""
    said = {normalise_vocabulary_words(word) for word in chosen_words}
    questions = []
    for column in columns:
        telling = [word for word in _list_telling_words(column) if parse_label_word(word) is not None]
        telling += [word for word in column.words if normalise_vocabulary_words(word) in said and word not in telling]
        unknown = [word for word in column.words if word not in telling and normalise_vocabulary_words(word) != "none"]
        unknown = [word for word in unknown if find_verdict_in_reply(word) is None]
        has_known = bool(telling) or (is_reversed_column_name(column.name) and "none" in map(str.lower, column.words))
        if unknown and (has_known or len(unknown) > 1):
            said |= {normalise_vocabulary_words(word) for word in unknown}
            questions.append(_ask_about_unknown_words(column, unknown, has_known))
    return questions


def _ask_about_unknown_words(column: ColumnProfile, unknown: Sequence[str], has_known: bool) -> OpenQuestion:
    listed = ", ".join(map(repr, unknown))
    known = map_label_words_to_binary(column, is_reversed_column_name(column.name))
    is_letter = all(len(word) <= 2 or normalise_vocabulary_words(word) in BARE_WORDS for word in known)
    if len(known) == len(unknown) == 1 and is_letter:  # F and H: one may be a word that we know, or not
        said = next(iter(known.values()))
        assert said is not None
        ways: list[dict[str, int | None]] = [dict.fromkeys(unknown, 1 - said), dict.fromkeys(unknown, None)]
        ways.append({**dict.fromkeys(unknown, said), **dict.fromkeys(known, 1 - said)})
        meanings = {0: "not attributable", 1: "attributable", None: "not labelled"}
        readings = [
            PossibleColumnReading(
                ", ".join(f"{word!r}: {meanings[value]}" for word, value in way.items()), {"labels": way}
            )
            for way in ways
        ]
    elif has_known:
        choices = [("not attributable", 0), ("not labelled", None), ("attributable", 1)]
        readings = [
            PossibleColumnReading(f"{listed}: {text}", {"labels": dict.fromkeys(unknown, value)})
            for text, value in choices
        ]
    else:
        readings = [
            PossibleColumnReading(
                f"{one!r} is attributable, the rest not", {"labels": {w: int(w == one) for w in unknown}}
            )
            for one in unknown[:_MAX_WORD_READINGS]
        ]
    return OpenQuestion(f"{column.name!r} has {listed}: attributable or not", readings)


def ask_about_doubtful_directions(columns: Sequence[ColumnProfile], chosen: Mapping[str, Any]) -> list[OpenQuestion]:
    """Asks of columns whose names may call an error what they say 1, yes, or a high score, of.

    chosen: the scales that the user said.
    """
    questions = []
    for column in columns:
        low, high = (0.0, 1.0) if column.low is None or column.kind == "share" else (column.low, column.high or 0.0)
        turns = column.low is not None or map_label_words_to_binary(column, True) != map_label_words_to_binary(
            column, False
        )
        if column.name in chosen or low == high or not turns or not is_name_of_doubtful_direction(column.name):
            continue
        text = f"{column.name!r}: whether 1, yes or a high score means an error is not said"
        readings = [
            PossibleColumnReading(
                f"{column.name} runs from {a:g} (not supported) to {b:g} (supported)", {"scales": {column.name: [a, b]}}
            )
            for a, b in ((high, low), (low, high))
        ]
        questions.append(OpenQuestion(text, readings))
    return questions


def ask_about_opposite_words(
    columns: Sequence[ColumnProfile], chosen_words: Mapping[str, int | None], chosen_scales: Mapping[str, Any]
) -> list[OpenQuestion]:
    """Asks where two words that say the opposite would mean the same under a column's name: one of them is turned round
    by it, and the other is not."""
    said = {normalise_vocabulary_words(word) for word in chosen_words}
    questions = []
    for column in columns:
        words = {word: value for word, value in map_label_words_to_binary(column, False).items() if value is not None}
        turned = map_label_words_to_binary(column, is_judgement_column_reversed(column.name, chosen_scales))
        if (
            len({*words.values()}) < 2
            or len({*turned.values()}) > 1
            or said & {*map(normalise_vocabulary_words, words)}
        ):
            continue
        readings = [
            PossibleColumnReading(
                f"{', '.join(map(repr, sorted(w for w in words if way[w])))}: attributable, the rest not",
                {"labels": way},
            )
            for way in ({word: 1 - value for word, value in words.items()}, words)
        ]
        questions.append(
            OpenQuestion(f"{column.name!r} has {', '.join(map(repr, words))}: attributable or not", readings)
        )
    return questions


def ask_about_blank_labels(column: ColumnProfile, chosen_words: Mapping[str, int | None]) -> list[OpenQuestion]:
    """Asks what a blank cell means in a column whose other cells all say the same: an "x" for some claims."""
    if (
        "" in chosen_words
        or not column.n_missing
        or column.n_present < 2
        or column.n_different != 1
        or not column.words
    ):
        return []
    word = column.words[0]
    value = (
        map_label_words_to_binary(column, is_reversed_column_name(column.name)).get(word)
        if column.low is None
        else None
    )
    reverse = is_reversed_column_name(column.name)
    value = int(not reverse) if value is None else value
    blank = "blank is attributable" if value == 0 else "blank is not attributable"
    said = f"{word!r} is {'attributable' if value else 'not attributable'}"
    readings = [
        PossibleColumnReading(f"{said}, {blank}", {"labels": {word: value, "": 1 - value}}),
        PossibleColumnReading(f"{said}, blank is not labelled", {"labels": {word: value, "": None}}),
    ]
    text = f"{column.name!r} says {word!r} or nothing: a blank cell may say the opposite, or be no label yet"
    return [OpenQuestion(text, readings[::-1] if normalise_vocabulary_words(word) in ("0", "1") else readings)]


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
    is_coded = {0, 1} < {*values} and all(value == round(value) for value in values)
    if is_coded and len(graded) == 1 and len(values) <= _MAX_WORD_READINGS:
        return [_ask_about_label_codes(names, values)]
    if low >= 0 and high <= 1:
        limits = [0.5, 0.99]
    else:
        near = [one for one in _COMMON_SCALES if one[0] <= low and high <= one[1]]
        scale = next((one for one in near if one == (low, high)), next(iter(near), (low, high)))
        middle = (scale[0] + scale[1]) / 2
        limits = [middle, middle - 1 if scale[1] - scale[0] > 2 else scale[0]]
    text = f"{names} holds grades from {low:g} to {high:g}: from which on a claim is attributable is not said"
    return [
        OpenQuestion(
            text,
            [
                PossibleColumnReading(f"above {one:g} is attributable", {"label_threshold": float(one)})
                for one in limits
            ],
        )
    ]


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
