"""LFQA-Verification (SALAD): long-form answers of six systems, sentence by sentence (Chen et al.
2023; VC's LFQA).

Files: ``data/annotations/annotations-SYSTEM.json`` and ``data/docs/docs-SET.json`` of
timchen0618/LFQA-Verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from factaudit.datasets.conversion import ANNOTATIONS, Conversion
from factaudit.datasets.source_files import SourceRow, read_json, read_rows
from factaudit.errors import InputError, Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row

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


def convert_lfqa(sources: Sequence[Path], *, docs: Path | None = None) -> Conversion:
    """Answer sentences as claims; 1 where most annotators say "supported" (so three different
    labels are 0; the authors leave them out).

    A response is one system's answer to one question; its document, the evidence set that the
    annotators saw. The question is kept as an extra column. Where the evidence is not there
    (``docs``, default: the folder ``docs`` beside the annotations' one), documents are null.
    """
    claims = []
    notes: list[str] = []
    # What is published in the format is answers and evidence; evidence is read where it is needed.
    answer_paths = [path for path in sources if not path.match("docs-*.json")]
    if not answer_paths:
        message = "expected answers (annotations-SYSTEM.json)"
        raise InputError(", ".join(map(str, sources)), [Problem(message)])
    for path in answer_paths:
        system = path.stem.removeprefix("annotations-")
        name = EVIDENCE.get(system)
        file = (docs or path.parent.parent / "docs") / f"docs-{name}.json"
        documents: dict[str, str] | None = None
        if name is not None and (docs or file.is_file()):
            read: list[_Evidence] = read_json(file, list[_Evidence])
            documents = {one.question_id: one.document for one in read}
        else:
            notes.append(f"{system}: documents are null, since there is no file {file}")
        for answer in read_rows(path, _Answer):
            if documents is not None and answer.question_id not in documents:
                message = f"expected a question of {file.name}, found {answer.question_id!r}"
                problem = Problem(message, answer.position, "question_id", "item")
                leave_out_unreadable_row(path, problem)
                continue
            texts = [
                one.answer.strip().removesuffix(_END_OF_TEXT).strip() for one in answer.annotations
            ]
            claims += [
                {
                    "dataset": "LFQA",
                    "system": system,
                    "response_id": f"{system}/{answer.question_id}",
                    "doc_id": documents and f"{name}/{answer.question_id}",
                    "claim": text,
                    "doc": documents and documents[answer.question_id],
                    "label": int(2 * sentence.labels.count("supported") > len(sentence.labels)),
                    "question": answer.question,
                    # The files have three labels a sentence, not whose they are.
                    ANNOTATIONS: [
                        {
                            "annotator": f"label {at}",
                            "label": int(said == "supported"),
                            "grade": said,
                        }
                        for at, said in enumerate(sentence.labels, start=1)
                    ],
                }
                for text, sentence in zip(texts, answer.annotations, strict=True)
                if text
            ]
    return Conversion.from_claims("lfqa", claims, notes)
