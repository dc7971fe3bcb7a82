"""LFQA-Verification (SALAD): long-form answers of six systems, sentence by sentence (Chen et al.
2023; VC's LFQA).

Files: ``data/annotations/annotations-SYSTEM.json`` and ``data/docs/docs-SET.json`` of
timchen0618/LFQA-Verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from factaudit.datasets.conversion import ANNOTATIONS, Conversion
from factaudit.datasets.source_files import SourceRow, describe_wrong_file, read_json, read_rows
from factaudit.text.display_text import format_count

#: The evidence that the annotators saw, by system. Answers written without documents were judged
#: against WebGPT's (Chen et al. 2023, Table 2).
EVIDENCE = {
    "webgpt": "webgpt",
    "gpt3": "webgpt",
    "gpt3_wdoc": "webgpt",
    "gpt3_whudoc": "human",
    "alpaca": "webgpt",
    "alpaca_wdoc": "webgpt",
}
#: The end-of-text mark that Alpaca's answers carry.
_END_OF_TEXT = "</s>"


class _Sentence(SourceRow):
    answer: str
    labels: list[Literal["supported", "partially", "not_supported"]] = Field(min_length=1)


class _Answer(SourceRow):
    question_id: str
    question: str | None = None
    annotations: list[_Sentence]


class _Passage(SourceRow):
    title: str | None = None
    text: str


class _Evidence(SourceRow):
    question_id: str
    docs: list[_Passage]

    @property
    def document(self) -> str:
        """The passages in order, a page's title once above them."""
        parts: list[str] = []
        title = None
        for passage in self.docs:
            if passage.title and passage.title != title:
                title = passage.title
                parts.append(title)
            parts.append(passage.text)
        return "\n\n".join(parts)


def convert_lfqa(sources: Sequence[Path]) -> Conversion:
    """Answer sentences as claims; 1 where most annotators say "supported" (so three different
    labels are 0; the authors leave them out).

    A response is one system's answer to one question. Its document is the evidence that the
    annotators saw, from the folder ``docs`` beside that of the annotations; null where it is not
    there. The question is kept as an extra column.
    """
    claims: list[dict[str, Any]] = []
    notes: list[str] = []
    # What is published in the format is answers and evidence; evidence is read where it is needed.
    answer_paths = [path for path in sources if not path.match("docs-*.json")]
    if not answer_paths:
        message = "expected answers (annotations-SYSTEM.json)"
        raise describe_wrong_file(sources, message)
    for path in answer_paths:
        system = path.stem.removeprefix("annotations-")
        name = EVIDENCE.get(system, system)
        file = path.parent.parent / "docs" / f"docs-{name}.json"
        documents: dict[str, str] = {}
        if file.is_file():
            read: list[_Evidence] = read_json(file, list[_Evidence])
            documents = {one.question_id: one.document for one in read}
        n_before = len(claims)
        for answer in read_rows(path, _Answer):
            document = documents.get(answer.question_id)
            shared = {
                "dataset": "LFQA",
                "system": system,
                "response_id": f"{system}/{answer.question_id}",
                "doc_id": document and f"{name}/{answer.question_id}",
                "doc": document,
                "question": answer.question,
            }
            for sentence in answer.annotations:
                text = sentence.answer.strip().removesuffix(_END_OF_TEXT).strip()
                is_supported = [int(one == "supported") for one in sentence.labels]
                # The files have three labels a sentence, not whose they are.
                said = [
                    {"annotator": f"label {at}", "label": label, "grade": grade}
                    for at, (label, grade) in enumerate(
                        zip(is_supported, sentence.labels, strict=True), start=1
                    )
                ]
                label = int(2 * sum(is_supported) > len(is_supported))
                if text:
                    claims.append(shared | {"claim": text, "label": label, ANNOTATIONS: said})
        if n_without := sum(claim["doc"] is None for claim in claims[n_before:]):
            counted = format_count(n_without, "claim")
            notes.append(f"{system}: {counted} without a document, which {file} does not have")
    return Conversion.from_claims("lfqa", claims, notes)
