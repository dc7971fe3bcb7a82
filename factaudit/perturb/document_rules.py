"""Rules on the document: a sentence that has nothing to do with the claim; passages in another order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
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
#: Claims that speak of all that their document says, or of its order: a document with more in it is another one.
_ABOUT_THE_WHOLE = re.compile(
    r"\b(?:only|all|mention\w*|discuss\w*|list\w*|passages?|documents?|articles?|sources?|text|context|first|last|second"
    r"|third|above|below|previous|following|according|provided|given|information|state[sd]?|unable|paragraph|table)\b|^\W*\d+\W*$",
    re.I,
)
#: Where an item of a collection begins: "passage 2:", "[Passage 2: from ...]", "A title (www.example.com)".
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
        one for one in _ASIDES if len(known.list_missing_words(words := list_content_words(one))) >= len(words) - 2
    ]
    for aside in strange:
        yield f"{doc.rstrip()}\n\n{aside}"
        yield f"{aside}\n\n{doc.lstrip()}"


@lru_cache(maxsize=64)
def split_document_into_passages(document: str) -> tuple[str, ...]:
    """The items of a document that is a collection of them, each with its heading; () for any other document.

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
    return tuple(document[start:end].strip() for start, end in zip(starts, [*starts[1:], len(document)], strict=True))


def _join_other_order(passages: Sequence[str], order: Sequence[int]) -> str:
    return "\n\n".join(passages[at] for at in order)


def _list_documents_with_reordered_passages(claim: str, doc: str, random: Random) -> Iterator[str]:
    passages = split_document_into_passages(doc)
    if len(passages) < 2 or _ABOUT_THE_WHOLE.search(claim):
        return
    order = list(range(len(passages)))
    Random(doc).shuffle(order)  # the same for all claims of a document: a model reads it once
    if order == sorted(order):
        order = order[1:] + order[:1]
    yield _join_other_order(passages, order)


def find_passage_nearest_to_claim(claim: str, passages: Sequence[str]) -> int | None:
    """The passage that has the most of a claim's content words; None where two have as many, or none has half."""
    words = list_content_words(claim)
    missing = [len(WordVocabulary([passage]).list_missing_words(words)) for passage in passages]
    least = min(missing)
    return missing.index(least) if missing.count(least) == 1 and 2 * least <= len(words) and words else None


def _move_best_passage_in_document(place: str, claim: str, doc: str, random: Random) -> Iterator[str]:
    passages = split_document_into_passages(doc)
    if len(passages) < 3 or _ABOUT_THE_WHOLE.search(claim):
        return
    best = find_passage_nearest_to_claim(claim, passages)
    if best is None:
        return
    others = [at for at in range(len(passages)) if at != best]
    to = {"first": 0, "middle": len(others) // 2 + len(others) % 2, "last": len(others)}[place]
    if to != best:
        yield _join_other_order(passages, [*others[:to], best, *others[to:]])


_PASSAGES = ("passage 1: It rains.", "passage 2: The mill closed in 1911.", "passage 3: It snows.", "passage 4: Fog.")
_MOVED_EXAMPLES = {
    place: ("\n\n".join(_PASSAGES), _join_other_order(_PASSAGES, order))
    for place, order in (("first", (1, 0, 2, 3)), ("middle", (0, 2, 1, 3)), ("last", (0, 2, 3, 1)))
}
RULES = (
    PerturbationRule(
        "aside_added",
        "same",
        "The document begins or ends with a sentence on something else: claim and document have at most two of its "
        "content words.",
        ("The mill closed in 1911.", "The mill closed in 1911.\n\n" + _ASIDES[0]),
        _list_documents_with_unrelated_aside,
        changes="doc",
    ),
    PerturbationRule(
        "passage_order",
        "same",
        "The passages of a document that is a collection of them stand in another order.",
        ("passage 1: It rains.\n\npassage 2: It snows.", "passage 2: It snows.\n\npassage 1: It rains."),
        _list_documents_with_reordered_passages,
        changes="doc",
    ),
    *(
        PerturbationRule(
            f"evidence_{place}",
            "same",
            f"The passage with the most words of the claim moves to the {where} of such a document.",
            _MOVED_EXAMPLES[place],
            partial(_move_best_passage_in_document, place),
            changes="doc",
        )
        for place, where in (("first", "beginning"), ("middle", "middle"), ("last", "end"))
    ),
)
