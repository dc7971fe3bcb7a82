"""Chunks of complete sentences, for evaluators that cannot read a long document whole (VC §4.2)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from itertools import islice
from string import whitespace

import numpy as np

from factaudit.errors import UsageError
from factaudit.text.sentences import sentence_spans

_WORD = re.compile(r"\S+")
# What a word that is longer than a chunk may be cut into. Letters and digits stay together, so that no ROUGE token is
# cut; the last two are the only others whose lower case holds an ASCII letter.
_PIECE = re.compile(r"[A-Za-z0-9\u0130\u212a]+|.", re.DOTALL)
# Whether a character is white space, by its code; no code over U+3000 is.
_SPACE = np.array([chr(code).isspace() for code in range(0x3002)])


def words(text: str) -> int:
    """The number of words between white space."""
    return len(text.split())


def chunk(text: str, size: int = 500, count: Callable[[str], int] = words) -> list[str]:
    """Cut a document into chunks of complete sentences, each of at most ``size`` tokens as ``count`` counts them.

    Each chunk takes as many sentences as fit, as in MiniCheck (Tang et al. 2024). Where not even one fits, it ends at
    the last line break that does, else after the last word, else within the word, but never within a run of letters
    or digits: only such a run alone can make a chunk over ``size``. Chunks are slices of the document: nothing but
    white space between them is lost, and none is empty. A blank document has none.

    ``count`` gives at least 1 for a word and should leave out special tokens, which a chunk has but once.
    Raises `UsageError` where ``size`` is under 1.
    """
    if size < 1:
        raise UsageError(f"a chunk holds at least 1 token, found size {size}")
    if count(text) <= size:
        return [text.strip()] if _WORD.search(text) else []
    ends = _word_ends(text)
    chunks = []
    first = end = 0
    while first < len(ends):
        # Sentences and pieces may end within a word: the next chunk then begins there.
        start = _next_word(text, end)
        fit = _how_many(text, start, ends[first : first + size], size, count)
        if fit == 0:
            pieces = [piece.end() for piece in islice(_PIECE.finditer(text, start, ends[first]), size)]
            end = pieces[max(1, _how_many(text, start, pieces, size, count)) - 1]
        elif first + fit == len(ends):
            end = ends[-1]
        else:
            end = _last_break(text, start, ends, first, first + fit - 1)
        chunks.append(text[start:end])
        first = bisect_right(ends, end)
    return chunks


def _word_ends(text: str) -> list[int]:
    """Where each word ends; as a regular expression finds them, in a quarter of its time."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    space = _SPACE[np.minimum(codes, len(_SPACE) - 1)]
    return (np.flatnonzero(~space & np.append(space[1:], True)) + 1).tolist()


def _next_word(text: str, position: int) -> int:
    word = _WORD.search(text, position)
    return word.start() if word else len(text)


def _how_many(text: str, start: int, ends: list[int], size: int, count: Callable[[str], int]) -> int:
    """How many of the ``ends`` of words or pieces a chunk from ``start`` may reach."""
    if count is words and len(ends) <= size:
        return len(ends)
    return bisect_right(ends, size, key=lambda end: count(text[start:end]))


def _last_break(text: str, start: int, ends: list[int], first: int, last: int) -> int:
    """Where a chunk from ``start``, in word ``first``, that may reach the end of word ``last`` should end."""
    limit = ends[last]
    # Punkt decides on each full stop by the words around it alone, so it need not read more than the chunk's last
    # words, and one more to see what follows, unless no sentence ends among them.
    stop = ends[_whole_word(text, ends, min(_whole_word(text, ends, last) + 1, len(ends) - 1))]
    reach = 32
    while True:
        begin = max(first, last - reach)
        while begin and text[ends[begin - 1]] not in whitespace:
            begin -= 1
        offset = ends[begin - 1] if begin else 0
        found = [offset + end for _, end in sentence_spans(text[offset:stop])]
        complete = [end for end in found if start < end <= limit]
        if complete:
            return complete[-1]
        if begin <= first:
            break
        reach *= 4
    line = text.rfind("\n", start, limit)
    return start + len(text[start:line].rstrip()) if line > 0 else limit


def _whole_word(text: str, ends: list[int], word: int) -> int:
    """The last word of what is one word to NLTK, which knows no white space but ASCII's."""
    while word + 1 < len(ends) and text[ends[word]] not in whitespace:
        word += 1
    return word
