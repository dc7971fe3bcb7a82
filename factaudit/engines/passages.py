"""Which passages is each fact checked against, and how does that become a table of claims?

A fact is put to the page of the topic (FActScore), or to the page of each person of the name
(D-FActScore). Of a page, BM25 takes the k = 5 passages that are nearest to "TOPIC FACT" (Min et al.
2023, §4.1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd

from factaudit.arrays.response_facts import HUMAN_FACT_COUNTS
from factaudit.engines.responses import FACT_LABELS, Response
from factaudit.knowledge.retrieval import PassageRetriever
from factaudit.knowledge.topic_lookup import Candidate
from factaudit.signature import hash_texts
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.tables.validation import make_empty_verdicts
from factaudit.text.display_text import format_count

#: What stands between two passages of a claim's document, the nearest first; a passage holds no
#: blank line.
PASSAGE_BREAK = "\n\n"
_BLANK_LINES = re.compile(r"\n\s*\n")
#: Topics without a page that a run names.
MAX_TOLD_TOPICS = 3


@dataclass
class FactClaims:
    """The facts as a table of claims.

    unasked: the rows (claim_id, status, raw) of facts that nobody can be asked about, as there is
    no page to check them against, or (``is_undecomposed``) as the fact is a sentence that was not
    decomposed. notes: what was left out, a line each.
    """

    table: pd.DataFrame
    unasked: pd.DataFrame
    notes: list[str]


class VerifiedFacts(NamedTuple):
    """The facts as claims, what the verifiers say of them, and what was left out, a line each."""

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    notes: list[str]


def validate_any_verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """A table of verdicts, which may be of no fact at all."""
    return validate_verdicts(table) if len(table) else make_empty_verdicts()


def build_claims(
    responses: Sequence[Response],
    candidates: Sequence[Sequence[Candidate]],
    retriever: PassageRetriever,
    *,
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
    unasked: list[tuple[str, str, str | None, bool]] = []
    for response, people in zip(responses, candidates, strict=True):
        shared: dict[str, Any] = {
            "dataset": "biographies" if by_person else "factscore",
            "system": response.system,
            "response_id": response.response_id,
            "topic": response.topic,
            "response": " ".join(response.sentences or ()) or None,
            **dict(zip(HUMAN_FACT_COUNTS, response.human or (), strict=False)),
        }
        if not response.facts:
            claim_id, abstained = f"{response.response_id}.-", int(bool(response.abstained))
            rows.append(shared | {"claim_id": claim_id, "abstained": abstained})
        named = Counter((fact.group, fact.entity) for fact in response.facts or () if fact.entity)
        # Whom each group is about: the one that most of its facts name.
        subject = {group: entity for (group, entity), _ in reversed(named.most_common())}
        for number, fact in enumerate(response.facts or ()):
            fact_id = f"{response.response_id}.{number}"
            shared |= {"fact_id": fact_id, "claim": fact.text, "sentence": None}
            if fact.sentence is not None and response.sentences:
                shared["sentence"] = response.sentences[fact.sentence]
            for candidate in people:
                row = shared | {"claim_id": fact_id, "doc_id": candidate.title}
                is_subject = len(people) == 1 or candidate.title == subject.get(fact.group)
                if fact.label is not None and is_subject:
                    row["label"] = FACT_LABELS[fact.label]
                if by_person:
                    row |= {"entity": candidate.title, "given_entity": fact.entity}
                    if response.groups is not None:
                        row["group"] = str(response.groups[number] + 1)
                    if candidate.title is not None:
                        row["claim_id"] += f".{hash_texts(candidate.title, length=8)}"
                if fact.failure is not None:
                    row["undecomposed"] = 1
                    unasked.append((row["claim_id"], fact.failure, fact.reason, True))
                elif candidate.page is None:
                    unasked.append((row["claim_id"], candidate.status, candidate.reason, False))
                else:
                    found = retriever.retrieve(candidate.page, response.topic, fact.text)
                    row["doc"] = PASSAGE_BREAK.join(_BLANK_LINES.sub("\n", one) for one in found)
                rows.append(row)
    # A column that no row has is one of nulls all the same.
    columns = ["claim", "sentence", "doc", "fact_id", *(["group"] if by_person else [])]
    table = pd.DataFrame([dict.fromkeys(columns) | row for row in rows])
    left_out = sum((one.left_out for one in responses), Counter[tuple[str, str]]())
    notes = [f"left out: {format_count(n, *what)}" for what, n in left_out.items()]
    reasons = [one.reason for people in candidates for one in people if one.reason]
    missing = list(dict.fromkeys(reasons))
    notes += missing[:MAX_TOLD_TOPICS]
    if len(missing) > MAX_TOLD_TOPICS:
        notes.append(f"no page for {len(missing) - MAX_TOLD_TOPICS:,} more topics")
    told = pd.DataFrame(unasked, columns=["claim_id", "status", "raw", "is_undecomposed"])
    told = told.assign(prediction=None, is_undecomposed=told["is_undecomposed"].astype(bool))
    return FactClaims(validate_claims(table), told, notes)
