"""What is the score of each response, and how is it shown?

Here the arrays of judgements become the rows of ``responses.jsonl`` and the merged paragraphs of
the report, and the rows of the audits become the lines that `factaudit factscore` and `factaudit
dfactscore` print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from factaudit.arrays.biographies import SupportMatrix, collect_biographies
from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.judgements import ALL_TOGETHER, Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.wording import (
    PERCENT_COLUMN,
    format_audit_figure,
    format_figure_range,
    format_percent,
)
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
        f"According to the verifier and the groups of facts, {len(merged):,} paragraphs say"
        f" {n_facts:,} things about one person that are true of another person of the same name."
        " These facts are in bold. Each fact has the colour of the person of whom it is true."
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


def format_scores(rows: Sequence[Row], figures: Mapping[str, str]) -> list[str]:
    """A line for each system and verifier: the scores with their intervals and with what facts
    without a verdict, or with a guessed one, leave possible; and how many responses have a score.

    rows: of the audit of the score. figures: the key in the row of each figure, by its name.
    """
    lines = []
    for row in rows:
        if row["system"] == ALL_TOGETHER:
            continue
        parts = []
        for name, key in figures.items():
            # Facts without a verdict count as not supported: if all are, that is no score of 0.
            n_unscored = row["n_unscored_linked" if key == "init_dfactscore" else "n_unscored"]
            if row[key] is None or n_unscored == row["n_facts"]:
                parts.append(f"no {name}")
                continue
            low, high = row[f"{key}_min"], row[f"{key}_max"]
            parts.append(f"{name} {_format_figure(row, key)}")
            if low < high:
                parts[-1] += f", at worst {format_percent(low)}, at best {format_percent(high)}"
        n_scored = row.get("n_scored", row.get("n_answered"))
        parts.append(f"{n_scored:,} of {format_count(row['n_responses'], 'response')} scored")
        if row.get("n_abstained"):
            parts.append(f"{row['n_abstained']:,} abstained")
        lines.append(f"{row['system'] or 'all'}, by {row['evaluator']}: {'; '.join(parts)}")
    return lines or ["no score: no response states a fact"]


def _format_figure(row: Row, key: str, column: Column = PERCENT_COLUMN) -> str:
    """A figure with its interval: ``66.7 % (51.0–80.2)``."""
    text = format_audit_figure(column, row[key]) + (" %" if column is PERCENT_COLUMN else "")
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None:
        return text
    return f"{text} ({format_figure_range(column, low, high)})"


def format_variant(row: Row) -> str:
    """A variant's score in percent, and its change from the base in points, with intervals."""
    score = "–" if row["score"] is None else _format_figure(row, "score")
    change = Column("", "points", signed=True)
    moved = "" if row["change"] is None else _format_figure(row, "change", change)
    return f"{row['variant']:<28} {score:<22} {moved}".rstrip()
