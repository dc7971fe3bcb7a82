"""Which passages is each fact checked against, and how does that become a table of claims?

A fact is put to the page of the topic (FActScore), or to the page of each person of the name
(D-FActScore). Of a page, BM25 takes the k = 5 passages that are nearest to "TOPIC FACT" (Min et al.
2023, §4.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pandas as pd

from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.engines.responses import AtomicFact, Response
from factaudit.evaluators.base import Verdict
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.signature import hash_texts
from factaudit.tables import validate_claims

#: What stands between two passages of a claim's document, the nearest first; a passage holds no
#: blank line.
PASSAGE_BREAK = "\n\n"
_BLANK_LINES = re.compile(r"\n\s*\n")
#: Topics without a page that a run names.
MAX_TOLD_TOPICS = 3


class Candidate(NamedTuple):
    """Whom, or what, a response may be about. status, reason: of a fact's verdict where there is no
    page."""

    title: str | None
    page: KnowledgePage | None = None
    status: str = "skipped"
    reason: str | None = None


@dataclass
class FactClaims:
    """The facts as a table of claims. undecomposed, without_page: by claim id the verdict where
    there is no fact to ask about, or nothing to check it against. notes: what was left out, a line
    each."""

    table: pd.DataFrame
    undecomposed: dict[str, Verdict] = field(default_factory=dict)
    without_page: dict[str, Verdict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class ScoredFacts(NamedTuple):
    """The facts as claims, what the verifiers say of them, and what was left out, a line each."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
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
    responses: Sequence[Response],
    candidates: Sequence[Sequence[Candidate]],
    retriever: PassageRetriever,
    left_out: Counter[str],
    *,
    dataset: str,
    irrelevant: str = "exclude",
    by_person: bool = False,
) -> FactClaims:
    """A row per fact and candidate, with the candidate's nearest passages as the document.

    A response that abstained, or in which no fact was found, is one row without a claim
    (``abstained``). Besides the standard's columns: ``sentence``, the fact's; ``response``, all
    sentences that facts are asked of; ``human_supported``, ``human_not_supported``,
    ``human_irrelevant``: how many facts of the response people labelled so, where they did;
    ``undecomposed``, 1 where it is a sentence that was not decomposed, and stands for its facts;
    ``given_entity``, the title of whom the fact's group is about, where somebody has said. Of a
    fact with several candidates, only the row of the one that its group is about has the label.

    candidates: of each response; in FActScore one, the topic's page. by_person: with columns for
    groups and people.
    """
    rows: list[dict[str, Any]] = []
    made = FactClaims(pd.DataFrame())
    for response, people in zip(responses, candidates, strict=True):
        shared: dict[str, Any] = {
            "dataset": dataset,
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            "response": " ".join(response.sentences or ()) or None,
            **dict(zip(HUMAN_FACT_COUNTS, response.human or (), strict=False)),
        }
        facts = response.facts or ()
        if not facts:
            empty = {
                "claim_id": f"{response.response_id}.-",
                "abstained": int(response.abstained or False),
            }
            rows.append(shared | empty)
        given = _list_given_entities(facts)
        for number, fact in enumerate(facts):
            fact_id = f"{response.response_id}.{number}"
            shared["fact_id"], shared["claim"] = fact_id, fact.text
            shared["sentence"] = (
                None if fact.sentence is None else (response.sentences or ())[fact.sentence]
            )
            for candidate in people:
                row = shared | {"claim_id": fact_id, "doc_id": candidate.title}
                row["label"] = fact.as_claim_label(irrelevant)
                if by_person:
                    row |= {"entity": candidate.title, "given_entity": fact.entity}
                    row["group"] = (
                        None if response.groups is None else str(response.groups[number] + 1)
                    )
                    if candidate.title is not None:
                        row["claim_id"] += f".{hash_texts(candidate.title, length=8)}"
                    if len(people) > 1 and candidate.title != given[number]:
                        row["label"] = None
                if fact.failure is not None:
                    row["undecomposed"] = 1
                    made.undecomposed[row["claim_id"]] = Verdict(
                        row["claim_id"], status=fact.failure, raw=fact.reason
                    )
                elif candidate.page is None:
                    no_page = Verdict(
                        row["claim_id"], status=candidate.status, raw=candidate.reason
                    )
                    made.without_page[row["claim_id"]] = no_page
                else:
                    passages = retriever.retrieve(candidate.page, response.topic, fact.text)
                    row["doc"] = PASSAGE_BREAK.join(_BLANK_LINES.sub("\n", one) for one in passages)
                rows.append(row)
    # A column that no row has is one of nulls all the same.
    columns = dict.fromkeys(
        ["claim_id", "dataset", "claim", "sentence", "doc", *(key for row in rows for key in row)]
    )
    made.table = validate_claims(pd.DataFrame(rows, columns=list(columns)))
    made.notes = [f"left out: {n:,} {what}" for what, n in left_out.items() if n]
    made.notes += _list_missing_pages(responses, candidates)
    return made


def _list_given_entities(facts: Sequence[AtomicFact]) -> list[str | None]:
    """By fact whom its group is about, where most of the group's facts say somebody."""
    said: dict[str | None, list[str]] = {}
    for fact in facts:
        said.setdefault(fact.group, []).extend([fact.entity] if fact.entity else [])
    most = {group: max(names, key=names.count) if names else None for group, names in said.items()}
    return [most[fact.group] for fact in facts]


def _list_missing_pages(
    responses: Sequence[Response], candidates: Sequence[Sequence[Candidate]]
) -> list[str]:
    reasons: dict[str, None] = {}
    for response, people in zip(responses, candidates, strict=True):
        if response.facts:
            reasons |= dict.fromkeys(
                one.reason for one in people if one.page is None and one.reason
            )
    missing = list(reasons)
    more = (
        [f"no page for {len(missing) - MAX_TOLD_TOPICS:,} more topics"]
        if len(missing) > MAX_TOLD_TOPICS
        else []
    )
    return [*missing[:MAX_TOLD_TOPICS], *more]
