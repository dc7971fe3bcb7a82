"""The citation judgements of ALCE (Gao et al. 2023; MF App. D): ``*.json.score`` files with
``autoais_log``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from factaudit.datasets.conversion import VERDICTS, Conversion, reads
from factaudit.datasets.merging_facts import convert_files_of_systems
from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem
from factaudit.signature import hash_texts
from factaudit.text.display_text import format_count
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
    citation_prec: float
    autoais_log: list[_Judgement]


@reads(
    "alce-citations",
    "ALCE's citation judgements: *.json.score files with autoais_log (Gao et al. 2023)",
    "factaudit convert alce-citations result/alce_score --out claims.parquet --verdicts"
    " verdicts.parquet",
    ["*.score"],
    options={"n_responses": "how many responses a file is about (default: its largest qid)"},
    marks=["citation_rec autoais_log"],
)
def convert_alce_citations(
    sources: Sequence[Path], *, n_responses: int | None = None
) -> Conversion:
    """Claims with a row per sentence, for the audit `citations`: ``cited`` says whether it cites
    anything.

    A file has the sentences that cite documents, and the output that each is from. The other
    sentences of these outputs cite nothing. A response that cites nothing at all, or no document
    that there is, is in no judgement: it has recall
    0. One without a sentence (an empty output) is left out by ALCE. How many there are of which
      follows from the file's
    own recall; they are rows without a text.

    n_responses: how many there are; by default the largest ``qid`` tells.

    A file of another form, or whose recall is not that of its judgements, is left out
    (`leave_out_unreadable_file`); `InputError` where no other is left.
    """

    def read(path: Path, system: str) -> tuple[list[Row], list[str]]:
        return _read_file(path, system, n_responses or 0)

    return convert_files_of_systems("alce-citations", sources, read)


def _read_file(path: Path, system: str, n_responses: int) -> tuple[list[Row], list[str]]:
    """The claims of one file, and a note on it."""
    content: _File = read_json(path, _File)
    by_response: dict[int, list[_Judgement]] = {}
    for one in content.autoais_log:
        by_response.setdefault(one.qid, []).append(one)
    total = max(n_responses, max(by_response, default=-1) + 1)
    prefix = hash_texts(path.name, length=6)
    claims: list[Row] = []
    recall_sum = 0.0
    for qid, judged in by_response.items():
        n_sentences = max(len(split_sentences(judged[0].output)), len(judged))
        recall_sum += sum(one.model_output for one in judged) / n_sentences
        claims += _list_sentences(f"{prefix}-{qid:03d}", judged, n_sentences)
    n_counted = _count_responses(path, content, recall_sum, len(by_response), total)
    for number in range(total - len(by_response)):
        response = f"{prefix}-silent-{number}"
        if number < n_counted - len(by_response):
            claims += _list_sentences(response, [], 1)
        else:
            claims.append(
                {"response_id": response, "claim_id": response, "claim": None, "abstained": 1}
            )
    note = (
        f"{system}, {format_count(len(content.autoais_log), 'judgement')} of"
        f" {format_count(len(by_response), 'response')} of {total:,}; {total - n_counted:,} left"
        f" out as empty. The parts of its precision ({content.citation_prec:.2f}) are not in it"
    )
    return [{"dataset": "ALCE citations", "system": system, **claim} for claim in claims], [note]


def _list_sentences(response: str, judgements: Sequence[_Judgement], n_sentences: int) -> list[Row]:
    """The sentences of a response: those with a judgement, then those that cite nothing."""
    rows: list[Row] = []
    for number in range(n_sentences):
        identity = f"{response}.{number}"
        row: Row = {"response_id": response, "claim_id": identity, "fact_id": identity}
        if number < len(judgements):
            one = judgements[number]
            row |= {"claim": one.claim, "doc": "\n".join(one.passage) or None, "cited": one.cited}
            rows.append(
                row | {VERDICTS: [{"evaluator": EVALUATOR, "prediction": one.model_output}]}
            )
        else:
            rows.append(row | {"claim": "(a sentence that cites nothing)", "cited": None})
    return rows


def _count_responses(
    path: Path, content: _File, recall_sum: float, n_judged: int, n_responses: int
) -> int:
    """How many responses the file's recall is a mean over: those that are not empty."""
    recall = content.citation_rec / 100
    if not recall_sum:
        return n_responses
    found = recall_sum / recall if recall else 0.0
    if abs(found - round(found)) > 1e-4 * found or not n_judged <= round(found) <= n_responses:
        low, high = (100 * recall_sum / number for number in (n_responses, n_judged))
        allowed = (
            f"{low:.4f}"
            if low == high
            else f"{low:.4f} to {high:.4f}, by how many responses are empty"
        )
        message = f"expected what the judgements give: {allowed}; found {content.citation_rec:.4f}"
        raise InputError(str(path), [Problem(message, column="citation_rec")])
    return round(found)
