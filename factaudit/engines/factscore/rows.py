"""A row per response, for ``responses.jsonl``: its figures by each verifier, its sentences, facts and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from factaudit.engines.factscore.score import response_score
from factaudit.engines.pipeline import Made
from factaudit.engines.records import Record, Sentence

Row = dict[str, Any]


def response_rows(made: Made, names: Sequence[str], gamma: float) -> list[Row]:
    """A row per response, in order; its own figures are those of the first verifier."""
    told: dict[str, dict[str, Row]] = {name: {} for name in names}
    table = made.verdicts
    for name, claim_id, prediction, score, status in zip(
        table["evaluator"],
        table["claim_id"],
        table["prediction"].astype(object),
        table["score"],
        table["status"],
        strict=True,
    ):
        told[name][claim_id] = {
            "prediction": None if pd.isna(prediction) else int(prediction),
            "score": None if pd.isna(score) else float(score),
            "status": status,
        }
    rows = []
    for response, record in zip(made.responses, made.records, strict=True):
        ids = [f"{response.response_id}.{number}" for number in range(len(record.decomposed.facts))]
        page = record.candidates[0]
        figures = {}
        for name in names:
            given = [told[name][claim_id] for claim_id in ids]
            figures[name] = response_score([one["prediction"] for one in given], gamma)
            figures[name]["n_unparsed"] = sum(one["status"] == "unparsed" for one in given)
            if record.decomposed.abstained:
                figures[name]["reason"] = "abstained"
            elif figures[name]["n_unscored"] and page.reason:
                figures[name]["reason"] = page.reason
        row: Row = {
            "response_id": response.response_id,
            "system": response.system,
            "topic": response.topic,
            "output": response.output,
            "abstained": record.decomposed.abstained,
            "page": page.title,
            "matched": page.matched,
            **figures[names[0]],
            "n_failed_sentences": sum(one.failed for one in record.decomposed.sentences),
            "n_truncated_sentences": sum(one.truncated for one in record.decomposed.sentences),
            "n_duplicates": record.decomposed.n_duplicates,
            "n_cut": record.decomposed.n_cut,
            "calls": record.calls,
        }
        if response.human is not None:
            row["human"] = dict(zip(("n_supported", "n_not_supported", "n_irrelevant"), response.human, strict=True))
        row["evaluators"] = figures
        row["sentences"] = _sentences(record, ids, told)
        rows.append(row)
    return rows


def _sentences(record: Record, ids: Sequence[str], told: dict[str, dict[str, Row]]) -> list[Row]:
    facts: list[list[Row]] = [[] for _ in record.decomposed.sentences]
    for fact, claim_id in zip(record.decomposed.facts, ids, strict=True):
        verdicts = {name: given[claim_id] for name, given in told.items()}
        facts[fact.sentence or 0].append(
            {"text": fact.text, "label": fact.label, "claim_id": claim_id, "verdicts": verdicts}
        )
    return [_told(one) | {"facts": own} for one, own in zip(record.decomposed.sentences, facts, strict=True)]


def _told(sentence: Sentence) -> Row:
    row: Row = {"text": sentence.text, "status": sentence.status}
    if sentence.reply is not None:
        row["reply"] = sentence.reply
    return (
        row
        | ({"truncated": True} if sentence.truncated else {})
        | ({"error": sentence.error} if sentence.error else {})
    )
