"""The citation judgements of ALCE (Gao et al. 2023; MF App. D): ``*.json.score`` files with ``autoais_log``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel, Field

from factaudit.datasets.merging_facts import systems_of
from factaudit.datasets.sources import Conversion, expand, read_json
from factaudit.errors import InputError, Problem
from factaudit.signature import digest
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count
from factaudit.text.sentences import split_sentences

DATASET = "ALCE citations"
#: The NLI model that judges (TRUE, Honovich et al. 2022).
EVALUATOR = "AutoAIS"

Row = dict[str, Any]


class _Logged(BaseModel):
    qid: int = Field(ge=0)
    output: str = Field(pattern=r"\S")
    claim: str
    passage: list[str] = Field(default_factory=list)
    model_output: Literal[0, 1]


class _Scores(BaseModel):
    citation_rec: float
    citation_prec: float
    autoais_log: list[_Logged]


def convert(sources: Sequence[Path], *, n_responses: int | None = None) -> Conversion:
    """Claims with a row per sentence, for the audit `citations`: ``cited`` says whether it cites anything.

    A file has the sentences that cite documents, and the output that each is from. The other sentences of these outputs
    cite nothing. A response that cites nothing at all, or no document that there is, is in no judgement: it has recall
    0. One without a sentence (an empty output) is left out by ALCE. How many there are of which follows from the file's
    own recall; they are rows without a text.

    n_responses: how many there are; by default the largest ``qid`` tells.

    Raises `InputError` where a file is of another form, or its recall is not that of its judgements.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    notes = []
    paths = list(expand(sources, "*.score"))
    for path, system in zip(paths, systems_of(paths), strict=True):
        content: _Scores = read_json(path, _Scores)
        by_response: dict[int, list[_Logged]] = {}
        for one in content.autoais_log:
            by_response.setdefault(one.qid, []).append(one)
        total = max(n_responses or 0, max(by_response, default=-1) + 1)
        shared = {"dataset": DATASET, "system": system}
        summed = 0.0
        for qid, judged in by_response.items():
            response = shared | {"response_id": f"{digest(path.name, length=6)}-{qid:03d}"}
            n_sentences = max(len(split_sentences(judged[0].output)), len(judged))
            summed += sum(one.model_output for one in judged) / n_sentences
            for row, prediction in _sentences(response, judged, n_sentences):
                claims.append(row)
                if prediction is not None:
                    verdicts.append({"claim_id": row["claim_id"], "evaluator": EVALUATOR, "prediction": prediction})
        counted = _counted(path, content, summed, len(by_response), total)
        for number in range(total - len(by_response)):
            response = shared | {"response_id": f"{digest(path.name, length=6)}-silent-{number}"}
            if number < counted - len(by_response):
                claims += [row for row, _ in _sentences(response, [], 1)]
            else:
                claims.append(response | {"claim_id": response["response_id"], "claim": None, "abstained": 1})
        notes.append(
            f"{path.name}: {shared['system']}, {count(len(content.autoais_log), 'judgement')} of "
            f"{count(len(by_response), 'response')} of {total:,}; {total - counted:,} left out as empty. What its "
            f"precision ({content.citation_prec:.2f}) was made of is not in it"
        )
    if not verdicts:
        raise InputError(", ".join(map(str, sources)), [Problem("no judgement")])
    return Conversion(
        validate_claims(pd.DataFrame(claims), source="alce-citations"),
        validate_verdicts(pd.DataFrame(verdicts), source="alce-citations"),
        notes,
    )


def _sentences(response: Row, judged: Sequence[_Logged], n: int) -> Iterator[tuple[Row, int | None]]:
    """The sentences of a response with their judgement; None for those that cite nothing."""
    for number in range(n):
        identity = f"{response['response_id']}.{number}"
        row = response | {"claim_id": identity, "fact_id": identity}
        if number < len(judged):
            one = judged[number]
            doc = "\n".join(one.passage) or None
            yield row | {"claim": one.claim, "doc": doc, "cited": _cited(one)}, one.model_output
        else:
            yield row | {"claim": "(a sentence that cites nothing)", "doc": None, "cited": None}, None


def _cited(one: _Logged) -> str:
    """The documents that a sentence cites, by their places among those that it was judged by."""
    n = sum(passage.count("Title: ") for passage in one.passage)
    return ",".join(str(number + 1) for number in range(max(1, n)))


def _counted(path: Path, content: _Scores, summed: float, judged: int, total: int) -> int:
    """How many responses the file's recall is a mean over: those that are not empty."""
    told = content.citation_rec / 100
    if not summed:
        return total
    found = summed / told if told else 0.0
    if abs(found - round(found)) > 1e-4 * found or not judged <= round(found) <= total:
        message = (
            f"citation_rec is {content.citation_rec:.4f}, but the judgements give at most {100 * summed / total:.4f}"
        )
        raise InputError(str(path), [Problem(message, column="citation_rec")])
    return round(found)
