"""VeriScore's results (Song et al. 2024, Yixiao-Song/VeriScore): ``model_output/verification_*.jsonl``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import Field

from factaudit.datasets.checked_facts import CheckedFact, CheckedResponse, convert_checked_responses
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.signature import hash_texts

EVALUATOR = "VeriScore"
#: Of both label sets: supported and unsupported; supported, contradicted and inconclusive.
_VERDICTS = {"supported": 1, "unsupported": 0, "contradicted": 0, "inconclusive": 0}
_NO_CLAIM = "No verifiable claim."


class VeriScoreVerdict(DatasetSourceRow):
    claim: str
    search_results: str | None = None
    verification_result: str | None = None


class VeriScoreResponse(DatasetSourceRow):
    question: str | None = None
    prompt_source: str | None = None
    response: str
    model: str | None = None
    abstained: bool = False
    all_claims: list[str] | None = None
    claim_verification_result: list[VeriScoreVerdict] | None = Field(default=None)


def convert_veriscore_results(sources: Sequence[Path]) -> Conversion:
    """A claim is a claim, ``prompt_source`` the data set, ``model`` the system, the search results the document.

    A claim without a verdict is unscored, and so is one whose verdict is none of VeriScore's words.
    """
    responses = []
    for path in expand_dataset_source_folders(sources, "verification_*.jsonl"):
        for one in read_dataset_source_rows(path, VeriScoreResponse):
            name = hash_texts(one.prompt_source or "", one.model or "", one.question or "", one.response)
            responses.append(
                CheckedResponse(
                    f"veriscore:{name}",
                    list(_list_veriscore_facts(one)),
                    one.prompt_source or "VeriScore",
                    one.model,
                    one.question or None,
                    one.response,
                    one.abstained,
                )
            )
    return convert_checked_responses(responses, EVALUATOR, "veriscore")


def _list_veriscore_facts(response: VeriScoreResponse) -> Iterator[CheckedFact]:
    verdicts = {one.claim: one for one in response.claim_verification_result or ()}
    for claim in dict.fromkeys([*(response.all_claims or ()), *verdicts]):
        if claim == _NO_CLAIM:
            continue
        found = verdicts.get(claim)
        said = None if found is None else (found.verification_result or "").strip().strip(".#").lower()
        prediction = None if said is None else _VERDICTS.get(said)
        status = "error" if found is None else "unparsed" if prediction is None else "ok"
        raw = None if found is None else found.verification_result
        doc = None if found is None else found.search_results or None
        yield CheckedFact(claim, prediction, status, doc=doc, raw=raw)
