"""How much of a claim's wording the document has: ROUGE-2 precision (Lin 2004) and R2-diff (VC §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain, pairwise

import numpy as np

from factaudit.text.chunks import chunk, words
from factaudit.text.tokens import rouge_tokens

Bigram = tuple[bytes, bytes]


def rouge2_precision(claims: Sequence[str], docs: Sequence[str | None]) -> np.ndarray:
    """The clipped share of each claim's bigrams that its document has.

    Equals the precision of ``RougeScorer(["rouge2"], use_stemmer=False)``, but each distinct document is read once.

    claims, docs: n texts each, row by row. Returns float64 (n,), in [0, 1]; NaN where the claim has fewer than two
    tokens or the document is None.
    """
    result = np.full(len(claims), np.nan)
    for doc, wanted in _by_document(claims, docs):
        tokens = rouge_tokens(doc)
        found = _Found(wanted, wanted.bigrams.intersection(pairwise(tokens)), [tokens])
        for row, pairs, distinct in wanted.claims:
            result[row] = found.hits(pairs, distinct) / len(pairs)
    return result


def r2_diff(
    claims: Sequence[str], docs: Sequence[str | None], size: int = 500, count: Callable[[str], int] = words
) -> np.ndarray:
    """ROUGE-2 precision against the whole document minus the greatest against one of its chunks (VC §4.2).

    claims, docs: n texts each, row by row; size, count: as in `factaudit.text.chunks.chunk`. Returns float64 (n,),
    never negative; NaN where ROUGE-2 precision is.
    """
    result = np.full(len(claims), np.nan)
    for doc, wanted in _by_document(claims, docs):
        texts = chunk(doc, size, count)
        if len(texts) < 2:
            # The only chunk is the document.
            result[[row for row, _, _ in wanted.claims]] = 0.0
            continue
        # Chunks cut no token, so the document's tokens are theirs in turn: it has their bigrams and those between them.
        chunks = [tokens for text in texts if (tokens := rouge_tokens(text))]
        parts = [_Found(wanted, wanted.bigrams.intersection(pairwise(tokens)), [tokens]) for tokens in chunks]
        between = {(one[-1], other[0]) for one, other in pairwise(chunks)}
        whole = _Found(wanted, wanted.bigrams.intersection(between).union(*(part.bigrams for part in parts)), chunks)
        for row, pairs, distinct in wanted.claims:
            best = max((part.hits(pairs, distinct) for part in parts), default=0)
            result[row] = (whole.hits(pairs, distinct) - best) / len(pairs)
    return result


class _Wanted:
    """The bigrams of all claims on one document: by claim, those of any, and those that a claim has more than once."""

    def __init__(self, rows: Sequence[int], claims: Sequence[str]) -> None:
        every = ((row, list(pairwise(rouge_tokens(claims[row])))) for row in rows)
        self.claims = [(row, pairs, set(pairs)) for row, pairs in every if pairs]
        self.bigrams: set[Bigram] = set().union(*(distinct for _, _, distinct in self.claims))
        self.repeated: set[Bigram] = set()
        for _, pairs, distinct in self.claims:
            if len(distinct) < len(pairs):
                self.repeated.update(pair for pair, times in Counter(pairs).items() if times > 1)


class _Found:
    """Which of the wanted ``bigrams`` a text has, of which ``parts`` are the tokens in turn."""

    def __init__(self, wanted: _Wanted, bigrams: set[Bigram], parts: Sequence[Sequence[bytes]]) -> None:
        self.bigrams = bigrams
        # How often is asked only where a claim has a bigram more than once.
        repeated = wanted.repeated & bigrams
        every = pairwise(chain.from_iterable(parts)) if repeated else ()
        self._times = Counter(filter(repeated.__contains__, every))

    def hits(self, pairs: Sequence[Bigram], distinct: Set[Bigram]) -> int:
        """How many of a claim's bigrams are found; a repeated one as often as it is, at most (ROUGE's clipping)."""
        if len(distinct) == len(pairs):
            return len(self.bigrams.intersection(distinct))
        times = Counter(pairs)
        return sum(min(times[pair], self._times.get(pair, 1)) for pair in self.bigrams.intersection(distinct))


def _by_document(claims: Sequence[str], docs: Sequence[str | None]) -> Iterator[tuple[str, _Wanted]]:
    """Each distinct document with its claims' bigrams; only one document's are held at a time."""
    if len(claims) != len(docs):
        raise ValueError(f"expected one document per claim, found {len(claims)} claims and {len(docs)} documents")
    rows_of: dict[str, list[int]] = {}
    for row, doc in enumerate(docs):
        if isinstance(doc, str):
            rows_of.setdefault(doc, []).append(row)
    for doc, rows in rows_of.items():
        yield doc, _Wanted(rows, claims)
