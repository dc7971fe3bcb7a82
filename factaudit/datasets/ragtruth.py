"""RAGTruth: responses of six systems with hallucinated spans marked (Niu et al. 2024).

Files: ``dataset/response.jsonl`` and ``dataset/source_info.jsonl`` of ParticleMedia/RAGTruth. A file of responses that
bring their own ``passages`` (question answering) needs no source file.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, Field

from factaudit.datasets.aggrefact_subsets import find_aggrefact_subset, find_dataset_task
from factaudit.datasets.conversion import Conversion, reads
from factaudit.datasets.source_files import SourceRow, parse_rows
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table
from factaudit.tables.schema import name_row_unit
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count
from factaudit.text.sentences import find_sentence_spans

FILES = ["response.jsonl", "source_info.jsonl"]
Task = Literal["QA", "Summary", "Data2txt"]


class _Span(SourceRow):
    start: int
    end: int


class RagTruthResponse(SourceRow):
    response_id: str = Field(validation_alias=AliasChoices("id", "response_id"))
    source_id: str
    system: str = Field(validation_alias=AliasChoices("model", "system"))
    response: str
    labels: list[_Span]
    split: str | None = None
    quality: str | None = None
    question: str | None = None
    passages: str | None = None


class RagTruthSource(SourceRow):
    source_id: str
    task_type: Task
    source: str | None = None
    source_info: str | dict[str, Any]


@dataclass(frozen=True)
class SourcedResponse:
    """A response with the source that it had to keep to."""

    response: RagTruthResponse
    source: RagTruthSource

    @property
    def claim_id(self) -> str:
        return ragtruth_claim_id(self.response.response_id)

    @property
    def document(self) -> str:
        """The text that the response had to keep to: the article, the passages, or the record as JSON."""
        info = self.source.source_info
        if isinstance(info, dict) and self.source.task_type == "QA" and isinstance(info.get("passages"), str):
            return str(info["passages"])
        return info if isinstance(info, str) else json.dumps(info, ensure_ascii=False)

    def make_claim(self) -> dict[str, Any]:
        """What all claims of a response share. The data set is named by the source's own name (VC's four), by the task
        where the file does not say the source."""
        response, source = self.response, self.source
        name = f"RAGTruth-{source.source or source.task_type}"
        subset = find_aggrefact_subset(name)
        question = source.source_info.get("question") if isinstance(source.source_info, dict) else None
        return {
            "dataset": name if subset is None else subset.dataset,
            "task": find_dataset_task(name) or find_dataset_task(f"RAGTruth-{source.task_type}"),
            "system": response.system,
            "response_id": response.response_id,
            "doc_id": response.source_id,
            "split": response.split,
            "doc": self.document,
            "question": question if isinstance(question, str) else None,
        }


def ragtruth_claim_id(response_id: str) -> str:
    """The id of a whole response as a claim, the same wherever RAGTruth's responses are read from."""
    return f"ragtruth:{response_id}"


@reads(
    "ragtruth",
    "RAGTruth's response.jsonl and source_info.jsonl (Niu et al. 2024)",
    "factaudit convert ragtruth response.jsonl source_info.jsonl --option level=sentence --out claims.parquet",
    FILES,
    options={
        "level": "response (default), or sentence: a sentence is unattributable where it overlaps a span",
        "split": "only the responses of this split (train or test)",
    },
    marks=[
        "source_id labels quality response",
        "source_id task_type source_info",
        "source_id labels passages response",
    ],
)
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
    chosen = [one for one in found if split is None or one.response.split == split]
    if not chosen:
        names = ", ".join(sorted({str(one.response.split) for one in found}))
        message = f"no response is left with split {split!r} (splits found: {names})"
        raise InputError(", ".join(map(str, sources)), [Problem(message)])
    if len(chosen) < len(found):
        notes.append(f"{format_count(len(found) - len(chosen), 'response')} left out: not of split {split!r}")
    claims: list[dict[str, Any]] = []
    n_unplaced = 0
    for one in chosen:
        text, shared = one.response.response, one.make_claim()
        if level == "response":
            claims.append(shared | {"claim_id": one.claim_id, "claim": text, "label": int(not one.response.labels)})
            continue
        sentences = find_sentence_spans(text)
        labels = _label_sentences(sentences, one.response.labels)
        n_unplaced += None in labels
        for number, ((start, end), label) in enumerate(zip(sentences, labels, strict=True)):
            claims.append(shared | {"claim_id": f"{one.claim_id}:{number}", "claim": text[start:end], "label": label})
    if n_unplaced:
        notes.append(
            f"{format_count(n_unplaced, 'response')} with a span that overlaps no sentence: which of its sentences are "
            "meant is unknown, so they have no label"
        )
    return Conversion.from_claims("ragtruth", claims, notes)


def read_ragtruth_responses(paths: Iterable[Path]) -> tuple[list[SourcedResponse], list[str]]:
    """The responses of all files with their sources, and notes. Responses without text are left out, and noted."""
    responses: list[tuple[Path, RagTruthResponse]] = []
    infos: dict[str, RagTruthSource] = {}
    notes = []
    paths = list(paths)
    for path in paths:
        table = read_table(path)
        if "source_info" in table:
            infos |= {info.source_id: info for info in parse_rows(table, path, RagTruthSource)}
            continue
        read = parse_rows(table, path, RagTruthResponse)
        with_text = [row for row in read if row.response.strip()]
        responses += [(path, row) for row in with_text]
        quality = Counter(row.quality for row in read if row.quality and row.quality != "good")
        notes += [f"{path.name}: {format_count(n, 'response')} marked {name}" for name, n in sorted(quality.items())]
        if n_blank := len(read) - len(with_text):
            notes.append(f"{path.name}: {format_count(n_blank, 'response')} left out: no text")
    found = []
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
            found.append(SourcedResponse(response, info))
    if not found:
        names = ", ".join(map(str, paths))
        raise InputError(names, [Problem("expected responses (response.jsonl), found none with text")])
    return found, notes


def _label_sentences(sentences: Sequence[tuple[int, int]], spans: Sequence[_Span]) -> list[int | None]:
    """1 or 0 per sentence (start, end); None where a marked span overlaps no sentence, so that it can't be placed."""
    hit = [[start < span.end and span.start < end for start, end in sentences] for span in spans]
    if not all(map(any, hit)):
        return [None] * len(sentences)
    return [int(not any(row[number] for row in hit)) for number in range(len(sentences))]
