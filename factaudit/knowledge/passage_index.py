"""Every passage of a knowledge source, for texts of which nobody has said what page they are of."""

from __future__ import annotations

from collections.abc import Iterable

from factaudit.knowledge.bm25 import Bm25Index
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.person_names import is_disambiguation_title
from factaudit.knowledge.retrieval import remove_special_tokens


class PassageIndex:
    """BM25 over the passages of all pages but disambiguation pages; the title counts as part of each of its passages.

    Args:
        pages: read once, and not kept.
        texts: all that will be asked; None: anything may be.
    """

    def __init__(self, pages: Iterable[KnowledgePage], texts: Iterable[str] | None = None) -> None:
        self._owners: list[tuple[str, int]] = []
        asked = None if texts is None else {word for text in texts for word in _split_search_words(text)}
        self._index = Bm25Index(self._split_passage_words(pages), asked)

    def rank_passages(self, text: str, k: int) -> list[tuple[str, int]]:
        """(title, number of the passage) of the ``k`` best passages that have a word of the text, best first.

        Of equals the first in the alphabet of titles comes first.
        """
        query = _split_search_words(text)
        scores = self._index.get_scores(query)
        found = sorted(self._index.find_matching_texts(query), key=lambda one: (-scores[one], self._owners[one]))
        return [self._owners[one] for one in found[:k]]

    def _split_passage_words(self, pages: Iterable[KnowledgePage]) -> Iterable[list[str]]:
        for page in pages:
            if not is_disambiguation_title(page.title):
                for number, passage in enumerate(page.passages):
                    self._owners.append((page.title, number))
                    yield _split_search_words(f"{page.title} {remove_special_tokens(passage)}")


def _split_search_words(text: str) -> list[str]:
    """The words between white space, without case and the punctuation around them."""
    stripped = (word.strip(".,;:!?()[]\"'“”") for word in text.lower().split())
    return [word for word in stripped if word]
