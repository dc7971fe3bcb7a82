"""REVEAL: the steps of chains of thought, each against passages of Wikipedia (Jacovi et al. 2024).

File: ``eval/reveal_eval.csv`` of google/reveal on the Hugging Face hub, whose conditions are to be accepted there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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

#: How labels of attribution begin: 1 where the evidence supports the whole step.
_LABEL_STARTS = {"full": 1, "partial": 0, "unsupported": 0, "not ": 0, "no ": 0, "contradict": 0}


class RevealReasoningStep(DatasetSourceRow):
    answer_id: str
    answer_model: str
    step_idx: str
    step: str
    decontextualized_step: str | None = None
    question: str | None = None
    evidence_id: str | None = None
    evidence: str | None = None
    attribution_label: str | None = None


def convert_reveal(sources: Sequence[Path]) -> Conversion:
    """A step and one passage are a claim, a chain its response; the claim is the step that stands alone where told.

    Fully attributable is 1; partly attributable, unsupported and contradictory are 0. A step without evidence, or
    without such a label, has none. ``claim_as_written`` is the step within its chain.
    """
    rows, notes, graded = [], [], list[tuple[str | None, int | None]]()
    for path in expand_dataset_source_folders(sources, "reveal_*.csv"):
        steps = read_dataset_source_rows(path, RevealReasoningStep)
        for one in steps:
            response = f"reveal:{one.answer_id}"
            graded.append((one.attribution_label, _parse_attribution_label(one.attribution_label)))
            rows.append(
                {
                    "claim_id": f"{response}:{one.step_idx}:{one.evidence_id or one.position}",
                    "dataset": "REVEAL",
                    "task": find_dataset_task("REVEAL"),
                    "system": one.answer_model,
                    "response_id": response,
                    "claim": one.decontextualized_step or one.step,
                    "claim_as_written": one.step,
                    "doc": one.evidence,
                    "label": graded[-1][1],
                    "question": one.question,
                }
            )
        notes.append(f"{path.name}: {format_count(len(steps), 'step')} with evidence")
    return Conversion.from_rows(rows, source="reveal", notes=[*notes, describe_grade_to_label_mapping(graded)])


def _parse_attribution_label(label: str | None) -> int | None:
    words = normalise_vocabulary_words(label or "")
    return next((value for start, value in _LABEL_STARTS.items() if words.startswith(start)), None)
