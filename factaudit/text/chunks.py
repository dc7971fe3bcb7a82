"""Chunks of complete sentences, for evaluators that cannot read a long document whole (VC §4.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from factaudit.errors import UsageError
from factaudit.text.sentences import sentence_spans

_LINE = re.compile(r"[^\n]+")
_WORD = re.compile(r"\S+")
# A piece of a word that is longer than a chunk. Letters and digits stay together, so that a ROUGE token is never cut;
# the last two are the only others whose lower case holds an ASCII letter.
_PIECE = re.compile(r"[A-Za-z0-9\u0130\u212a]+|.", re.DOTALL)


def words(text: str) -> int:
    """The number of words between white space."""
    return len(text.split())


def chunk(text: str, size: int = 500, count: Callable[[str], int] = words) -> list[str]:
    """Cut a document into chunks of complete sentences, each of up to ``size`` tokens as ``count`` counts them.

    Sentences are packed in order, as many as fit, as in MiniCheck (Tang et al. 2024, §4.1). A sentence longer than a
    chunk is cut at its line breaks, then between words, then between the characters of a word that has no letters
    or digits to keep together; only a run of letters or digits that is itself too long makes a chunk over ``size``.
    Chunks are slices of the document: nothing but white space between them is lost, and none is empty. A blank
    document has no chunks. ``count`` should leave out special tokens, else chunks come out shorter than they could be.

    Raises `UsageError` where ``size`` is under 1.
    """
    if size < 1:
        raise UsageError(f"a chunk holds at least 1 token, found size {size}")
    if not text or text.isspace():
        return []
    if count(text) <= size:
        return [text.strip()]
    units = list(_units(text, size, count))
    chunks = []
    first = 0
    while first < len(units):
        last, total = first, units[first][2]
        while last + 1 < len(units) and total + units[last + 1][2] <= size:
            last += 1
            total += units[last][2]
        # The parts' counts need not add up to the whole's where the counter is a tokenizer.
        while last > first and count(text[units[first][0] : units[last][1]]) > size:
            last -= 1
        chunks.append(text[units[first][0] : units[last][1]])
        first = last + 1
    return chunks


def _units(text: str, size: int, count: Callable[[str], int]) -> Iterator[tuple[int, int, int]]:
    """(start, end, tokens) of the parts that a chunk is made of: sentences, or what long ones had to be cut into."""

    def cut(spans: Iterator[tuple[int, int]], finer: tuple[re.Pattern[str], ...]) -> Iterator[tuple[int, int, int]]:
        for start, end in spans:
            tokens = count(text[start:end])
            if tokens <= size or not finer:
                yield start, end, tokens
            else:
                parts = (part.span() for part in finer[0].finditer(text, start, end))
                yield from cut((span for span in parts if not text[slice(*span)].isspace()), finer[1:])

    return cut(iter(sentence_spans(text)), (_LINE, _WORD, _PIECE))
