"""How much of a claim's wording the document has: ROUGE-2 precision (Lin 2004) and R2-diff (VC §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from factaudit.text.chunks import chunk, words
from factaudit.text.tokens import rouge_tokens

Bigrams = Mapping[tuple[str, str], int]


def rouge2_precision(claims: Sequence[str], docs: Sequence[str | None]) -> np.ndarray:
    """The clipped share of each claim's bigrams that its document has.

    Equals ``RougeScorer(["rouge2"], use_stemmer=False)``'s precision, but each distinct document is read once.

    claims, docs: n texts each, row by row. Returns float64 (n,), in [0, 1]; NaN where the claim has fewer than two
    tokens or the document is None.
    """
    result = np.full(len(claims), np.nan)
    for doc, rows in _by_document(claims, docs).items():
        found = bigrams(doc)
        for row in rows:
            result[row] = precision(bigrams(claims[row]), found)
    return result


def r2_diff(
    claims: Sequence[str], docs: Sequence[str | None], size: int = 500, count: Callable[[str], int] = words
) -> np.ndarray:
    """ROUGE-2 precision against the whole document minus the greatest against one of its chunks (VC §4.2).

    claims, docs: n texts each, row by row; size, count: as in `factaudit.text.chunks.chunk`. Returns float64 (n,),
    never negative; NaN where the precision is.
    """
    result = np.full(len(claims), np.nan)
    for doc, rows in _by_document(claims, docs).items():
        whole = bigrams(doc)
        chunks = chunk(doc, size, count)
        # One chunk is the whole document.
        parts = [bigrams(part) for part in chunks] if len(chunks) > 1 else [whole]
        for row in rows:
            wanted = bigrams(claims[row])
            if wanted:
                lost = hits(wanted, whole) - max(hits(wanted, part) for part in parts)
                result[row] = lost / sum(wanted.values())
    return result


def bigrams(text: str) -> Bigrams:
    """The text's bigrams of ROUGE tokens with their numbers."""
    tokens = rouge_tokens(text)
    return Counter(zip(tokens, tokens[1:], strict=False))


def hits(wanted: Bigrams, found: Bigrams) -> int:
    """How many of the bigrams ``wanted`` are in ``found``, each at most as often as there."""
    number = 0
    for bigram, times in wanted.items():
        if bigram in found:
            number += min(times, found[bigram])
    return number


def precision(claim: Bigrams, doc: Bigrams) -> float:
    """ROUGE-2 precision of two texts' bigrams; NaN where the claim has none."""
    return hits(claim, doc) / sum(claim.values()) if claim else float("nan")


def _by_document(claims: Sequence[str], docs: Sequence[str | None]) -> dict[str, list[int]]:
    """The rows of each distinct document, so that one document at a time is held as bigrams."""
    if len(claims) != len(docs):
        raise ValueError(f"expected one document per claim, found {len(claims)} claims and {len(docs)} documents")
    rows: dict[str, list[int]] = {}
    for row, doc in enumerate(docs):
        if isinstance(doc, str):
            rows.setdefault(doc, []).append(row)
    return rows
