"""The citation judgements of ALCE (Gao et al. 2023; MF App. D): ``*.json.score`` files with ``autoais_log``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from factaudit.datasets.merging_facts import name_merging_facts_systems
from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders, read_dataset_source_json
from factaudit.errors import InputError, Problem
from factaudit.signature import hash_texts
from factaudit.tables.unreadable_rows import leave_out_unreadable_file
from factaudit.text.display_text import format_count
from factaudit.text.sentences import split_sentences

DATASET = "ALCE citations"
#: The NLI model that judges (TRUE, Honovich et al. 2022).
EVALUATOR = "AutoAIS"

Row = dict[str, Any]


class _AlceCitationJudgement(BaseModel):
    qid: int = Field(ge=0)
    output: str = Field(pattern=r"\S")
    claim: str
    passage: list[str] = Field(default_factory=list)
    model_output: Literal[0, 1]


class _AlceScoreFile(BaseModel):
    citation_rec: float
    citation_prec: float
    autoais_log: list[_AlceCitationJudgement]


def convert_alce_citations(sources: Sequence[Path], *, n_responses: int | None = None) -> Conversion:
    """Claims with a row per sentence, for the audit `citations`: ``cited`` says whether it cites anything.

    A file has the sentences that cite documents, and the output that each is from. The other sentences of these outputs
    cite nothing. A response that cites nothing at all, or no document that there is, is in no judgement: it has recall
    0. One without a sentence (an empty output) is left out by ALCE. How many there are of which follows from the file's
    own recall; they are rows without a text.

    n_responses: how many there are; by default the largest ``qid`` tells.

    A file of another form, or whose recall is not that of its judgements, is left out (`leave_out_unreadable_file`);
    `InputError` where no other is left.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    notes = []
    failed: list[InputError] = []
    paths = list(expand_dataset_source_folders(sources, "*.score"))
    for path, system in zip(paths, name_merging_facts_systems(paths), strict=True):
        try:
            rows, judgements, note = _read_alce_citations_file(path, system, n_responses)
        except InputError as error:
            leave_out_unreadable_file(path, error)
            failed.append(error)
            continue
        claims += rows
        verdicts += judgements
        notes.append(note)
    if not verdicts:
        raise failed[0] if failed else InputError(", ".join(map(str, sources)), [Problem("no judgement")])
    return Conversion.from_rows(claims, verdicts, source="alce-citations", notes=notes)


def _read_alce_citations_file(path: Path, system: str, n_responses: int | None) -> tuple[list[Row], list[Row], str]:
    """The claims and verdicts of one file, and a note on it."""
    claims: list[Row] = []
    verdicts: list[Row] = []
    content: _AlceScoreFile = read_dataset_source_json(path, _AlceScoreFile)
    by_response: dict[int, list[_AlceCitationJudgement]] = {}
    for one in content.autoais_log:
        by_response.setdefault(one.qid, []).append(one)
    total = max(n_responses or 0, max(by_response, default=-1) + 1)
    shared = {"dataset": DATASET, "system": system}
    summed = 0.0
    for qid, judged in by_response.items():
        response = shared | {"response_id": f"{hash_texts(path.name, length=6)}-{qid:03d}"}
        n_sentences = max(len(split_sentences(judged[0].output)), len(judged))
        summed += sum(one.model_output for one in judged) / n_sentences
        for row, prediction in _list_alce_sentences(response, judged, n_sentences):
            claims.append(row)
            if prediction is not None:
                verdicts.append({"claim_id": row["claim_id"], "evaluator": EVALUATOR, "prediction": prediction})
    counted = _count_alce_recall_responses(path, content, summed, len(by_response), total)
    for number in range(total - len(by_response)):
        response = shared | {"response_id": f"{hash_texts(path.name, length=6)}-silent-{number}"}
        if number < counted - len(by_response):
            claims += [row for row, _ in _list_alce_sentences(response, [], 1)]
        else:
            claims.append(response | {"claim_id": response["response_id"], "claim": None, "abstained": 1})
    note = (
        f"{path.name}: {system}, {format_count(len(content.autoais_log), 'judgement')} of "
        f"{format_count(len(by_response), 'response')} of {total:,}; {total - counted:,} left out as empty. "
        f"The parts of its precision ({content.citation_prec:.2f}) are not in it"
    )
    return claims, verdicts, note


def _list_alce_sentences(
    response: Row, judgements: Sequence[_AlceCitationJudgement], n_sentences: int
) -> Iterator[tuple[Row, int | None]]:
    """The sentences of a response with their judgement; None for those that cite nothing."""
    for number in range(n_sentences):
        identity = f"{response['response_id']}.{number}"
        row = response | {"claim_id": identity, "fact_id": identity}
        if number < len(judgements):
            one = judgements[number]
            doc = "\n".join(one.passage) or None
            yield row | {"claim": one.claim, "doc": doc, "cited": _format_cited_documents(one)}, one.model_output
        else:
            yield row | {"claim": "(a sentence that cites nothing)", "doc": None, "cited": None}, None


def _format_cited_documents(judgement: _AlceCitationJudgement) -> str:
    """The documents that a sentence cites, by their places among those that it was judged by."""
    n = sum(passage.count("Title: ") for passage in judgement.passage)
    return ",".join(str(number + 1) for number in range(max(1, n)))


def _count_alce_recall_responses(
    path: Path, content: _AlceScoreFile, recall_sum: float, n_judged: int, n_responses: int
) -> int:
    """How many responses the file's recall is a mean over: those that are not empty."""
    recall = content.citation_rec / 100
    if not recall_sum:
        return n_responses
    found = recall_sum / recall if recall else 0.0
    if abs(found - round(found)) > 1e-4 * found or not n_judged <= round(found) <= n_responses:
        low, high = (100 * recall_sum / number for number in (n_responses, n_judged))
        allowed = f"{low:.4f}" if low == high else f"{low:.4f} to {high:.4f}, by how many responses are empty"
        message = f"expected what the judgements give: {allowed}; found {content.citation_rec:.4f}"
        raise InputError(str(path), [Problem(message, column="citation_rec")])
    return round(found)
