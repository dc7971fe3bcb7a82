"""What words and numbers of judgements mean: labels, thresholds, scales and directions, or the question which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from factaudit.tables.cell_values import find_verdict_in_reply, is_number_text
from factaudit.tables.column_mapping import SCORE_TRANSFORM_NAMES, ColumnMapping, ScoreTransform
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.questions import OpenQuestion, PossibleReading, ignore_columns
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    FAILURE_WORDS,
    find_unknown_words,
    find_vocabulary_words_in_column_name,
    is_name_of_doubtful_direction,
    is_reversed_column_name,
    normalise_label_word,
    normalise_vocabulary_words,
    parse_label_word,
    parse_stated_range,
)

Scale = tuple[float, float] | ScoreTransform
#: Scales that judgements are commonly on, the likelier first.
_COMMON_SCALES = ((1, 5), (0, 5), (1, 10), (0, 10), (1, 7), (1, 3), (0, 2), (0, 3), (1, 4), (0, 4), (0, 20), (0, 100))
#: Of these a column that has both ends is on no other.
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
    found: dict[str, int | None] = {}
    words = _list_telling_words(column)
    are_signs = {normalise_label_word(word) for word in words} == {"1", "-1"}
    for word in words:
        known = normalise_label_word(word)
        value = 0 if are_signs and known == "-1" else parse_label_word(word)
        if is_reversed and known == "none":
            found[word] = 1  # an error of the kind "none" is no error
        elif value is not None:
            found[word] = 1 - value if is_reversed and (known in BARE_WORDS or are_signs) else value
    return found


def _list_telling_words(column: ColumnProfile) -> list[str]:
    """The words of a column, without the "neutral" of a scale from agree to disagree, which is no verdict of NLI, and
    without an "error" beside others for both, which may be a judge's that failed."""
    agrees = any(normalise_vocabulary_words(word).endswith("agree") for word in column.words)
    words = [word for word in sorted(column.words) if not (agrees and normalise_vocabulary_words(word) == "neutral")]
    for failure in FAILURE_WORDS:
        rest = [word for word in words if normalise_vocabulary_words(word) != failure]
        if {0, 1} <= {parse_label_word(word) for word in rest}:
            words = rest
    return words


def ask_about_words(columns: Sequence[ColumnProfile], mapping: ColumnMapping) -> list[OpenQuestion]:
    """Questions about words that say neither 1 nor 0, that say the opposite of a column's name, and about blank cells
    of a column in which all else says the same."""
    said = {normalise_vocabulary_words(word) for word in mapping.labels}
    questions = []
    for column in columns:
        known = map_label_words(column, is_column_reversed(column.name, mapping))
        plain = {word: value for word, value in map_label_words(column, False).items() if value is not None}
        left = {normalise_vocabulary_words(word) for word in known} | said | {"none"}
        unknown = [word for word in column.words if normalise_vocabulary_words(word) not in left]
        unknown = [word for word in unknown if find_verdict_in_reply(word) is None]
        if unknown and (known or len(unknown) > 1 or column.name in mapping.columns.get("label", ())):
            said |= {normalise_vocabulary_words(word) for word in unknown}
            questions.append(_ask_about_unknown_words(column, unknown, known))
        elif (
            len({*plain.values()}) == 2
            and len({*known.values()}) < 2
            and not said & {*map(normalise_vocabulary_words, plain)}
        ):
            ways = [{word: 1 - value for word, value in plain.items()}, plain]
            listed = ", ".join(map(repr, plain))
            questions.append(
                OpenQuestion(f"{column.name} ({listed}): which means supported", [*map(_read_words, ways)])
            )
    return questions


def _read_words(words: Mapping[str, int | None]) -> PossibleReading:
    """The reading that words mean 1, 0 or no label."""
    meanings = {1: "supported", 0: "not supported", None: "not labelled"}
    parts = []
    for value, meaning in meanings.items():
        own = [repr(word) if word else "a blank cell" for word, said in words.items() if said == value]
        parts += [f"{', '.join(own)}: {meaning}"] if own else []
    return PossibleReading("; ".join(parts), {"labels": dict(words)})


def _ask_about_unknown_words(
    column: ColumnProfile, unknown: Sequence[str], known: Mapping[str, int | None]
) -> OpenQuestion:
    """Words beside known ones are each 0, no label, or 1; of words that are all unknown one is 1."""
    listed = ", ".join(map(repr, unknown[:6]))
    if known:
        values: list[int | None] = [0, None, 1]
        if all({*normalise_vocabulary_words(word).split(":")[0].split()[:1]} & {*FAILURE_WORDS} for word in unknown):
            values = [None, 0, 1]  # a judge that failed
        elif {*known.values()} == {0}:
            values = [1, None, 0]  # "hallucinated" and "clean"
        ways = [_read_words(dict.fromkeys(unknown, value)) for value in values]
    else:
        ways = [
            _read_words({word: int(word == one) for word in unknown}) for one in sorted(unknown, key=len)[:_MAX_OFFERED]
        ]
    return OpenQuestion(f"{column.name} has {listed}: supported, not supported, or not labelled", ways)


def ask_about_blank_labels(column: ColumnProfile, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks what a blank cell means in a column of labels whose other cells all say the same: an "x" for some claims, or
    the kinds of their errors."""
    if "" in mapping.labels or not column.n_missing or column.n_present < 2 or not column.words:
        return []
    reverse = is_column_reversed(column.name, mapping)
    known = map_label_words(column, reverse) if column.low is None else {}
    chosen = {normalise_vocabulary_words(word): value for word, value in mapping.labels.items()}
    said = {word: chosen.get(normalise_vocabulary_words(word), known.get(word)) for word in column.words}
    if len({*said.values()}) > 1 or (len(said) > 1 and None in said.values()):
        return []
    value = next(iter(said.values()))
    value = int(not reverse) if value is None else value
    opposite, unlabelled = ({**dict.fromkeys(said, value), "": blank} for blank in (1 - value, None))
    ways = [_read_words(opposite), _read_words(unlabelled)]
    is_code = normalise_vocabulary_words(column.words[0]) in ("0", "1")
    listed = ", ".join(map(repr, said))
    text = f"{column.name} says {listed} or nothing: a blank cell may say the opposite, or be no label yet"
    return [OpenQuestion(text, ways[::-1] if is_code else ways)]


def ask_about_grades(column: ColumnProfile, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks from which grade on a claim is supported, where a column of labels holds numbers."""
    said = {normalise_vocabulary_words(word) for word in mapping.labels}
    words = {normalise_vocabulary_words(word) for word in column.words}
    if column.low is None or column.high is None or column.kind == "binary" or column.low == column.high:
        return []
    if column.name in mapping.threshold or (words and words <= said):
        return []
    points = [word.replace(",", ".") for word in column.words]
    numbers = sorted({float(word) for word in points if is_number_text(word)})
    codes = [f"{one:g}" for one in numbers]
    held = ", ".join(codes) if 0 < len(codes) <= _MAX_OFFERED else f"{column.low:g} to {column.high:g}"
    reverse = is_column_reversed(column.name, mapping)
    ways = []
    if len(codes) == 2 or ({0, 1} < {*numbers} and len(codes) <= _MAX_OFFERED):  # other codes are no labels
        pair = codes if len(codes) == 2 else ["0", "1"]
        others = [
            word
            for word, point in zip(column.words, points, strict=True)
            if not is_number_text(point) or f"{float(point):g}" not in pair
        ]
        zero, one = pair[::-1] if (pair == ["1", "2"]) != reverse else pair
        ways = [
            _read_words({one: 1, zero: 0, **dict.fromkeys(others)}),
            _read_words({one: 0, zero: 1, **dict.fromkeys(others, None if len(codes) == 2 else 0)}),
        ]
    if len(codes) != 2:
        side = "below" if reverse else "above"
        ways += [
            PossibleReading(f"{column.name} {side} {cut:g}: supported", {"threshold": {column.name: cut}})
            for cut in _list_cuts(column, bool(numbers) and column.is_whole)
        ]
    return [OpenQuestion(f"{column.name} ({held}): from which value on is a claim supported", ways)]


def _list_cuts(column: ColumnProfile, is_whole: bool) -> list[float]:
    """Values from which on a claim may be supported, the middle of the scale first."""
    low, high = column.low or 0.0, column.high or 0.0
    if low >= 0 and high <= 1:
        return [0.5, 0.99]
    usual = (one for one in _COMMON_SCALES if one[0] <= low and high <= one[1])
    low, high = find_stated_range(column) or next(usual, (low, high))
    middle = (low + high) / 2
    if is_whole and high - low <= 10:
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
    chosen = mapping.scale.get(name, mapping.scale.get(column.name))
    if chosen is not None:
        return (None if chosen == (0, 1) else chosen), []
    low, high = column.low, column.high
    if low is None or high is None or column.kind == "binary":
        return None, []
    reverse = is_column_reversed(column.name, mapping) or name in mapping.high_is_error
    is_told = bool({name, column.name} & {*mapping.high_is_error})
    either_way = find_vocabulary_words_in_column_name("either_way", column.name)
    if find_vocabulary_words_in_column_name("judges", column.name) & {"logit", "logits"}:
        return ("-logit" if reverse else "logit"), []
    if low >= 0 and high <= 1 and (is_told or not either_way):
        return ((1.0, 0.0) if reverse else None), []
    sure = find_stated_range(column)
    if sure is None and column.kind == "grade" and (low, high) in _SURE_SCALES:
        sure = (low, high)
    if sure is None and low >= 0 and _SURELY_PERCENT < high <= 100:
        sure = (0, 100)
    if sure is not None:
        return ((sure[1], sure[0]) if reverse else (float(sure[0]), float(sure[1]))), []
    if low == high:
        return None, []
    known: list[Scale] = []
    if low < 0 < high:
        known = ["-logit", "logit"] if reverse else ["logit", "-logit"]
        ends = list[tuple[float, float]]()
    elif high <= 0:
        known, ends = ["log"], [(low, high)]
    elif high <= 1:
        ends, reverse = [(0.0, 1.0)], True
    else:
        ends = [(float(a), float(b)) for a, b in _COMMON_SCALES if a <= low and high <= b][:3] or [(low, high)]
    ends = [(b, a) for a, b in ends] if reverse else ends
    ways = [
        PossibleReading(
            f"{column.name} {describe_scale(one)}", {"scale": {name: one if isinstance(one, str) else [*one]}}
        )
        for one in [*known, *ends, *((b, a) for a, b in ends[:1])]
    ]
    ways.append(ignore_columns([column.name]))
    return None, [OpenQuestion(f"{column.name} holds numbers from {low:g} to {high:g}: on which scale", ways)]


def describe_scale(scale: Scale) -> str:
    """What numbers of a scale are, as what a sentence says of their column."""
    if isinstance(scale, str):
        return f"holds {SCORE_TRANSFORM_NAMES[scale]}"
    return f"runs from {scale[0]:g} (not supported) to {scale[1]:g} (supported)"


def find_stated_range(column: ColumnProfile) -> tuple[float, float] | None:
    """The lowest and highest number that a column's name says that it may hold (``human (0-2)``), where it does."""
    stated = parse_stated_range(column.name)
    if stated is None or column.low is None or column.high is None or stated in ((0, 1), (1, 0)):
        return None
    return stated if stated[0] <= column.low and column.high <= stated[1] else None


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


def ask_about_direction(column: ColumnProfile, name: str, mapping: ColumnMapping) -> list[OpenQuestion]:
    """Asks of a column whose name may call an error what it says 1, yes, or a high score, of.

    name: what ``--high-is-error`` calls it.
    """
    is_said = {name, column.name} & {*mapping.scale, *mapping.high_is_error}
    if is_said or not is_name_of_doubtful_direction(column.name):
        return []
    if column.low is not None:
        can_be_turned, ends = column.low != column.high or column.kind == "share", (column.low, column.high or 0.0)
        ends = (0.0, 1.0) if column.kind == "share" else ends
    else:
        can_be_turned, ends = map_label_words(column, True) != map_label_words(column, False), (0.0, 1.0)
    if not can_be_turned:
        return []
    low, high = ends
    ways: list[PossibleReading] = [
        PossibleReading(f"1, yes or a high value of {column.name} means an error", {"high_is_error": [name]}),
        PossibleReading(f"1, yes or a high value of {column.name} means supported", {"scale": {name: [low, high]}}),
    ]
    return [OpenQuestion(f"{column.name}: does 1, yes or a high value mean an error", ways)]


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
    if not alike:
        return []
    names = [one.name for one in alike]
    scales = {
        one.name: [0.0, 1.0] if one.low is None or one.kind == "share" else [one.low, one.high or 0.0] for one in alike
    }
    listed = " and ".join(names)
    ways = [
        PossibleReading(f"1, yes or a high value of {listed} means an error", {"high_is_error": names}),
        PossibleReading(f"1, yes or a high value of {listed} means supported", {"scale": scales}),
    ]
    return [OpenQuestion(f"{listed}: does 1, yes or a high value mean an error", ways)]
