"""What is a rule, and what do the rules share?

A rule is a function with an example. This file also says which claims are plain enough to be
changed, where in their text, and what their document contains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal

from factaudit.text.sentences import split_sentences

#: All texts that a rule can make of a claim and its document, with a source of chance.
ListEdits = Callable[[str, str, Random], Iterable[str]]


@dataclass(frozen=True)
class PerturbationRule:
    """A rule that changes one thing: a function, an example, and what should follow.

    expected: what the verdict should do. It should stay the ``same``, or be ``changed`` to
    unattributable if the claim is attributable. list_edits: gives every text that the rule is sure
    to make rightly, and none if the rule may not fit. example: a text before and after. changes:
    whether the claim is changed, or its document. document: the document that the example needs.
    """

    kind: str
    expected: Literal["same", "changed"]
    says: str
    example: tuple[str, str]
    list_edits: ListEdits
    changes: Literal["claim", "doc"] = "claim"
    document: str = ""


_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]|(?<!\w)['‘][^'’\n]+['’](?!\w)")
_SOURCE_MENTION = re.compile(
    r"\b(?:passages?|documents?|articles?|sources?|text|excerpts?|context|question|answers?"
    r"|paragraphs?)\b",
    re.I,
)
#: Words behind which a statement is not asserted, or holds of a part only.
CONDITION = re.compile(
    r"\b(?:if|whether|unless|until|or|nor|neither|except|otherwise|lest|than)\b", re.I
)
NEGATION = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|nowhere|neither|nor|without|hardly|barely|scarcely"
    r"|rarely|seldom|unable"
    r"|lacks?|lacked|lacking|fails?|failed|cannot|few|little|instead|rather|refus\w+"
    r"|den(?:y|ies|ied)|avoid\w*"
    r"|prevent\w*|unlikely)\b|n['’]t\b",
    re.I,
)


def find_pattern_outside_quotes(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Where a pattern is found outside of quotations, which are somebody's own words.

    >>> text = 'A big dog in "The big house".'
    >>> [found.start() for found in find_pattern_outside_quotes(re.compile("big"), text)]
    [2]
    """
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    for found in pattern.finditer(text):
        if not any(start < found.end() and found.start() < end for start, end in quoted):
            yield found


def replace_claim_text_span(text: str, span: tuple[int, int], new: str) -> str:
    """The text with other words in a place; they have a capital letter where the old ones had
    one."""
    old = text[span[0] : span[1]]
    if old[:1].isupper() and new[:1].islower():
        new = new[:1].upper() + new[1:]
    return text[: span[0]] + new + text[span[1] :]


@lru_cache(maxsize=1 << 16)
def is_single_sentence_claim(claim: str) -> bool:
    """Whether a claim is one plain sentence: no list, question, heading or fragment, and not about
    its sources.

    >>> is_single_sentence_claim("The mill closed early.")
    True
    >>> is_single_sentence_claim("Is it open today?"), is_single_sentence_claim("The old mill.")
    (False, False)
    """
    text = claim.strip()
    if not re.fullmatch(r"[\"“(]?[A-Z0-9][^\n?!:;*|…]*[.][\"”)]?", text) or len(text.split()) < 4:
        return False
    return len(split_sentences(text)) == 1 and not _SOURCE_MENTION.search(text)


def is_plain_assertion(claim: str) -> bool:
    """Whether a claim is one sentence that says how things are, without condition, alternative or
    negation."""
    return (
        is_single_sentence_claim(claim)
        and not CONDITION.search(claim)
        and not NEGATION.search(claim)
    )


def has_phrase_in_document(document: str, phrase: str) -> bool:
    """Whether a document holds a word or phrase, in any case.

    >>> has_phrase_in_document("Nine men went.", "nine")
    True
    >>> has_phrase_in_document("Ninety men went.", "nine")
    False
    """
    return re.search(rf"(?<![\w,.]){re.escape(phrase)}(?!\w|[.,]\d)", document, re.I) is not None
