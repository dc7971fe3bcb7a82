"""Which facts are true of somebody else than the person whom their group is linked to? (MF Fig. 1)"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.entity_linking import EntityLink, linked_entity_columns
from factaudit.arrays.grouped_responses import GroupedResponse
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, Column
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore import (
    DFACTSCORE_KEY_COLUMNS,
    LinkRule,
    has_fact_entities,
    iterate_audited_dfactscore_systems,
    select_dfactscore_options,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def list_dfactscore_facts_of_other_entities(
    judgements: Judgements,
    *,
    link: LinkRule = "argmax",
    group: str = "group",
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The facts that belong to somebody else, a row each, the most merged responses first: what to act on.

    ``linked``: the title that the fact's group is linked to. ``about``: whom the fact is true of.
    """
    found: list[tuple[int, str, list[Row]]] = []
    texts = judgements.claims["claim"].to_numpy(dtype=object)
    for key, members in iterate_audited_dfactscore_systems(judgements, group):
        for one in members:
            row, links = score_biography(one, link)
            if row["n_elsewhere"]:
                names = {"system": key["system"], "name": one.key["topic"], "response_id": one.key["response_id"]}
                facts = [
                    {"dataset": key["dataset"], "evaluator": key["evaluator"], **names, **fact}
                    for fact in _list_facts_true_of_other_entities(one, links, texts)
                ]
                found.append((-row["n_elsewhere"], str(one.key["response_id"]), facts))
    return [fact for _, _, facts in sorted(found, key=lambda each: each[:2]) for fact in facts]


def _list_facts_true_of_other_entities(
    response: GroupedResponse, links: Sequence[EntityLink], claim_texts: np.ndarray
) -> Iterator[Row]:
    columns = linked_entity_columns(links, response.groups)
    matrix = response.matrix
    by_any, linked, attributed = (
        matrix.verdict_of_any_entity(),
        matrix.verdict_of_linked_entity(columns),
        matrix.attribute_facts(),
    )
    for fact in np.flatnonzero((by_any == 1) & (linked == 0) & response.is_own_fact & (response.groups >= 0)):
        told = response.true_entities[fact] if response.true_entities is not None else None
        yield {
            "linked": None if columns[fact] < 0 else matrix.entities[columns[fact]],
            "fact": claim_texts[response.first_rows[fact]],
            "about": told if told is not None else matrix.entities[attributed[fact]],
        }


AUDIT = Audit(
    name="dfactscore_elsewhere",
    after="dfactscore_linking",
    title="Facts that belong to someone else",
    question="Which facts are true of another person of the same name?",
    source="MF Fig. 1",
    text=(
        "These facts mislead a reader of the merged paragraphs, according to the verifier and the grouping (labels"
        " may disagree). The most merged responses come first."
    ),
    formula="Linked to: the person to whom the fact's group is linked. True of: the person of whom the fact is true.",
    remedy="Read these facts first: they are what misleads a reader.",
    columns=DFACTSCORE_KEY_COLUMNS
    | {
        "name": Column("name", "text", "the topic of the response", key=True),
        "response_id": Column("response", "text", "the response", key=True),
        "linked": Column("linked to", "text", "the person of whom the fact is told"),
        "fact": Column("fact", "text", "the fact"),
        "about": Column("true of", "text", "the person of whom the fact is true"),
    },
    options=select_dfactscore_options("link", "group"),
    compute=list_dfactscore_facts_of_other_entities,
    applies=has_fact_entities,
)
