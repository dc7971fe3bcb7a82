"""What is the score of each response, and how is it shown?

Here the arrays of judgements become the rows of ``responses.jsonl`` and the merged paragraphs of
the report, and the rows of audits become lines for the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from factaudit.arrays.biographies import SupportMatrix, collect_biographies
from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import PERCENT_COLUMN
from factaudit.audit.estimates import format_cell
from factaudit.tables import list_plain_rows
from factaudit.text.display_text import format_count

#: Merged paragraphs that the report shows; the facts of all are in tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12
_RESPONSE = ["response_id", "system", "topic"]


def list_factscore_rows(judged: Judgements, gamma: float) -> list[Row]:
    """A row per response and verifier, with its scores and numbers of facts."""
    facts = collect_response_facts(judged)
    rows: list[Row] = []
    for at, name in enumerate(judged.evaluators):
        scores = score_response_facts(facts, judged, at, gamma)
        table = facts.responses[[*_RESPONSE, "abstained"]].assign(evaluator=name)
        rows += list_plain_rows(table.join(scores))
    return rows


class ScoredBiography(NamedTuple):
    """A response with its figures by one verifier, and whom its facts are of."""

    row: Row
    matrix: SupportMatrix
    #: The column of the person whom each fact is told of, -1 for nobody.
    told_of: np.ndarray


def score_biographies(judged: Judgements, link: str, gamma: float) -> list[ScoredBiography]:
    """Each response by each verifier."""
    found = []
    for at, name in enumerate(judged.evaluators):
        for one in collect_biographies(judged, at):
            figures = score_biography(one, link, gamma=gamma)
            del figures["false_cells"]
            names = {key: one.key[key] for key in _RESPONSE} | {"evaluator": name}
            found.append(ScoredBiography(names | figures, one, one.person_of_facts(link)))
    return found


def make_merged_section(scored: Sequence[ScoredBiography]) -> Row | None:
    """The report's section of merged paragraphs with their facts by person; None where none is
    merged.

    ``merged`` is a list of ``{name, system, response_id, factscore, dfactscore, people: [{title,
    n}], facts: [{text, person, elsewhere}]}``; a person is a number in ``people``, or null.
    """
    merged = [one for one in scored if one.row["merged"]]
    merged.sort(key=lambda one: (-one.row["n_elsewhere"], one.row["response_id"]))
    if not merged:
        return None
    n_facts = sum(one.row["n_elsewhere"] for one in merged)
    text = (
        f"The verdicts on the groups of facts show {format_count(n_facts, 'fact')} in"
        f" {format_count(len(merged), 'paragraph')} told of one person but true of another person"
        " of the same name. Such facts are in bold. Each fact has the colour of the person of whom"
        " it is true."
    )
    if len(merged) > MAX_SHOWN_PARAGRAPHS:
        text += f" The {MAX_SHOWN_PARAGRAPHS} paragraphs with most of them are shown."
    shown = [_colour_paragraph(*one) for one in merged[:MAX_SHOWN_PARAGRAPHS]]
    return {"title": "Merged paragraphs", "text": text, "merged": shown}


def _colour_paragraph(row: Row, matrix: SupportMatrix, told_of: np.ndarray) -> Row:
    """Whom each fact of a paragraph is true of: of several people the one it was linked to, where
    that is one of them."""
    is_linked = matrix.supported_by(told_of) == 1
    person = np.where(is_linked, told_of, matrix.attribute_facts()).tolist()
    elsewhere = ((matrix.supported_by_any() == 1) & ~is_linked & (matrix.group >= 0)).tolist()
    facts = [
        {"text": text, "person": None if who < 0 else who, "elsewhere": other}
        for text, who, other in zip(matrix.texts, person, elsewhere, strict=True)
    ]
    return {
        "name": row["topic"],
        "system": row["system"],
        "response_id": row["response_id"],
        "factscore": row["init_factscore"],
        "dfactscore": row["init_dfactscore"],
        "people": [
            {"title": title, "n": person.count(at)} for at, title in enumerate(matrix.people)
        ],
        "facts": facts,
    }


# ------------------------------------------------------------------------------- what is printed


def format_scored_responses(rows: Sequence[Row]) -> str:
    """How many responses have a score, and how many abstained.

    rows: of the audit of the score, that of all systems first.
    """
    if not rows:
        return "scored            0: no response states a fact"
    row = rows[0]
    n_scored, n_abstained = row.get("n_scored", row.get("n_answered")), row.get("n_abstained")
    abstained = f"; {n_abstained:,} abstained" if n_abstained else ""
    return f"scored    {n_scored:>9,} of {format_count(row['n_responses'], 'response')}{abstained}"


def format_variants(rows: Iterable[Row]) -> list[str]:
    """A heading, and a line for each variant: its score and its change from the base, with
    intervals."""
    change = Column("change", "points", signed=True)
    lines = [f"{'variant':<28} {'FActScore (%)':<22} change (points)"]
    for row in rows:
        score = format_cell(PERCENT_COLUMN, row, "score") or "–"
        moved = format_cell(change, row, "change")
        lines.append(f"{row['variant']:<28} {score:<22} {moved}".rstrip())
    return lines
