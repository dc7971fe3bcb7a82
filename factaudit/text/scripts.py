"""Words of texts in any script, and whether two texts are in the same: Chinese, Japanese or Thai have no spaces."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

#: Characters of scripts that put no space between words: each, with its marks, is taken for a word.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_UNSPACED_CHARACTER = regex.compile(UNSPACED, regex.V1)
# Marks are of a word: without them the vowels of Hindi would cut it.
_WORD = regex.compile(rf"{UNSPACED}\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--{UNSPACED}]+", regex.V1)
_LETTER = regex.compile(r"\p{L}")
#: Of a text's words.
_MIN_ASCII_WORDS = 0.4
#: Of a text's letters: with no more outside ASCII it is written like English, with so many in another script.
_MAX_OTHER_LETTERS, _MIN_FOREIGN_LETTERS = 0.05, 0.5
#: Why such a claim has no score that counts words.
OTHER_SCRIPT_REASON = "the claim is in another script than its document"


def split_words_of_any_script(text: str) -> list[str]:
    """A text's words in its order, in one form of letters, width and marks (NFKC, case folded).

    >>> split_words_of_any_script("東京２０２０ and ΟΔΟΣ हिन्दी")
    ['東', '京', '2020', 'and', 'οδοσ', 'हिन्दी']
    """
    return [_fold_script_word(match[0]) for match in _WORD.finditer(text)]


def is_unspaced_text(text: str) -> bool:
    """Whether most words of a text are single characters without spaces between words, as in Chinese."""
    return not text.isascii() and len(_UNSPACED_CHARACTER.findall(text)) > len(text.split())


@lru_cache(maxsize=32)
def has_ascii_words(text: str) -> bool:
    """Whether enough words of a text are in ASCII to take those that rouge-score knows: an English one may quote much
    in another script."""
    if text.isascii():
        return True
    words = _WORD.findall(text)
    return sum(map(str.isascii, words)) >= _MIN_ASCII_WORDS * len(words)


def is_in_other_script(claim: str, doc: str) -> bool:
    """Whether of a claim and its document one is in ASCII and the other in another script, so that no overlap of words
    can be told; a text without a letter is in none.

    >>> [is_in_other_script(claim, "首都は東京である。") for claim in ("It is Tokyo.", "東京です。", "1868")]
    [True, False, False]
    """
    if claim.isascii() and doc.isascii():
        return False
    least, most = sorted((_share_other_letters(claim), _share_other_letters(doc)))
    return 0 <= least <= _MAX_OTHER_LETTERS and most >= _MIN_FOREIGN_LETTERS


# A document is asked for once for its claims and again for its words, right after one another.
@lru_cache(maxsize=32)
def _share_other_letters(text: str) -> float:
    """Of a text's letters; -1 where it has none."""
    letters = _LETTER.findall(text)
    return 1 - sum(map(str.isascii, letters)) / len(letters) if letters else -1.0


@lru_cache(maxsize=1 << 16)
def _fold_script_word(word: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())
