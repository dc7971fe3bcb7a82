"""What words and numbers of judgements mean: labels, thresholds, scales and directions, or the question which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import find_verdict_in_reply, is_number_text
from factaudit.tables.column_mapping import ColumnMapping, ScoreTransform
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.questions import OpenQuestion
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    FAILURE_WORDS,
    find_direction_of_column_name,
    find_unknown_words,
    find_vocabulary_words,
    has_vocabulary_word_in_column_name,
    is_reversed_column_name,
    normalise_label_word,
    normalise_vocabulary_words,
    parse_label_word,
    parse_stated_range,
)

Scale = tuple[float, float] | ScoreTransform
#: Scales that judgements are commonly on, the likelier first.
_COMMON_SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (1, 3), (0, 2), (0, 3), (1, 4), (0, 4), (0, 20), (0, 100))
#: Of these, a column of whole numbers that has both ends is on no other.
_SURE_SCALES = ((1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
#: A column that goes so high, and no higher than 100, is on the scale to 100.
_SURELY_PERCENT = 50
#: Of more codes, words or cuts the user says by hand which is which.
_MAX_OFFERED = 4


def is_column_reversed(column_name: str, mapping: ColumnMapping) -> bool:
    """Whether 1 and yes in a column mean not supported: as the user says, else by its name."""
    chosen = mapping.scale.get(column_name)
    if chosen is not None and not isinstance(chosen, str):
        return bool(chosen[0] > chosen[1])
    return column_name in mapping.high_is_error or is_reversed_column_name(column_name)


def map_label_words(column: ColumnProfile, is_reversed: bool) -> dict[str, int | None]:
    """Each word of a column as 1 or 0; words that say neither are left out. Of 1 and -1 alone, -1 is the opposite."""
    known = {word: normalise_label_word(word) for word in sorted(column.words)}
    are_signs = {*known.values()} == {"1", "-1"}
    values = {word: 0 if are_signs and text == "-1" else parse_label_word(word) for word, text in known.items()}
    # The "neutral" of a scale from agree to disagree is no verdict of NLI, and an "error" beside others for both may be
    # a judge's that failed.
    no_verdicts = {"neutral"} if any(text.endswith("agree") for text in known.values()) else set[str]()
    if {0, 1} <= {value for word, value in values.items() if known[word] not in FAILURE_WORDS}:
        no_verdicts |= FAILURE_WORDS
    found: dict[str, int | None] = {}
    for word, value in values.items():
        if is_reversed and known[word] == "none":
            found[word] = 1  # an error of the kind "none" is no error
        elif value is not None and known[word] not in no_verdicts:
            found[word] = 1 - value if is_reversed and (known[word] in BARE_WORDS or are_signs) else value
    return found


def ask_about_label(column: ColumnProfile, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks what a column of labels leaves open: from which grade on a claim is supported, or what its words mean."""
    said = {normalise_vocabulary_words(word) for word in mapping.labels}
    is_said = column.name in mapping.threshold or {*map(normalise_vocabulary_words, column.words)} <= said
    if column.low is not None and column.low != column.high and not is_said:
        return [_ask_about_grades(column, mapping), *ask_about_direction(column, column.name, mapping)]
    return [*_ask_about_blank_labels(column, mapping), *ask_about_prediction(column, column.name, mapping)]


def ask_about_prediction(column: ColumnProfile, name: str, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks what the words of a column mean, and whether 1 and yes in it mean an error.

    name: what ``--high-is-error`` calls it.
    """
    is_scaled = mapping.scale.get(name, (0, 1)) not in ((0, 1), (1, 0))
    is_worded = column.low is None and column.kind != "empty" and not is_scaled
    words = _ask_about_words(column, mapping) if is_worded else []
    return [*ask_about_direction(column, name, mapping), *words]


def _ask_about_words(column: ColumnProfile, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks about words that say neither 1 nor 0, and about words that a column's name turns to all the same."""
    said = {normalise_vocabulary_words(word) for word in mapping.labels}
    known = map_label_words(column, is_column_reversed(column.name, mapping))
    plain = map_label_words(column, False)
    left = {normalise_vocabulary_words(word) for word in known} | said | {"none"}
    unknown = [word for word in column.words if normalise_vocabulary_words(word) not in left]
    unknown = [word for word in unknown if find_verdict_in_reply(word) is None]
    if unknown and (known or len(unknown) > 1 or column.n_missing or column.name in mapping.columns.get("label", ())):
        text = f"{column.name} has {_list(unknown)}: supported, not supported, or not labelled"
        return [OpenQuestion(text, [{"labels": one} for one in _guess_meanings(unknown, {*known.values()})])]
    if len({*plain.values()}) == 2 and len({*known.values()}) < 2 and not said & {*map(str.lower, plain)}:
        turned = {word: None if value is None else 1 - value for word, value in plain.items()}
        text = f"{column.name} ({_list([*plain])}): which means supported"
        return [OpenQuestion(text, [{"labels": turned}, {"labels": plain}])]
    return []


def _guess_meanings(unknown: Sequence[str], known: set[int | None]) -> list[dict[str, int | None]]:
    """What unknown words may mean: beside known ones all the same, else one of them says supported."""
    if not known:
        chosen = sorted(unknown, key=len)[:_MAX_OFFERED]
        return [{word: int(word == one) for word in unknown} for one in chosen]
    values: list[int | None] = [1, None, 0] if known == {0} else [0, None, 1]
    if all({*normalise_vocabulary_words(word).split(":")[0].split()[:1]} & FAILURE_WORDS for word in unknown):
        values = [None, 0, 1]  # a judge that failed
    return [dict.fromkeys(unknown, value) for value in values]


def _list(words: Sequence[str]) -> str:
    return ", ".join(map(repr, words[:6]))


def _ask_about_blank_labels(column: ColumnProfile, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks what a blank cell means in a column of labels whose other cells all say the same: an "x" for some claims, or
    the kinds of their errors."""
    if "" in mapping.labels or not column.n_missing or column.n_present < 2 or not column.words:
        return []
    is_reversed = is_column_reversed(column.name, mapping)
    chosen = {normalise_vocabulary_words(word): value for word, value in mapping.labels.items()}
    known = map_label_words(column, is_reversed)
    said = {word: chosen.get(normalise_vocabulary_words(word), known.get(word)) for word in column.words}
    if len({*said.values()}) > 1 or (len(said) > 1 and None in said.values()):
        return []
    value = next(iter(said.values()))
    value = int(not is_reversed) if value is None else value
    answers = [{"labels": {**dict.fromkeys(said, value), "": blank}} for blank in (None, 1 - value)]
    text = f"{column.name} says {_list([*said])} or nothing: a blank cell may say the opposite, or be no label yet"
    return [OpenQuestion(text, answers)]


def _ask_about_grades(column: ColumnProfile, mapping: ColumnMapping) -> OpenQuestion:
    """Asks from which number on a claim is supported."""
    numbers = sorted({float(text) for word in column.words if is_number_text(text := word.replace(",", "."))})
    codes = [f"{number:g}" for number in numbers]
    answers: list[Mapping[str, Any]] = []
    if len(codes) == 2:  # 1 and 2 of a form count its choices
        zero, one = codes[::-1] if (codes == ["1", "2"]) != is_column_reversed(column.name, mapping) else codes
        answers = [{"labels": {one: 1, zero: 0}}, {"labels": {one: 0, zero: 1}}]
    else:
        answers = [{"threshold": {column.name: cut}} for cut in _list_cuts(column)]
        if {0, 1} < {*numbers}:  # other codes are no labels
            others = dict.fromkeys(code for code in codes if code not in "01")
            answers.append({"labels": {"1": 1, "0": 0, **others}})
    text = f"{column.name} ({column.describe_values()}): from which value on is a claim supported"
    return OpenQuestion(text, answers)


def _list_cuts(column: ColumnProfile) -> list[float]:
    """Values from which on a claim may be supported, the middle of the scale first."""
    low, high = column.low or 0.0, column.high or 0.0
    usual = (one for one in ((0, 1), *_COMMON_SCALES) if one[0] <= low and high <= one[1])
    low, high = parse_stated_range(column.name) or next(usual, (low, high))
    middle = (low + high) / 2
    if column.is_whole and 1 < high - low <= 10:
        cuts = [float(one) for one in range(round(low), round(high))]
        return sorted(cuts, key=lambda one: abs(one - middle + 0.25))[:_MAX_OFFERED]
    return [middle]


def find_score_scale(
    column: ColumnProfile, name: str, mapping: ColumnMapping
) -> tuple[Scale | None, list[OpenQuestion]]:
    """Not supported and supported on the scale of an evaluator's scores, None for [0, 1] with 1 = supported; and the
    question where it is open.

    name: what ``--scale`` calls the column.
    """
    low, high = column.low, column.high
    chosen = mapping.scale.get(name, mapping.scale.get(column.name))
    if chosen is not None or low is None or high is None:
        return (None if chosen == (0, 1) else chosen), []
    is_told = bool({name, column.name} & {*mapping.high_is_error})
    is_reversed = is_told or is_column_reversed(column.name, mapping)
    if find_vocabulary_words("judges", column.name) & {"logit", "logits"}:
        return ("-logit" if is_reversed else "logit"), []
    stated = parse_stated_range(column.name)
    sure = None if stated == (0, 1) else stated
    is_either_way = has_vocabulary_word_in_column_name("either_way", column.name) and not is_told
    if sure is None and low >= 0 and high <= 1 and not is_either_way:
        sure = (0, 1)
    elif sure is None and column.kind == "grade" and (low, high) in _SURE_SCALES:
        sure = (low, high)
    elif sure is None and low >= 0 and _SURELY_PERCENT < high <= 100:
        sure = (0, 100)
    if sure is not None:
        low, high = sure[::-1] if is_reversed else sure
        scale = None if (low, high) == (0, 1) else (float(low), float(high))
        return scale, ask_about_direction(column, name, mapping, sure)
    if low == high:
        return None, []
    possible: list[Any] = [[0, 1]] if low >= 0 and high <= 1 else []
    if low < 0:
        possible = ["logit", "-logit"] if high > 0 else ["log"]
    elif high > 1:
        possible = [[*one] for one in _COMMON_SCALES if one[0] <= low and high <= one[1]][:3] or [[low, high]]
    possible += [one[::-1] for one in possible[:1] if isinstance(one, list)]
    possible = [*possible[1:], possible[0]] if is_reversed else possible
    answers: list[Mapping[str, Any]] = [{"scale": {name: one}} for one in possible]
    text = f"{column.name} holds numbers from {low:g} to {high:g}: on which scale"
    return None, [OpenQuestion(text, [*answers, {"ignore": [column.name]}])]


def ask_about_direction(
    column: ColumnProfile, name: str, mapping: ColumnMapping, ends: tuple[float, float] | None = None
) -> list[OpenQuestion]:
    """Asks of a column whose name may call an error what it says 1, yes, or a high score, of.

    name: what ``--high-is-error`` calls it. ends: of its scale; by default the numbers that it holds.
    """
    is_said = {name, column.name} & {*mapping.scale, *mapping.high_is_error}
    if is_said or find_direction_of_column_name(column.name) != "doubtful":
        return []
    if column.low is None and map_label_words(column, True) == map_label_words(column, False):
        return []  # its words say the same under any name
    return [_ask_which_is_error([column], [name], ends)]


def _ask_which_is_error(
    columns: Sequence[ColumnProfile], names: Sequence[str], ends: tuple[float, float] | None = None
) -> OpenQuestion:
    scales = {}
    for name, one in zip(names, columns, strict=True):
        held = (0.0, 1.0) if one.low is None or one.kind == "share" else (one.low, one.high or 0.0)
        scales[name] = [*(ends or held)]
    listed = " and ".join(one.name for one in columns)
    text = f"{listed}: does 1, yes or a high value mean an error"
    return OpenQuestion(text, [{"high_is_error": [*names]}, {"scale": scales}])


def ask_about_shared_words(
    labelled: Sequence[ColumnProfile], judged: Sequence[ColumnProfile], mapping: ColumnMapping
) -> list[OpenQuestion]:
    """Asks where the names of labels and of evaluators share a word that says what was judged, and that nobody knows
    (``wobbly_human``, ``wobbly_gpt4``): both would be read upside down, and agree. So would HaluEval's results."""
    columns = [one for one in (*labelled, *judged) if one.name not in (*mapping.scale, *mapping.high_is_error)]
    shared = find_unknown_words(*(one.name for one in labelled)) & find_unknown_words(*(one.name for one in judged))
    alike = [one for one in columns if find_unknown_words(one.name) & shared]
    if {"ground_truth", "judgement"} <= {one.name for one in columns}:
        alike = columns
    return [_ask_which_is_error(alike, [one.name for one in alike])] if alike else []


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
