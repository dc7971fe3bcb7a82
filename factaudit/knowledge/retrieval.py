"""Which passages of a page is a fact checked against (Min et al. 2023, §4.1)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from rank_bm25 import BM25Okapi

from factaudit.errors import FactauditError
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.signature import make_signature

#: Passages per fact, as published.
PASSAGES_PER_FACT = 5
#: The sentence-transformers model of dense retrieval: GTR, as in the paper.
DENSE_MODEL = "sentence-transformers/gtr-t5-large"
#: Pages whose indexes are kept in memory.
MAX_INDEXED_PAGES = 256


def make_bm25_index(corpus: Sequence[Sequence[str]]) -> BM25Okapi:
    """BM25Okapi (k1 1.5, b 0.75, ε 0.25) of texts cut into words; where no text has a word, all
    their scores are 0 (rank_bm25 itself would fail)."""
    return BM25Okapi(corpus if any(corpus) else [[""] for _ in corpus])


def remove_special_tokens(passage: str) -> str:
    """A passage without the tokenizer's marks ``<s>`` and ``</s>``."""
    return passage.replace("<s>", "").replace("</s>", "")


@dataclass
class PassageRetriever:
    """Ranks the passages of a page for a fact.

    Args:
        method: ``bm25`` (over words between white space), ``dense`` (cosine of the embeddings of
            `DENSE_MODEL`) or ``all`` (the whole page, for evaluators that chunk).
        k: how many passages; ``all`` ignores it.
    """

    method: str = "bm25"
    k: int = PASSAGES_PER_FACT

    def __post_init__(self) -> None:
        self._get_page_index = lru_cache(MAX_INDEXED_PAGES)(self._make_page_index)

    @property
    def signature(self) -> str:
        """The settings that choose passages, on one line."""
        if self.method == "all":
            return "all"
        model = {"model": DENSE_MODEL} if self.method == "dense" else {}
        return make_signature(self.method, {"k": self.k, **model})

    def retrieve(self, page: KnowledgePage, topic: str, fact: str) -> list[str]:
        """The ``k`` best passages for the query ``topic + " " + fact``, best first; ties in passage
        order.

        Passages come cleaned of ``<s>`` and ``</s>``. All of a page that has ``k`` or fewer is
        returned, ranked.
        """
        passages = [remove_special_tokens(passage) for passage in page.passages]
        if self.method == "all":
            return passages
        query = f"{topic} {fact.strip()}"
        index = self._get_page_index(page)
        if self.method == "dense":
            scores = index @ self._encode([query])[0]
        else:
            scores = index.get_scores(query.split())
        return [passages[i] for i in np.argsort(-scores, kind="stable")[: self.k]]

    def _make_page_index(self, page: KnowledgePage) -> Any:
        passages = map(remove_special_tokens, page.passages)
        if self.method == "dense":
            return self._encode([f"{page.title} {passage}" for passage in passages])
        return make_bm25_index([passage.split() for passage in passages])

    def _encode(self, texts: list[str]) -> np.ndarray:
        """The texts' embeddings of length 1: float (n, dimensions)."""
        return np.asarray(self._encoder.encode(texts, normalize_embeddings=True))

    @cached_property
    def _encoder(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            said = "dense retrieval needs sentence-transformers: pip install 'factaudit[dense]'"
            raise FactauditError(said) from error
        return SentenceTransformer(DENSE_MODEL)
