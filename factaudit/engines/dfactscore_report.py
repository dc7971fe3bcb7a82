"""What does a D-FActScore run say of each biography, and of all of them? As in the audit `dfactscore`, and what only an
engine knows: candidates, what groupers did to the facts, whom a fact is true of instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.entity_linking import EntityLink, linked_entity_columns
from factaudit.arrays.grouped_responses import GroupedResponse, collect_grouped_responses
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.figure_formatting import format_percent
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore import compute_dfactscore_audit, compute_dfactscore_audit_by_link_rule
from factaudit.engines.factscore_report import (
    DECOMPOSITION_COUNTS,
    ScoredResponses,
    build_counts_section,
    count_decomposition,
    list_decomposition_audits,
)
from factaudit.engines.grouping import compare_fact_groupings, number_fact_groups
from factaudit.engines.passages import FactRecord, convert_human_label
from factaudit.tables import list_plain_rows, validate_claims, validate_verdicts
from factaudit.text.display_text import join_reasons

if TYPE_CHECKING:
    from factaudit.engines.dfactscore import DFactScorer

#: What the tables of facts call the two scores.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"
#: Merged paragraphs that the report shows; all are in responses.jsonl, their facts in tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12
_GROUPING_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")
_SOURCES = {
    "given": "responses whose candidates were given",
    "titles": "responses whose candidates are the pages of the name",
    "none": "responses of whose name there is no page: their facts have no verdict",
}


def name_scores(verifier: str, n_verifiers: int) -> tuple[str, str]:
    """What the tables of facts call FActScore and D-FActScore by a verifier."""
    more = "" if n_verifiers == 1 else f" ({verifier})"
    return FACTSCORE + more, DFACTSCORE + more


def report_dfactscore(
    records: Sequence[FactRecord], claims: pd.DataFrame, verdicts: pd.DataFrame, scorer: DFactScorer
) -> ScoredResponses:
    """The figures of each biography and of all; the first verifier links the groups."""
    options = scorer.options
    judged = Judgements.join(claims, verdicts)
    linked = {name: _link_biographies(records, verdicts, judged, name, scorer) for name in scorer.names}
    by_id = {one.record.response.response_id: one for one in linked[scorer.names[0]]}
    responses = [_build_response_row(one, by_id.get(one.response.response_id), scorer) for one in records]
    columns = {"group" if not at else f"group_{name}": name for at, name in enumerate(options.groupers)}
    figures = {"gamma": options.gamma, "narrow": options.narrow}
    rows = [
        _add_counts(row, claims, verdicts, responses)
        for row in compute_dfactscore_audit(judged, link=options.rule, **figures, intervals=scorer.intervals)
    ]
    first = [row for row in rows if row["evaluator"] == scorer.names[0]] or [_NOTHING]
    linking = [
        row | {"grouper": name}
        for column, name in columns.items()
        if column in claims
        for row in compute_dfactscore_audit_by_link_rule(judged, group=column, **figures, intervals=scorer.intervals)
    ]
    grouping = _compare_groupers(records, options.groupers)
    systems = [row for row in first if row["system"] != ALL_TOGETHER]
    summary = {
        **first[0],
        "evaluator": scorer.names[0],
        "grouper": options.groupers[0],
        "link": options.rule,
        "n_responses": len(responses),
        "systems": systems,
        "linking": linking,
        "grouping": grouping,
        "rows": rows,
    }
    link = {"link": options.rule}
    return ScoredResponses(
        claims,
        verdicts,
        responses,
        summary,
        {
            "dfactscore": link | figures,
            "dfactscore_gap": link,
            "dfactscore_linking": figures | {"group": list(columns)},
            "dfactscore_elsewhere": link,
            **list_decomposition_audits(scorer),
        },
        _build_fact_tables(linked, scorer) if by_id else (claims, verdicts),
        {"dfactscore": rows, "dfactscore_linking": linking, "dfactscore_grouping": grouping},
        _build_sections(responses, summary, scorer),
        list(map(_format_scores, systems)),
    )


#: The figures where no response holds a fact.
_NOTHING: Row = {
    "system": ALL_TOGETHER,
    "n_answered": 0,
    "respond_ratio": 0.0,
    **dict.fromkeys(("factscore", "dfactscore", "category_accuracy")),
    **dict.fromkeys(("n_facts", "n_unscored", "n_unscored_linked", "n_narrow", "n_unparsed", *DECOMPOSITION_COUNTS), 0),
    "reason": "no response with a fact",
}


@dataclass(frozen=True)
class _LinkedBiography:
    """One biography as one verifier sees it: its matrix, its links, its figures (`score_biography`).

    columns: of each fact the column of its group's entity, -1 for none. cells: the verdicts of each fact, by entity.
    """

    record: FactRecord
    matrix: GroupedResponse
    links: Sequence[EntityLink]
    figures: Row
    columns: np.ndarray
    cells: list[dict[str | None, Row]]

    def get_title(self, column: int | None) -> str | None:
        """The title of a column of the matrix."""
        return None if column is None or column < 0 else self.matrix.matrix.entities[column]


def _link_biographies(
    records: Sequence[FactRecord], verdicts: pd.DataFrame, judged: Judgements, verifier: str, scorer: DFactScorer
) -> list[_LinkedBiography]:
    """The biographies that hold facts, in order, each linked by the verdicts of one verifier."""
    if verifier not in judged.evaluators:  # without any claim there is no verdict
        return []
    own = verdicts[verdicts["evaluator"] == verifier][["claim_id", "prediction", "score", "status"]]
    said = {row.pop("claim_id"): row for row in list_plain_rows(own)}
    matrices = {
        one.key["response_id"]: one for one in collect_grouped_responses(judged, judged.evaluators.index(verifier))
    }
    found = []
    for record in records:
        if not record.decomposition.facts:
            continue
        matrix = matrices[record.response.response_id]
        options = scorer.options
        figures, links = score_biography(matrix, options.rule, gamma=options.gamma, narrow_margin=options.narrow)
        cells: list[dict[str | None, Row]] = [{} for _ in record.decomposition.facts]
        for claim_id, fact, candidate in record.iterate_claims():
            cells[fact][record.candidates[candidate].title] = said[claim_id]
        columns = linked_entity_columns(links, matrix.groups)
        found.append(_LinkedBiography(record, matrix, links, figures, columns, cells))
    return found


# ---------------------------------------------------------------------------------------------- rows and summary


def _build_response_row(record: FactRecord, linked: _LinkedBiography | None, scorer: DFactScorer) -> Row:
    response, made = record.response, record.decomposition
    row: Row = {
        "response_id": response.response_id,
        "name": response.topic,
        "system": response.system,
        "output": response.output,
        "abstained": made.abstained,
        **({"n_facts": 0, "merged": None, "category": None} if linked is None else linked.figures),
        "given_category": response.category,
        "candidates": [one.title for one in record.candidates if one.title is not None],
        "candidates_from": record.source,
        "n_candidates_left_out": record.n_left_out,
        "groups": [] if linked is None else _list_group_rows(linked, scorer.options.narrow),
        "grouping": {
            name: {"groups": None if one.groups is None else list(one.groups), "status": one.status, "raw": one.raw}
            | {key: getattr(one, key) for key in _GROUPING_COUNTS}
            for name, one in record.groupings.items()
        },
        **count_decomposition(made),
        "sentences": [sentence.text for sentence in made.sentences],
        "facts": [] if linked is None else _list_fact_rows(linked, scorer.options.irrelevant),
    }
    if linked is not None:
        row.pop("categories")
        row["n_unparsed"] = sum(cell["status"] == "unparsed" for cells in linked.cells for cell in cells.values())
        if not linked.matrix.matrix.entities:
            row["reason"] = record.candidates[0].reason
    return row


def _list_group_rows(linked: _LinkedBiography, narrow: float) -> list[Row]:
    return [
        {
            "entity": linked.get_title(link.entity),
            "share": link.share,
            "second": linked.get_title(link.second),
            "margin": link.margin,
            "narrow": link.is_narrow(narrow),
            "n_facts": int((linked.matrix.groups == number).sum()),
        }
        for number, link in enumerate(linked.links)
    ]


def _list_fact_rows(linked: _LinkedBiography, irrelevant: str) -> list[Row]:
    matrix, groups = linked.matrix.matrix, linked.matrix.groups
    by_any, about = matrix.verdict_of_any_entity(), matrix.attribute_facts()
    by_link = matrix.verdict_of_linked_entity(linked.columns)
    return [
        {
            "text": fact.text,
            "sentence": fact.sentence,
            "group": None if groups[number] < 0 else int(groups[number]),
            "entity": linked.get_title(linked.columns[number]),
            "about": linked.get_title(about[number]),
            "supported_by": [matrix.entities[at] for at in np.flatnonzero(matrix.prediction[number] == 1)],
            "factscore": _none_if_unknown(by_any[number]),
            "dfactscore": None if groups[number] < 0 else _none_if_unknown(by_link[number]),
            "label": convert_human_label(fact, irrelevant),
            "given_group": fact.group,
            "given_entity": fact.entity,
        }
        for number, fact in enumerate(linked.record.decomposition.facts)
    ]


def _none_if_unknown(verdict: int) -> int | None:
    return None if verdict < 0 else int(verdict)


def _add_counts(row: Row, claims: pd.DataFrame, verdicts: pd.DataFrame, responses: Sequence[Row]) -> Row:
    """The audit's row of a system, with what only an engine knows of its responses."""
    members = [one for one in responses if row["system"] in (ALL_TOGETHER, one["system"])]
    known = [one["category"] == one["given_category"] for one in members if one["given_category"] and one["category"]]
    ids = claims.loc[claims["response_id"].isin([one["response_id"] for one in members]), "claim_id"]
    unparsed = verdicts[(verdicts["evaluator"] == row["evaluator"]) & (verdicts["status"] == "unparsed")]
    without = "" if known else "no response has a given category and one found: category_accuracy"
    return {
        **row,
        **{key: sum(one[key] for one in members) for key in DECOMPOSITION_COUNTS},
        "n_unparsed": int(unparsed["claim_id"].isin(set(ids)).sum()),
        "category_accuracy": _mean_or_none(known),
        "reason": join_reasons([row["reason"] or "", without]),
    }


def _compare_groupers(records: Sequence[FactRecord], groupers: Sequence[str]) -> list[Row]:
    """What each grouper did to the facts, and how it compares with the given groups and with the first grouper."""
    spoke = [record for record in records if record.decomposition.facts]
    marks = [[fact.group for fact in record.decomposition.facts] for record in spoke]
    truths = {
        "given": [None if None in one else number_fact_groups(one) for one in marks],
        "first": [record.groupings[groupers[0]].groups for record in spoke],
    }
    lacks = {
        "given": "no given groups to compare with",
        "first": "no response that the first grouper has groups of as well",
    }
    rows = []
    for name in groupers:
        found = [record.groupings[name] for record in spoke]
        row: Row = {
            "grouper": name,
            "n_responses": len(spoke),
            "n_failed": sum(one.groups is None for one in found),
            "n_single": sum(one.groups is not None and max(one.groups) == 0 for one in found),
            **{key: sum(getattr(one, key) for one in found) for key in _GROUPING_COUNTS},
        }
        for key, truth in truths.items():
            pairs = [(true, one.groups) for true, one in zip(truth, found, strict=True)]
            both = [compare_fact_groupings(one, two) for one, two in pairs if one is not None and two is not None]
            row[f"n_compared_{key}"] = len(both)
            row[f"same_as_{key}"] = _mean_or_none([same for same, _ in both])
            row[f"agreement_{key}"] = _mean_or_none([agreed for _, agreed in both])
        row["reason"] = join_reasons([words for key, words in lacks.items() if not row[f"n_compared_{key}"]])
        rows.append(row)
    return rows


def _mean_or_none(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


# ------------------------------------------------------------------------------- the two scores as evaluators of facts


def _build_fact_tables(
    linked: Mapping[str, Sequence[_LinkedBiography]], scorer: DFactScorer
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the two scores say of each fact, as claims and verdicts that audits of evaluators read.

    A row per fact; its document is that of the entity to which its group is linked by the first verifier. The
    evaluators are "FActScore" and "D-FActScore", with the verifier behind them where there are several.
    """
    claims: list[Row] = []
    verdicts: dict[str, list[Row]] = {}
    for verifier, biographies in linked.items():
        for one in biographies:
            response, by_any = one.record.response, one.matrix.matrix.verdict_of_any_entity()
            for number, fact in enumerate(one.record.decomposition.facts):
                fact_id, title = f"{response.response_id}.{number}", one.get_title(one.columns[number])
                if verifier == scorer.names[0]:
                    group = one.matrix.groups[number]
                    contexts = zip(one.record.candidates, one.record.contexts[number], strict=True)
                    passages = next((own.passages for who, own in contexts if own and who.title == title), None)
                    claims.append(
                        {
                            "claim_id": fact_id,
                            "dataset": scorer.options.dataset,
                            "system": response.system,
                            "response_id": response.response_id,
                            "doc_id": title,
                            "topic": response.topic,
                            "group": str(group + 1) if group >= 0 else None,
                            "entity": title,
                            "claim": fact.text,
                            "doc": None if passages is None else "\n\n".join(passages),
                            "label": convert_human_label(fact, scorer.options.irrelevant),
                        }
                    )
                said = _judge_by_any(one, number, by_any[number]), _judge_by_link(one, number, title)
                for name, verdict in zip(name_scores(verifier, len(linked)), said, strict=True):
                    verdicts.setdefault(name, []).append({"claim_id": fact_id, "evaluator": name, **verdict})
    rows = [row for name in sorted(verdicts) for row in verdicts[name]]
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(rows))


def _judge_by_any(one: _LinkedBiography, number: int, prediction: int) -> Row:
    """FActScore's verdict of a fact: any entity may support it."""
    cells = list(one.cells[number].values())
    scores = [cell["score"] for cell in cells if cell["score"] is not None]
    return {"score": max(scores, default=None), **_combine_cells(_none_if_unknown(prediction), cells)}


def _judge_by_link(one: _LinkedBiography, number: int, title: str | None) -> Row:
    """D-FActScore's verdict of a fact: the entity of its group has to support it."""
    if one.matrix.groups[number] < 0:
        status = next(iter(one.record.groupings.values())).status
        return {"score": None, "prediction": None, "status": status}
    if title is None:
        nobody = 0 if one.matrix.matrix.entities else None
        return {"score": None, **_combine_cells(nobody, list(one.cells[number].values()))}
    cell = one.cells[number][title]
    return {"score": cell["score"], **_combine_cells(cell["prediction"], [cell])}


def _combine_cells(prediction: int | None, cells: Sequence[Row]) -> Row:
    """Prediction and status of a verdict that stands on these cells; on guessed replies, ``unparsed`` as they are."""
    if prediction is None:
        return {"prediction": None, "status": next(one["status"] for one in cells if one["prediction"] is None)}
    guessed = [one["status"] == "unparsed" for one in cells if one["prediction"] == prediction]
    # One clear reply is enough to be supported; not to be supported takes them all.
    is_guess = bool(guessed) and (all(guessed) if prediction else any(guessed))
    return {"prediction": prediction, "status": "unparsed" if is_guess else "ok"}


# ------------------------------------------------------------------------------------- the report and the terminal


def _build_sections(responses: Sequence[Row], summary: Row, scorer: DFactScorer) -> list[Row]:
    options = scorer.options
    text = f"Verified by {scorer.names[0]}; groups by {options.groupers[0]!r}; linked by {options.rule!r}."
    if options.prefilter is not None:
        text += f" Each fact was put to the {options.prefilter:,} candidates with the nearest passages only; on the "
        text += "others it has no verdict, and the bounds say what they could change."
    counts = dict(Counter(_SOURCES[row["candidates_from"]] for row in responses))
    counts["pages of a name that were left out (max_candidates)"] = sum(
        row["n_candidates_left_out"] for row in responses
    )
    merged = build_merged_paragraphs_section(responses)
    return [build_counts_section(summary, text, counts), *([merged] if merged else [])]


def build_merged_paragraphs_section(responses: Sequence[Row]) -> Row | None:
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
    items = [_colour_paragraph(row) for row in merged[:MAX_SHOWN_PARAGRAPHS]]
    return {"title": "Merged paragraphs", "text": text, "table": None, "figure": None, "merged": items}


def _colour_paragraph(row: Row) -> Row:
    """Whom each sentence and fact of a paragraph is of; people in the order of how many facts are true of them."""
    facts = row["facts"]
    # Of several people a fact is shown as true of the one that it was linked to, where that is one of them.
    owners = [fact["entity"] if fact["dfactscore"] == 1 and fact["entity"] else fact["about"] for fact in facts]
    n_about = Counter(fact["about"] for fact in facts if fact["about"] is not None)
    people = sorted(n_about, key=lambda title: (-n_about[title], title))
    people += [title for title in dict.fromkeys(owners) if title is not None and title not in people]
    numbers = {title: number for number, title in enumerate(people)}
    sentences = []
    for at, sentence in enumerate(row["sentences"]):
        mine = Counter(who for who, fact in zip(owners, facts, strict=True) if fact["sentence"] == at and who)
        best = mine.most_common(1)
        sentences.append({"text": sentence, "person": numbers[best[0][0]] if best else None})
    linked, totals = {group["entity"] for group in row["groups"]}, Counter(owners)
    return {
        **{key: row[key] for key in ("name", "system", "response_id")},
        "factscore": row["init_factscore"],
        "dfactscore": row["init_dfactscore"],
        "people": [{"title": title, "n": totals[title], "linked": title in linked} for title in people],
        "sentences": sentences,
        "facts": [
            {
                "text": fact["text"],
                "person": None if who is None else numbers[who],
                "elsewhere": fact["factscore"] == 1 and fact["dfactscore"] == 0,
            }
            for who, fact in zip(owners, facts, strict=True)
        ],
    }


def _format_scores(row: Row) -> str:
    """The scores of a system. Unscored facts count as not supported: where all are, that is no score of 0."""
    is_scored = {
        "factscore": row["n_facts"] > row["n_unscored"],
        "dfactscore": row["n_facts"] > row["n_unscored_linked"],
    }
    plain = {key: row[f"init_{key}"] if scored else None for key, scored in is_scored.items()}
    shown = ["no score" if value is None else format_percent(value) for value in plain.values()]
    line = f"{row['system'] or 'all'}: FActScore {shown[0]}, D-FActScore {shown[1]}"
    penalised = {key: row[key] if scored else None for key, scored in is_scored.items()}
    if None not in penalised.values() and plain != penalised:
        told = [format_percent(value) for value in penalised.values() if value is not None]
        line += f" (with the length penalty {' and '.join(told)})"
    return line
