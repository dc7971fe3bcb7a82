"""BM25 over passages, demonstrations or pages: rank_bm25's Okapi figures to the last bit, from postings."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import numpy as np
from rank_bm25 import BM25Okapi


class Bm25Index(BM25Okapi):
    """BM25Okapi (k1 1.5, b 0.75, ε 0.25) of texts cut into words.

    rank_bm25 reads every text for every word of a query; here only those that hold the word are looked at, so that a
    source of many passages can be searched fact by fact. Scores are the same. A corpus without a text or a word is
    none of rank_bm25's: here all its scores are 0. Safe to use from several threads.

    Args:
        corpus: the words of each text, in order; read once.
    """

    def __init__(self, corpus: Iterable[Sequence[str]]) -> None:
        self._postings: dict[str, tuple[array[int], array[int]]] = {}
        self._counts: list[Counter[str]] = []
        super().__init__(corpus)
        self._lengths = np.array(self.doc_len, dtype=np.float64)

    def __len__(self) -> int:
        return int(self.corpus_size)

    def get_scores(self, query: Iterable[str]) -> np.ndarray:
        """The score of each text: float64 (n,)."""
        scores = np.zeros(len(self))
        for word in query:
            if (found := self._find_postings(word)) is None:
                continue
            texts, counts = (np.frombuffer(one, dtype=np.uint32) for one in found)
            frequency = counts.astype(np.int64)
            length = self.k1 * (1 - self.b + self.b * self._lengths[texts] / self.avgdl)
            scores[texts] += (self.idf.get(word) or 0) * (frequency * (self.k1 + 1) / (frequency + length))
        return scores

    def rank_texts(self, query: Iterable[str], k: int | None = None) -> list[int]:
        """The ``k`` texts of the highest scores (all by default), best first; of equals the first comes first."""
        return [int(one) for one in np.argsort(-self.get_scores(query), kind="stable")[:k]]

    def _find_postings(self, word: str) -> tuple[array[int], array[int]] | None:
        """The texts that hold a word, in order, and how often each does; None where none does.

        Queries use few of the index's words, so a word's texts are found on its first use.
        """
        if (found := self._postings.get(word)) is None and word in self.idf:
            texts = array("I", (number for number, counts in enumerate(self._counts) if word in counts))
            found = self._postings[word] = texts, array("I", (self._counts[number][word] for number in texts))
        return found

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        containing: Counter[str] = Counter()
        for text in corpus:
            counts = Counter(text)
            containing.update(counts.keys())
            self.doc_len.append(len(text))
            self._counts.append(counts)
        self.corpus_size = len(self.doc_len)
        self.avgdl = sum(self.doc_len) / max(self.corpus_size, 1)
        return containing

    def _calc_idf(self, nd: dict[str, int]) -> None:
        """As rank_bm25's, with a logarithm for each number of texts in place of each word."""
        if not nd:
            return
        weights = {n: math.log(self.corpus_size - n + 0.5) - math.log(n + 0.5) for n in set(nd.values())}
        # Added one after the other, as rank_bm25 does: `sum` is more exact from Python 3.12 on.
        self.average_idf = reduce(add, map(weights.__getitem__, nd.values())) / len(nd)
        floor = self.epsilon * self.average_idf
        weights = {n: floor if weight < 0 else weight for n, weight in weights.items()}
        self.idf = dict(zip(nd, map(weights.__getitem__, nd.values()), strict=True))
