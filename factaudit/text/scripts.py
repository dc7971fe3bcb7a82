"""Words of texts in any script, and whether two texts are in the same: Chinese, Japanese or Thai have no spaces."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import regex

from factaudit.text.content_words import STOP_WORDS

#: Characters of scripts that put no space between words: each, with its marks, is taken for a word.
UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_UNSPACED_CHARACTER = regex.compile(UNSPACED, regex.V1)
# Marks are of a word: without them the vowels of Hindi would cut it.
_WORD = regex.compile(rf"{UNSPACED}\p{{M}}*|[[\p{{L}}\p{{M}}\p{{N}}]--{UNSPACED}]+", regex.V1)
_LATIN_WORD = regex.compile(r"\p{Latin}+")
_ASCII_LETTER = re.compile("[A-Za-z]")
_ASCII = bytes(range(128))
#: How the names of Chinese and Japanese characters begin: of one text.
_EAST_ASIAN = {"CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}
#: Of a text's letters: with no more outside ASCII, it is in Latin script.
_MAX_NON_ASCII_SHARE = 0.05
#: Texts that share less of the scripts of their words are in different ones.
MIN_SHARED_SCRIPTS = 0.2
#: Why such a claim has no score that counts words.
OTHER_SCRIPT_REASON = "the claim is in another script than its document"
#: Of the words of a text: an English one may quote as much in another script.
_MIN_LATIN_SHARE = 0.4
#: Of English prose, 0.3 to 0.5 of the words are `STOP_WORDS`; of German, French or Portuguese, 0.03 to 0.21. Lists of
#: names in English have as few, but their words with accents have capitals.
_MIN_ENGLISH_STOP_WORDS, _MIN_ACCENTED_SHARE, _MIN_ACCENTED_LOWER_CASE = 0.25, 0.003, 0.025


def split_words_of_any_script(text: str) -> list[str]:
    """A text's words in its order, in one form of letters, width and marks (NFKC, case folded).

    >>> split_words_of_any_script("東京２０２０ and ΟΔΟΣ हिन्दी")
    ['東', '京', '2020', 'and', 'οδοσ', 'हिन्दी']
    """
    return [_fold_script_word(match[0]) for match in _WORD.finditer(text)]


def is_unspaced_text(text: str) -> bool:
    """Whether most words of a text are single characters without spaces between words, as in Chinese."""
    if is_mostly_ascii(text) or is_latin_text(text):
        return False
    return len(_UNSPACED_CHARACTER.findall(_keep_non_ascii(text))) > len(text.split())


def is_latin_text(text: str) -> bool:
    """Whether most words of a text are in Latin script, or none is in any."""
    shares = compute_script_shares(text)
    return not shares or shares.get("LATIN", 0) > 0.5


def has_rouge_words(text: str) -> bool:
    """Whether a text's words are those of rouge-score, which knows ASCII alone: of English, with foreign names or not.

    A text in Latin script with many other letters is English where enough of its words are function words of English.
    """
    if text.isascii():
        return True
    if _count_other_letters(text) < _MIN_ACCENTED_SHARE * len(text):
        return True
    if compute_script_shares(text).get("LATIN", 0) < _MIN_LATIN_SHARE:
        return False
    words = _LATIN_WORD.findall(text)
    accented = sum(word[0].islower() and not word.isascii() for word in words)
    if accented < _MIN_ACCENTED_LOWER_CASE * len(words):
        return True
    return sum(word.lower() in STOP_WORDS for word in words) >= _MIN_ENGLISH_STOP_WORDS * len(words)


def find_claims_in_other_script(claims: Sequence[str], doc: str) -> list[bool]:
    """Which claims are in another script than their document, so that no overlap of words can be told.

    Chinese and Japanese count as one script; a text without a letter is in none, so in no other.

    >>> find_claims_in_other_script(["The capital is Tokyo.", "首都は東京です。", "1868"], "日本の首都は東京である。")
    [True, False, False]
    """
    is_plain = is_mostly_ascii(doc)
    return [not (is_plain and is_mostly_ascii(claim)) and _is_in_other_script(claim, doc) for claim in claims]


def _is_in_other_script(claim: str, doc: str) -> bool:
    own, there = compute_script_shares(claim), compute_script_shares(doc)
    shared = sum(min(share, there.get(script, 0)) for script, share in own.items())
    return bool(own) and bool(there) and shared < MIN_SHARED_SCRIPTS


@lru_cache(maxsize=32)
def compute_script_shares(text: str) -> dict[str, float]:
    """The share of a text's words that each script has, by its Unicode name; words without a letter do not count."""
    if is_mostly_ascii(text):
        return {"LATIN": 1.0} if _ASCII_LETTER.search(text) else {}
    counts = Counter(filter(None, map(_find_word_script, _WORD.findall(text))))
    return {script: count / counts.total() for script, count in counts.items()}


def is_mostly_ascii(text: str) -> bool:
    """Whether nearly all letters of a text are ASCII, as in English, German or Spanish."""
    return text.isascii() or _count_other_letters(text) <= _MAX_NON_ASCII_SHARE * len(text)


# A document is asked for once for its claims and again for its words, right after one another.
@lru_cache(maxsize=32)
def _count_other_letters(text: str) -> int:
    return sum(map(str.isalpha, _keep_non_ascii(text)))


def _keep_non_ascii(text: str) -> str:
    """Several times as fast as a regular expression."""
    return text.encode("utf-8", "ignore").translate(None, _ASCII).decode()


@lru_cache(maxsize=1 << 16)
def _fold_script_word(word: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


@lru_cache(maxsize=1 << 16)
def _find_word_script(word: str) -> str | None:
    letter = next(filter(str.isalpha, _fold_script_word(word)), None)
    script = unicodedata.name(letter, "").split(" ")[0] if letter else None
    return "CJK" if script in _EAST_ASIAN else script
