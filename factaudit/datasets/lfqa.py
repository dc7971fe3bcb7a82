"""LFQA-Verification (SALAD): long-form answers of six systems, sentence by sentence (Chen et al. 2023; VC's LFQA).

Files: ``data/annotations/annotations-SYSTEM.json`` and ``data/docs/docs-SET.json`` of timchen0618/LFQA-Verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_items,
    read_dataset_source_json,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import validate_claims
from factaudit.tables.annotations import validate_annotations
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count

#: The evidence that the annotators saw, by system. Answers written without documents were judged against WebGPT's
#: (Chen et al. 2023, Table 2).
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


class LfqaSentence(DatasetSourceRow):
    answer: str
    labels: list[Literal["supported", "partially", "not_supported"]] = Field(min_length=1)


class LfqaAnswer(DatasetSourceRow):
    question_id: str
    question: str | None = None
    annotations: list[LfqaSentence]


class EvidencePassage(DatasetSourceRow):
    title: str | None = None
    text: str


class LfqaEvidence(DatasetSourceRow):
    question_id: str
    docs: list[EvidencePassage]


def convert_lfqa(sources: Sequence[Path], *, docs: Path | None = None) -> Conversion:
    """Answer sentences as claims; 1 where most annotators say "supported" (so three different labels are 0).

    A response is one system's answer to one question; its document, the evidence set that the annotators saw. The
    question is kept as an extra column. Where ``docs`` (default: the folder ``docs`` beside the annotations' one) is
    absent, documents are null.
    """
    rows: list[dict[str, object]] = []
    votes_of: list[Sequence[str]] = []
    notes: list[str] = []
    split_votes = blank = marked = 0
    evidence: dict[Path, dict[str, str]] = {}
    # What is published in the format is answers and evidence; the evidence is read where an answer asks for it.
    answer_paths = [
        path for path in expand_dataset_source_folders(sources, "annotations-*.json") if not path.match("docs-*.json")
    ]
    if not answer_paths:
        raise InputError(", ".join(map(str, sources)), [Problem("expected answers (annotations-SYSTEM.json)")])
    for path in answer_paths:
        system = path.stem.removeprefix("annotations-")
        folder = docs or path.parent.parent / "docs"
        name = EVIDENCE.get(system)
        file = folder / f"docs-{name}.json"
        if name is None:
            notes.append(f"{system}: documents are null, since it is not known which the annotators saw")
        elif docs is None and not folder.is_dir():
            name = None
            notes.append(f"{system}: documents are null, since there is no folder {folder} (option docs)")
        elif file not in evidence:
            entries: list[LfqaEvidence] = read_dataset_source_json(file, list[LfqaEvidence])
            evidence[file] = {entry.question_id: _join_lfqa_evidence(entry) for entry in entries}
        answers = list(read_dataset_source_items(path, LfqaAnswer).values())
        if name is not None:
            answers = [one for one in answers if _has_lfqa_evidence(one, evidence[file], path, file)]
        before = len(rows)
        for answer in answers:
            for sentence in answer.annotations:
                text = sentence.answer.strip()
                marked += text.endswith(_END_OF_TEXT)
                text = text.removesuffix(_END_OF_TEXT).strip()
                if not text:
                    blank += 1
                    continue
                votes = sentence.labels.count("supported")
                votes_of.append(sentence.labels)
                split_votes += len(set(sentence.labels)) == len(sentence.labels) == 3
                rows.append(
                    {
                        "dataset": "LFQA",
                        "task": find_dataset_task("LFQA"),
                        "system": system,
                        "response_id": f"{system}/{answer.question_id}",
                        "doc_id": None if name is None else f"{name}/{answer.question_id}",
                        "claim": text,
                        "doc": None if name is None else evidence[file][answer.question_id],
                        "label": int(2 * votes > len(sentence.labels)),
                        "question": answer.question,
                    }
                )
        notes.append(
            f"{path.name}: {format_count(len(rows) - before, 'claim')} in {format_count(len(answers), 'response')}"
        )
    if split_votes:
        notes.append(
            f"{format_count(split_votes, 'claim')} on which three annotators gave three labels: 0, since no majority "
            "says supported (the authors leave them out)"
        )
    if marked:
        notes.append(f"{format_count(marked, 'claim')} had an end-of-text mark ({_END_OF_TEXT}), which was removed")
    if blank:
        notes.append(f"{format_count(blank, 'sentence')} left out: no text")
    claims = validate_claims(pd.DataFrame(rows), source="lfqa")
    # The files have three labels a sentence, not whose they are.
    said = [
        {"claim_id": claim_id, "annotator": f"label {at}", "label": int(label == "supported"), "grade": label}
        for claim_id, labels in zip(claims["claim_id"], votes_of, strict=True)
        for at, label in enumerate(labels, start=1)
    ]
    return Conversion(claims, notes=notes, annotations=validate_annotations(pd.DataFrame(said), source="lfqa"))


def _join_lfqa_evidence(evidence: LfqaEvidence) -> str:
    """The passages in order, a page's title once above them."""
    parts: list[str] = []
    title = None
    for passage in evidence.docs:
        if passage.title and passage.title != title:
            title = passage.title
            parts.append(title)
        parts.append(passage.text)
    return "\n\n".join(parts)


def _has_lfqa_evidence(answer: LfqaAnswer, evidence: dict[str, str], answers_path: Path, evidence_path: Path) -> bool:
    if answer.question_id in evidence:
        return True
    message = f"expected a question of {evidence_path.name}, found {answer.question_id!r}"
    leave_out_unreadable_row(answers_path, Problem(message, answer.position, "question_id", "item"))
    return False
