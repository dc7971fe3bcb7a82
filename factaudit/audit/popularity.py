"""Does a system tell of the person whom most people look up? (MF §5.3)"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from factaudit.arrays.response_means import mean_of_defined
from factaudit.audit.core.audit_declaration import Audit, Column, pick_shared_columns
from factaudit.audit.core.result_rows import Row


def compute_entity_popularity(responses: Iterable[Mapping[str, Any]], page_views: Mapping[str, float]) -> Row:
    """Page views of the candidates against the person whom a response is mostly about, over all responses.

    responses: rows with candidates (titles) and groups (of each its entity and n_facts), as ``responses.jsonl`` has
    them. page_views: page views by title. Over the responses with at least two candidates, all with views: how often
    the entity of the largest group is the most viewed candidate, how often it would be by chance, and the mean rank
    from 0 (most viewed) to 1.
    """
    hits, chances, ranks = [], [], []
    n_without = 0
    for row in responses:
        groups = [group for group in row["groups"] if group["entity"] is not None]
        known = [title for title in row["candidates"] if title in page_views]
        if len(row["candidates"]) < 2 or not groups:
            continue
        if len(known) < len(row["candidates"]):
            n_without += 1
            continue
        chosen = max(groups, key=lambda group: group["n_facts"])["entity"]
        above = sum(page_views[title] > page_views[chosen] for title in known)
        hits.append(above == 0)
        chances.append(sum(page_views[title] == max(page_views[one] for one in known) for title in known) / len(known))
        ranks.append(above / (len(known) - 1))
    return {
        "n": len(hits),
        "n_without_views": n_without,
        "most_viewed": mean_of_defined(hits),
        "by_chance": mean_of_defined(chances),
        "mean_rank": mean_of_defined(ranks),
        "reason": None if hits else "no response whose candidates all have views",
    }


AUDIT = Audit(
    name="popularity",
    after="factscore_thresholds",
    title="Does the better-known person win?",
    question="Is the person whom a response is mostly about the candidate whom most people look up?",
    source="MF §5.3",
    text="Page views of the candidates against the person whom a response is mostly about.",
    formula="Most viewed: share of responses about the candidate with most views; mean rank: 0 is the most viewed, 1 "
    "the least.",
    columns={
        **pick_shared_columns("n"),
        "n_without_views": Column("without views", "count", "responses with a candidate without views", shown="any"),
        "most_viewed": Column("about the most viewed", "percent", "responses about the most viewed candidate"),
        "by_chance": Column("by chance", "percent", "how many there would be by chance"),
        "mean_rank": Column("mean rank", "number", "0 is the most viewed, 1 the least", digits=2),
        **pick_shared_columns("reason"),
    },
    compute=None,
)
