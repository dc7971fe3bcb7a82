"""A row per biography, for ``responses.jsonl``, and the summary of a run: groups, links, scores, groupers compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from factaudit.audit.core.judged import MISSING
from factaudit.engines.dfactscore import score as scoring
from factaudit.engines.dfactscore.group import compare, given_groups, number_groups
from factaudit.engines.dfactscore.link import RULES, Link, entity_of_facts, link
from factaudit.engines.dfactscore.matrix import Matrix
from factaudit.engines.pipeline import Made
from factaudit.engines.records import Grouping, Record, Support
from factaudit.engines.responses import LABELS, Fact, Response
from factaudit.tables import validate_claims, validate_verdicts

if TYPE_CHECKING:
    from factaudit.engines.dfactscore.engine import DFactScorer

Row = dict[str, Any]
#: The evaluators' names in the tables of facts.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"

#: The figures that depend on groups and links.
_LINKING = (
    "n_answered",
    *(f"dfactscore{end}" for end in ("", "_low", "_high", "_min", "_max")),
    *(f"init_dfactscore{end}" for end in ("", "_low", "_high", "_min", "_max")),
    *(f"gap{end}" for end in ("", "_low", "_high")),
    *("n_biographies", "share_merged", "n_elsewhere", "n_narrow", "reason"),
)
_TOTALS = ("n_failed_sentences", "n_truncated_sentences", "n_unparsed", "n_duplicates", "n_cut")
_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")


class Linked:
    """One biography with its matrix by the first verifier, and its links."""

    def __init__(self, response: Response, record: Record, cells: Sequence[Support], scorer: DFactScorer) -> None:
        self.response, self.record, self.cells, self.scorer = response, record, cells, scorer
        titles = tuple(one.title for one in record.candidates if one.title is not None)
        shape = (len(record.decomposed.facts), len(titles))
        known = cells if titles else ()
        prediction = [MISSING if one.prediction is None else one.prediction for one in known]
        score = [np.nan if one.score is None else one.score for one in known]
        self.matrix = Matrix(
            tuple(fact.text for fact in record.decomposed.facts),
            titles,
            np.array(prediction, dtype=np.int8).reshape(shape),
            np.array(score, dtype=np.float64).reshape(shape),
        )
        self.groups = record.groupings[scorer.groupers[0]].groups
        self.links = self.linked(scorer.groupers[0], scorer.rule) or []

    def linked(self, grouper: str, rule: str, matrix: Matrix | None = None) -> list[Link] | None:
        """The links of one grouping by one rule; None where there are no groups."""
        groups = self.record.groupings[grouper].groups
        if groups is None:
            return None
        return link(matrix or self.matrix, groups, rule, self._given(groups) if rule == "given" else None)

    def figures(self, grouper: str, rule: str) -> Row:
        """The figures of one grouping and rule."""
        groups = self.record.groupings[grouper].groups
        best = None
        if groups is not None and (self.matrix.prediction == MISSING).any():
            best = self.linked(grouper, rule, self.matrix.at_best())
        told = scoring.score(
            self.matrix,
            groups,
            self.linked(grouper, rule) or [],
            best=best,
            gamma=self.scorer.gamma,
            narrow=self.scorer.narrow,
        )
        made = self.record.decomposed
        return {
            "system": self.response.system,
            "abstained": made.abstained,
            "n_failed_sentences": sum(one.failed for one in made.sentences),
            **told,
            "n_unparsed": sum(one.status == "unparsed" for one in self.cells),
        }

    def row(self) -> Row:
        """For ``responses.jsonl``."""
        made = self.record.decomposed
        titles = self.matrix.entities
        return {
            "response_id": self.response.response_id,
            "name": self.response.topic,
            "output": self.response.output,
            **self.figures(self.scorer.groupers[0], self.scorer.rule),
            **({"reason": self.record.candidates[0].reason} if made.facts and not titles else {}),
            "given_category": self.response.category,
            "candidates": list(titles),
            "candidates_from": self.record.source,
            "groups": [
                {
                    "entity": None if one.entity is None else titles[one.entity],
                    "share": one.share,
                    "second": None if one.second is None else titles[one.second],
                    "margin": one.margin,
                    "narrow": one.is_narrow(self.scorer.narrow),
                    "n_facts": sum(number == group for number in self.groups or ()),
                }
                for group, one in enumerate(self.links)
            ],
            "grouping": {name: _told(found) for name, found in self.record.groupings.items()},
            "n_truncated_sentences": sum(one.truncated for one in made.sentences),
            "n_duplicates": made.n_duplicates,
            "n_cut": made.n_cut,
            "sentences": [one.text for one in made.sentences],
            "facts": self._facts(),
        }

    def columns(self) -> np.ndarray | None:
        """Of each fact the column of its group's entity, -1 for none."""
        return None if self.groups is None else entity_of_facts(self.links, self.groups)

    def _facts(self) -> list[Row]:
        titles, linked = self.matrix.entities, self.columns()
        by_any, attributed = self.matrix.by_any(), self.matrix.attributed()
        by_link = None if linked is None else self.matrix.by_entity(linked)
        return [
            {
                "text": fact.text,
                "sentence": fact.sentence,
                "group": None if self.groups is None else self.groups[number],
                "entity": None if linked is None or linked[number] < 0 else titles[linked[number]],
                "about": None if attributed[number] < 0 else titles[attributed[number]],
                "supported_by": [titles[e] for e in np.flatnonzero(self.matrix.prediction[number] == 1)],
                "factscore": _or_none(by_any[number]),
                "dfactscore": None if by_link is None else _or_none(by_link[number]),
                "label": None if fact.label is None else LABELS[fact.label],
                "given_group": fact.group,
                "given_entity": fact.entity,
            }
            for number, fact in enumerate(self.record.decomposed.facts)
        ]

    def _given(self, groups: Sequence[int]) -> dict[int, str]:
        """Of each group the given entity that most of its facts have."""
        regrouped = [
            Fact(fact.text, group=str(number), entity=fact.entity)
            for fact, number in zip(self.record.decomposed.facts, groups, strict=True)
        ]
        pages = {name: one.title for one in self.record.candidates for name in one.named if one.title is not None}
        entities = given_groups(regrouped)[1].items()
        return {int(group or 0): pages.get(entity, entity) for group, entity in entities if entity is not None}


def linked(made: Made, scorer: DFactScorer) -> list[Linked]:
    """The biographies with what the first verifier said, in order."""
    own = made.verdicts[made.verdicts["evaluator"] == scorer.names[0]]
    supports = [
        Support(
            None if pd.isna(prediction) else int(prediction),
            None if pd.isna(score) else float(score),
            status,
            raw if isinstance(raw, str) else None,
        )
        for prediction, score, status, raw in zip(
            own["prediction"], own["score"], own["status"], own["raw"], strict=True
        )
    ]
    found, start = [], 0
    for response, record in zip(made.responses, made.records, strict=True):
        n = len(record.decomposed.facts) * len(record.candidates)
        found.append(Linked(response, record, supports[start : start + n], scorer))
        start += n
    return found


def response_rows(made: Made, scorer: DFactScorer) -> list[Row]:
    """A row per biography, in order."""
    return [one.row() for one in linked(made, scorer)]


def summarise(made: Made, rows: Sequence[Row], scorer: DFactScorer) -> Row:
    """Figures over all biographies, per system, of every linking rule, and of every grouper."""
    works = linked(made, scorer)
    options: Row = {"replicates": scorer.replicates, "seed": scorer.seed, "confidence": scorer.confidence}
    systems = list(dict.fromkeys(row["system"] for row in rows))
    rules = [rule for rule in RULES if rule != "given" or all(_has_entities(work) for work in works)]
    linking = []
    for grouper in scorer.groupers:
        for rule in rules:
            told = [work.figures(grouper, rule) for work in works]
            for system in systems:
                row = scoring.summarise([one for one in told if one["system"] == system], **options)
                linking.append(
                    {"grouper": grouper, "link": rule, "system": system} | {key: row[key] for key in _LINKING}
                )
    return {
        "grouper": scorer.groupers[0],
        "link": scorer.rule,
        **scoring.summarise(rows, **options),
        **{key: sum(row[key] for row in rows) for key in _TOTALS},
        "systems": [
            {"system": system}
            | scoring.summarise([row for row in rows if row["system"] == system], **options)
            | {"category_accuracy": _share(_right_category([row for row in rows if row["system"] == system]))}
            for system in systems
        ],
        "category_accuracy": _share(_right_category(rows)),
        "linking": linking,
        "grouping": grouping_rows(made, scorer.groupers),
    }


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
            row[f"same_as_{key}"] = _share([same for same, _ in both])
            row[f"agreement_{key}"] = _share([agreed for _, agreed in both])
        rows.append(row)
    return rows


def fact_tables(made: Made, scorer: DFactScorer) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What FActScore and D-FActScore say of each fact, as claims and verdicts that audits of evaluators read."""
    claims: list[Row] = []
    verdicts: list[Row] = []
    for work in linked(made, scorer):
        titles, columns, main = work.matrix.entities, work.columns(), work.record.groupings[scorer.groupers[0]]
        by_any = work.matrix.by_any()
        for number, fact in enumerate(work.record.decomposed.facts):
            column = None if columns is None or columns[number] < 0 else int(columns[number])
            title = None if column is None else titles[column]
            claim_id = f"{work.response.response_id}.{number}"
            passages = None if column is None else work.record.doc(number, column)
            claims.append(
                {
                    "claim_id": claim_id,
                    "dataset": scorer.dataset,
                    "system": work.response.system,
                    "response_id": work.response.response_id,
                    "doc_id": title,
                    "topic": work.response.topic,
                    "group": None if main.groups is None else str(main.groups[number] + 1),
                    "entity": title,
                    "claim": fact.text,
                    "doc": None if passages is None else "\n\n".join(passages),
                    "label": None if fact.label is None else LABELS[fact.label],
                }
            )
            width = max(1, len(titles))
            cells = work.cells[number * width : (number + 1) * width]
            known = [one.score for one in cells if one.score is not None]
            verdicts.append(
                {
                    "claim_id": claim_id,
                    "evaluator": FACTSCORE,
                    "score": max(known) if known else None,
                    **_verdict(_or_none(by_any[number]), cells),
                }
            )
            if main.groups is None:
                told: Row = {"score": None, "prediction": None, "status": main.status}
            elif column is None:
                told = {"score": None, **_verdict(0 if titles else None, cells)}
            else:
                told = {"score": cells[column].score, **_verdict(cells[column].prediction, [cells[column]])}
            verdicts.append({"claim_id": claim_id, "evaluator": DFACTSCORE, **told})
    if not claims:
        return made.claims, made.verdicts
    return validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts))


def _verdict(prediction: int | None, cells: Sequence[Support]) -> Row:
    """Prediction and status of a verdict that stands on these cells; on guessed replies, ``unparsed`` as they are."""
    if prediction is None:
        return {"prediction": None, "status": next(one for one in cells if one.prediction is None).status}
    alike = [one for one in cells if one.prediction == prediction]
    # One clear reply is enough to be supported; not to be supported takes them all.
    guessed = (all if prediction else any)(one.status == "unparsed" for one in alike) and bool(alike)
    return {"prediction": prediction, "status": "unparsed" if guessed else "ok"}


def _has_entities(work: Linked) -> bool:
    known = {fact.entity for fact in work.record.decomposed.facts} - {None}
    names = {name for one in work.record.candidates for name in (one.title, *one.named)}
    return not work.record.decomposed.facts or (bool(known) and known <= names)


def _given_groups(record: Record) -> tuple[int, ...] | None:
    marks = [fact.group for fact in record.decomposed.facts]
    return number_groups(marks) if all(mark is not None for mark in marks) else None


def _right_category(rows: Sequence[Row]) -> list[bool]:
    return [row["category"] == row["given_category"] for row in rows if row["given_category"] and row["category"]]


def _told(found: Grouping) -> Row:
    return {
        "groups": None if found.groups is None else list(found.groups),
        "status": found.status,
        **{key: getattr(found, key) for key in _COUNTS},
        "raw": found.raw,
    }


def _share(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _or_none(verdict: int) -> int | None:
    return None if verdict < 0 else int(verdict)
