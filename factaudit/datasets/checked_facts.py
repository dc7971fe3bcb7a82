"""What other factuality metrics say of their facts, as claims and verdicts: what their converters share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.datasets.source_files import Conversion
from factaudit.errors import InputError, Problem
from factaudit.text.display_text import format_count


@dataclass(frozen=True)
class CheckedFact:
    """One fact with its verdict: prediction 1, 0, or None under a status of its own. doc: the evidence shown."""

    text: str
    prediction: int | None
    status: str = "ok"
    sentence: str | None = None
    doc: str | None = None
    raw: str | None = None


@dataclass(frozen=True)
class CheckedResponse:
    """A response with the facts that a metric found in it; without facts it abstained, or said nothing to check."""

    response_id: str
    facts: Sequence[CheckedFact]
    dataset: str
    system: str | None = None
    topic: str | None = None
    text: str | None = None
    abstained: bool = False


def convert_checked_responses(
    responses: Sequence[CheckedResponse], evaluator: str, source: str, notes: Sequence[str] = ()
) -> Conversion:
    """Claims with a row per fact (``fact_id``, ``response``, ``sentence``), and the metric's verdicts of them."""
    claims: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    for one in responses:
        shared = {"dataset": one.dataset, "system": one.system, "response_id": one.response_id}
        shared |= {"topic": one.topic, "response": one.text}
        if not one.facts:
            claims.append(
                {"claim_id": f"{one.response_id}.-", **shared, "claim": None, "abstained": int(one.abstained)}
            )
        for number, fact in enumerate(one.facts):
            fact_id = f"{one.response_id}.{number}"
            claims.append(
                {"claim_id": fact_id, **shared, "fact_id": fact_id, "claim": fact.text}
                | {"sentence": fact.sentence, "doc": fact.doc}
            )
            verdict = {"claim_id": fact_id, "evaluator": evaluator, "prediction": fact.prediction}
            verdicts.append({**verdict, "status": fact.status, "raw": fact.raw})
    if not verdicts:
        raise InputError(source, [Problem("no response has a fact with a verdict")])
    lead = f"{format_count(len(verdicts), 'fact')} of {format_count(len(responses), 'response')}"
    return Conversion.from_rows(claims, verdicts, source=source, notes=[lead, *notes])
