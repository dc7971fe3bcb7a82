"""ExpertQA: answers of six systems to experts' questions, judged claim by claim by the experts (Malaviya et al. 2024).

File: ``data/r2_compiled_anon.jsonl`` of chaitanyamalaviya/ExpertQA.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    describe_grade_to_label_mapping,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.tables.vocabulary import normalise_vocabulary_words
from factaudit.text.display_text import format_count

#: What experts said of a claim's evidence; N/A and the like are no label.
_SUPPORT = {"complete": 1, "partial": 0, "incomplete": 0, "missing": 0, "1": 1, "0": 0}


class ExpertClaim(DatasetSourceRow):
    claim_string: str
    evidence: list[str] | None = None
    support: str | None = None


class ExpertAnswer(DatasetSourceRow):
    answer_string: str | None = None
    claims: list[ExpertClaim] | None = None


class ExpertMetadata(DatasetSourceRow):
    field: str | None = None


class ExpertQuestion(DatasetSourceRow):
    question: str
    answers: dict[str, ExpertAnswer | None] = Field(min_length=1)
    metadata: ExpertMetadata | None = None


def convert_expertqa(sources: Sequence[Path]) -> Conversion:
    """A claim of an answer is a claim, its evidence (all pieces) the document, the answer its response.

    Completely supported is 1, partly or not supported 0. ``topic`` is the expert's field.
    """
    rows: list[dict[str, Any]] = []
    graded: list[tuple[str | None, int | None]] = []
    notes = []
    for path in expand_dataset_source_folders(sources, "r2_compiled*.jsonl"):
        questions = read_dataset_source_rows(path, ExpertQuestion)
        before = len(rows)
        for one in questions:
            for system, answer in one.answers.items():
                response = f"expertqa:{path.stem}:{one.position}:{system}"
                for number, claim in enumerate((answer and answer.claims) or []):
                    if not claim.claim_string.strip():
                        continue
                    graded.append((claim.support, _SUPPORT.get(normalise_vocabulary_words(claim.support or ""))))
                    rows.append(
                        {
                            "claim_id": f"{response}:{number}",
                            "dataset": "ExpertQA",
                            "task": find_dataset_task("ExpertQA"),
                            "system": system,
                            "response_id": response,
                            "topic": one.metadata.field if one.metadata else None,
                            "claim": claim.claim_string,
                            "doc": "\n\n".join(claim.evidence or []) or None,
                            "label": graded[-1][1],
                            "question": one.question,
                        }
                    )
        notes.append(
            f"{path.name}: {format_count(len(questions), 'question')}, {format_count(len(rows) - before, 'claim')}"
        )
    return Conversion.from_rows(rows, source="expertqa", notes=[*notes, describe_grade_to_label_mapping(graded)])
