"""VeriScore's results (Song et al. 2024, Yixiao-Song/VeriScore):
``model_output/verification_*.jsonl``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.checked_facts import make_fact_claims
from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import SourceRow, read_rows
from factaudit.signature import hash_texts

#: Of both label sets: supported and unsupported; supported, contradicted and inconclusive.
_VERDICTS = {"supported": 1, "unsupported": 0, "contradicted": 0, "inconclusive": 0}
_NO_CLAIM = "No verifiable claim."


class _Verdict(SourceRow):
    claim: str
    search_results: str | None = None
    verification_result: str | None = None


class _Response(SourceRow):
    question: str | None = None
    prompt_source: str | None = None
    response: str
    model: str | None = None
    abstained: bool = False
    all_claims: list[str] | None = None
    claim_verification_result: list[_Verdict] | None = None


def convert_veriscore_results(sources: Sequence[Path]) -> Conversion:
    """A claim is a claim, ``prompt_source`` the data set, ``model`` the system, the search results
    the document.

    A claim without a verdict is unscored, and so is one whose verdict is none of VeriScore's words.
    """
    claims: list[dict[str, Any]] = []
    for one in (row for path in sources for row in read_rows(path, _Response)):
        name = hash_texts(
            one.prompt_source or "", one.model or "", one.question or "", one.response
        )
        response = {
            "dataset": one.prompt_source or "VeriScore",
            "system": one.model,
            "response_id": f"veriscore:{name}",
            "topic": one.question or None,
            "response": one.response,
        }
        claims += make_fact_claims(response, "VeriScore", _list_facts(one), one.abstained)
    return Conversion.from_claims("veriscore", claims)


def _list_facts(response: _Response) -> Iterator[dict[str, Any]]:
    verdicts = {one.claim: one for one in response.claim_verification_result or ()}
    for claim in dict.fromkeys([*(response.all_claims or ()), *verdicts]):
        found = verdicts.get(claim)
        if claim == _NO_CLAIM:
            continue
        if found is None:
            yield {"claim": claim, "prediction": None, "status": "error"}
            continue
        prediction = _VERDICTS.get((found.verification_result or "").strip().strip(".#").lower())
        yield {
            "claim": claim,
            "doc": found.search_results or None,
            "prediction": prediction,
            "status": "unparsed" if prediction is None else "ok",
            "raw": found.verification_result,
        }
