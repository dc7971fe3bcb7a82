"""FELM: ChatGPT's answers by segment, with the kind of each error (Chen et al. 2023).

Files: ``data/*.jsonl`` of hkust-nlp/felm, a domain each (wk: world knowledge, science, reasoning, math, writing_rec).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.errors import Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count


class FelmAnswer(DatasetSourceRow):
    index: str
    prompt: str
    segmented_response: list[str] = Field(min_length=1)
    labels: list[bool]
    type: list[str | None] | None = None
    ref: list[str] | None = None
    ref_contents: str | None = None


def convert_felm(sources: Sequence[Path]) -> Conversion:
    """A segment is a claim, an answer its response; the document is ``ref_contents`` where the file has it.

    ``error_type`` (knowledge_error, reasoning_error, ...), ``question`` and ``references`` (addresses) are kept.
    """
    rows, notes = [], []
    for path in expand_dataset_source_folders(sources, "*.jsonl"):
        answers = read_dataset_source_rows(path, FelmAnswer)
        for one in answers:
            if len(one.labels) != len(one.segmented_response):
                n_segments = len(one.segmented_response)
                message = f"expected a label for each of {n_segments} segments, found {len(one.labels)}"
                leave_out_unreadable_row(path, Problem(message, one.position, "labels", "line"))
                continue
            response = f"felm:{path.stem}:{one.index}"
            kinds = one.type or [None] * len(one.labels)
            rows += [
                {
                    "claim_id": f"{response}:{place}",
                    "dataset": f"FELM-{path.stem}",
                    "system": "ChatGPT",
                    "response_id": response,
                    "doc_id": response,
                    "claim": segment,
                    "doc": one.ref_contents or None,
                    "label": int(label),
                    "error_type": kinds[place] if place < len(kinds) else None,
                    "question": one.prompt,
                    "references": " ".join(one.ref or []) or None,
                }
                for place, (segment, label) in enumerate(zip(one.segmented_response, one.labels, strict=True))
                if segment.strip()
            ]
        notes.append(f"{path.name}: {format_count(len(answers), 'answer')}")
    return Conversion.from_rows(rows, source="felm", notes=notes)
