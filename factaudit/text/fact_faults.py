"""What may be wrong with the atomic facts of a response, by its words alone: invented, leaked, repeated, trivial.

Words cannot see everything: a fact made of the response's own words in another relation passes for its own.
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

#: A fact of whose words at least this share is missing in the response is invented; so is one whose number or name is.
MAX_MISSING_SHARE = 0.5
#: A sentence of which more than this share of words is in no fact is not covered; or a number, or a name.
MAX_UNCOVERED_SHARE = 0.2


@dataclass(frozen=True)
class FactFaults:
    """The facts of one response, true where a fact has the fault, and how much of the response they say.

    invented: its words are not in the response. leaked: it is invented, and its words are in a demonstration. repeated:
    another fact of the response says it. trivial: it holds of nearly anybody. n_words: content words of the response,
    n_covered_words: those that are in a fact. n_sentences: its sentences, n_uncovered: those of which the facts leave
    something out.
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
    facts: Sequence[str], response: str, topic: str | None = None, demonstrations: Sequence[WordVocabulary] = ()
) -> FactFaults:
    """The faults of a response's facts. demonstrations: the words of each sentence with its facts in the prompt."""
    own = WordVocabulary([response, topic or ""])
    missing = [own.list_missing_words(list_informative_words(fact, topic)) for fact in facts]
    invented = [is_invented_fact(fact, lost, topic) for fact, lost in zip(facts, missing, strict=True)]
    told = WordVocabulary([*facts, topic or ""])
    words, covered, uncovered, sentences = 0, 0, 0, split_sentences(response)
    for sentence in sentences:
        content = list_informative_words(sentence, topic)
        lost = told.list_missing_words(content)
        words, covered = words + len(content), covered + len(content) - len(lost)
        uncovered += is_uncovered_sentence(content, lost)
    return FactFaults(
        tuple(invented),
        tuple(made_up and has_leaked(lost, demonstrations) for lost, made_up in zip(missing, invented, strict=True)),
        tuple(find_repeated_facts(facts, topic)),
        tuple(is_trivial_statement(fact, topic) for fact in facts),
        words,
        covered,
        len(sentences),
        uncovered,
    )


def is_invented_fact(fact: str, missing_words: Sequence[ContentWord], topic: str | None = None) -> bool:
    """Whether a fact with these words missing in its response was not made of it."""
    telling = [word for word in missing_words if not is_trivial_word(word)]
    if any(word.kind != "word" for word in telling):
        return True
    n_words = len(list_informative_words(fact, topic))
    return bool(telling) and len(telling) >= MAX_MISSING_SHARE * n_words


def is_uncovered_sentence(words: Sequence[ContentWord], missing_words: Sequence[ContentWord]) -> bool:
    """Whether facts leave out what a sentence of these words says."""
    if any(word.kind != "word" for word in missing_words):
        return True
    return len(missing_words) > MAX_UNCOVERED_SHARE * len(words)


def has_leaked(missing_words: Sequence[ContentWord], demonstrations: Iterable[WordVocabulary]) -> bool:
    """Whether all words that the response lacks are in one demonstration, a name or number or three words at least."""
    telling = len(missing_words) > 2 or any(word.kind != "word" for word in missing_words)
    return telling and any(not shown.list_missing_words(missing_words) for shown in demonstrations)


def find_repeated_facts(facts: Sequence[str], topic: str | None = None) -> list[bool]:
    """Whether another fact says all that a fact says; of equal ones the first stays."""
    repeated = [False] * len(facts)
    for one, _ in find_repeating_fact_pairs(facts, topic):
        repeated[one] = True
    return repeated


def find_repeating_fact_pairs(facts: Sequence[str], topic: str | None = None) -> list[tuple[int, int]]:
    """The places of a fact and of another that says all that it says; of equal ones the later comes first.

    The words of the one are among the other's, and names that both have come in the same order: "A beat B" is not
    "B beat A". A fact with a negation is only repeated by others with one.
    """
    listed = [list_informative_words(fact, topic) for fact in facts]
    stems = [{word.stem for word in words} for words in listed]
    negated = [bool(_NEGATION.search(fact)) for fact in facts]
    pairs = []
    for one in range(len(facts)):
        for other in range(len(facts)):
            if one == other or negated[one] != negated[other] or not stems[one] <= stems[other]:
                continue
            if not stems[one] and facts[one].casefold() != facts[other].casefold():
                continue  # trivial statements are told apart by words of no weight
            if (stems[one] < stems[other] or other < one) and _have_names_in_order(listed[one], listed[other]):
                pairs.append((one, other))
    return pairs


_NEGATION = re.compile(r"\b(?:no|not|never|neither|nor|without)\b|n['’]t\b", re.IGNORECASE)


def _have_names_in_order(words: Sequence[ContentWord], others: Sequence[ContentWord]) -> bool:
    names = [word.stem for word in words if word.kind == "name"]
    shared = [word.stem for word in others if word.stem in names]
    return list(dict.fromkeys(names)) == list(dict.fromkeys(shared))
