"""Which words has a text in any script, and are two texts in the same one? (Chinese, Japanese and
Thai have no spaces between words.)"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import regex

#: Characters of scripts that put no space between words: each, with its marks, is taken for a word.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_UNSPACED_CHARACTER = regex.compile(UNSPACED, regex.V1)
# Marks are of a word: without them the vowels of Hindi would cut it.
_WORD = regex.compile(rf"{UNSPACED}\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--{UNSPACED}]+", regex.V1)
_LETTERS = regex.compile(
    rf"{UNSPACED}\p{{M}}*|[\p{{L}}--{UNSPACED}][\p{{L}}\p{{M}}--{UNSPACED}]*", regex.V1
)
_LATIN_WORD = regex.compile(r"\p{Latin}+")
_ASCII_LETTER = regex.compile("[A-Za-z]")
#: Of two texts in the same script the shares of Latin words differ by no more: one may quote names
#: of the other's.
_MAX_LATIN_DIFFERENCE = 0.8
#: Why such a claim has no score that counts words.
OTHER_SCRIPT_REASON = "the claim is in another script than its document"


def split_words_of_any_script(text: str) -> list[str]:
    """A text's words in its order, in one form of letters, width and marks (NFKC, case folded).

    >>> split_words_of_any_script("東京２０２０ and ΟΔΟΣ हिन्दी")
    ['東', '京', '2020', 'and', 'οδοσ', 'हिन्दी']
    """
    return _WORD.findall(
        unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    )


def is_unspaced_text(text: str) -> bool:
    """Whether most words of a text are single characters without spaces between words, as in
    Chinese."""
    if text.isascii() or is_latin_text(text):
        return False
    return len(_UNSPACED_CHARACTER.findall(text)) > len(text.split())


def is_latin_text(text: str) -> bool:
    """Whether most words of a text are in Latin script, or none is in any."""
    share = _compute_latin_share(text)
    return share is None or share > 0.5


def has_latin_words(text: str) -> bool:
    """Whether most words of a text are in Latin script, and there are some."""
    return (_compute_latin_share(text) or 0.0) > 0.5


def find_claims_in_other_script(claims: Sequence[str], doc: str) -> list[bool]:
    """Which claims are in Latin script and their document is in another, or the reverse, so that no
    overlap of words can be told; a text without a letter is in none, so in no other.

    >>> claims = ["The capital is Tokyo.", "首都は東京です。", "1868"]
    >>> find_claims_in_other_script(claims, "日本の首都は東京である。")
    [True, False, False]
    """
    there = _compute_latin_share(doc)
    shares = map(_compute_latin_share, claims)
    return [
        None not in (own, there) and abs((own or 0) - (there or 0)) > _MAX_LATIN_DIFFERENCE
        for own in shares
    ]


# A document is asked for once for its claims and again for its words, right after one another.
@lru_cache(maxsize=32)
def _compute_latin_share(text: str) -> float | None:
    """The share of a text's words that are in Latin script; None where no word has a letter."""
    if text.isascii():
        return 1.0 if _ASCII_LETTER.search(text) else None
    n_words = len(_LETTERS.findall(text))
    return min(1.0, len(_LATIN_WORD.findall(text)) / n_words) if n_words else None
