"""What words of judgements mean: 1, 0 or nothing, whether a column's name turns them round, or the question which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    FAILURE_WORDS,
    has_name_of_error,
    has_vocabulary_word_in_column_name,
    is_reversed_column_name,
    normalise_label_word,
    normalise_vocabulary_words,
    parse_label_word,
)
from factaudit.tables.word_scales import is_scale_of_judgement, is_word_and_denial, list_cuts_of_scale, rank_scale_words

#: Of more unknown words the user says by hand which is which.
_MAX_WORD_READINGS = 4
#: The cuts of a scale that are offered, those nearest to its middle.
_MAX_CUTS = 5
#: Entailment, neutral and contradiction by their first letters.
_NLI_INITIALS = ({"e", "n", "c"}, {"e", "c"}, {"e", "n"})


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
    """Each word of a column as 1 or 0; words that say neither are left out. Of 1 and -1 alone, -1 is the opposite."""
    found: dict[str, int | None] = {}
    words = _list_telling_words(column)
    are_signs = {normalise_label_word(word) for word in words} == {"1", "-1"}
    for word in words:
        known = normalise_label_word(word)
        value = 0 if are_signs and known == "-1" else parse_label_word(word)
        if is_reversed and known == "none":
            found[word] = 1
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


def ask_meaning_of_judgement_words(
    columns: Sequence[ColumnProfile], chosen_words: Mapping[str, int | None]
) -> list[OpenQuestion]:
    """Asks what words mean that say neither 1 nor 0."""
    said = {normalise_vocabulary_words(word) for word in chosen_words}
    questions = []
    for column in columns:
        telling = [*map_label_words_to_binary(column, False)]
        telling += [word for word in column.words if normalise_vocabulary_words(word) in said and word not in telling]
        unknown = [word for word in column.words if word not in telling and normalise_vocabulary_words(word) != "none"]
        unknown = [word for word in unknown if find_verdict_in_reply(word) is None]
        has_known = bool(telling) or (has_name_of_error(column.name) and "none" in map(str.lower, column.words))
        if unknown and (has_known or len(unknown) > 1):
            said |= {normalise_vocabulary_words(word) for word in unknown}
            questions.append(_ask_about_unknown_words(column, unknown, has_known))
    return questions


def _ask_about_unknown_words(column: ColumnProfile, unknown: Sequence[str], has_known: bool) -> OpenQuestion:
    listed = ", ".join(map(repr, unknown))
    known = map_label_words_to_binary(column, is_reversed_column_name(column.name))
    if scale := _list_readings_of_word_scale(column, unknown):
        held = ", ".join(map(repr, column.words))
        return OpenQuestion(f"{column.name!r} has {held}: from which on a claim is attributable is not said", scale)
    is_letter = all(len(word) <= 2 or normalise_label_word(word) in BARE_WORDS for word in known)
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
        if all(
            {(text := normalise_vocabulary_words(word)), text.split(":")[0].split()[0]} & {*FAILURE_WORDS}
            for word in unknown
        ):
            choices = [choices[1], choices[0], choices[2]]  # a judge that failed
        elif {*known.values()} == {0}:
            choices = choices[::-1]  # "hallucinated" and "clean"
        readings = [
            PossibleColumnReading(f"{listed}: {text}", {"labels": dict.fromkeys(unknown, value)})
            for text, value in choices
        ]
    else:
        first = sorted(unknown, key=len) if is_word_and_denial(unknown) else unknown
        readings = [
            PossibleColumnReading(
                f"{one!r} is attributable, the rest not", {"labels": {w: int(w == one) for w in unknown}}
            )
            for one in first[:_MAX_WORD_READINGS]
        ]
    return OpenQuestion(f"{column.name!r} has {listed}: attributable or not", readings)


def _list_readings_of_word_scale(column: ColumnProfile, unknown: Sequence[str]) -> list[PossibleColumnReading]:
    """A reading for each cut of a scale of words, and one that leaves its middle unlabelled; none where the words are
    no scale, or only its middle is unknown."""
    failures = [word for word in column.words if normalise_vocabulary_words(word) in FAILURE_WORDS]
    words = [word for word in column.words if word not in failures]
    if {normalise_vocabulary_words(word) for word in words} in _NLI_INITIALS:
        ranks: dict[str, float] | None = {word: 1.0 if word.strip().lower() == "e" else -1.0 for word in words}
    else:
        ranks = rank_scale_words(words)
    if ranks is not None and is_reversed_column_name(column.name) and not is_scale_of_judgement(words):
        ranks = {word: -rank for word, rank in ranks.items()}  # a low risk
    middle = [word for word in words if ranks and not ranks[word]]
    parts = [{*normalise_vocabulary_words(word).split()} for word in words]
    says_of_what = len(parts) == 2 and bool(parts[0] & parts[1]) and parts[0] ^ parts[1] <= BARE_WORDS
    if ranks is None or says_of_what or {*unknown} <= {*middle, *failures}:
        return []  # "error there" and "error not there" are no grades
    ways: list[dict[str, int | None]] = [
        {word: int(word in cut) for word in words} for cut in list_cuts_of_scale(ranks)[:_MAX_CUTS]
    ]
    if middle:
        ways.insert(2, {word: None if word in middle else int(ranks[word] > 0) for word in words})
    if column.n_missing and min(ranks.values()) >= 0:  # "full", "partial" and "none"
        ways = [way for one in ways for way in ({**one, "": 0}, one)]
    ways = [way | dict.fromkeys(failures, None) for way in ways]
    return [
        PossibleColumnReading(
            f"{', '.join(repr(word) for word in way if way[word])}: attributable, "
            + (f"{', '.join(repr(one) for one in way if way[one] is None)}: not labelled, " * (None in way.values()))
            + ("the rest and blank not" if "" in way else "the rest not"),
            {"labels": way},
        )
        for way in ways
    ]


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
    """Asks what a blank cell means in a column whose other cells all say the same: an "x" for some claims, or the kinds
    of their errors."""
    if "" in chosen_words or not column.n_missing or column.n_present < 2 or not column.words:
        return []
    reverse = is_reversed_column_name(column.name)
    meanings = map_label_words_to_binary(column, reverse) if column.low is None else {}
    chosen = {normalise_vocabulary_words(word): value for word, value in chosen_words.items()}
    said = {word: chosen.get(normalise_vocabulary_words(word), meanings.get(word)) for word in column.words}
    if len(said) > 1 and {*said.values()} not in ({0}, {1}):
        return []
    value = next(iter(said.values()))
    is_error = reverse or has_vocabulary_word_in_column_name("kinds", column.name)  # "label_type" says of which kind
    value = int(not is_error) if value is None else value
    blank = "blank is attributable" if value == 0 else "blank is not attributable"
    listed = ", ".join(map(repr, said))
    text = f"{listed} is {'attributable' if value else 'not attributable'}"
    readings = [
        PossibleColumnReading(f"{text}, {blank}", {"labels": {**dict.fromkeys(said, value), "": 1 - value}}),
        PossibleColumnReading(f"{text}, blank is not labelled", {"labels": {**dict.fromkeys(said, value), "": None}}),
    ]
    is_code = normalise_vocabulary_words(column.words[0]) in ("0", "1")
    text = f"{column.name!r} says {listed} or nothing: a blank cell may say the opposite, or be no label yet"
    return [OpenQuestion(text, readings[::-1] if is_code else readings)]
