"""RAGTruth: responses of six systems with hallucinated spans marked (Niu et al. 2024).

Files: ``dataset/response.jsonl`` and ``dataset/source_info.jsonl`` of ParticleMedia/RAGTruth. A file of responses that
bring their own ``passages`` (question answering) needs no source file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import AliasChoices, Field

from factaudit.datasets import registry
from factaudit.datasets.sources import Conversion, Row, expand, parse_rows, unit
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table, validate_claims
from factaudit.text.printable import count
from factaudit.text.sentences import sentence_spans


class Span(Row):
    start: int
    end: int


class Response(Row):
    response_id: str = Field(validation_alias=AliasChoices("id", "response_id"))
    source_id: str
    system: str = Field(validation_alias=AliasChoices("model", "system"))
    response: str
    labels: list[Span]
    split: str | None = None
    quality: str | None = None
    question: str | None = None
    passages: str | None = None


class SourceInfo(Row):
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    source: str | None = None
    source_info: str | dict[str, Any]

    @property
    def dataset(self) -> str:
        """The subset by the source's own name (VC's four), by the task where the file does not say the source."""
        if self.source is not None and (subset := registry.find(f"RAGTruth-{self.source}")) is not None:
            return subset.dataset
        return f"RAGTruth-{self.source or self.task_type}"

    @property
    def document(self) -> str:
        """The text that the response had to keep to: the article, the passages, or the record as JSON."""
        if isinstance(self.source_info, str):
            return self.source_info
        if self.task_type == "QA" and isinstance(self.source_info.get("passages"), str):
            return self.source_info["passages"]
        return json.dumps(self.source_info, ensure_ascii=False)

    @property
    def question(self) -> str | None:
        asked = self.source_info.get("question") if isinstance(self.source_info, dict) else None
        return asked if isinstance(asked, str) else None


def convert(
    sources: Sequence[Path], *, level: Literal["response", "sentence"] = "response", split: str | None = None
) -> Conversion:
    """Whole responses, or their sentences, as claims.

    The datasets are RAGTruth-CNN/DM, RAGTruth-News, RAGTruth-MARCO and RAGTruth-Yelp, by the sources' field ``source``
    (VC's four subsets); RAGTruth-Summary, RAGTruth-QA and RAGTruth-Data2txt, by the task, where it is missing.
    A response is attributable (1) when no span of it is marked; a sentence, when no marked span overlaps it by a
    character. Spans that RAGTruth calls ``implicit_true`` (true, but not in the source) count: they are unattributable.
    A response's ``claim_id`` is ``ragtruth:ID``, a sentence's ``ragtruth:ID:NUMBER``; ``question`` is an extra column.
    """
    found, notes = read_responses(sources)
    chosen = [item for item in found if split is None or item[0].split == split]
    if not chosen:
        names = ", ".join(sorted({str(response.split) for response, _ in found}))
        message = f"no response is left with split {split!r} (splits found: {names})"
        raise InputError(", ".join(map(str, sources)), [Problem(message)])
    if len(chosen) < len(found):
        notes.append(f"{count(len(found) - len(chosen), 'response')} left out: not of split {split!r}")
    rows: list[dict[str, object]] = []
    unplaced = 0
    for response, info in chosen:
        head = describe(response, info)
        if level == "response":
            rows.append({**head, "claim_id": claim_id(response.response_id), "label": int(not response.labels)})
            rows[-1]["claim"] = response.response
            continue
        sentences = sentence_spans(response.response)
        labels = sentence_labels(sentences, response.labels)
        unplaced += labels is None
        for number, (start, end) in enumerate(sentences):
            rows.append(
                {
                    **head,
                    "claim_id": f"{claim_id(response.response_id)}:{number}",
                    "claim": response.response[start:end],
                    "label": None if labels is None else labels[number],
                }
            )
    if unplaced:
        notes.append(
            f"{count(unplaced, 'response')} with a span that overlaps no sentence: which of its sentences are meant is "
            "unknown, so they have no label"
        )
    notes.append(f"{count(len(rows), 'claim')} from {count(len(chosen), 'response')}")
    return Conversion(validate_claims(pd.DataFrame(rows), source="ragtruth"), notes=notes)


def read_responses(sources: Iterable[Path]) -> tuple[list[tuple[Response, SourceInfo]], list[str]]:
    """The responses of all files with their sources, and notes. Responses without text are left out, and noted."""
    responses: list[tuple[Path, int, Response]] = []
    infos: dict[str, SourceInfo] = {}
    notes = []
    for path in expand(sources, "response.jsonl", "source_info.jsonl"):
        table = read_table(path)
        if "source_info" in table:
            infos |= {info.source_id: info for info in parse_rows(table, path, SourceInfo)}
            continue
        read = parse_rows(table, path, Response)
        positions = table.attrs.get("positions", range(1, len(read) + 1))
        blank = [row for row in read if not row.response.strip()]
        responses += [(path, at, row) for at, row in zip(positions, read, strict=True) if row.response.strip()]
        quality = Counter(row.quality for row in read if row.quality and row.quality != "good")
        notes.append(
            f"{path.name}: {count(len(read), 'response')}"
            + "".join(f", {number:,} marked {name}" for name, number in sorted(quality.items()))
        )
        if blank:
            notes.append(f"{path.name}: {count(len(blank), 'response')} left out: no text")
    paired = []
    problems: dict[Path, list[Problem]] = {}
    for path, at, response in responses:
        info = infos.get(response.source_id)
        if info is None and response.passages is not None:
            own = {"question": response.question, "passages": response.passages}
            info = SourceInfo(source_id=response.source_id, task_type="QA", source_info=own)
        if info is None:
            known = "one of source_info.jsonl's" if infos else "a source, but no source_info.jsonl is given"
            message = f"expected {known}, found {response.source_id!r}"
            problems.setdefault(path, []).append(Problem(message, at, "source_id", unit(path)))
        else:
            paired.append((response, info))
    for path, found in problems.items():
        raise InputError(str(path), found)
    if not paired:
        names = ", ".join(map(str, sources))
        raise InputError(names, [Problem("expected responses (response.jsonl), found none with text")])
    return paired, notes


def describe(response: Response, info: SourceInfo) -> dict[str, object]:
    """What all claims of a response share."""
    return {
        "dataset": info.dataset,
        "task": registry.task(info.dataset) or registry.task(f"RAGTruth-{info.task_type}"),
        "system": response.system,
        "response_id": response.response_id,
        "doc_id": response.source_id,
        "split": response.split,
        "doc": info.document,
        "question": info.question,
    }


def claim_id(response_id: str) -> str:
    """The id of a whole response as a claim, the same wherever RAGTruth's responses are read from."""
    return f"ragtruth:{response_id}"


def sentence_labels(sentences: Sequence[tuple[int, int]], marked: Sequence[Span]) -> list[int] | None:
    """1 or 0 per sentence (start, end); None where a marked span overlaps no sentence, so that it can't be placed."""
    hit = [[start < span.end and span.start < end for start, end in sentences] for span in marked]
    if not all(any(row) for row in hit):
        return None
    return [int(not any(row[number] for row in hit)) for number in range(len(sentences))]
