"""The passages of one page that a fact is checked against (Min et al. 2023, §4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.signature import make_signature

RETRIEVAL_METHODS = ("bm25", "dense", "all")
#: Passages per fact, as published.
PASSAGES_PER_FACT = 5
#: Pages whose indexes are kept in memory.
MAX_INDEXED_PAGES = 256


class Bm25Index(BM25Okapi):
    """BM25Okapi (k1 1.5, b 0.75, ε 0.25) of texts cut into words.

    rank_bm25 fails on texts without any word; here all their scores are 0.
    """

    def __init__(self, corpus: Sequence[Sequence[str]]) -> None:
        self._has_words = any(corpus)
        self._n_texts = len(corpus)
        if self._has_words:
            super().__init__(corpus)

    def get_scores(self, query: Sequence[str]) -> np.ndarray:
        """The score of each text: float64 (n,)."""
        return super().get_scores(query) if self._has_words else np.zeros(self._n_texts)


def remove_special_tokens(passage: str) -> str:
    """A passage without the tokenizer's marks ``<s>`` and ``</s>``."""
    return passage.replace("<s>", "").replace("</s>", "")


@dataclass
class PassageRetriever:
    """Ranks the passages of a page for a fact.

    Args:
        method: ``bm25`` (`Bm25Index` over words between white space), ``dense`` (cosine of a
            sentence-transformers model's embeddings) or ``all`` (the whole page, for evaluators
            that chunk).
        k: how many passages; ``all`` ignores it.
        model: the sentence-transformers model (a name or a folder) of ``dense``; GTR as in the
        original.
        encode: texts to a matrix of embeddings, in place of ``model``.
    """

    method: str = "bm25"
    k: int = PASSAGES_PER_FACT
    model: str = "sentence-transformers/gtr-t5-large"
    encode: Callable[[list[str]], Any] | None = None

    def __post_init__(self) -> None:
        if self.method not in RETRIEVAL_METHODS:
            raise UsageError(
                "unknown retrieval method"
                f" {self.method!r}{suggest_known_name(self.method, RETRIEVAL_METHODS)}"
            )
        if self.k < 1:
            raise UsageError(f"retrieval takes at least 1 passage, found k {self.k}")
        self._get_page_index = lru_cache(MAX_INDEXED_PAGES)(self._make_page_index)

    @property
    def signature(self) -> str:
        """The settings that choose passages, on one line."""
        if self.method == "all":
            return "all"
        return make_signature(
            self.method, {"k": self.k} | ({"model": self.model} if self.method == "dense" else {})
        )

    def retrieve(self, page: KnowledgePage, topic: str, fact: str) -> list[str]:
        """The ``k`` best passages for the query ``topic + " " + fact``, best first; ties in passage
        order.

        Passages come cleaned of ``<s>`` and ``</s>``. All of a page that has ``k`` or fewer is
        returned, ranked.
        """
        if self.method == "all":
            return [remove_special_tokens(passage) for passage in page.passages]
        query = f"{topic} {fact.strip()}"
        index = self._get_page_index(page)
        if self.method == "dense":
            scores = index @ self._compute_embeddings([query])[0]
        else:
            scores = index.get_scores(query.split())
        return [
            remove_special_tokens(page.passages[i])
            for i in np.argsort(-scores, kind="stable")[: self.k]
        ]

    def _make_page_index(self, page: KnowledgePage) -> Any:
        passages = map(remove_special_tokens, page.passages)
        if self.method == "dense":
            return self._compute_embeddings([f"{page.title} {passage}" for passage in passages])
        return Bm25Index([passage.split() for passage in passages])

    def _compute_embeddings(self, texts: Sequence[str]) -> np.ndarray:
        if self.encode is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                said = "dense retrieval needs sentence-transformers: pip install 'factaudit[dense]'"
                raise FactauditError(said) from error
            self.encode = SentenceTransformer(self.model).encode
        vectors = np.asarray(self.encode(list(texts)), dtype=np.float64)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
