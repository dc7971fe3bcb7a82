"""REVEAL: the steps of chains of thought, each against passages of Wikipedia (Jacovi et al. 2024).

File: ``eval/reveal_eval.csv`` of google/reveal on the Hugging Face hub, whose conditions are to be
accepted there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import SourceRow, read_rows
from factaudit.tables.vocabulary import normalise_words

#: How labels of attribution begin: 1 where the evidence supports the whole step.
_LABEL_STARTS = {"full": 1, "partial": 0, "unsupported": 0, "not ": 0, "no ": 0, "contradict": 0}


class _Step(SourceRow):
    answer_id: str
    answer_model: str
    step_idx: str
    step: str
    decontextualized_step: str | None = None
    question: str | None = None
    evidence_id: str | None = None
    evidence: str | None = None
    attribution_label: str | None = None

    @property
    def label(self) -> int | None:
        words = normalise_words(self.attribution_label or "")
        meant = (value for start, value in _LABEL_STARTS.items() if words.startswith(start))
        return next(meant, None)


def convert_reveal(sources: Sequence[Path]) -> Conversion:
    """A step and one passage are a claim, a chain its response; the claim is the step that stands
    alone where told.

    Fully attributable is 1; partly attributable, unsupported and contradictory are 0. A step
    without evidence, or without such a label, has none. ``claim_as_written`` is the step within its
    chain.
    """
    claims = [
        {
            "claim_id": f"reveal:{one.answer_id}:{one.step_idx}:{one.evidence_id or one.position}",
            "dataset": "REVEAL",
            "system": one.answer_model,
            "response_id": f"reveal:{one.answer_id}",
            "claim": one.decontextualized_step or one.step,
            "claim_as_written": one.step,
            "doc": one.evidence,
            "label": one.label,
            "question": one.question,
        }
        for path in sources
        for one in read_rows(path, _Step)
    ]
    return Conversion.from_claims("reveal", claims)
