"""What may be wrong with the atomic facts of a response? By its words alone, a fact may be
invented, leaked from a demonstration, repeated or trivial.

Words cannot show everything: a fact that puts the response's own words into another relation is not
found to be invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from factaudit.text.content_words import (
    ContentWord,
    WordVocabulary,
    is_trivial_statement,
    is_trivial_word,
    list_informative_words,
)
from factaudit.text.sentences import split_sentences

#: A fact is invented if at least this share of its words, or a number or a name in it, is missing
#: in the response.
MAX_MISSING_SHARE = 0.5
#: A sentence is not covered if more than this share of its words, or a number or a name in it, is
#: in no fact.
MAX_UNCOVERED_SHARE = 0.2


@dataclass(frozen=True)
class FactFaults:
    """The facts of one response, true where a fact has the fault, and how much of the response they
    say.

    invented: its words are not in the response. leaked: it is invented, and its words are in a
    demonstration. repeated: another fact of the response says it. trivial: it holds of nearly
    anybody. n_words: content words of the response,
    n_covered_words: those that are in a fact. n_sentences: its sentences, n_uncovered: those of
    which the facts leave something out.
    """

    invented: tuple[bool, ...]
    leaked: tuple[bool, ...]
    repeated: tuple[bool, ...]
    trivial: tuple[bool, ...]
    n_words: int
    n_covered_words: int
    n_sentences: int
    n_uncovered: int


def find_fact_faults(
    facts: Sequence[str],
    response: str,
    topic: str | None = None,
    demonstrations: Sequence[WordVocabulary] = (),
) -> FactFaults:
    """The faults of a response's facts. demonstrations: the words of each sentence with its facts
    in the prompt.

    A fact is invented where a name or number of it is not in the response, or `MAX_MISSING_SHARE`
    of its words. It has leaked where all words that the response lacks are in one demonstration: a
    name or number, or three words at least.
    """
    own, told = WordVocabulary([response, topic or ""]), WordVocabulary([*facts, topic or ""])
    invented, leaked = [], []
    for fact in facts:
        words = list_informative_words(fact, topic)
        missing = own.list_missing_words(words)
        telling = [word for word in missing if not is_trivial_word(word)]
        is_invented = _has_name_or_number(telling) or 0 < len(telling) >= MAX_MISSING_SHARE * len(
            words
        )
        is_telling = len(missing) > 2 or _has_name_or_number(missing)
        invented.append(is_invented)
        is_shown = any(not shown.list_missing_words(missing) for shown in demonstrations)
        leaked.append(is_invented and is_telling and is_shown)
    n_words, n_covered, n_uncovered = 0, 0, 0
    sentences = split_sentences(response)
    for sentence in sentences:
        content = list_informative_words(sentence, topic)
        lost = told.list_missing_words(content)
        n_words += len(content)
        n_covered += len(content) - len(lost)
        n_uncovered += is_uncovered_sentence(content, lost)
    repeated = _find_repeated_facts(facts, topic)
    trivial = [is_trivial_statement(fact, topic) for fact in facts]
    flags = (tuple(invented), tuple(leaked), tuple(repeated), tuple(trivial))
    return FactFaults(*flags, n_words, n_covered, len(sentences), n_uncovered)


def is_uncovered_sentence(
    words: Sequence[ContentWord], missing_words: Sequence[ContentWord]
) -> bool:
    """Whether facts leave out what a sentence of these words says."""
    return _has_name_or_number(missing_words) or len(missing_words) > MAX_UNCOVERED_SHARE * len(
        words
    )


def _has_name_or_number(words: Iterable[ContentWord]) -> bool:
    return any(word.kind != "word" for word in words)


def _find_repeated_facts(facts: Sequence[str], topic: str | None) -> list[bool]:
    """Whether another fact says all that a fact says; of equal ones the first stays.

    The words of the one are among the other's, and names that both have come in the same order: "A
    beat B" is not "B beat A". A fact with a negation is only repeated by others with one.
    """
    listed = [list_informative_words(fact, topic) for fact in facts]
    stems = [{word.stem for word in words} for words in listed]
    negated = [bool(_NEGATION.search(fact)) for fact in facts]

    def repeats(one: int, other: int) -> bool:
        if one == other or negated[one] != negated[other] or not stems[one] <= stems[other]:
            return False
        if not stems[one] and facts[one].casefold() != facts[other].casefold():
            return False  # trivial statements are told apart by words of no weight
        if stems[one] == stems[other] and one < other:
            return False
        names = dict.fromkeys(word.stem for word in listed[one] if word.kind == "name")
        return list(names) == list(
            dict.fromkeys(word.stem for word in listed[other] if word.stem in names)
        )

    return [any(repeats(one, other) for other in range(len(facts))) for one in range(len(facts))]


_NEGATION = re.compile(r"\b(?:no|not|never|neither|nor|without)\b|n['’]t\b", re.IGNORECASE)
