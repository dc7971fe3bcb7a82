"""What may be wrong with the atomic facts of a response, by its words alone: invented, repeated, joined, unclear.

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
    list_content_words,
    list_informative_words,
)
from factaudit.text.sentences import split_sentences

#: A fact of whose words at least this share is missing in the response is invented; so is one whose number or name is.
MAX_MISSING_SHARE = 0.5
#: A sentence of which more than this share of words is in no fact is not covered; or a number, or a name.
MAX_UNCOVERED_SHARE = 0.2

_SUBJECT_PRONOUN = re.compile(
    r"^(?:he|she|it|they|we|his|her|hers|their|theirs|its|him|them|this|these|those|that|the (?:latter|former))\b",
    re.IGNORECASE,
)
_ANY_PRONOUN = re.compile(r"\b(?:he|she|they|him|them|his|her|hers|their|theirs)\b", re.IGNORECASE)
_WITHOUT_SUBJECT = re.compile(
    r"""^(?:(?:also|later|then|and|but)\s+)?(?:
      (?:was|were|is|are|has|have|had|did|does|can|could|became|began|won|wrote|led|held|taught|made|met|left|built|sang
      |sold|bought|kept|ran|took|gave|went|drew|fought|spent)\b
      |(?:born|known|founded|awarded|educated|written|directed|produced|elected|appointed|married|raised|named)\b
      |(?!according|following|including|during|regarding)[a-z]+(?:ed|ing)\s+(?:as|at|by|for|from|in|on|to|the|a|an|with)\b
      |[a-z]{3,}ed\s+(?!(?:was|is|has|had|were|and|of|wrote|won)\b)(?!\w+ed\b)\w
    )""",
    re.VERBOSE | re.IGNORECASE,
)
#: "Led Zeppelin": no verb, but a name.
_NAME_LIKE_A_VERB = re.compile(r"^(?!Was\b|Is\b|Has\b|Had\b|Were\b|Are\b)[A-Z]\w+ [A-Z]")
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]")
_BETWEEN = re.compile(r"\b(between|from|among)\b([^,;]{1,60}?)\band\b", re.IGNORECASE)
#: "Law & Order", "Trinidad and Tobago": and between two words with capital letters is part of a name.
_NAME_AND_NAME = re.compile(r"\b([A-Z][\w’'-]*)\s+(?:and|&|or)\s+(?=[A-Z])")
_JOINED = re.compile(
    r"\s(?:and|or|but|while|whereas|as well as)\s|;\s|,\s(?:who|which|whose|where|when)\b", re.IGNORECASE
)
_OPENING_PHRASE = re.compile(
    r"^(?:in|on|at|after|before|during|from|by|since|until|with|as|according|for|under)\b[^,]*,\s", re.IGNORECASE
)
#: "..., born in Paris": a comma before a small letter begins another statement.
_COMMA_AND_SMALL_LETTER = re.compile(r",\s(?=[a-z])")
#: "March 4, 1951", "Ludlow, Shropshire".
_DATE_OR_PLACE_COMMA = re.compile(r"(\w),\s(?=\d{4}\b|[A-Z])")


@dataclass(frozen=True)
class FactFaults:
    """The facts of one response, true where a fact has the fault, and how much of the response they say.

    invented: its words are not in the response. leaked: it is invented, and its words are in a demonstration. repeated:
    another fact of the response says it. joined: it joins several statements. unclear: it has no subject but a pronoun.
    trivial: it holds of nearly anybody. n_words: content words of the response, n_covered_words: those that are in a
    fact. n_sentences: its sentences, n_uncovered: those of which the facts leave something out.
    """

    invented: tuple[bool, ...]
    leaked: tuple[bool, ...]
    repeated: tuple[bool, ...]
    joined: tuple[bool, ...]
    unclear: tuple[bool, ...]
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
        tuple(map(has_several_fact_statements, facts)),
        tuple(map(has_no_clear_fact_subject, facts)),
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


def has_several_fact_statements(fact: str) -> bool:
    """Whether a fact can be split: sentences, coordinated words, a relative clause or an insertion.

    >>> [has_several_fact_statements(f"She {rest}.") for rest in ("was a poet and a miller", "wrote Law and Order")]
    [True, False]
    """
    if len(split_sentences(fact)) > 1:
        return True
    plain = _QUOTED.sub("Title", fact.strip().rstrip("."))
    plain = _BETWEEN.sub(r"\1\2 to ", plain)
    plain = _NAME_AND_NAME.sub(r"\1 ", plain)
    plain = _OPENING_PHRASE.sub("", plain)
    plain = _DATE_OR_PLACE_COMMA.sub(r"\1 ", plain)
    return bool(_JOINED.search(plain) or _COMMA_AND_SMALL_LETTER.search(plain))


def has_no_clear_fact_subject(fact: str) -> bool:
    """Whether a fact cannot be understood alone: it begins with a pronoun or a verb, or has a pronoun and no name.

    >>> [has_no_clear_fact_subject(fact) for fact in ("She won.", "Born in Rome.", "Ada won.", "Ada sold her mill.")]
    [True, True, False, False]
    """
    text = fact.strip()
    if _SUBJECT_PRONOUN.search(text):
        return True
    if _WITHOUT_SUBJECT.search(text) and not _NAME_LIKE_A_VERB.search(text):
        return True
    pronoun = _ANY_PRONOUN.search(text)
    return pronoun is not None and not any(word.kind == "name" for word in list_content_words(text[: pronoun.start()]))
