"""The citation judgements of ALCE (Gao et al. 2023; MF App. D): ``*.json.score`` files with
``autoais_log``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from factaudit.datasets.conversion import VERDICTS, Conversion
from factaudit.datasets.merging_facts import convert_files_of_systems
from factaudit.datasets.source_files import describe_wrong_file, read_json
from factaudit.signature import hash_texts
from factaudit.text.sentences import split_sentences

#: The NLI model that judges (TRUE, Honovich et al. 2022).
EVALUATOR = "AutoAIS"

Row = dict[str, Any]


class _Judgement(BaseModel):
    qid: int = Field(ge=0)
    output: str = Field(pattern=r"\S")
    claim: str
    passage: list[str] = Field(default_factory=list)
    model_output: Literal[0, 1]

    @property
    def cited(self) -> str:
        """The documents that a sentence cites, by their places among those that it was judged
        by."""
        n_documents = sum(passage.count("Title: ") for passage in self.passage)
        return ",".join(str(number) for number in range(1, max(1, n_documents) + 1))


class _File(BaseModel):
    citation_rec: float
    autoais_log: list[_Judgement]


def convert_alce_citations(sources: Sequence[Path]) -> Conversion:
    """Claims with a row per sentence, for the audit `citations`: ``cited`` says whether it cites
    anything.

    A file has the sentences that cite documents, and the output that each is from. The other
    sentences of these outputs cite nothing. A response that cites nothing at all, or no document
    that there is, is in no judgement: it has recall
    0. One without a sentence (an empty output) is left out by ALCE. How many there are of which
      follows from the file's
    own recall; they are rows without a text.

    Raises `InputError` for a file of another form, or whose recall is not that of its judgements.
    """
    return convert_files_of_systems("alce-citations", sources, _read_file)


def _read_file(path: Path, system: str) -> tuple[list[Row], str]:
    """The claims of one file, and a note on it."""
    content: _File = read_json(path, _File)
    by_response: dict[int, list[_Judgement]] = {}
    for one in content.autoais_log:
        by_response.setdefault(one.qid, []).append(one)
    prefix = hash_texts(path.name, length=6)
    claims: list[Row] = []
    recall_sum = 0.0
    for qid, judged in by_response.items():
        n_sentences = max(len(split_sentences(judged[0].output)), len(judged))
        recall_sum += sum(one.model_output for one in judged) / n_sentences
        claims += _list_sentences(f"{prefix}-{qid:03d}", judged, n_sentences)
    # The file's recall is a mean over the responses that are not empty.
    n_all = n_counted = max(by_response, default=-1) + 1
    if recall_sum or content.citation_rec:
        found = recall_sum / (content.citation_rec / 100 or 1)
        n_counted = round(found)
        if abs(found - n_counted) > 1e-4 * found or not len(by_response) <= n_counted <= n_all:
            message = f"the judgements do not give this recall: {content.citation_rec:.4f}"
            raise describe_wrong_file(path, message, column="citation_rec")
    for number in range(n_all - len(by_response)):
        response = f"{prefix}-silent-{number}"
        if number < n_counted - len(by_response):
            claims += _list_sentences(response, [], 1)
        else:
            nothing = {"claim_id": response, "claim": None, "abstained": 1}
            claims.append({"response_id": response, **nothing})
    note = f"{system}, {len(by_response):,} of {n_all:,} responses cite documents"
    return [{"dataset": "ALCE citations", "system": system, **claim} for claim in claims], note


def _list_sentences(response: str, judgements: Sequence[_Judgement], n_sentences: int) -> list[Row]:
    """The sentences of a response: those with a judgement, then those that cite nothing."""
    rows: list[Row] = []
    for number in range(n_sentences):
        identity = f"{response}.{number}"
        row: Row = {"response_id": response, "claim_id": identity, "fact_id": identity}
        row |= {"claim": "(a sentence that cites nothing)", "cited": None}
        if number < len(judgements):
            one = judgements[number]
            row |= {"claim": one.claim, "doc": "\n".join(one.passage) or None, "cited": one.cited}
            row[VERDICTS] = [{"evaluator": EVALUATOR, "prediction": one.model_output}]
        rows.append(row)
    return rows
