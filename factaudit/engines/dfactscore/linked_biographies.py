"""What is the D-FActScore of each biography? As in the audit `dfactscore`, with what only an engine knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.biography_scores import score_biography
from factaudit.arrays.entity_linking import EntityLink, linked_entity_columns
from factaudit.arrays.grouped_responses import GroupedResponse as Linked
from factaudit.arrays.grouped_responses import collect_grouped_responses as linked_responses
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.result_rows import Row
from factaudit.engines.dfactscore.fact_grouping import compare_fact_groupings, number_fact_groups
from factaudit.engines.fact_tables import convert_human_fact_annotation
from factaudit.engines.records import (
    FactGroupingRecord,
    FactVerificationRecord,
    ResponseRecord,
    VerifiedResponseRecords,
)
from factaudit.engines.responses import Response
from factaudit.tables import validate_claims, validate_verdicts

#: The evaluators' names in the tables of facts.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"
_GROUPING_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")


@dataclass(frozen=True)
class LinkedBiography:
    """One biography as one verifier sees it: its matrix, its links, its figures (`score_biography`).

    supports: the verdicts per fact and candidate, the candidates of a fact together.
    """

    response: Response
    record: ResponseRecord
    matrix: Linked
    links: tuple[EntityLink, ...]
    figures: Row
    supports: tuple[FactVerificationRecord, ...]

    @property
    def columns(self) -> np.ndarray:
        """Of each fact the column of its group's entity, -1 for none."""
        return linked_entity_columns(self.links, self.matrix.groups)

    def get_entity_title(self, column: int) -> str | None:
        """The title of a column of the matrix."""
        return None if column < 0 else self.matrix.matrix.entities[column]

    def get_candidate_number(self, column: int) -> int:
        """The place among the candidates of a column of the matrix, whose columns are in the alphabet's order."""
        return [candidate.title for candidate in self.record.candidates].index(self.get_entity_title(column))


def link_biography_groups_to_pages(
    verified: VerifiedResponseRecords, judged: Judgements, verifier: str, rule: str, gamma: float, narrow: float
) -> list[LinkedBiography]:
    """The biographies that hold facts, in order, each linked by the verdicts of one verifier."""
    if verifier not in judged.evaluators:  # without any claim there is no verdict
        return []
    matrices = {
        one.key["response_id"]: one
        for one in linked_responses(judged, judged.evaluators.index(verifier))
        if len(one.first_rows)
    }
    supports = iter(_convert_verdicts_to_linked_supports(verified.verdicts[verified.verdicts["evaluator"] == verifier]))
    found = []
    for response, record in zip(verified.responses, verified.records, strict=True):
        if record.decomposed.facts:
            matrix = matrices[response.response_id]
            figures, links = score_biography(matrix, rule, gamma=gamma, narrow_margin=narrow)
            cells = tuple(next(supports) for _ in record.fact_candidate_pairs)
            found.append(LinkedBiography(response, record, matrix, tuple(links), figures, cells))
    return found


def build_linked_biography_rows(
    verified: VerifiedResponseRecords, biographies: Sequence[LinkedBiography], narrow: float, irrelevant: str
) -> list[Row]:
    """A row per response, in order: figures, groups, what groupers did, facts."""
    by_id = {one.response.response_id: one for one in biographies}
    rows = []
    for response, record in zip(verified.responses, verified.records, strict=True):
        one = by_id.get(response.response_id)
        told = record.decomposed
        rows.append(
            {
                "response_id": response.response_id,
                "name": response.topic,
                "system": response.system,
                "output": response.output,
                "abstained": told.abstained,
                **(
                    {"n_facts": 0, "merged": None, "category": None}
                    if one is None
                    else _compute_linked_biography_scores(one)
                ),
                "n_failed_sentences": sum(sentence.is_failed for sentence in told.sentences),
                "given_category": response.category,
                "candidates": [candidate.title for candidate in record.candidates if candidate.title is not None],
                "candidates_from": record.source,
                "n_candidates_left_out": record.n_left_out,
                "groups": [_make_linked_biography_group_row(one, number, narrow) for number in range(len(one.links))]
                if one
                else [],
                "grouping": {
                    name: _make_linked_biography_grouping_row(found) for name, found in record.groupings.items()
                },
                "n_left_out_sentences": sum(sentence.is_left_out for sentence in told.sentences),
                "n_truncated_sentences": sum(sentence.truncated for sentence in told.sentences),
                "n_duplicates": told.n_duplicates,
                "n_cut": told.n_cut,
                "sentences": [sentence.text for sentence in told.sentences],
                "facts": [] if one is None else _make_linked_biography_fact_rows(one, irrelevant),
            }
        )
    return rows


#: Why a grouper's agreement is undefined.
_NOTHING_COMPARED = {
    "given": "no given groups to compare with",
    "first": "no response that the first grouper has groups of as well",
}


def build_grouper_comparison_rows(verified: VerifiedResponseRecords, groupers: Sequence[str]) -> list[Row]:
    """What each grouper did to the facts, and how it compares with the given groups and with the first grouper."""
    spoke = [record for record in verified.records if record.decomposed.facts]
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
        truths = {
            "given": [_number_given_groups(record) for record in spoke],
            "first": [record.groupings[groupers[0]].groups for record in spoke],
        }
        for key, truth in truths.items():
            pairs = [(true, one.groups) for true, one in zip(truth, found, strict=True)]
            both = [compare_fact_groupings(one, two) for one, two in pairs if one is not None and two is not None]
            row[f"n_compared_{key}"] = len(both)
            row[f"same_as_{key}"] = mean_or_none([same for same, _ in both])
            row[f"agreement_{key}"] = mean_or_none([agreed for _, agreed in both])
        lacking = [words for key, words in _NOTHING_COMPARED.items() if not row[f"n_compared_{key}"]]
        rows.append(row | {"reason": "; ".join(lacking) or None})
    return rows


def name_score_evaluators(verifier: str, n_verifiers: int) -> tuple[str, str]:
    """What the tables of facts call FActScore and D-FActScore by a verifier."""
    more = "" if n_verifiers == 1 else f" ({verifier})"
    return FACTSCORE + more, DFACTSCORE + more


def build_linked_biography_fact_tables(
    verified: VerifiedResponseRecords,
    biographies_by_verifier: dict[str, list[LinkedBiography]],
    dataset: str,
    irrelevant: str,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the two scores say of each fact, as claims and verdicts that audits of evaluators read.

    A row per fact; its document is that of the entity to which its group is linked by the first verifier. The
    evaluators are "FActScore" and "D-FActScore", with the verifier behind them where there are several.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    for verifier, mine in biographies_by_verifier.items():
        names = name_score_evaluators(verifier, len(biographies_by_verifier))
        for one in mine:
            by_any, columns = one.matrix.matrix.verdict_of_any_entity(), one.columns
            for number, fact in enumerate(one.record.decomposed.facts):
                fact_id = f"{one.response.response_id}.{number}"
                if verifier == next(iter(biographies_by_verifier)):
                    claims.append(
                        {
                            "claim_id": fact_id,
                            "dataset": dataset,
                            "system": one.response.system,
                            "response_id": one.response.response_id,
                            "doc_id": one.get_entity_title(columns[number]),
                            "topic": one.response.topic,
                            "group": str(one.matrix.groups[number] + 1) if one.matrix.groups[number] >= 0 else None,
                            "entity": one.get_entity_title(columns[number]),
                            "claim": fact.text,
                            "doc": _join_linked_biography_passages(one, number),
                            "label": convert_human_fact_annotation(fact, irrelevant),
                        }
                    )
                said = (
                    _make_factscore_verdict(one, number, by_any[number]),
                    _make_linked_biography_verdict(one, number, columns[number]),
                )
                verdicts += [{"claim_id": fact_id, "evaluator": n, **told} for n, told in zip(names, said, strict=True)]
    if not claims:
        return verified.claims, verified.verdicts
    table = pd.DataFrame(verdicts).sort_values("evaluator", key=lambda names: names, kind="stable")
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(table)


def mean_or_none(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if values else None


# -------------------------------------------------------------------------------------------------------- its parts


def _compute_linked_biography_scores(biography: LinkedBiography) -> Row:
    row = {key: value for key, value in biography.figures.items() if key != "categories"}
    row["n_unparsed"] = sum(cell.status == "unparsed" for cell in biography.supports)
    if not biography.matrix.matrix.entities:
        row["reason"] = biography.record.candidates[0].reason
    return row


def _make_linked_biography_group_row(biography: LinkedBiography, group_number: int, narrow: float) -> Row:
    link = biography.links[group_number]
    return {
        "entity": None if link.entity is None else biography.get_entity_title(link.entity),
        "share": link.share,
        "second": None if link.second is None else biography.get_entity_title(link.second),
        "margin": link.margin,
        "narrow": link.is_narrow(narrow),
        "n_facts": int((biography.matrix.groups == group_number).sum()),
    }


def _make_linked_biography_fact_rows(biography: LinkedBiography, irrelevant: str) -> list[Row]:
    matrix, groups = biography.matrix.matrix, biography.matrix.groups
    by_any, about, columns = matrix.verdict_of_any_entity(), matrix.attribute_facts(), biography.columns
    by_link = matrix.verdict_of_linked_entity(columns)
    return [
        {
            "text": fact.text,
            "sentence": fact.sentence,
            "group": None if groups[number] < 0 else int(groups[number]),
            "entity": biography.get_entity_title(columns[number]),
            "about": biography.get_entity_title(about[number]),
            "supported_by": [matrix.entities[e] for e in np.flatnonzero(matrix.prediction[number] == 1)],
            "factscore": _convert_unknown_to_none(by_any[number]),
            "dfactscore": None if groups[number] < 0 else _convert_unknown_to_none(by_link[number]),
            "label": convert_human_fact_annotation(fact, irrelevant),
            "given_group": fact.group,
            "given_entity": fact.entity,
        }
        for number, fact in enumerate(biography.record.decomposed.facts)
    ]


def _make_factscore_verdict(biography: LinkedBiography, fact_number: int, prediction: int) -> Row:
    cells = _get_fact_supports(biography, fact_number)
    scores = [cell.score for cell in cells if cell.score is not None]
    return {
        "score": max(scores) if scores else None,
        **_combine_fact_supports_into_verdict(_convert_unknown_to_none(prediction), cells),
    }


def _make_linked_biography_verdict(biography: LinkedBiography, fact_number: int, column: int) -> Row:
    if biography.matrix.groups[fact_number] < 0:
        grouping = next(iter(biography.record.groupings.values()))
        return {"score": None, "prediction": None, "status": grouping.status}
    cells = _get_fact_supports(biography, fact_number)
    if column < 0:
        return {
            "score": None,
            **_combine_fact_supports_into_verdict(0 if biography.matrix.matrix.entities else None, cells),
        }
    cell = cells[biography.get_candidate_number(column)]
    return {"score": cell.score, **_combine_fact_supports_into_verdict(cell.prediction, [cell])}


def _get_fact_supports(biography: LinkedBiography, fact_number: int) -> tuple[FactVerificationRecord, ...]:
    width = len(biography.record.candidates)
    return biography.supports[fact_number * width : (fact_number + 1) * width]


def _combine_fact_supports_into_verdict(prediction: int | None, supports: Sequence[FactVerificationRecord]) -> Row:
    """Prediction and status of a verdict that stands on these cells; on guessed replies, ``unparsed`` as they are."""
    if prediction is None:
        return {"prediction": None, "status": next(one for one in supports if one.prediction is None).status}
    alike = [one for one in supports if one.prediction == prediction]
    # One clear reply is enough to be supported; not to be supported takes them all.
    guessed = (all if prediction else any)(one.status == "unparsed" for one in alike) and bool(alike)
    return {"prediction": prediction, "status": "unparsed" if guessed else "ok"}


def _join_linked_biography_passages(biography: LinkedBiography, fact_number: int) -> str | None:
    column = int(biography.columns[fact_number])
    if column < 0:
        return None
    passages = biography.record.list_passages(fact_number, biography.get_candidate_number(column))
    return None if passages is None else "\n\n".join(passages)


def _convert_verdicts_to_linked_supports(verdicts: pd.DataFrame) -> list[FactVerificationRecord]:
    columns = (verdicts["prediction"], verdicts["score"], verdicts["status"], verdicts["raw"])
    return [
        FactVerificationRecord(
            None if pd.isna(prediction) else int(prediction),
            None if pd.isna(score) else float(score),
            status,
            raw if isinstance(raw, str) else None,
        )
        for prediction, score, status, raw in zip(*columns, strict=True)
    ]


def _number_given_groups(record: ResponseRecord) -> tuple[int, ...] | None:
    marks = [fact.group for fact in record.decomposed.facts]
    return number_fact_groups(marks) if all(mark is not None for mark in marks) else None


def _make_linked_biography_grouping_row(grouping: FactGroupingRecord) -> Row:
    return {
        "groups": None if grouping.groups is None else list(grouping.groups),
        "status": grouping.status,
        **{key: getattr(grouping, key) for key in _GROUPING_COUNTS},
        "raw": grouping.raw,
    }


def _convert_unknown_to_none(verdict: int) -> int | None:
    return None if verdict < 0 else int(verdict)
