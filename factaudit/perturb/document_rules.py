"""Rules on the document: a sentence that has nothing to do with the claim; passages in another
order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from random import Random

from factaudit.perturb.rule_declaration import PerturbationRule
from factaudit.text.content_words import WordVocabulary, list_content_words

#: True of nothing that a document is about, and each about something else.
_ASIDES = (
    "The municipal library on Orchard Lane lends umbrellas on rainy afternoons.",
    "Knitting patterns from the nineteen-thirties are collected in a drawer at the guesthouse.",
    "A baker in the old arcade sells rye loaves shaped like hedgehogs.",
    "The choir rehearses its autumn carols in the attic above the pharmacy.",
    "Lighthouse postcards can be ordered from a kiosk beside the tram stop.",
    "An amateur astronomer polishes telescope mirrors in his garden shed.",
    "The pottery class paints teapots with swallows and dandelions.",
    "A retired tailor mends parasols at the flea market.",
    "Marbles and spinning tops are displayed in the window of the toyshop.",
    "The beekeepers' newsletter prints a crossword on its last page.",
)
#: Claims that speak of all that their document says, or of its order: a document with more in it is
#: another one.
_ABOUT_THE_WHOLE = re.compile(
    r"\b(?:only|all|mention\w*|discuss\w*|list\w*|passages?|documents?|articles?|sources?|text"
    r"|context|first|last|second"
    r"|third|above|below|previous|following|according|provided|given|information|state[sd]?|unable"
    r"|paragraph|table)\b|^\W*\d+\W*$",
    re.I,
)
#: Where an item of a collection begins: "passage 2:", "[Passage 2: from ...]", "A title
#: (www.example.com)".
_PASSAGE_HEAD = re.compile(
    r"\[?(?:passage|document|source|article|excerpt|context)\s*\d+\b|\[\d+\]"
    r"|[^\n]*\((?:[\w-]+\.)+[a-z]{2,6}\)[ \t]*(?=\n|$)",
    re.I,
)


def _list_documents_with_unrelated_aside(claim: str, doc: str, random: Random) -> Iterator[str]:
    if not doc.strip() or _ABOUT_THE_WHOLE.search(claim):
        return
    known = WordVocabulary([claim, doc[:20_000]])
    strange = [
        one
        for one in _ASIDES
        if len(known.list_missing_words(words := list_content_words(one))) >= len(words) - 2
    ]
    for aside in strange:
        yield f"{doc.rstrip()}\n\n{aside}"
        yield f"{aside}\n\n{doc.lstrip()}"


@lru_cache(maxsize=64)
def split_document_into_passages(document: str) -> tuple[str, ...]:
    """The items of a document that is a collection of them, each with its heading; () for any other
    document.

    >>> split_document_into_passages("passage 1: It rains.\\n\\npassage 2: It snows.")
    ('passage 1: It rains.', 'passage 2: It snows.')
    >>> split_document_into_passages("It rained.\\n\\nThen it snowed.")
    ()
    """
    starts = [
        found.end()
        for found in re.finditer(r"(?:^|\n\s*\n)\s*", document)
        if _PASSAGE_HEAD.match(document, found.end())
    ]
    if len(starts) < 2 or document[: starts[0]].strip():
        return ()
    return tuple(
        document[start:end].strip()
        for start, end in zip(starts, [*starts[1:], len(document)], strict=True)
    )


def _list_documents_with_reordered_passages(claim: str, doc: str, random: Random) -> Iterator[str]:
    passages = split_document_into_passages(doc)
    if len(passages) < 2 or _ABOUT_THE_WHOLE.search(claim):
        return
    order = list(passages)
    Random(doc).shuffle(order)  # the same for all claims of a document: a model reads it once
    yield "\n\n".join(order if order != list(passages) else order[1:] + order[:1])


RULES = (
    PerturbationRule(
        "aside_added",
        "same",
        "The document begins or ends with a sentence on something else: claim and document have at"
        " most two of its content words.",
        ("The mill closed in 1911.", "The mill closed in 1911.\n\n" + _ASIDES[0]),
        _list_documents_with_unrelated_aside,
        changes="doc",
    ),
    PerturbationRule(
        "passage_order",
        "same",
        "The passages of a document that is a collection of them stand in another order.",
        (
            "passage 1: It rains.\n\npassage 2: It snows.",
            "passage 2: It snows.\n\npassage 1: It rains.",
        ),
        _list_documents_with_reordered_passages,
        changes="doc",
    ),
)
