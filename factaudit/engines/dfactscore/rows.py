"""D-FActScore's figures by biography, as the audit `dfactscore` has them, with what only an engine knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from factaudit.audit.core.biographies import score
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.matrix import Link, columns_of
from factaudit.audit.core.matrix import Response as Linked
from factaudit.audit.core.matrix import responses as linked_responses
from factaudit.engines.dfactscore.group import compare, number_groups
from factaudit.engines.records import Grouping, Made, Record, Support
from factaudit.engines.responses import Response
from factaudit.engines.tables import label_of
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]
#: The evaluators' names in the tables of facts.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"
_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")


@dataclass(frozen=True)
class Biography:
    """One biography as one verifier sees it: its matrix, links and figures (`factaudit.audit.core.biographies.score`).

    cells: the verdicts, a row per fact and candidate, the candidates of a fact together.
    """

    response: Response
    record: Record
    matrix: Linked
    links: tuple[Link, ...]
    figures: Row
    cells: tuple[Support, ...]

    @property
    def columns(self) -> np.ndarray:
        """Of each fact the column of its group's entity, -1 for none."""
        return columns_of(self.links, self.matrix.groups)

    def title(self, column: int) -> str | None:
        """The title of a column of the matrix."""
        return None if column < 0 else self.matrix.matrix.entities[column]

    def place(self, column: int) -> int:
        """The place among the candidates of a column of the matrix, whose columns are in the alphabet's order."""
        return [candidate.title for candidate in self.record.candidates].index(self.title(column))


def biographies(made: Made, judged: Judged, verifier: str, rule: str, gamma: float, narrow: float) -> list[Biography]:
    """The biographies that hold facts, in order, each linked by the verdicts of one verifier; judged: ``made``'s."""
    if verifier not in judged.evaluators:  # without any claim there is no verdict
        return []
    matrices = {
        one.key["response_id"]: one
        for one in linked_responses(judged, judged.evaluators.index(verifier))
        if len(one.rows)
    }
    supports = iter(_supports(made.verdicts[made.verdicts["evaluator"] == verifier]))
    found = []
    for response, record in zip(made.responses, made.records, strict=True):
        if record.decomposed.facts:
            matrix = matrices[response.response_id]
            figures, links = score(matrix, rule, gamma=gamma, narrow=narrow)
            cells = tuple(next(supports) for _ in record.cells)
            found.append(Biography(response, record, matrix, tuple(links), figures, cells))
    return found


def response_rows(made: Made, linked: Sequence[Biography], narrow: float, irrelevant: str) -> list[Row]:
    """A row per response, in order: figures, groups, what groupers did, facts."""
    by_id = {one.response.response_id: one for one in linked}
    rows = []
    for response, record in zip(made.responses, made.records, strict=True):
        one = by_id.get(response.response_id)
        told = record.decomposed
        rows.append(
            {
                "response_id": response.response_id,
                "name": response.topic,
                "system": response.system,
                "output": response.output,
                "abstained": told.abstained,
                **({"n_facts": 0, "merged": None, "category": None} if one is None else _figures(one)),
                "n_failed_sentences": sum(sentence.failed for sentence in told.sentences),
                "given_category": response.category,
                "candidates": [candidate.title for candidate in record.candidates if candidate.title is not None],
                "candidates_from": record.source,
                "n_candidates_left_out": record.n_left_out,
                "groups": [] if one is None else [_group(one, number, narrow) for number in range(len(one.links))],
                "grouping": {name: _told(found) for name, found in record.groupings.items()},
                "n_truncated_sentences": sum(sentence.truncated for sentence in told.sentences),
                "n_duplicates": told.n_duplicates,
                "n_cut": told.n_cut,
                "n_filtered": told.n_filtered,
                "sentences": [sentence.text for sentence in told.sentences],
                "facts": [] if one is None else _facts(one, irrelevant),
            }
        )
    return rows


def grouping_rows(made: Made, groupers: Sequence[str]) -> list[Row]:
    """What each grouper did to the facts, and how it compares with the given groups and with the first grouper."""
    spoke = [record for record in made.records if record.decomposed.facts]
    rows = []
    for name in groupers:
        found = [record.groupings[name] for record in spoke]
        row: Row = {
            "grouper": name,
            "n_responses": len(spoke),
            "n_failed": sum(one.groups is None for one in found),
            **{key: sum(getattr(one, key) for one in found) for key in _COUNTS},
        }
        truths = {
            "given": [_given_groups(record) for record in spoke],
            "first": [record.groupings[groupers[0]].groups for record in spoke],
        }
        for key, truth in truths.items():
            pairs = [(true, one.groups) for true, one in zip(truth, found, strict=True)]
            both = [compare(one, two) for one, two in pairs if one is not None and two is not None]
            row[f"n_compared_{key}"] = len(both)
            row[f"same_as_{key}"] = share([same for same, _ in both])
            row[f"agreement_{key}"] = share([agreed for _, agreed in both])
        rows.append(row)
    return rows


def evaluators_of(verifier: str, n_verifiers: int) -> tuple[str, str]:
    """What the tables of facts call FActScore and D-FActScore by a verifier."""
    more = "" if n_verifiers == 1 else f" ({verifier})"
    return FACTSCORE + more, DFACTSCORE + more


def fact_tables(
    made: Made, linked: dict[str, list[Biography]], dataset: str, irrelevant: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the two scores say of each fact, as claims and verdicts that audits of evaluators read.

    A row per fact; its document is that of the entity to which its group is linked by the first verifier. The
    evaluators are "FActScore" and "D-FActScore", with the verifier behind them where there are several.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    for verifier, mine in linked.items():
        names = evaluators_of(verifier, len(linked))
        for one in mine:
            by_any, columns = one.matrix.matrix.by_any(), one.columns
            for number, fact in enumerate(one.record.decomposed.facts):
                fact_id = f"{one.response.response_id}.{number}"
                if verifier == next(iter(linked)):
                    claims.append(
                        {
                            "claim_id": fact_id,
                            "dataset": dataset,
                            "system": one.response.system,
                            "response_id": one.response.response_id,
                            "doc_id": one.title(columns[number]),
                            "topic": one.response.topic,
                            "group": str(one.matrix.groups[number] + 1) if one.matrix.groups[number] >= 0 else None,
                            "entity": one.title(columns[number]),
                            "claim": fact.text,
                            "doc": _doc(one, number),
                            "label": label_of(fact, irrelevant),
                        }
                    )
                said = (_by_any(one, number, by_any[number]), _by_link(one, number, columns[number]))
                verdicts += [{"claim_id": fact_id, "evaluator": n, **told} for n, told in zip(names, said, strict=True)]
    if not claims:
        return made.claims, made.verdicts
    table = pd.DataFrame(verdicts).sort_values("evaluator", key=lambda names: names, kind="stable")
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(table)


def share(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return float(np.mean(values)) if values else None


# -------------------------------------------------------------------------------------------------------- its parts


def _figures(one: Biography) -> Row:
    row = {key: value for key, value in one.figures.items() if key != "categories"}
    row["n_unparsed"] = sum(cell.status == "unparsed" for cell in one.cells)
    if not one.matrix.matrix.entities:
        row["reason"] = one.record.candidates[0].reason
    return row


def _group(one: Biography, number: int, narrow: float) -> Row:
    link = one.links[number]
    return {
        "entity": None if link.entity is None else one.title(link.entity),
        "share": link.share,
        "second": None if link.second is None else one.title(link.second),
        "margin": link.margin,
        "narrow": link.is_narrow(narrow),
        "n_facts": int((one.matrix.groups == number).sum()),
    }


def _facts(one: Biography, irrelevant: str) -> list[Row]:
    matrix, groups = one.matrix.matrix, one.matrix.groups
    by_any, about, columns = matrix.by_any(), matrix.attributed(), one.columns
    by_link = matrix.by_entity(columns)
    return [
        {
            "text": fact.text,
            "sentence": fact.sentence,
            "group": None if groups[number] < 0 else int(groups[number]),
            "entity": one.title(columns[number]),
            "about": one.title(about[number]),
            "supported_by": [matrix.entities[e] for e in np.flatnonzero(matrix.prediction[number] == 1)],
            "factscore": _known(by_any[number]),
            "dfactscore": None if groups[number] < 0 else _known(by_link[number]),
            "label": label_of(fact, irrelevant),
            "given_group": fact.group,
            "given_entity": fact.entity,
        }
        for number, fact in enumerate(one.record.decomposed.facts)
    ]


def _by_any(one: Biography, number: int, prediction: int) -> Row:
    cells = _cells_of(one, number)
    scores = [cell.score for cell in cells if cell.score is not None]
    return {"score": max(scores) if scores else None, **_verdict(_known(prediction), cells)}


def _by_link(one: Biography, number: int, column: int) -> Row:
    if one.matrix.groups[number] < 0:
        grouping = next(iter(one.record.groupings.values()))
        return {"score": None, "prediction": None, "status": grouping.status}
    cells = _cells_of(one, number)
    if column < 0:
        return {"score": None, **_verdict(0 if one.matrix.matrix.entities else None, cells)}
    cell = cells[one.place(column)]
    return {"score": cell.score, **_verdict(cell.prediction, [cell])}


def _cells_of(one: Biography, number: int) -> tuple[Support, ...]:
    width = len(one.record.candidates)
    return one.cells[number * width : (number + 1) * width]


def _verdict(prediction: int | None, cells: Sequence[Support]) -> Row:
    """Prediction and status of a verdict that stands on these cells; on guessed replies, ``unparsed`` as they are."""
    if prediction is None:
        return {"prediction": None, "status": next(one for one in cells if one.prediction is None).status}
    alike = [one for one in cells if one.prediction == prediction]
    # One clear reply is enough to be supported; not to be supported takes them all.
    guessed = (all if prediction else any)(one.status == "unparsed" for one in alike) and bool(alike)
    return {"prediction": prediction, "status": "unparsed" if guessed else "ok"}


def _doc(one: Biography, number: int) -> str | None:
    column = int(one.columns[number])
    passages = None if column < 0 else one.record.doc(number, one.place(column))
    return None if passages is None else "\n\n".join(passages)


def _supports(verdicts: pd.DataFrame) -> list[Support]:
    columns = (verdicts["prediction"], verdicts["score"], verdicts["status"], verdicts["raw"])
    return [
        Support(
            None if pd.isna(prediction) else int(prediction),
            None if pd.isna(score) else float(score),
            status,
            raw if isinstance(raw, str) else None,
        )
        for prediction, score, status, raw in zip(*columns, strict=True)
    ]


def _given_groups(record: Record) -> tuple[int, ...] | None:
    marks = [fact.group for fact in record.decomposed.facts]
    return number_groups(marks) if all(mark is not None for mark in marks) else None


def _told(found: Grouping) -> Row:
    return {
        "groups": None if found.groups is None else list(found.groups),
        "status": found.status,
        **{key: getattr(found, key) for key in _COUNTS},
        "raw": found.raw,
    }


def _known(verdict: int) -> int | None:
    return None if verdict < 0 else int(verdict)
