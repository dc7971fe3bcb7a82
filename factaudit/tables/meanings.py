"""Finds what the values of judgements mean: which words are 1 and 0, on which scale numbers are,
and whether a high value is an error. Asks where this is open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import find_verdict_in_reply, is_number_text
from factaudit.tables.column_mapping import ColumnMapping, ScoreTransform
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.questions import OpenQuestion
from factaudit.tables.vocabulary import (
    ATTRIBUTABLE_WORDS,
    BARE_WORDS,
    FAILURE_WORDS,
    find_direction_of_name,
    find_unknown_words,
    find_words_in_name,
    has_name_of_error,
    is_reversed_name,
    normalise_label_word,
    normalise_words,
    parse_label_word,
    parse_stated_range,
)

Scale = tuple[float, float] | ScoreTransform
#: Common scales of judgements, the likelier first.
_COMMON_SCALES = (
    (0, 1),
    (1, 5),
    (0, 5),
    (1, 10),
    (0, 10),
    (1, 7),
    (1, 3),
    (0, 2),
    (0, 3),
    (1, 4),
    (0, 4),
    (0, 20),
    (0, 100),
)
#: If whole numbers reach both ends of one of these scales, it is their scale.
_SURE_SCALES = ((1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
#: A column with a higher number than this, and none above 100, is on the scale to 100.
_SURELY_PERCENT = 50
#: No more codes, words or limits than this are offered as answers.
_MAX_OFFERED = 4


def is_column_reversed(column_name: str, mapping: ColumnMapping) -> bool:
    """Whether 1 and yes in a column mean not supported: as the user says, or else by its name."""
    chosen = mapping.scale.get(column_name)
    if chosen is not None and not isinstance(chosen, str):
        return bool(chosen[0] > chosen[1])
    return column_name in mapping.high_is_error or is_reversed_name(column_name)


def map_label_words(words: Iterable[str], is_reversed: bool) -> dict[str, int | None]:
    """Each word as 1 or 0. Words that mean neither are left out."""
    known = {word: normalise_label_word(word) for word in sorted(words)}
    values = {word: parse_label_word(word) for word in known}
    # "Neutral" on a scale from agree to disagree is no verdict of NLI. If other words mean 1 and 0,
    # "error" may mean that the judge failed.
    no_verdicts = (
        {"neutral"} if any(text.endswith("agree") for text in known.values()) else set[str]()
    )
    if {0, 1} <= {value for word, value in values.items() if known[word] not in FAILURE_WORDS}:
        no_verdicts |= FAILURE_WORDS
    found: dict[str, int | None] = {}
    for word, value in values.items():
        if is_reversed and known[word] == "none":
            found[word] = 1  # the error "none" is no error
        elif value is not None and known[word] not in no_verdicts:
            found[word] = 1 - value if is_reversed and known[word] in BARE_WORDS else value
    return found


def read_values(
    column: ColumnProfile, name: str, mapping: ColumnMapping
) -> tuple[Scale | None, list[OpenQuestion]]:
    """The scale of an evaluator's column, and the questions that its values leave open: what words
    mean, on which scale numbers are, or whether a high one means an error.

    The scale is None for words, and for numbers from 0 to 1 where 1 means supported.

    name: the name of the evaluator, or of the column, in ``--scale``.
    """
    chosen = mapping.scale.get(name, mapping.scale.get(column.name))
    if column.low is None and column.kind != "empty" and chosen in (None, (0, 1), (1, 0)):
        return None, [
            *_ask_about_direction(column, name, mapping),
            *_ask_about_words(column, mapping, is_label=False),
        ]
    if chosen is not None or column.low is None:
        return (None if chosen == (0, 1) else chosen), []
    return _find_scale(column, name, mapping)


def group_by_scale(columns: Sequence[ColumnProfile]) -> list[list[ColumnProfile]]:
    """Columns of labels in groups: all grades are on one scale, and words stand for themselves."""
    graded = [one for one in columns if one.low is not None]
    return [*([graded] if graded else []), *([one] for one in columns if one.low is None)]


def ask_about_labels(
    columns: Sequence[ColumnProfile], mapping: ColumnMapping
) -> list[OpenQuestion]:
    """The questions that columns of labels on one scale leave open: what words mean, or above which
    number a claim is supported."""
    directions = [
        question for one in columns for question in _ask_about_direction(one, one.name, mapping)
    ]
    said = {*_list_said(mapping)}
    open_grades = [
        one
        for one in columns
        if one.low != one.high
        and one.name not in mapping.threshold
        and not (one.words and {*map(normalise_words, one.words)} <= said)
    ]
    if columns[0].low is not None:
        return [_ask_about_grades(open_grades, mapping), *directions] if open_grades else []
    words = [
        question
        for one in columns
        if one.kind != "empty"
        for question in _ask_about_words(one, mapping, is_label=True)
    ]
    return [*directions, *words]


def _list_said(mapping: ColumnMapping) -> dict[str, int | None]:
    return {normalise_words(word): value for word, value in mapping.labels.items()}


def _ask_about_words(
    column: ColumnProfile, mapping: ColumnMapping, is_label: bool
) -> list[OpenQuestion]:
    """Ask what words mean that are neither 1 nor 0, or that the column's name may turn round; and
    what a blank cell means beside labels that are all the same."""
    said = _list_said(mapping)
    plain = map_label_words(column.words, False)
    known = map_label_words(column.words, is_column_reversed(column.name, mapping))
    meant = {word: said.get(normalise_words(word), known.get(word)) for word in column.words}
    unknown = [
        word for word in column.words if word not in known and normalise_words(word) not in said
    ]
    unknown = [word for word in unknown if find_verdict_in_reply(word) is None]
    meanings: list[dict[str, int | None]] = []
    # All get the same meaning: the one that the known words lack, or none if a judge failed.
    if unknown and known:
        is_failure = all(
            {*re.findall(r"\w+", word.lower())[:1]} & FAILURE_WORDS for word in unknown
        )
        value = None if is_failure else int({*known.values()} == {0})
        meanings = [dict.fromkeys(unknown, one) for one in dict.fromkeys((value, None, 0, 1))]
    elif len(unknown) > 1:  # exactly one of them means supported
        meanings = [
            {word: int(word == one) for word in unknown}
            for one in sorted(unknown, key=len)[:_MAX_OFFERED]
        ]
    elif unknown and (column.n_missing or is_label):
        values = (0, 1) if has_name_of_error(column.name) else (1, 0)
        meanings = [{unknown[0]: value} for value in values]
    elif (
        {*plain.values()} == {0, 1}
        and len({*known.values()}) < 2
        and not {*said} & {*map(str.lower, plain)}
    ):
        meanings = [{word: 1 - bool(value) for word, value in plain.items()}, plain]
    elif (
        is_label
        and column.n_missing
        and column.n_present > 1
        and len({*meant.values()}) == 1
        and "" not in said
    ):
        value = next(iter(meant.values()))
        meanings = [{**meant, "": None}, {**meant, "": 1 - bool(value)}]
    what = (
        "a blank cell may say the opposite, or be no label yet"
        if meanings and "" in meanings[0]
        else None
    )
    text = f"{column.name} has {', '.join(map(repr, (unknown or [*plain])[:6]))}"
    text = f"{text}: {what or 'supported, not supported, or not labelled'}"
    return [OpenQuestion(text, [{"labels": one} for one in meanings])] if meanings else []


def _ask_about_grades(columns: Sequence[ColumnProfile], mapping: ColumnMapping) -> OpenQuestion:
    """Ask from which number on a claim is supported: above the middle of the scale, or above
    another of its grades."""
    column = columns[0]
    words = [word.replace(",", ".") for one in columns for word in one.words]
    numbers = sorted({float(word) for word in words if is_number_text(word)})
    codes = [f"{number:g}" for number in numbers]
    answers: list[Mapping[str, Any]] = []
    if len(codes) == 2:  # 1 and 2 are often the first and second choice of a form
        zero, one = (
            codes[::-1]
            if (codes == ["1", "2"]) != is_column_reversed(column.name, mapping)
            else codes
        )
        answers = [{"labels": {one: 1, zero: 0}}, {"labels": {one: 0, zero: 1}}]
    else:
        low, high = _list_possible_scales(columns)[0]
        middle = (low + high) / 2
        cuts = [middle]
        if all(one.is_whole for one in columns) and 1 < high - low <= 10:
            whole = map(float, range(round(low), round(high)))
            cuts = sorted(whole, key=lambda cut: abs(cut - middle + 0.25))[:_MAX_OFFERED]
        names = [one.name for one in columns]
        answers = [{"threshold": dict.fromkeys(names, cut)} for cut in cuts]
        if {0, 1} < {*numbers}:  # other codes may be no labels
            answers.append(
                {
                    "labels": {
                        "1": 1,
                        "0": 0,
                        **dict.fromkeys(code for code in codes if code not in "01"),
                    }
                }
            )
    held = ", ".join(f"{one.name} ({one.describe_values()})" for one in columns)
    return OpenQuestion(f"{held}: from which value on is a claim supported", answers)


def _list_possible_scales(columns: Sequence[ColumnProfile]) -> list[tuple[float, float]]:
    """The scales that the numbers of columns may be on, the likelier first: the one in a name, or
    else common ones. A scale whose ends both occur is likelier."""
    low = min(one.low or 0.0 for one in columns)
    high = max(one.high or 0.0 for one in columns)
    stated = parse_stated_range(columns[0].name)
    if stated is not None and stated != (0, 1):
        return [stated]
    possible = [one for one in _COMMON_SCALES if one[0] <= low and high <= one[1]]
    return sorted(possible, key=lambda ends: ends != (low, high)) or [(low, high)]


def _find_scale(
    column: ColumnProfile, name: str, mapping: ColumnMapping
) -> tuple[Scale | None, list[OpenQuestion]]:
    """The scale of an evaluator's scores, and a question if it is open, or if a high score may mean
    an error."""
    low, high = column.low or 0.0, column.high or 0.0
    is_told = bool({name, column.name} & {*mapping.high_is_error})
    is_reversed = is_told or is_column_reversed(column.name, mapping)
    if find_words_in_name("judges", column.name) & {"logit", "logits"}:
        return ("-logit" if is_reversed else "logit"), []
    possible = _list_possible_scales([column])
    sure = possible[0] if parse_stated_range(column.name) == possible[0] else None
    if sure is None and column.kind == "grade" and (low, high) in _SURE_SCALES:
        sure = (low, high)
    elif sure is None and low >= 0 and (_SURELY_PERCENT < high <= 100 or high <= 1):
        sure = (0, 1 if high <= 1 else 100)
    if sure is not None:
        ends = sure[::-1] if is_reversed else sure
        return (None if ends == (0, 1) else ends), _ask_about_direction(column, name, mapping, sure)
    if low == high:
        return None, []
    answers: list[Any] = ["logit", "-logit"] if high > 0 else ["log"]
    if low >= 0:
        answers = [[*one[::-1]] if is_reversed else [*one] for one in possible[:3]]
        answers.append(answers[0][::-1])
    text = f"{column.name} holds numbers from {low:g} to {high:g}: on which scale"
    return None, [
        OpenQuestion(
            text, [*({"scale": {name: one}} for one in answers), {"ignore": [column.name]}]
        )
    ]


def _ask_about_direction(
    column: ColumnProfile,
    name: str,
    mapping: ColumnMapping,
    ends: tuple[float, float] | None = None,
) -> list[OpenQuestion]:
    """Ask whether 1, yes or a high score means an error in a column whose name may say so.

    ends: of the scale; by default the lowest and highest number in the column.
    """
    is_said = {name, column.name} & {*mapping.scale, *mapping.high_is_error}
    if is_said or find_direction_of_name(column.name) != "doubtful":
        return []
    if column.low is None and map_label_words(column.words, True) == map_label_words(
        column.words, False
    ):
        return []  # its words mean the same under any name
    return [_ask_which_is_error({name: column}, ends)]


def _ask_which_is_error(
    columns: Mapping[str, ColumnProfile], ends: tuple[float, float] | None = None
) -> OpenQuestion:
    """columns: by their names in ``--high-is-error``."""
    scales = {}
    for name, one in columns.items():
        held = (0.0, 1.0) if one.low is None or one.kind == "share" else (one.low, one.high or 0.0)
        scales[name] = [*(ends or held)]
    listed = " and ".join(one.name for one in columns.values())
    text = f"{listed}: does 1, yes or a high value mean an error"
    return OpenQuestion(text, [{"high_is_error": [*columns]}, {"scale": scales}])


def ask_about_shared_words(
    labelled: Sequence[ColumnProfile], judged: Sequence[ColumnProfile], mapping: ColumnMapping
) -> list[OpenQuestion]:
    """Ask if the names of labels and evaluators share an unknown word for what was judged
    (``wobbly_human``, ``wobbly_gpt4``). If that word means an error, both would be read upside down
    and still agree. The same holds for results of HaluEval.

    Ask also what "yes" of an evaluator means beside labels whose "yes" means an error
    (``hallucinated``, ``gpt4``)."""
    columns = {one.name: one for one in (*labelled, *judged)}
    shared = find_unknown_words(*(one.name for one in labelled)) & find_unknown_words(
        *(one.name for one in judged)
    )
    is_halueval = {"ground_truth", "judgement"} <= {*columns}
    said = (*mapping.scale, *mapping.high_is_error)
    alike = {
        name: one
        for name, one in columns.items()
        if is_halueval or find_unknown_words(name) & shared
    }
    alike = {name: one for name, one in alike.items() if name not in said}
    if not alike and any(is_reversed_name(one.name) for one in labelled):
        open_names = [name for name in columns if name not in said and not _says_what_yes_is(name)]
        alike = {one.name: one for one in judged if one.name in open_names and _is_yes_or_no(one)}
    return [_ask_which_is_error(alike)] if alike else []


def _is_yes_or_no(column: ColumnProfile) -> bool:
    return bool(column.words) and {*map(normalise_label_word, column.words)} <= BARE_WORDS


def _says_what_yes_is(name: str) -> bool:
    """Whether a name has a word for support, or certainly one for an error."""
    words = {*normalise_words(name).split()}
    return is_reversed_name(name) or bool(words & (ATTRIBUTABLE_WORDS - BARE_WORDS))


def scale_judgement_numbers(
    numbers: pd.Series, scale: tuple[float, float] | str, limit: float | None
) -> tuple[pd.Series, pd.Series, pd.Series | None]:
    """The support from 0 to 1 that numbers on a scale stand for, whether each is beyond the limit,
    and the grades.

    limit: by default the middle of the scale; for logits and logarithms the number with support
    1/2. Grades are the numbers themselves if the scale is not 0 to 1 and a higher number means more
    support; else None. Numbers outside the scale have a support outside 0 to 1.

    >>> support, beyond, grades = scale_judgement_numbers(pd.Series([1.0, 4.0]), (1, 5), None)
    >>> support.tolist(), beyond.tolist(), grades.tolist()
    ([0.0, 0.75], [0, 1], [1.0, 4.0])
    >>> scale_judgement_numbers(pd.Series([1.0, 3.0]), (5, 1), None)[1].tolist()  # 3 is the middle
    [1, 0]
    """
    if isinstance(scale, str):
        low, high = (1.0, -1.0) if scale.startswith("-") else (-1.0, 1.0)
        support = (
            np.exp(high * numbers) if scale.endswith("log") else 1 / (1 + np.exp(-high * numbers))
        )
        middle = high * np.log(0.5) if scale.endswith("log") else 0.0
    else:
        low, high = scale
        support = (numbers - low) / (high - low)
        middle = (low + high) / 2
    limit = middle if limit is None else limit
    beyond = numbers > limit if high > low else numbers < limit
    is_graded = not isinstance(scale, str) and low < high and (low, high) != (0, 1)
    return (
        support,
        beyond.astype("Int8").mask(numbers.isna(), pd.NA),
        numbers if is_graded else None,
    )
