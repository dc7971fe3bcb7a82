"""Which passages are the facts of a response checked against?"""

from __future__ import annotations

from factaudit.engines.records import CandidatePageSearchRecord, DecompositionRecord, ResponseRecord
from factaudit.engines.responses import AtomicFact
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import PassageRetriever


def retrieve_fact_passages(
    retriever: PassageRetriever, topic: str, decomposed: DecompositionRecord, found: CandidatePageSearchRecord
) -> ResponseRecord:
    """The record with the passages of each fact and candidate: texts once, in the order of first use."""
    numbers: dict[str, int] = {}

    def number_passages(page: KnowledgePage | None, fact: AtomicFact) -> tuple[int, ...] | None:
        if page is None or fact.failure_status is not None:
            return None
        passages = retriever.retrieve(page, topic, fact.text)
        return tuple(numbers.setdefault(one, len(numbers)) for one in passages)

    docs = tuple(tuple(number_passages(page, fact) for page in found.pages) for fact in decomposed.facts)
    return ResponseRecord(decomposed, {}, found.candidates, found.source, found.n_left_out, tuple(numbers), docs)
