"""RAGTruth: responses of six systems with hallucinated spans marked (Niu et al. 2024).

Files: ``dataset/response.jsonl`` and ``dataset/source_info.jsonl`` of ParticleMedia/RAGTruth. A
file of responses that bring their own ``passages`` (question answering) needs no source file.

Scores of detectors, P(hallucinated), on its responses: JSONL of {response_id, source_id, task_type,
system, hallucinated, scores: {detector: P}}, which the demo ships. It has no texts: RAGTruth's
files have them (option ``text``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field

from factaudit.datasets.aggrefact_subsets import find_aggrefact_subset, find_dataset_task
from factaudit.datasets.conversion import VERDICTS, Conversion, expand_folders
from factaudit.datasets.source_files import (
    BinaryLabel,
    PathsOption,
    Probability,
    SourceRow,
    describe_wrong_file,
    parse_rows,
    read_rows,
)
from factaudit.errors import Problem
from factaudit.tables import read_table
from factaudit.tables.schema import make_text_placeholder, name_row_unit
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count
from factaudit.text.sentences import find_sentence_spans

FILES = ["response.jsonl", "source_info.jsonl"]
Task = Literal["QA", "Summary", "Data2txt"]


class _Span(SourceRow):
    start: int
    end: int


class _Response(SourceRow):
    response_id: str = Field(validation_alias=AliasChoices("id", "response_id"))
    source_id: str
    system: str = Field(validation_alias=AliasChoices("model", "system"))
    response: str
    labels: list[_Span]
    split: str | None = None
    question: str | None = None
    passages: str | None = None


class _Source(SourceRow):
    source_id: str
    task_type: Task
    source: str | None = None
    source_info: str | dict[str, Any]


class _ScoredResponse(SourceRow):
    response_id: str
    source_id: str
    task_type: Task
    system: str
    hallucinated: BinaryLabel
    scores: dict[str, Probability | None]


def convert_ragtruth(
    sources: Sequence[Path], *, level: Literal["response", "sentence"] = "response"
) -> Conversion:
    """Whole responses, or their sentences, as claims.

    The datasets are RAGTruth-CNN/DM, RAGTruth-News, RAGTruth-MARCO and RAGTruth-Yelp, by the
    sources' field ``source`` (VC's four subsets); RAGTruth-Summary, RAGTruth-QA and
    RAGTruth-Data2txt, by the task, where it is missing.
    A response is attributable (1) when no span of it is marked; a sentence, when no marked span
    overlaps it by a character. Spans that RAGTruth calls ``implicit_true`` (true, but not in the
    source) count: they are unattributable. Where a span overlaps no sentence it is unknown which
    are meant, and the response's sentences have no label.
    A response's ``claim_id`` is ``ragtruth:ID``, a sentence's ``ragtruth:ID:NUMBER``; ``question``
    is an extra column.
    """
    claims: list[dict[str, Any]] = []
    for response, shared in _read_responses(sources):
        text, claim_id = response.response, f"ragtruth:{response.response_id}"
        if level == "response":
            label = int(not response.labels)
            claims.append(shared | {"claim_id": claim_id, "claim": text, "label": label})
            continue
        sentences = find_sentence_spans(text)
        labels = _label_sentences(sentences, response.labels)
        for number, ((start, end), of_sentence) in enumerate(zip(sentences, labels, strict=True)):
            own = {"claim": text[start:end], "label": of_sentence}
            claims.append(shared | {"claim_id": f"{claim_id}:{number}", **own})
    return Conversion.from_claims("ragtruth", claims)


def _read_responses(paths: Sequence[Path]) -> list[tuple[_Response, dict[str, Any]]]:
    """The responses of all files that have a text and a source, with what their claims share."""
    responses: list[tuple[Path, _Response]] = []
    infos: dict[str, _Source] = {}
    for path in paths:
        table = read_table(path)
        if "source_info" in table:
            infos |= {info.source_id: info for info in parse_rows(table, path, _Source)}
        else:
            responses += [(path, row) for row in parse_rows(table, path, _Response)]
    found = []
    for path, response in responses:
        info = infos.get(response.source_id)
        if info is None and response.passages is not None:
            own = {"question": response.question, "passages": response.passages}
            info = _Source(source_id=response.source_id, task_type="QA", source_info=own)
        if info is not None and response.response.strip():
            found.append((response, _make_shared_claim(response, info)))
            continue
        column, message = "response", "no text"
        if info is None:
            column, message = "source_id", f"{response.source_id!r} is not in source_info.jsonl"
        problem = Problem(message, response.position, column, name_row_unit(path))
        leave_out_unreadable_row(path, problem)
    if not found:
        message = "expected responses with a text (response.jsonl) and their source_info.jsonl"
        raise describe_wrong_file(paths, message)
    return found


def _make_shared_claim(response: _Response, source: _Source) -> dict[str, Any]:
    """What all claims of a response share; its document is the article, the passages, or the record
    as JSON.

    The data set is named by the source's own name (VC's four), by the task where the file does not
    say the source.
    """
    info = source.source_info
    record: dict[str, Any] = info if isinstance(info, dict) else {}
    doc = info if isinstance(info, str) else json.dumps(info, ensure_ascii=False)
    if source.task_type == "QA":
        doc = record.get("passages", doc)
    name = f"RAGTruth-{source.source or source.task_type}"
    subset = find_aggrefact_subset(name)
    return {
        "dataset": name if subset is None else subset.dataset,
        "task": find_dataset_task(name) or find_dataset_task(f"RAGTruth-{source.task_type}"),
        "system": response.system,
        "response_id": response.response_id,
        "doc_id": response.source_id,
        "split": response.split,
        "doc": doc,
        "question": record.get("question"),
    }


def _label_sentences(
    sentences: Sequence[tuple[int, int]], spans: Sequence[_Span]
) -> list[int | None]:
    """1 or 0 per sentence (start, end); None where a marked span overlaps no sentence, so that it
    can't be placed."""
    labels: list[int | None] = [1] * len(sentences)
    for span in spans:
        hit = [
            at for at, (start, end) in enumerate(sentences) if start < span.end and span.start < end
        ]
        if not hit:
            return [None] * len(sentences)
        for at in hit:
            labels[at] = 0
    return labels


def convert_ragtruth_scores(sources: Sequence[Path], *, text: PathsOption = ()) -> Conversion:
    """Responses as claims (1 where not hallucinated), and one verdict per detector and response.

    ``claim_id`` is ``ragtruth:ID``, so that the verdicts also fit the claims that ``ragtruth``
    makes. A detector without a score for a response has no verdict on it: the claim is unscored.
    """
    found = _read_responses(expand_folders(text, FILES)) if text else []
    texts = {
        response.response_id: {"claim": response.response, "doc": shared["doc"]}
        for response, shared in found
    }
    rows = [row for path in sources for row in read_rows(path, _ScoredResponse)]
    claims: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        dataset = f"RAGTruth-{row.task_type}"
        claim = {
            "claim_id": f"ragtruth:{row.response_id}",
            "dataset": dataset,
            "system": row.system,
            "response_id": row.response_id,
            "doc_id": row.source_id,
            "claim": make_text_placeholder(dataset, number),
            "label": 1 - row.hallucinated,
            VERDICTS: [
                {"evaluator": name, "score": 1 - score}
                for name, score in row.scores.items()
                if score is not None
            ],
        }
        claims.append(claim | texts.get(row.response_id, {}))
    notes = []
    if texts and (n_without := sum(row.response_id not in texts for row in rows)):
        notes = [f"{format_count(n_without, 'claim')} with scores but without a text"]
    return Conversion.from_claims("ragtruth-scores", claims, notes)
