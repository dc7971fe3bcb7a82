"""How much of a claim's wording the document has: ROUGE-2 precision (Lin 2004) and R2-diff (VC §4).

Many documents and the claims on them are read together, as arrays: a claim's bigrams are looked up among those of its
document, and a chunk is a range of the document's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count as count_up

import numpy as np

from factaudit.text.chunks import find_document_chunk_spans
from factaudit.text.rouge_tokens import (
    RougeTokens,
    encode_script_words,
    find_rouge_text_positions,
    find_script_word_positions,
    normalise_rouge_text,
)
from factaudit.text.scripts import find_claims_in_other_script, has_rouge_words

#: So many characters of documents and claims are read together, or one document with its claims.
BLOCK_CHARACTERS = 1 << 20
#: How many of a code's 64 bits are looked at first, and how many are not.
_PREFIX_BITS, _SUFFIX_BITS = 20, np.uint64(44)


def rouge2_precision(claims: Sequence[str], docs: Sequence[str | None]) -> np.ndarray:
    """The clipped share of each claim's bigrams that its document has.

    On English, equals the precision of ``RougeScorer(["rouge2"], use_stemmer=False)``, but each distinct document is
    read once. The tokens of documents in other languages, and of claims on them, are `split_words_of_any_script`.

    claims, docs: n texts each, row by row. Returns float64 (n,), in [0, 1]; NaN where the claim has fewer than two
    tokens or is in another script than its document (`find_claims_in_other_script`), or the document is None.
    """
    result = np.full(len(claims), np.nan)
    for block in _group_rouge_claims_by_document(claims, docs):
        found = _RougeBigramMatches(block, block.docs, claims)
        result[block.rows] = found.compute_shares(found.count_hits(found.bigram))
    return result


def find_overlaps_lost_to_script(claims: Sequence[str], docs: Sequence[str | None], overlaps: np.ndarray) -> np.ndarray:
    """bool (n,): which overlaps are undefined (NaN) because the claim is in another script than its document."""
    lost = np.zeros(len(overlaps), dtype=bool)
    for at in np.flatnonzero(np.isnan(overlaps)).tolist():
        doc = docs[at]
        lost[at] = isinstance(doc, str) and find_claims_in_other_script([claims[at]], doc)[0]
    return lost


def rouge2_chunk_differences(claims: Sequence[str], docs: Sequence[str | None], sizes: Sequence[int]) -> np.ndarray:
    """ROUGE-2 precision against the whole document minus the greatest against one of its chunks (R2-diff, VC §4.2).

    claims, docs: n texts each, row by row; the texts are read once for all sizes. sizes: of the chunks, in words.
    Returns float64 (sizes, n), never negative; NaN where ROUGE-2 precision is.
    """
    result = np.full((len(sizes), len(claims)), np.nan)
    for block in _group_rouge_claims_by_document(claims, docs):
        cuts = [[[start for start, _ in find_document_chunk_spans(doc, size)] for doc in block.docs] for size in sizes]
        # What is nowhere cut has one chunk, the document: nothing to look up.
        cut = [any(len(starts) > 1 for starts in of_sizes) for of_sizes in zip(*cuts, strict=True)]
        found = _RougeBigramMatches(
            block, [doc if some else "" for doc, some in zip(block.docs, cut, strict=True)], claims
        )
        whole = found.count_hits(found.bigram)
        for at, starts in enumerate(cuts):
            best = np.zeros_like(whole)
            for _, bigram in found.split_by_chunk(starts):
                np.maximum(best, found.count_hits(bigram), out=best)
            result[at, block.rows] = found.compute_shares(whole - best)
    return result


def locate_best_rouge_chunks(
    claims: Sequence[str], docs: Sequence[str | None], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where in its document the chunk lies that has the most of a claim's bigrams: of equal ones the first, the last.

    claims, docs: n texts each, row by row. size: of the chunks, in words. Returns float64 (n,) twice: the chunk's
    middle in characters, as a share of the document (0: its beginning, 1: its end); NaN where no chunk has any of the
    bigrams.

    >>> first, last = locate_best_rouge_chunks(["a dog ran", "it is"], ["The cat sat. A dog ran. It is late."] * 2, 3)
    >>> first.round(2).tolist(), last.round(2).tolist()
    ([0.51, 0.84], [0.51, 0.84])
    """
    result = np.full((2, len(claims)), np.nan)
    for block in _group_rouge_claims_by_document(claims, docs):
        spans = [find_document_chunk_spans(doc, size) for doc in block.docs]
        middles = [
            [(start + end) / 2 / len(doc) for start, end in each] for doc, each in zip(block.docs, spans, strict=True)
        ]
        found = _RougeBigramMatches(block, block.docs, claims)
        most = np.zeros(len(block.rows), dtype=np.int64)
        ends = np.full((2, len(block.rows)), -1)
        for number, bigram in found.split_by_chunk([[start for start, _ in each] for each in spans]):
            hits = found.count_hits(bigram)
            ends[0, hits > most] = number
            ends[1, (hits >= most) & (hits > 0)] = number
            np.maximum(most, hits, out=most)
        for place in np.flatnonzero(most):
            middle = middles[block.doc_numbers[place]]
            result[:, block.rows[place]] = middle[ends[0, place]], middle[ends[1, place]]
    return result[0], result[1]


@dataclass
class _RougeDocumentBlock:
    """Some documents (in words of English, or of other languages) and the rows of the claims on them, with which
    document (its number here) each is on."""

    docs: list[str] = field(default_factory=list)
    is_english: list[bool] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    doc_numbers: list[int] = field(default_factory=list)


def _group_rouge_claims_by_document(claims: Sequence[str], docs: Sequence[str | None]) -> Iterator[_RougeDocumentBlock]:
    """Each distinct document once, with all its claims but those in another script."""
    if len(claims) != len(docs):
        raise ValueError(f"expected one document per claim, found {len(claims)} claims and {len(docs)} documents")
    rows_of: dict[str, list[int]] = {}
    for row, doc in enumerate(docs):
        if isinstance(doc, str):
            rows_of.setdefault(doc, []).append(row)
    block, size = _RougeDocumentBlock(), 0
    for doc, rows in rows_of.items():
        other = find_claims_in_other_script([claims[row] for row in rows], doc)
        rows = [row for row, is_other in zip(rows, other, strict=True) if not is_other]
        block.doc_numbers.extend([len(block.docs)] * len(rows))
        block.docs.append(doc)
        block.is_english.append(has_rouge_words(doc))
        block.rows.extend(rows)
        size += len(doc) + sum(len(claims[row]) for row in rows)
        if size >= BLOCK_CHARACTERS:
            yield block
            block, size = _RougeDocumentBlock(), 0
    if block.docs:
        yield block


class _RougeBigramMatches:
    """Where a block's documents have bigrams of their claims.

    The bigrams of each document's claims are numbered. Attributes: bigram, at: int64 (found,): the number of each that
    a document has, as often as it has it, and the number of its first token.
    """

    def __init__(self, block: _RougeDocumentBlock, docs: Sequence[str], claims: Sequence[str]) -> None:
        """docs: what is read of the block's documents."""
        self._is_english = block.is_english
        encode = [normalise_rouge_text if english else encode_script_words for english in self._is_english]
        texts = [encode[at](doc) for at, doc in enumerate(docs)]
        texts += [encode[at](claims[row]) for at, row in zip(block.doc_numbers, block.rows, strict=True)]
        self._docs, self._tokens = docs, RougeTokens(texts)
        ends = self._tokens.texts
        self._n = np.maximum(np.diff(ends[len(docs) :]) - 1, 0)
        # Of each token: the document that it is of, or that its claim is on; and whether the next is of the same text.
        doc = np.repeat(np.array([*range(len(docs)), *block.doc_numbers]), np.diff(ends))
        follows = np.ones(len(doc), dtype=bool)
        follows[ends[1:][np.diff(ends) > 0] - 1] = False
        first = np.flatnonzero(follows)
        split = first.searchsorted(ends[len(docs)])
        there, asked = first[:split], first[split:]
        for seed in count_up():
            code = _hash_rouge_bigrams(self._tokens.words, doc, seed)
            # Stable, so that those of one claim stay side by side among equals.
            order = asked[np.argsort(code[asked], kind="stable")]
            new = np.diff(code[order], prepend=~code[order[:1]]) != 0
            if (new[1:] | self._is_same_bigram(doc, order[1:], order[:-1])).all():
                break
        starts = np.flatnonzero(new)
        self._size = len(starts)
        # Of each bigram of each claim: its number, the claim, and how many times the claim has had it before.
        self._asked = np.cumsum(new) - 1
        self._claim = np.repeat(np.arange(len(block.rows)), np.diff(ends[len(docs) :]))[order - ends[len(docs)]]
        run = new | (np.diff(self._claim, prepend=-1) != 0)
        self._before = np.arange(len(order)) - np.flatnonzero(run)[np.cumsum(run) - 1]
        # No claim has most of a document's bigrams, which a look at the first bits of their codes tells of nearly all.
        codes = code[order[starts]]
        maybe = np.zeros(1 << _PREFIX_BITS, dtype=bool)
        maybe[codes >> _SUFFIX_BITS] = True
        at = there[maybe[code[there] >> _SUFFIX_BITS]]
        place = codes.searchsorted(code[at])
        place[place == len(codes)] = 0
        held = self._is_same_bigram(doc, at, order[starts[place]])
        self.positions, self.bigram = at[held], place[held]

    def _is_same_bigram(self, doc: np.ndarray, some: np.ndarray, others: np.ndarray) -> np.ndarray:
        """bool (n,): whether bigrams, by the number of their first token, are the same and of the same document."""
        same = self._tokens.is_same_token
        return same(some, others) & same(some + 1, others + 1) & (doc[some] == doc[others])

    def count_hits(self, bigram: np.ndarray) -> np.ndarray:
        """int64 (claims,): how many bigrams of each claim are among those; one that it has twice, twice at most."""
        times = np.bincount(bigram, minlength=self._size)
        return np.bincount(self._claim[self._before < times[self._asked]], minlength=len(self._n))

    def compute_shares(self, hits: np.ndarray) -> np.ndarray:
        """float64 (claims,): of each claim's bigrams; NaN where it has none."""
        return np.divide(hits, self._n, out=np.full(len(hits), np.nan), where=self._n > 0)

    def split_by_chunk(self, starts: Sequence[Sequence[int]]) -> Iterator[tuple[int, np.ndarray]]:
        """The bigrams that are found in each document's first chunk (0), in its second, and so on, where there are any.

        starts: where each document's chunks begin. A bigram across two chunks is in none.
        """
        find_english, find_other = find_rouge_text_positions, find_script_word_positions
        chunks = [
            self._tokens.find_first_tokens(text, (find_english if english else find_other)(doc, starts[text]))
            for text, (doc, english) in enumerate(zip(self._docs, self._is_english, strict=True))
            if doc
        ]
        if not chunks:
            return
        numbers = np.concatenate([np.arange(len(each)) for each in chunks])
        every = np.concatenate(chunks)
        chunk = every.searchsorted(self.positions, side="right") - 1
        inside = chunk == every.searchsorted(self.positions + 1, side="right") - 1
        number, bigram = numbers[chunk[inside]], self.bigram[inside]
        order = np.argsort(number, kind="stable")
        used, begin = np.unique(number[order], return_index=True)
        yield from zip(used.tolist(), np.split(bigram[order], begin[1:]), strict=False)


def _hash_rouge_bigrams(words: np.ndarray, doc_numbers: np.ndarray, seed: int) -> np.ndarray:
    """uint64 (tokens,): of the bigram that begins with each token, in its document; hardly two have the same."""
    random = np.random.default_rng(seed).integers(1 << 63, size=4, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    code = words[0] * random[0]
    code ^= code >> np.uint64(32)
    code += words[1]
    code *= random[1]
    code ^= code >> np.uint64(32)
    code[:-1] += code[1:] * random[2]
    code += doc_numbers.astype(np.uint64) * random[3]
    return code
