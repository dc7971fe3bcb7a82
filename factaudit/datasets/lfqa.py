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

from factaudit.datasets.conversion import ANNOTATIONS, Conversion, reads
from factaudit.datasets.source_files import SourceRow, read_json, read_rows
from factaudit.errors import InputError, Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
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


@reads(
    "lfqa",
    "LFQA-Verification: long-form answers by sentence, three annotators (Chen et al. 2023)",
    "factaudit convert lfqa LFQA-Verification/data --out claims.parquet",
    ["annotations-*.json"],
    options={"docs": "the folder of docs-*.json (default: docs beside the annotations' folder)"},
    marks=["question_id annotations[].answer annotations[].labels"],
)
def convert_lfqa(sources: Sequence[Path], *, docs: Path | None = None) -> Conversion:
    """Answer sentences as claims; 1 where most annotators say "supported" (so three different
    labels are 0).

    A response is one system's answer to one question; its document, the evidence set that the
    annotators saw. The question is kept as an extra column. Where ``docs`` (default: the folder
    ``docs`` beside the annotations' one) is absent, documents are null.
    """
    claims = []
    notes: list[str] = []
    n_undecided = n_blank = 0
    evidence: dict[Path, dict[str, str]] = {}
    # What is published in the format is answers and evidence; the evidence is read where an answer
    # asks for it.
    answer_paths = [path for path in sources if not path.match("docs-*.json")]
    if not answer_paths:
        raise InputError(
            ", ".join(map(str, sources)), [Problem("expected answers (annotations-SYSTEM.json)")]
        )
    for path in answer_paths:
        system = path.stem.removeprefix("annotations-")
        folder = docs or path.parent.parent / "docs"
        name = EVIDENCE.get(system)
        file = folder / f"docs-{name}.json"
        if name is None:
            notes.append(
                f"{system}: documents are null, since it is not known which the annotators saw"
            )
        elif docs is None and not folder.is_dir():
            name = None
            notes.append(
                f"{system}: documents are null, since there is no folder {folder} (option docs)"
            )
        elif file not in evidence:
            read: list[_Evidence] = read_json(file, list[_Evidence])
            evidence[file] = {one.question_id: one.document for one in read}
        for answer in read_rows(path, _Answer):
            if name is not None and answer.question_id not in evidence[file]:
                message = f"expected a question of {file.name}, found {answer.question_id!r}"
                leave_out_unreadable_row(
                    path, Problem(message, answer.position, "question_id", "item")
                )
                continue
            for sentence in answer.annotations:
                text = sentence.answer.strip().removesuffix(_END_OF_TEXT).strip()
                if not text:
                    n_blank += 1
                    continue
                n_undecided += len({*sentence.labels}) == len(sentence.labels) == 3
                n_supported = sentence.labels.count("supported")
                claims.append(
                    {
                        "dataset": "LFQA",
                        "system": system,
                        "response_id": f"{system}/{answer.question_id}",
                        "doc_id": name and f"{name}/{answer.question_id}",
                        "claim": text,
                        "doc": name and evidence[file][answer.question_id],
                        "label": int(2 * n_supported > len(sentence.labels)),
                        "question": answer.question,
                        # The files have three labels a sentence, not whose they are.
                        ANNOTATIONS: [
                            {
                                "annotator": f"label {at}",
                                "label": int(label == "supported"),
                                "grade": label,
                            }
                            for at, label in enumerate(sentence.labels, start=1)
                        ],
                    }
                )
    if n_undecided:
        notes.append(
            f"{format_count(n_undecided, 'claim')} on which three annotators gave three labels: 0,"
            " since no majority says supported (the authors leave them out)"
        )
    if n_blank:
        notes.append(f"{format_count(n_blank, 'sentence')} left out: no text")
    return Conversion.from_claims("lfqa", claims, notes)
