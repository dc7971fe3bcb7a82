"""How much of a claim's wording is in its document? ROUGE-2 precision (Lin 2004) and R2-diff (VC
§4) measure it.

Each distinct document is read once, with all the claims on it. Where the claim or the document is
in Latin script, the tokens are those of the ``rouge-score`` package without stemming; elsewhere,
words of any script.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from factaudit.text.chunks import find_document_chunk_spans, split_document_into_chunks
from factaudit.text.scripts import (
    find_claims_in_other_script,
    has_latin_words,
    is_latin_text,
    split_words_of_any_script,
)

# What each byte of an ASCII text becomes: letters and digits their lower case, anything else a
# space.
_BYTE_TABLE = bytes(
    ord(chr(byte).lower()) if byte < 128 and chr(byte).isalnum() else 32 for byte in range(256)
)
#: The two characters outside ASCII whose lower case holds an ASCII letter: I with a dot, and the
#: kelvin sign.
_DOTTED_I, _KELVIN_SIGN = "\u0130", "\u212a"


def split_rouge_tokens(text: str) -> list[bytes]:
    """The tokens of rouge-score's default tokenizer without stemming: lower-cased runs of ASCII
    letters and digits.

    >>> split_rouge_tokens("Zoë's 3.5-inch disk")
    [b'zo', b's', b'3', b'5', b'inch', b'disk']
    """
    if _DOTTED_I in text or _KELVIN_SIGN in text:
        text = text.replace(_DOTTED_I, "i\u0307").replace(_KELVIN_SIGN, "k")
    # "replace" makes each other character a question mark, which separates tokens as it does
    # itself. This is several times as fast as a regular expression over the text in lower case.
    return text.encode("ascii", "replace").translate(_BYTE_TABLE).split()


def rouge2_precision(claims: Sequence[str], docs: Sequence[str | None]) -> np.ndarray:
    """The clipped share of each claim's bigrams that its document has.

    Where the claim or the document is in Latin script, it equals the precision of
    ``RougeScorer(["rouge2"], use_stemmer=False)``. Elsewhere the tokens are
    `split_words_of_any_script`.

    claims, docs: n texts each, row by row. Returns float64 (n,), in [0, 1]; NaN where the claim has
    fewer than two tokens or is in another script than its document (`find_claims_in_other_script`),
    or the document is None.
    """
    result = np.full(len(claims), np.nan)
    for doc, count_bigrams, claim_bigrams in _group_claims_by_document(claims, docs):
        held = count_bigrams(doc)
        for row, own in claim_bigrams.items():
            result[row] = _count_shared(own, held) / own.total()
    return result


def rouge2_chunk_differences(
    claims: Sequence[str], docs: Sequence[str | None], sizes: Sequence[int]
) -> np.ndarray:
    """ROUGE-2 precision against the whole document minus the greatest against one of its chunks
    (R2-diff, VC §4.2).

    claims, docs: n texts each, row by row. sizes: of the chunks, in words. Returns float64 (sizes,
    n), never negative; NaN where ROUGE-2 precision is. A bigram across two chunks is in none.
    """
    result = np.full((len(sizes), len(claims)), np.nan)
    for doc, count_bigrams, claim_bigrams in _group_claims_by_document(claims, docs):
        held = None
        for at, size in enumerate(sizes):
            chunks = split_document_into_chunks(doc, size)
            if len(chunks) <= 1:  # the one chunk is the document
                result[at, list(claim_bigrams)] = 0.0
                continue
            held = held or count_bigrams(doc)
            counted = [count_bigrams(chunk) for chunk in chunks]
            for row, own in claim_bigrams.items():
                best = max(_count_shared(own, chunk) for chunk in counted)
                result[at, row] = (_count_shared(own, held) - best) / own.total()
    return result


def locate_best_rouge_chunks(
    claims: Sequence[str], docs: Sequence[str | None], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where in its document the chunk lies that has the most of a claim's bigrams: of equal ones
    the first, the last.

    claims, docs: n texts each, row by row. size: of the chunks, in words. Returns float64 (n,)
    twice: the chunk's middle in characters, as a share of the document (0: its beginning, 1: its
    end); NaN where no chunk has any of the bigrams.

    >>> docs = ["The cat sat. A dog ran. It is late."] * 2
    >>> first, last = locate_best_rouge_chunks(["a dog ran", "it is"], docs, 3)
    >>> first.round(2).tolist(), last.round(2).tolist()
    ([0.51, 0.84], [0.51, 0.84])
    """
    result = np.full((2, len(claims)), np.nan)
    for doc, count_bigrams, claim_bigrams in _group_claims_by_document(claims, docs):
        spans = find_document_chunk_spans(doc, size)
        middles = [(start + end) / 2 / len(doc) for start, end in spans]
        chunks = [count_bigrams(doc[start:end]) for start, end in spans]
        for row, own in claim_bigrams.items():
            hits = [_count_shared(own, chunk) for chunk in chunks]
            if most := max(hits, default=0):
                best = [middle for middle, n in zip(middles, hits, strict=True) if n == most]
                result[:, row] = best[0], best[-1]
    return result[0], result[1]


def _group_claims_by_document(
    claims: Sequence[str], docs: Sequence[str | None]
) -> Iterator[tuple[str, Callable[[str], Counter], dict[int, Counter]]]:
    """Each distinct document, once for each way to count a text's bigrams, with that way and the
    bigrams of the claims on it by their rows; claims without any, or in another script, are left
    out."""
    if len(claims) != len(docs):
        raise ValueError(
            f"expected one document per claim, found {len(claims)} claims and {len(docs)} documents"
        )
    rows_of: dict[str, list[int]] = {}
    for row, doc in enumerate(docs):
        if isinstance(doc, str):
            rows_of.setdefault(doc, []).append(row)
    for doc, rows in rows_of.items():
        is_other = find_claims_in_other_script([claims[row] for row in rows], doc)
        found: dict[Callable[[str], Counter], dict[int, Counter]] = {}
        for row, other in zip(rows, is_other, strict=True):
            # A claim in English may be on a document that is mostly names in other scripts.
            is_latin = is_latin_text(doc) or has_latin_words(claims[row])
            count = _count_latin_bigrams if is_latin else _count_other_bigrams
            if not other and (own := count(claims[row])):
                found.setdefault(count, {})[row] = own
        for count_bigrams, claim_bigrams in found.items():
            yield doc, count_bigrams, claim_bigrams


def _count_latin_bigrams(text: str) -> Counter:
    return Counter(itertools.pairwise(split_rouge_tokens(text)))


def _count_other_bigrams(text: str) -> Counter:
    return Counter(itertools.pairwise(split_words_of_any_script(text)))


def _count_shared(own: Counter, held: Counter) -> int:
    """How many of a claim's bigrams a text has; one that the claim has twice, twice at most."""
    return sum(min(n, held[bigram]) for bigram, n in own.items() if bigram in held)
