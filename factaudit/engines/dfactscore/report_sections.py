"""Where do candidates come from, and who is merged? The report of a D-FActScore run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from factaudit.audit.core.result_rows import Row

#: Merged paragraphs that the report shows; all are in responses.jsonl, their facts in tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12


def build_dfactscore_paragraphs_section(responses: Sequence[Row]) -> Row | None:
    """The section of merged paragraphs with their facts by person; None where none is merged.

    ``merged`` is a list of ``{name, system, response_id, factscore, dfactscore, people: [{title, n, linked}],
    sentences: [{text, person}], facts: [{text, person, elsewhere}]}``; a person is a number in ``people``, or null.
    """
    merged = [row for row in responses if row.get("merged")]
    merged.sort(key=lambda row: (-row["n_elsewhere"], row["response_id"]))
    if not merged:
        return None
    n_facts = sum(row["n_elsewhere"] for row in merged)
    text = (
        f"{len(merged):,} paragraphs say {n_facts:,} things of one person that are true of another of the name, by the "
        "verifier and by how facts are grouped (in bold among the facts). On the page a sentence has the colour of the "
        "person whom most of its facts are of. "
        + f"Shown: the {MAX_SHOWN_PARAGRAPHS} with most of them. " * (len(merged) > MAX_SHOWN_PARAGRAPHS)
        + "As a file: tables/dfactscore_elsewhere.csv."
    )
    items = [_make_dfactscore_paragraph(row) for row in merged[:MAX_SHOWN_PARAGRAPHS]]
    return {"title": "Merged paragraphs", "text": text, "table": None, "figure": None, "merged": items}


def _make_dfactscore_paragraph(response_row: Row) -> Row:
    linked = {group["entity"] for group in response_row["groups"]}
    counts = Counter(fact["about"] for fact in response_row["facts"] if fact["about"] is not None)
    people = [title for title, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    owner = [_find_dfactscore_person_of_fact(fact) for fact in response_row["facts"]]
    people += [title for title in dict.fromkeys(owner) if title is not None and title not in people]
    number = {title: position for position, title in enumerate(people)}
    sentences = []
    for position, sentence in enumerate(response_row["sentences"]):
        mine = Counter(
            title
            for title, fact in zip(owner, response_row["facts"], strict=True)
            if fact["sentence"] == position and title
        )
        best = max(mine, key=lambda title: mine[title]) if mine else None
        sentences.append({"text": sentence, "person": None if best is None else number[best]})
    totals = Counter(owner)
    return {
        "name": response_row["name"],
        "system": response_row["system"],
        "response_id": response_row["response_id"],
        "factscore": response_row["init_factscore"],
        "dfactscore": response_row["init_dfactscore"],
        "people": [{"title": title, "n": totals[title], "linked": title in linked} for title in people],
        "sentences": sentences,
        "facts": [
            {
                "text": fact["text"],
                "person": None if title is None else number[title],
                "elsewhere": fact["factscore"] == 1 and fact["dfactscore"] == 0,
            }
            for title, fact in zip(owner, response_row["facts"], strict=True)
        ],
    }


def _find_dfactscore_person_of_fact(fact_row: Row) -> str | None:
    """Whom a fact is shown as true of; of several people the one that it was linked to, where that is one of them."""
    if fact_row["dfactscore"] == 1 and fact_row["entity"] is not None:
        return fact_row["entity"]
    return fact_row["about"]


def count_candidate_sources(responses: Sequence[Row]) -> dict[str, int]:
    """How many responses have given candidates, found ones, and none."""
    words = {
        "given": "responses whose candidates were given",
        "titles": "responses whose candidates are the pages of the name",
        "none": "responses of whose name there is no page: their facts have no verdict",
    }
    counts = Counter(words[row["candidates_from"]] for row in responses if row["candidates_from"] in words)
    n_left_out = sum(row["n_candidates_left_out"] for row in responses)
    return {**counts, "pages of a name that were left out (max_candidates)": n_left_out}
