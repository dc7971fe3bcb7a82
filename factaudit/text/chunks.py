"""How is a long document cut for evaluators that cannot read it whole? Into chunks of complete
sentences (VC §4.2)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import islice
from string import whitespace
from typing import Any

import regex

from factaudit.errors import UsageError
from factaudit.text.scripts import UNSPACED, is_unspaced_text
from factaudit.text.sentences import find_sentence_spans

_WORD = re.compile(r"\S+")
# Where words are not spaced: a character, with what is no letter behind it, or what is spaced.
_CHARACTER_WORD = regex.compile(rf"{UNSPACED}\p{{M}}*[^\w\s]*|[[^\s]--{UNSPACED}]+", regex.V1)
# What a word that is longer than a chunk may be cut into. Letters and digits stay together, so that
# no ROUGE token is cut; the last two are the only others whose lower case holds an ASCII letter.
_PIECE = re.compile(r"[A-Za-z0-9\u0130\u212a]+|.", re.DOTALL)
# The rest of a word, with the word after it, as NLTK sees words: it knows no white space but
# ASCII's.
_FOLLOWING_WORD = re.compile(rf"[^{whitespace}]*(?:\s*\S+[^{whitespace}]*)?")
_FOLLOWING_CHARACTERS = re.compile(".{0,64}", re.DOTALL)

#: So many characters before its end are read of a chunk first.
_SENTENCE_WINDOW = 200


def count_words(text: str) -> int:
    """The number of words between white space; of characters where no space is between words
    (`is_unspaced_text`)."""
    return len(_CHARACTER_WORD.findall(text)) if is_unspaced_text(text) else len(text.split())


def split_document_into_chunks(
    text: str, size: int = 500, count_tokens: Callable[[str], int] = count_words
) -> list[str]:
    """Cut a document into chunks of complete sentences, each of at most ``size`` tokens as
    ``count_tokens`` counts them.

    Each chunk takes as many sentences as fit, as in MiniCheck (Tang et al. 2024). Where not even
    one fits, it ends at the last line break that does, else after the last word, else within the
    word, but never within a run of letters
    or digits: only such a run alone can make a chunk over ``size``. Chunks are slices of the
    document: nothing but white space between them is lost, and none is empty. A blank document has
    none.

    ``count_tokens`` gives at least 1 for a word and should leave out special tokens, which a chunk
    has but once. Raises `UsageError` where ``size`` is under 1.
    """
    return [text[start:end] for start, end in find_document_chunk_spans(text, size, count_tokens)]


def find_document_chunk_spans(
    text: str, size: int = 500, count_tokens: Callable[[str], int] = count_words
) -> list[tuple[int, int]]:
    """Where each `split_document_into_chunks` starts and ends, in characters."""
    if size < 1:
        raise UsageError(f"a chunk holds at least 1 token, found size {size}")
    chunks = []
    word, following = (
        (_CHARACTER_WORD, _FOLLOWING_CHARACTERS)
        if is_unspaced_text(text)
        else (_WORD, _FOLLOWING_WORD)
    )
    start = _find_next_word(text, 0)
    if count_tokens is not count_words and count_tokens(text) <= size:
        return [(start, len(text.rstrip()))] if start < len(text) else []
    while start < len(text):
        end = _find_chunk_word_end(text, start, size, count_tokens, word)
        if end == start:
            end = _find_chunk_cut_within_word(text, start, size, count_tokens)
        elif _find_next_word(text, end) < len(text):
            end = _find_chunk_sentence_end(text, start, end, following)
        chunks.append((start, end))
        # Sentences and pieces may end within a word: the next chunk then begins there.
        start = _find_next_word(text, end)
    return chunks


def _find_next_word(text: str, position: int) -> int:
    word = _WORD.search(text, position)
    return word.start() if word else len(text)


def _find_chunk_word_end(
    text: str, start: int, size: int, count_tokens: Callable[[str], int], word: Any
) -> int:
    """The end of the last word that a chunk from ``start`` may reach; ``start`` where not even one
    fits."""
    ends = _list_match_ends(word, text, start, len(text), size)
    if count_tokens is count_words:
        return ends[-1]
    return [start, *ends][_count_fitting_ends(text, start, ends, size, count_tokens)]


def _find_chunk_cut_within_word(
    text: str, start: int, size: int, count_tokens: Callable[[str], int]
) -> int:
    """Where to cut a word that is longer than a chunk."""
    (stop,) = _list_match_ends(_WORD, text, start, len(text), 1)
    pieces = _list_match_ends(_PIECE, text, start, stop, size)
    return pieces[max(1, _count_fitting_ends(text, start, pieces, size, count_tokens)) - 1]


def _list_match_ends(pattern: Any, text: str, start: int, stop: int, max_matches: int) -> list[int]:
    """Where the first matches between ``start`` and ``stop`` end."""
    return [found.end() for found in islice(pattern.finditer(text, start, stop), max_matches)]


def _count_fitting_ends(
    text: str, start: int, ends: list[int], size: int, count_tokens: Callable[[str], int]
) -> int:
    """How many of the ``ends`` of words or pieces a chunk from ``start`` may reach."""
    return bisect_right(ends, size, key=lambda end: count_tokens(text[start:end]))


def _find_chunk_sentence_end(text: str, start: int, limit: int, following: re.Pattern[str]) -> int:
    """Where a chunk from ``start`` that may reach ``limit``, the end of a word, should end."""
    # Punkt decides on each full stop by the words around it alone, so it need not read more than
    # the end of the chunk, and one word after the limit to see what follows, unless no sentence
    # ends there.
    (stop,) = _list_match_ends(following, text, limit, len(text), 1)
    for offset in (max(start, limit - _SENTENCE_WINDOW), start):
        while offset > start and text[offset] not in whitespace:
            offset -= 1
        ends = [offset + end for _, end in find_sentence_spans(text[offset:stop])]
        if complete := [end for end in ends if start < end <= limit]:
            return complete[-1]
    line = text.rfind("\n", start, limit)
    return start + len(text[start:line].rstrip()) if line > 0 else limit
