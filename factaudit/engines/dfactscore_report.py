"""What does a D-FActScore run say of each biography, and of all of them? As in the audit `dfactscore`, and what only an
engine knows: candidates, what groupers did to the facts, whom a fact is true of instead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from factaudit.arrays.biographies import collect_biographies
from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_means import mean_of_defined
from factaudit.arrays.support_matrix import GroupLinks, SupportMatrix
from factaudit.audit.core.figure_formatting import format_percent
from factaudit.audit.core.result_rows import Row
from factaudit.audit.dfactscore import compute_dfactscore_audit, compute_dfactscore_audit_by_link_rule
from factaudit.engines.factscore_report import (
    DECOMPOSITION_COUNTS,
    ScoredResponses,
    add_decomposition_counts,
    count_decomposition,
    list_decomposition_audits,
    make_section,
)
from factaudit.engines.grouping import GROUPING_COUNTS, compare_fact_groupings, number_fact_groups
from factaudit.engines.options import DFactScoreOptions
from factaudit.engines.passages import FactRecord, convert_human_label
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.display_text import join_reasons

if TYPE_CHECKING:
    from factaudit.engines.dfactscore import DFactScorer

#: What the tables of facts call the two scores.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"
#: Merged paragraphs that the report shows; all are in responses.jsonl, their facts in tables/dfactscore_elsewhere.csv.
MAX_SHOWN_PARAGRAPHS = 12
_SOURCES = {
    "given": "responses came with their candidates",
    "titles": "responses have the pages of the name as candidates",
    "none": "responses are of a name that no page has: their facts have no verdict",
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
    link = {"link": options.rule}
    figures = {"gamma": options.gamma, "narrow": options.narrow}
    rows = [
        add_decomposition_counts(_add_counts(row, claims, verdicts, responses), responses)
        for row in compute_dfactscore_audit(judged, **link, **figures, intervals=scorer.intervals)
    ]
    first = [row for row in rows if row["evaluator"] == scorer.names[0]]
    first = first or [_NOTHING | dict.fromkeys(DECOMPOSITION_COUNTS, 0)]
    columns = {"group" if not at else f"group_{name}": name for at, name in enumerate(options.groupers)}
    linking = [
        row | {"grouper": name}
        for column, name in columns.items()
        if column in claims
        for row in compute_dfactscore_audit_by_link_rule(judged, group=column, **figures, intervals=scorer.intervals)
    ]
    grouping = _compare_groupers(records, options)
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
    merged = build_merged_paragraphs_section(responses)
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
        [make_section(_describe_run(responses, scorer)), *([merged] if merged else [])],
        list(map(_format_scores, systems)),
    )


#: The figures where no response holds a fact.
_NOTHING: Row = {
    "system": ALL_TOGETHER,
    **dict.fromkeys(("factscore", "dfactscore", "category_accuracy")),
    **dict.fromkeys(("n_answered", "n_facts", "n_unscored", "n_unscored_linked", "n_narrow", "n_unparsed"), 0),
    "respond_ratio": 0.0,
    "reason": "no response with a fact",
}


@dataclass(frozen=True)
class _LinkedBiography:
    """One biography as one verifier sees it: its matrix, its links, its figures (`score_biography`).

    person: of each fact the column of its group's person, -1 for nobody. statuses: of each fact those of its verdicts,
    by title.
    """

    record: FactRecord
    matrix: SupportMatrix
    links: GroupLinks
    figures: Row
    person: np.ndarray
    statuses: list[dict[str | None, str]]

    def get_title(self, column: int | None) -> str | None:
        """The title of a column of the matrix."""
        return None if column is None or column < 0 else self.matrix.people[column]


def _link_biographies(
    records: Sequence[FactRecord], verdicts: pd.DataFrame, judged: Judgements, verifier: str, scorer: DFactScorer
) -> list[_LinkedBiography]:
    """The biographies that hold facts, in order, each linked by the verdicts of one verifier."""
    if verifier not in judged.evaluators:  # without any claim there is no verdict
        return []
    own = verdicts[verdicts["evaluator"] == verifier]
    said = dict(zip(own["claim_id"], own["status"], strict=True))
    matrices = {one.key["response_id"]: one for one in collect_biographies(judged, judged.evaluators.index(verifier))}
    options, found = scorer.options, []
    for record in records:
        if record.decomposition.facts:
            matrix = matrices[record.response.response_id]
            figures, links = score_biography(matrix, options.rule, gamma=options.gamma, narrow=options.narrow)
            statuses: list[dict[str | None, str]] = [{} for _ in record.decomposition.facts]
            for claim_id, fact, candidate in record.iterate_claims():
                statuses[fact][record.candidates[candidate].title] = said[claim_id]
            person = matrix.person_of_facts(links)
            found.append(_LinkedBiography(record, matrix, links, figures, person, statuses))
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
        "groups": [],
        "grouping": {name: asdict(one) for name, one in record.groupings.items()},
        **count_decomposition(made),
        "sentences": [sentence.text for sentence in made.sentences],
        "facts": [],
    }
    if linked is None:
        return row
    del row["categories"]
    row["n_unparsed"] = sum(list(one.values()).count("unparsed") for one in linked.statuses)
    if not linked.matrix.people:
        row["reason"] = record.candidates[0].reason
    matrix, links = linked.matrix, linked.links
    for number, (person, second) in enumerate(zip(links.person.tolist(), links.second.tolist(), strict=True)):
        row["groups"].append(
            {
                "entity": linked.get_title(person),
                "share": none_if_undefined(links.share[number]),
                "second": linked.get_title(second),
                "margin": none_if_undefined(links.margin[number]),
                "narrow": bool(links.narrow(scorer.options.narrow)[number]),
                "n_facts": int((matrix.group == number).sum()),
            }
        )
    by_any, about = matrix.supported_by_any(), matrix.attribute_facts()
    by_link = matrix.supported_by(linked.person)
    for number, fact in enumerate(made.facts):
        row["facts"].append(
            {
                "text": fact.text,
                "sentence": fact.sentence,
                "group": _none_if_negative(matrix.group[number]),
                "entity": linked.get_title(linked.person[number]),
                "about": linked.get_title(about[number]),
                "supported_by": [matrix.people[at] for at in np.flatnonzero(matrix.prediction[number] == 1)],
                "factscore": _none_if_negative(by_any[number]),
                "dfactscore": None if matrix.group[number] < 0 else _none_if_negative(by_link[number]),
                "label": convert_human_label(fact, scorer.options.irrelevant),
                "given_group": fact.group,
                "given_entity": fact.entity,
            }
        )
    return row


def _none_if_negative(value: int) -> int | None:
    return None if value < 0 else int(value)


def _add_counts(row: Row, claims: pd.DataFrame, verdicts: pd.DataFrame, responses: Sequence[Row]) -> Row:
    """The audit's row of a system, with what only an engine knows of its responses."""
    members = [one for one in responses if row["system"] in (ALL_TOGETHER, one["system"])]
    known = [one["category"] == one["given_category"] for one in members if one["given_category"] and one["category"]]
    ids = claims.loc[claims["response_id"].isin([one["response_id"] for one in members]), "claim_id"]
    unparsed = verdicts[(verdicts["evaluator"] == row["evaluator"]) & (verdicts["status"] == "unparsed")]
    without = "" if known else "no response has a given category and one found: category_accuracy"
    return {
        **row,
        "n_unparsed": int(unparsed["claim_id"].isin(set(ids)).sum()),
        "category_accuracy": mean_of_defined(known),
        "reason": join_reasons([row["reason"] or "", without]),
    }


def _compare_groupers(records: Sequence[FactRecord], options: DFactScoreOptions) -> list[Row]:
    """What each grouper did to the facts, and how it compares with the given groups and with the first grouper."""
    spoke = [record for record in records if record.decomposition.facts]
    marks = [[fact.group for fact in record.decomposition.facts] for record in spoke]
    truths = {
        "given": [None if None in one else number_fact_groups(one) for one in marks],
        "first": [record.groupings[options.groupers[0]].groups for record in spoke],
    }
    rows = []
    for name in options.groupers:
        found = [record.groupings[name] for record in spoke]
        row: Row = {
            "grouper": name,
            "n_responses": len(spoke),
            "n_failed": sum(one.groups is None for one in found),
            "n_single": sum(one.groups is not None and max(one.groups) == 0 for one in found),
        }
        row |= {key: sum(getattr(one, key) for one in found) for key in GROUPING_COUNTS}
        lacking = []
        for key, truth in truths.items():
            pairs = [(true, one.groups) for true, one in zip(truth, found, strict=True)]
            both = [compare_fact_groupings(one, two) for one, two in pairs if one is not None and two is not None]
            row[f"n_compared_{key}"] = len(both)
            row[f"same_as_{key}"] = mean_of_defined(same for same, _ in both)
            row[f"agreement_{key}"] = mean_of_defined(agreed for _, agreed in both)
            lacking += [] if both else [_NOTHING_COMPARED[key]]
        rows.append(row | {"reason": "; ".join(lacking) or None})
    return rows


_NOTHING_COMPARED = {
    "given": "no given groups to compare with",
    "first": "no response that the first grouper has groups of as well",
}


# ------------------------------------------------------------------------------- the two scores as evaluators of facts


def _build_fact_tables(
    linked: Mapping[str, Sequence[_LinkedBiography]], scorer: DFactScorer
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the two scores say of each fact, as claims and verdicts that audits of evaluators read.

    A row per fact; its document is that of the entity to which its group is linked by the first verifier. The
    evaluators are "FActScore" and "D-FActScore", with the verifier behind them where there are several.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    for verifier, biographies in linked.items():
        factscore, dfactscore = name_scores(verifier, len(linked))
        for one in biographies:
            verdicts += [{"evaluator": factscore, **row} for row in _judge_facts(one, is_linked=False)]
            verdicts += [{"evaluator": dfactscore, **row} for row in _judge_facts(one, is_linked=True)]
            claims += _list_fact_claims(one, scorer) if verifier == scorer.names[0] else []
    table = pd.DataFrame(verdicts).sort_values("evaluator", kind="stable")
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(table)


def _list_fact_claims(linked: _LinkedBiography, scorer: DFactScorer) -> Iterator[Row]:
    response = linked.record.response
    for number, fact in enumerate(linked.record.decomposition.facts):
        group, title = linked.matrix.group[number], linked.get_title(linked.person[number])
        contexts = zip(linked.record.candidates, linked.record.contexts[number], strict=True)
        passages = next((own.passages for who, own in contexts if own and who.title == title), None)
        yield {
            "claim_id": f"{response.response_id}.{number}",
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


def _judge_facts(linked: _LinkedBiography, is_linked: bool) -> Iterator[Row]:
    """D-FActScore's verdicts of the facts, for which the entity of the fact's group has to support it; or FActScore's,
    for which any entity may.

    A verdict that stands on a guessed reply is ``unparsed`` as that is: one clear reply is enough to be supported, not
    to be supported takes them all.
    """
    matrix, grouping = linked.matrix, next(iter(linked.record.groupings.values()))
    by_any, by_link = matrix.supported_by_any(), matrix.supported_by(linked.person)
    for number, statuses in enumerate(linked.statuses):
        column = linked.person[number]
        prediction = by_link[number] if is_linked else by_any[number]
        cells = [column] if is_linked and column >= 0 else list(range(len(matrix.people)))
        guesses = [bool(matrix.unsure[number, at]) for at in cells if matrix.prediction[number, at] == prediction]
        scores = [matrix.score[number, at] for at in cells if not np.isnan(matrix.score[number, at])]
        status = "unparsed" if guesses and (all if prediction == 1 else any)(guesses) else "ok"
        if is_linked and linked.matrix.group[number] < 0:
            prediction, status, scores = -1, grouping.status, []
        elif prediction < 0:
            missing = [statuses[linked.get_title(at)] for at in cells if matrix.prediction[number, at] < 0]
            status = (missing or list(statuses.values()))[0]
        elif is_linked and column < 0:
            scores = []
        yield {
            "claim_id": f"{linked.record.response.response_id}.{number}",
            "prediction": _none_if_negative(prediction),
            "score": max(scores, default=None),
            "status": status,
        }


# ------------------------------------------------------------------------------------- the report and the terminal


def _describe_run(responses: Sequence[Row], scorer: DFactScorer) -> list[str]:
    options = scorer.options
    text = [f"Verified by {scorer.names[0]}; groups by {options.groupers[0]!r}; linked by {options.rule!r}."]
    counts = Counter(row["candidates_from"] for row in responses)
    text += [f"{counts[source]:,} {words}." for source, words in _SOURCES.items() if counts[source]]
    if n := sum(row["n_candidates_left_out"] for row in responses):
        text.append(f"{n:,} pages of a name were left out (max_candidates).")
    return text


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
    unscored = {"factscore": row["n_unscored"], "dfactscore": row["n_unscored_linked"]}
    lines = []
    for start in ("init_", ""):
        shown = [row[start + key] if n < row["n_facts"] else None for key, n in unscored.items()]
        lines.append(["no score" if value is None else format_percent(value) for value in shown])
    plain, penalised = lines
    line = f"{row['system'] or 'all'}: FActScore {plain[0]}, D-FActScore {plain[1]}"
    return line + (f" (with the length penalty {' and '.join(penalised)})" if plain != penalised else "")
