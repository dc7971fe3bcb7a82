"""Scales of words and letters: which word says more for support, and the cuts that a label can be made by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from factaudit.tables.vocabulary import (
    ATTRIBUTABLE_WORDS,
    UNATTRIBUTABLE_WORDS,
    find_denied_word,
    find_vocabulary_words_in_text,
    normalise_vocabulary_words,
)

#: Grades of a school, A the best, with a sign behind.
_LETTER_GRADE = re.compile(r"([A-F])\s*([+-]?)", re.IGNORECASE)
#: What a word says of support, by how strong it is.
_STRONG, _PLAIN, _WEAK = 3.0, 2.0, 1.0


def rank_scale_words(words: Sequence[str]) -> dict[str, float] | None:
    """How much each word of a scale says for support (below 0: against it); None where some are of no scale known.

    >>> rank_scale_words(["rather not", "definitely supported", "partly supported"])
    {'rather not': -1.0, 'definitely supported': 3.0, 'partly supported': 0.0}
    >>> rank_scale_words(["B", "F", "A-"]), rank_scale_words(["gpt", "nli"])
    ({'B': 1.0, 'F': -3.0, 'A-': 1.75}, None)
    """
    letters = [_LETTER_GRADE.fullmatch(word.strip()) for word in words]
    if len(words) > 2 and all(letters):
        signs = {"+": 0.25, "-": -0.25, "": 0.0}
        return {
            word: 67.0 - ord(one[1].upper()) + signs[one[2]]
            for word, one in zip(words, letters, strict=True)
            if one is not None
        }
    ranks = {word: _rank_word(normalise_vocabulary_words(word.replace("’", "'"))) for word in words}
    known = {word: rank for word, rank in ranks.items() if rank is not None}
    return known if len(known) == len(words) and len({*known.values()}) > 1 else None


def is_scale_of_judgement(words: Sequence[str]) -> bool:
    """Whether words are a scale of agreement, likelihood or support, with both sides, and not one of anything: high and
    low, good and poor."""
    ranks = rank_scale_words(words)
    if ranks is None or any(_LETTER_GRADE.fullmatch(word.strip()) for word in words):
        return False
    is_special = [
        word for word in words if not _find_sides(word) <= find_vocabulary_words_in_text("scale_of_anything", word)
    ]
    return len(words) > 2 and min(ranks.values()) < 0 < max(ranks.values()) and len(is_special) > 1


def list_cuts_of_scale(ranks: Mapping[str, float]) -> list[tuple[str, ...]]:
    """The words that may be attributable, the rest being not: first those above the middle, then by how near the cut
    is to it. (Of grades of a school a sign makes no level of its own.)"""
    levels = sorted({round(rank) for rank in ranks.values()}, reverse=True)
    cuts = [(upper + lower) / 2 for upper, lower in pairwise(levels)]
    middle = next((cut for cut, upper in zip(cuts, levels, strict=False) if upper > 0 >= 2 * cut - upper), 0.0)
    cuts.sort(key=lambda cut: abs(cut - middle))
    return [tuple(sorted((one for one in ranks if ranks[one] > cut), key=lambda one: -ranks[one])) for cut in cuts]


def is_word_and_denial(words: Sequence[str]) -> bool:
    """Whether two words are one and its denial: "sound" and "unsound", "backed" and "not backed"."""
    word, denial = sorted(map(normalise_vocabulary_words, words), key=len) if len(words) == 2 else ("", "")
    return bool(word) and find_denied_word(denial) == word


@lru_cache(maxsize=4096)
def _rank_word(text: str) -> float | None:
    """What a word in the vocabulary's form says for support; None where it is of no scale known."""
    if find_vocabulary_words_in_text("scale_middle", text):
        return 0.0
    strong, weak, good, bad = (
        bool(find_vocabulary_words_in_text(f"scale_{kind}", text)) for kind in ("strong", "weak", "good", "bad")
    )
    denials = find_vocabulary_words_in_text("denials", text)
    denied = bool(denials)
    parts = {part for part in text.split() if len(part) > 1} - denials
    bad = bad or bool(parts & UNATTRIBUTABLE_WORDS)
    good = (good or bool(parts & ATTRIBUTABLE_WORDS)) and not bad
    if not (strong or weak or denied or good or bad):
        return None
    if denied and not (strong or weak or good or bad) and len(text.split()) > 1:
        return None  # "keine Angabe"
    side = -1 if bad else 1
    side = -side if denied and (good or bad) else -1 if denied else side
    return side * (_WEAK if weak else _STRONG if strong else _PLAIN)


def _find_sides(word: str) -> frozenset[str]:
    text = normalise_vocabulary_words(word)
    found = frozenset[str]().union(
        *(find_vocabulary_words_in_text(f"scale_{kind}", text) for kind in ("good", "bad", "strong", "weak", "middle"))
    )
    return found | (frozenset(text.split()) & (ATTRIBUTABLE_WORDS | UNATTRIBUTABLE_WORDS))
