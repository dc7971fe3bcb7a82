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

from pydantic import AliasChoices, Field

from factaudit.datasets.aggrefact_subsets import find_aggrefact_subset, find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    parse_dataset_source_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table
from factaudit.tables.schema import name_row_unit
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count
from factaudit.text.sentences import find_sentence_spans


class HallucinatedSpan(DatasetSourceRow):
    start: int
    end: int


class RagTruthResponse(DatasetSourceRow):
    response_id: str = Field(validation_alias=AliasChoices("id", "response_id"))
    source_id: str
    system: str = Field(validation_alias=AliasChoices("model", "system"))
    response: str
    labels: list[HallucinatedSpan]
    split: str | None = None
    quality: str | None = None
    question: str | None = None
    passages: str | None = None


class RagTruthSource(DatasetSourceRow):
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    source: str | None = None
    source_info: str | dict[str, Any]

    @property
    def dataset(self) -> str:
        """The subset by the source's own name (VC's four), by the task where the file does not say the source."""
        if self.source is not None and (subset := find_aggrefact_subset(f"RAGTruth-{self.source}")) is not None:
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


def convert_ragtruth(
    sources: Sequence[Path], *, level: Literal["response", "sentence"] = "response", split: str | None = None
) -> Conversion:
    """Whole responses, or their sentences, as claims.

    The datasets are RAGTruth-CNN/DM, RAGTruth-News, RAGTruth-MARCO and RAGTruth-Yelp, by the sources' field ``source``
    (VC's four subsets); RAGTruth-Summary, RAGTruth-QA and RAGTruth-Data2txt, by the task, where it is missing.
    A response is attributable (1) when no span of it is marked; a sentence, when no marked span overlaps it by a
    character. Spans that RAGTruth calls ``implicit_true`` (true, but not in the source) count: they are unattributable.
    A response's ``claim_id`` is ``ragtruth:ID``, a sentence's ``ragtruth:ID:NUMBER``; ``question`` is an extra column.
    """
    found, notes = read_ragtruth_responses(sources)
    chosen = [item for item in found if split is None or item[0].split == split]
    if not chosen:
        names = ", ".join(sorted({str(response.split) for response, _ in found}))
        message = f"no response is left with split {split!r} (splits found: {names})"
        raise InputError(", ".join(map(str, sources)), [Problem(message)])
    if len(chosen) < len(found):
        notes.append(f"{format_count(len(found) - len(chosen), 'response')} left out: not of split {split!r}")
    rows: list[dict[str, object]] = []
    unplaced = 0
    for response, info in chosen:
        head = describe_ragtruth_response(response, info)
        if level == "response":
            rows.append(
                {**head, "claim_id": ragtruth_claim_id(response.response_id), "label": int(not response.labels)}
            )
            rows[-1]["claim"] = response.response
            continue
        sentences = find_sentence_spans(response.response)
        labels = label_ragtruth_sentences(sentences, response.labels)
        unplaced += labels is None
        for number, (start, end) in enumerate(sentences):
            rows.append(
                {
                    **head,
                    "claim_id": f"{ragtruth_claim_id(response.response_id)}:{number}",
                    "claim": response.response[start:end],
                    "label": None if labels is None else labels[number],
                }
            )
    if unplaced:
        notes.append(
            f"{format_count(unplaced, 'response')} with a span that overlaps no sentence: which of its sentences are "
            "meant is unknown, so they have no label"
        )
    notes.append(f"{format_count(len(rows), 'claim')} from {format_count(len(chosen), 'response')}")
    return Conversion.from_rows(rows, source="ragtruth", notes=notes)


def read_ragtruth_responses(sources: Iterable[Path]) -> tuple[list[tuple[RagTruthResponse, RagTruthSource]], list[str]]:
    """The responses of all files with their sources, and notes. Responses without text are left out, and noted."""
    responses: list[tuple[Path, RagTruthResponse]] = []
    infos: dict[str, RagTruthSource] = {}
    notes = []
    for path in expand_dataset_source_folders(sources, "response.jsonl", "source_info.jsonl"):
        table = read_table(path)
        if "source_info" in table:
            infos |= {info.source_id: info for info in parse_dataset_source_rows(table, path, RagTruthSource)}
            continue
        read = parse_dataset_source_rows(table, path, RagTruthResponse)
        blank = [row for row in read if not row.response.strip()]
        responses += [(path, row) for row in read if row.response.strip()]
        quality = Counter(row.quality for row in read if row.quality and row.quality != "good")
        notes.append(
            f"{path.name}: {format_count(len(read), 'response')}"
            + "".join(f", {number:,} marked {name}" for name, number in sorted(quality.items()))
        )
        if blank:
            notes.append(f"{path.name}: {format_count(len(blank), 'response')} left out: no text")
    paired = []
    for path, response in responses:
        info = infos.get(response.source_id)
        if info is None and response.passages is not None:
            own = {"question": response.question, "passages": response.passages}
            info = RagTruthSource(source_id=response.source_id, task_type="QA", source_info=own)
        if info is None:
            known = "one of source_info.jsonl's" if infos else "a source, but no source_info.jsonl is given"
            message = f"expected {known}, found {response.source_id!r}"
            leave_out_unreadable_row(path, Problem(message, response.position, "source_id", name_row_unit(path)))
        else:
            paired.append((response, info))
    if not paired:
        names = ", ".join(map(str, sources))
        raise InputError(names, [Problem("expected responses (response.jsonl), found none with text")])
    return paired, notes


def describe_ragtruth_response(response: RagTruthResponse, source: RagTruthSource) -> dict[str, object]:
    """What all claims of a response share."""
    return {
        "dataset": source.dataset,
        "task": find_dataset_task(source.dataset) or find_dataset_task(f"RAGTruth-{source.task_type}"),
        "system": response.system,
        "response_id": response.response_id,
        "doc_id": response.source_id,
        "split": response.split,
        "doc": source.document,
        "question": source.question,
    }


def ragtruth_claim_id(response_id: str) -> str:
    """The id of a whole response as a claim, the same wherever RAGTruth's responses are read from."""
    return f"ragtruth:{response_id}"


def label_ragtruth_sentences(
    sentences: Sequence[tuple[int, int]], spans: Sequence[HallucinatedSpan]
) -> list[int] | None:
    """1 or 0 per sentence (start, end); None where a marked span overlaps no sentence, so that it can't be placed."""
    hit = [[start < span.end and span.start < end for start, end in sentences] for span in spans]
    if not all(any(row) for row in hit):
        return None
    return [int(not any(row[number] for row in hit)) for number in range(len(sentences))]
