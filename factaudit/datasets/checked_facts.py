"""What other factuality metrics say of their facts, as claims with a verdict each: what their
readers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from factaudit.datasets.conversion import VERDICTS

#: Of a fact, what is its verdict's.
_OF_VERDICTS = ("prediction", "status", "raw")


def make_fact_claims(
    response: Mapping[str, Any],
    evaluator: str,
    facts: Iterable[Mapping[str, Any]],
    abstained: bool = False,
) -> Iterator[dict[str, Any]]:
    """A claim for each fact of a response (``response_id``, and what all its claims share); one
    without a text where the metric found none, since the response abstained or said nothing to
    check.

    A fact has ``claim``, ``prediction`` (1, 0, None), ``status`` and, where known, ``raw``,
    ``doc``, ``sentence``.
    """
    number = -1
    for number, fact in enumerate(facts):
        fact_id = f"{response['response_id']}.{number}"
        verdict = {"evaluator": evaluator} | {key: fact.get(key) for key in _OF_VERDICTS}
        own = {key: value for key, value in fact.items() if key not in _OF_VERDICTS}
        yield {"claim_id": fact_id, "fact_id": fact_id, **response, **own, VERDICTS: [verdict]}
    if number < 0:
        lone = {
            "claim_id": f"{response['response_id']}.-",
            "claim": None,
            "abstained": int(abstained),
        }
        yield {**lone, **response}
