"""Which passages is each fact checked against, and how does that become a table of claims?

A fact is put to the page of the topic (FActScore), or to the page of each person of the name (D-FActScore). Of a page,
BM25 takes the k = 5 passages that are nearest to "TOPIC FACT" (Min et al. 2023, §4.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.engines.decompose import Decomposition
from factaudit.engines.responses import Response
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.signature import hash_texts
from factaudit.tables import validate_claims

#: What stands between two passages of a claim's document, the nearest first; a passage holds no blank line.
PASSAGE_BREAK = "\n\n"
_BLANK_LINES = re.compile(r"\n\s*\n")
#: Topics without a page that a run names.
MAX_TOLD_TOPICS = 3


class Candidate(NamedTuple):
    """Whom, or what, a response may be about. status, reason: of a fact's verdict where there is no page."""

    title: str | None
    page: KnowledgePage | None = None
    status: str = "skipped"
    reason: str | None = None


@dataclass(frozen=True)
class DecomposedResponse:
    """A response with its facts, and with whom it may be about (in FActScore one, the page of the topic).

    groups: in D-FActScore the group of each fact, None where nobody could group them. names: the title of the page that
    each name of a person leads to.
    """

    response: Response
    made: Decomposition
    candidates: Sequence[Candidate]
    groups: Sequence[int] | None = None
    names: dict[str, str] = field(default_factory=dict)

    def list_given_entities(self) -> list[str | None]:
        """By fact whom its group is about, where most of the group's facts say somebody."""
        said: dict[str | None, list[str]] = {}
        for fact in self.made.facts:
            said.setdefault(fact.group, []).extend([fact.entity] if fact.entity else [])
        most = {group: max(names, key=names.count) if names else None for group, names in said.items()}
        return [self.get_title(most[fact.group]) for fact in self.made.facts]

    def get_title(self, name: str | None) -> str | None:
        """The title of the page that a name leads to, else the name."""
        return None if name is None else self.names.get(name, name)


@dataclass(frozen=True)
class FactClaims:
    """The facts as a table of claims. undecomposed, without_page: by claim id the status and the reason of the verdict
    where there is no fact to ask about, or nothing to check it against. notes: what was left out, a line each."""

    table: pd.DataFrame
    undecomposed: dict[str, tuple[str, str | None]]
    without_page: dict[str, tuple[str, str | None]]
    notes: list[str]


def find_topic_pages(topics: Iterable[str], knowledge: TopicLookup | None) -> dict[str, Candidate]:
    """The page of each topic."""
    if knowledge is None:
        return dict.fromkeys(topics, Candidate(None, reason="no knowledge source"))
    found = {}
    for topic in dict.fromkeys(topics):
        page, status, reason = knowledge.find_page(topic)
        found[topic] = Candidate(None if page is None else page.title, page, status, reason)
    return found


def build_claims(
    decomposed: Sequence[DecomposedResponse],
    retriever: PassageRetriever,
    dataset: str,
    irrelevant: str = "exclude",
    by_person: bool = False,
) -> FactClaims:
    """A row per fact, or per fact and person, with its passages as the document.

    A response that abstained, or in which no fact was found, is one row without a claim (``abstained``). Besides the
    standard's columns: ``sentence``, the fact's; ``response``, all sentences that facts are asked of;
    ``human_supported``, ``human_not_supported``, ``human_irrelevant``: how many facts of the response people labelled
    so, where they did; ``undecomposed``, 1 where it is a sentence that was not decomposed, and stands for its facts;
    ``given_entity``, the title of whom the fact's group is about, where somebody has said. Of a fact with several
    candidates, only the row of the one that its group is about has the label.
    """
    rows: list[dict[str, Any]] = []
    undecomposed: dict[str, tuple[str, str | None]] = {}
    without_page: dict[str, tuple[str, str | None]] = {}
    for each in decomposed:
        response, made = each.response, each.made
        shared: dict[str, Any] = {
            "dataset": dataset,
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            "response": " ".join(made.sentences) or None,
            **dict(zip(HUMAN_FACT_COUNTS, response.human or (), strict=False)),
        }
        if not made.facts:
            rows.append({"claim_id": f"{response.response_id}.-", **shared, "abstained": int(made.abstained)})
        given = each.list_given_entities()
        for number, fact in enumerate(made.facts):
            fact_id = f"{response.response_id}.{number}"
            label = fact.as_claim_label(irrelevant)
            for candidate in each.candidates:
                claim_id = fact_id
                row = {**shared, "fact_id": fact_id, "doc_id": candidate.title, "claim": fact.text, "label": label}
                row["sentence"] = None if fact.sentence is None else made.sentences[fact.sentence]
                if by_person:
                    if candidate.title is not None:
                        claim_id += f".{hash_texts(candidate.title, length=8)}"
                    row |= {"entity": candidate.title, "given_entity": each.get_title(fact.entity)}
                    row["group"] = None if each.groups is None else str(each.groups[number] + 1)
                    if len(each.candidates) > 1 and candidate.title != given[number]:
                        row["label"] = None
                if fact.failure is not None:
                    row["undecomposed"] = 1
                    undecomposed[claim_id] = fact.failure, fact.reason
                elif candidate.page is None:
                    without_page[claim_id] = candidate.status, candidate.reason
                else:
                    passages = retriever.retrieve(candidate.page, response.topic, fact.text)
                    row["doc"] = PASSAGE_BREAK.join(_BLANK_LINES.sub("\n", one) for one in passages)
                rows.append({"claim_id": claim_id, **row})
    # A column that no row has is one of nulls all the same.
    columns = dict.fromkeys(["claim_id", "dataset", "claim", "sentence", "doc", *(key for row in rows for key in row)])
    table = validate_claims(pd.DataFrame(rows, columns=list(columns)))
    return FactClaims(table, undecomposed, without_page, _list_notes(decomposed))


def _list_notes(decomposed: Sequence[DecomposedResponse]) -> list[str]:
    total: Counter[str] = Counter()
    for each in decomposed:
        total.update(each.made.left_out)
    notes = [f"left out: {n:,} {what}" for what, n in total.items() if n]
    speaking = [each for each in decomposed if each.made.facts]
    reasons = (one.reason for each in speaking for one in each.candidates if one.page is None and one.reason)
    missing = list(dict.fromkeys(reasons))
    more = [f"no page for {len(missing) - MAX_TOLD_TOPICS:,} more topics"] if len(missing) > MAX_TOLD_TOPICS else []
    return [*notes, *missing[:MAX_TOLD_TOPICS], *more]
