"""How much of a claim's wording the document has: ROUGE-2 precision (Lin 2004) and R2-diff (VC §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain, pairwise

import numpy as np

from factaudit.text.chunks import chunk, words
from factaudit.text.tokens import rouge_tokens

Bigram = tuple[str, str]


def rouge2_precision(claims: Sequence[str], docs: Sequence[str | None]) -> np.ndarray:
    """The clipped share of each claim's bigrams that its document has.

    Equals the precision of ``RougeScorer(["rouge2"], use_stemmer=False)``, but each distinct document is read once.

    claims, docs: n texts each, row by row. Returns float64 (n,), in [0, 1]; NaN where the claim has fewer than two
    tokens or the document is None.
    """
    result = np.full(len(claims), np.nan)
    for doc, rows, wanted in _by_document(claims, docs):
        found = _count(rouge_tokens(doc), set(chain.from_iterable(wanted)))
        for row, pairs in zip(rows, wanted, strict=True):
            if pairs:
                result[row] = _hits(pairs, found) / len(pairs)
    return result


def r2_diff(
    claims: Sequence[str], docs: Sequence[str | None], size: int = 500, count: Callable[[str], int] = words
) -> np.ndarray:
    """ROUGE-2 precision against the whole document minus the greatest against one of its chunks (VC §4.2).

    claims, docs: n texts each, row by row; size, count: as in `factaudit.text.chunks.chunk`. Returns float64 (n,),
    never negative; NaN where ROUGE-2 precision is.
    """
    result = np.full(len(claims), np.nan)
    for doc, rows, wanted in _by_document(claims, docs):
        chunks = chunk(doc, size, count)
        if len(chunks) < 2:
            # The only chunk is the document.
            result[[row for row, pairs in zip(rows, wanted, strict=True) if pairs]] = 0.0
            continue
        needed = set(chain.from_iterable(wanted))
        # Chunks cut no token, so the document's tokens are theirs in turn; its bigrams are more than theirs.
        tokens = [rouge_tokens(part) for part in chunks]
        whole = _count(chain.from_iterable(tokens), needed)
        parts = [_count(part, needed) for part in tokens]
        for row, pairs in zip(rows, wanted, strict=True):
            if pairs:
                best = max(_hits(pairs, part) for part in parts)
                result[row] = (_hits(pairs, whole) - best) / len(pairs)
    return result


def _by_document(
    claims: Sequence[str], docs: Sequence[str | None]
) -> Iterator[tuple[str, list[int], list[list[Bigram]]]]:
    """Each distinct document with its rows and their claims' bigrams; only one document's are held at a time."""
    if len(claims) != len(docs):
        raise ValueError(f"expected one document per claim, found {len(claims)} claims and {len(docs)} documents")
    rows_of: dict[str, list[int]] = {}
    for row, doc in enumerate(docs):
        if isinstance(doc, str):
            rows_of.setdefault(doc, []).append(row)
    for doc, rows in rows_of.items():
        yield doc, rows, [list(pairwise(rouge_tokens(claims[row]))) for row in rows]


def _count(tokens: Iterable[str], needed: Set[Bigram]) -> Counter[Bigram]:
    """How often each of the ``needed`` bigrams occurs; those that do not are left out."""
    return Counter(filter(needed.__contains__, pairwise(tokens)))


def _hits(pairs: Sequence[Bigram], found: Mapping[Bigram, int]) -> int:
    """How many of a claim's bigrams are found, a repeated one at most as often as it is found (ROUGE's clipping)."""
    if len(set(pairs)) == len(pairs):
        return sum(map(found.__contains__, pairs))
    return sum(min(times, found.get(pair, 0)) for pair, times in Counter(pairs).items())
