"""The passages of one page that a fact is checked against (Min et al. 2023, §4.1)."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factaudit.errors import FactauditError, UsageError, hint
from factaudit.knowledge.bm25 import Bm25
from factaudit.knowledge.docdb import Page
from factaudit.signature import signature

METHODS = ("bm25", "dense", "all")
#: Passages per fact, as published.
K = 5


def clean(passage: str) -> str:
    """A passage without the tokenizer's marks ``<s>`` and ``</s>``."""
    return passage.replace("<s>", "").replace("</s>", "")


@dataclass
class Retriever:
    """Ranks the passages of a page for a fact. Safe to use from several threads.

    Args:
        method: ``bm25`` (`factaudit.knowledge.bm25` over words between white space), ``dense`` (cosine of a
            sentence-transformers model's embeddings) or ``all`` (the whole page, for evaluators that chunk).
        k: how many passages; ``all`` ignores it.
        model: the sentence-transformers model (a name or a folder) of ``dense``; GTR as in the original.
        pages: how many pages' indexes are kept in memory.
        encode: texts to a matrix of embeddings, in place of ``model``.
    """

    method: str = "bm25"
    k: int = K
    model: str = "sentence-transformers/gtr-t5-large"
    pages: int = 256
    encode: Callable[[list[str]], Any] | None = None
    _indexes: OrderedDict[tuple[str, tuple[str, ...]], Any] = field(default_factory=OrderedDict, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UsageError(f"unknown retrieval method {self.method!r}{hint(self.method, METHODS)}")
        if self.k < 1:
            raise UsageError(f"retrieval takes at least 1 passage, found k {self.k}")

    @property
    def signature(self) -> str:
        """The settings that choose passages, on one line."""
        if self.method == "all":
            return "all"
        return signature(self.method, {"k": self.k} | ({"model": self.model} if self.method == "dense" else {}))

    def retrieve(self, page: Page, topic: str, fact: str) -> list[str]:
        """The ``k`` best passages for the query ``topic + " " + fact``, best first; ties in passage order.

        Passages come cleaned of ``<s>`` and ``</s>``. All of a page that has ``k`` or fewer is returned, ranked.
        """
        if self.method == "all":
            return [clean(passage) for passage in page.passages]
        query = f"{topic} {fact.strip()}"
        index = self._index(page)
        if self.method == "dense":
            best = np.argsort(-(index @ self._embed([query])[0]), kind="stable")[: self.k]
        else:
            best = index.best(query.split(), self.k)
        return [clean(page.passages[i]) for i in best]

    def _index(self, page: Page) -> Any:
        key = (page.title, page.passages)
        with self._lock:
            if key in self._indexes:
                self._indexes.move_to_end(key)
                return self._indexes[key]
        # Made outside the lock: at worst two threads make the same index.
        if self.method == "dense":
            index: Any = self._embed([f"{page.title} {clean(passage)}" for passage in page.passages])
        else:
            index = Bm25(clean(passage).split() for passage in page.passages)
        with self._lock:
            self._indexes[key] = index
            while len(self._indexes) > self.pages:
                self._indexes.popitem(last=False)
        return index

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            if self.encode is None:
                try:
                    from sentence_transformers import SentenceTransformer
                except ImportError as error:
                    raise FactauditError(
                        "dense retrieval needs sentence-transformers: pip install 'factaudit[dense]'"
                    ) from error
                self.encode = SentenceTransformer(self.model).encode
            vectors = np.asarray(self.encode(list(texts)), dtype=np.float64)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
