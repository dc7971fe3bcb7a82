"""Which passages is each fact checked against, and how does that become a table of claims?

A fact is put to the page of the topic (FActScore), or to the page of each person of the name (D-FActScore). Of a page,
BM25 takes the k = 5 passages that are nearest to "TOPIC FACT" (Min et al. 2023, §4.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.engines.decompose import Decomposition
from factaudit.engines.grouping import FactGrouping
from factaudit.engines.responses import FACT_LABELS, AtomicFact, Response, find_group_entities
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.signature import hash_texts
from factaudit.tables import validate_claims
from factaudit.tables.column_parsing import TEXT_DTYPE


@dataclass(frozen=True)
class Candidate:
    """Whom, or what, a response may be about.

    title: None where nothing was found, or looked for. status, reason: of a fact's verdict where there is no page.
    other_titles: those that lead to the page.
    """

    title: str | None
    page: KnowledgePage | None = None
    status: str = "skipped"
    reason: str | None = None
    other_titles: tuple[str, ...] = ()


class FactContext(NamedTuple):
    """What a fact is checked against: a page, and the passages of it that are nearest to the fact, best first."""

    page: KnowledgePage
    passages: list[str]


@dataclass(frozen=True)
class FactRecord:
    """A response with its facts, on the way to the table of claims.

    candidates: in FActScore one, the page of the topic. groupings: by grouper, in D-FActScore alone. source,
    n_left_out: where the candidates are from, and how many more there were. contexts: of each fact and each candidate;
    None without a page.
    """

    response: Response
    decomposition: Decomposition
    candidates: tuple[Candidate, ...]
    groupings: Mapping[str, FactGrouping] = field(default_factory=dict)
    source: str | None = None
    n_left_out: int = 0
    contexts: tuple[tuple[FactContext | None, ...], ...] = ()

    def iterate_claims(self) -> Iterator[tuple[str, int, int]]:
        """(the claim's id, the fact's number, the candidate's number), in the order of the claims table."""
        for fact in range(len(self.decomposition.facts)):
            for number, candidate in enumerate(self.candidates):
                # In D-FActScore a fact is a claim of each person's.
                is_of_person = self.groupings and candidate.title is not None
                end = f".{hash_texts(candidate.title, length=8)}" if is_of_person else ""
                yield f"{self.response.response_id}.{fact}{end}", fact, number

    def explain_missing_verdict(self, fact: int, candidate: int) -> tuple[str, str | None]:
        """The status of a fact and a candidate that the verifier is not asked about, and the reason."""
        one = self.decomposition.facts[fact]
        if one.failure_status is not None:
            sentence = self.decomposition.sentences[one.sentence or 0]
            why = sentence.error or sentence.reply or one.failure_status
            return one.failure_status, f"the sentence was not decomposed: {why}"
        return self.candidates[candidate].status, self.candidates[candidate].reason

    def find_candidate_title(self, entity: str | None) -> str | None:
        """The title of the candidate that a given entity names, by any of its names."""
        known = (one.title for one in self.candidates if entity == one.title or entity in one.other_titles)
        return None if entity is None else next(known, entity)


def retrieve_passages(record: FactRecord, retriever: PassageRetriever) -> FactRecord:
    """The record with the passages of each fact and candidate."""
    topic = record.response.topic
    contexts: list[tuple[FactContext | None, ...]] = []
    for fact in record.decomposition.facts:
        pages = [None if fact.failure_status is not None else one.page for one in record.candidates]
        contexts.append(
            tuple(
                None if page is None else FactContext(page, retriever.retrieve(page, topic, fact.text))
                for page in pages
            )
        )
    return replace(record, contexts=tuple(contexts))


def build_claims_table(records: Sequence[FactRecord], dataset: str, irrelevant: str = "exclude") -> pd.DataFrame:
    """A row per fact, or per fact and candidate where facts are grouped, with its passages as the document.

    A response that abstained, or in which no fact was found, is one row without a claim (``abstained``). Besides the
    standard's columns: ``sentence``, the fact's; ``response``, all sentences that facts are asked of;
    ``human_supported``, ``human_not_supported``, ``human_irrelevant``: how many facts of the response people
    labelled so, where they did; ``group_NAME``, the groups by each grouper but the first, whose are in ``group``;
    ``given_entity``, the title of whom the fact's group is about, where somebody has said; ``undecomposed``, 1 where it
    is a sentence that was not decomposed, and stands for its facts. Of a fact with several candidates, only the row of
    the one that its group is about has the label.
    """
    rows: list[dict[str, Any]] = []
    docs = _DocumentColumn()
    for record in records:
        response, made = record.response, record.decomposition
        shared: dict[str, Any] = {
            "dataset": dataset,
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            "response": " ".join(one.text for one in made.sentences if not one.is_left_out) or None,
            **dict(zip(HUMAN_FACT_COUNTS, response.human or (), strict=False)),
        }
        if not made.facts:
            rows.append({"claim_id": f"{response.response_id}.-", **shared, "abstained": int(made.abstained)})
            docs.append(None)
        sentences = dict(enumerate(made.sentences))
        owners = find_group_entities(made.facts)
        for claim_id, number, place in record.iterate_claims():
            fact, title = made.facts[number], record.candidates[place].title
            row = {
                "claim_id": claim_id,
                **shared,
                "fact_id": f"{response.response_id}.{number}",
                "doc_id": title,
                "claim": fact.text,
                "label": convert_human_label(fact, irrelevant),
            }
            if record.groupings:
                row |= {"entity": title, "given_entity": record.find_candidate_title(fact.entity)}
                if len(record.candidates) > 1 and title != record.find_candidate_title(owners[fact.group]):
                    row["label"] = None
            for at, (name, grouping) in enumerate(record.groupings.items()):
                group = None if grouping.groups is None else str(grouping.groups[number] + 1)
                row[f"group_{name}" if at else "group"] = group
            if fact.failure_status is not None:
                row["undecomposed"] = 1
            row["sentence"] = sentences[fact.sentence].text if fact.sentence in sentences else None
            rows.append(row)
            context = record.contexts[number][place]
            docs.append(None if context is None else "\n\n".join(context.passages))
    # A column that no row has is one of nulls all the same.
    columns = dict.fromkeys(["claim_id", "dataset", "claim", "sentence", *(key for row in rows for key in row)])
    return validate_claims(pd.DataFrame(rows, columns=list(columns)).assign(doc=docs.build()))


def convert_human_label(fact: AtomicFact, irrelevant: str) -> int | None:
    """The label of a fact: S 1, NS 0; IR none, or 0 where irrelevant facts count as ``unsupported``."""
    if fact.label is None:
        return None
    return 0 if fact.label == "IR" and irrelevant == "unsupported" else FACT_LABELS[fact.label]


class _DocumentColumn:
    """Documents are nearly all that a table weighs: they go into Arrow as they come, so that there is one copy."""

    def __init__(self) -> None:
        self._waiting: list[str | None] = []
        self._whole: list[pa.Array] = []

    def append(self, document: str | None) -> None:
        self._waiting.append(document)
        if len(self._waiting) == 1000:
            self._pack()

    def build(self) -> Any:
        self._pack()
        return pa.chunked_array(self._whole, type=pa.large_string()).to_pandas(types_mapper=lambda _: TEXT_DTYPE)

    def _pack(self) -> None:
        self._whole.append(pa.array(self._waiting, type=pa.large_string()))
        self._waiting = []
