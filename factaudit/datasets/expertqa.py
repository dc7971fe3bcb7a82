"""ExpertQA: answers of six systems to experts' questions, judged claim by claim by the experts
(Malaviya et al. 2024).

File: ``data/r2_compiled_anon.jsonl`` of chaitanyamalaviya/ExpertQA.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import SourceRow, read_rows
from factaudit.tables.vocabulary import normalise_words

#: What experts said of a claim's evidence; N/A and the like are no label.
_SUPPORT = {"complete": 1, "partial": 0, "incomplete": 0, "missing": 0, "1": 1, "0": 0}


class _Claim(SourceRow):
    claim_string: str
    evidence: list[str] | None = None
    support: str | None = None


class _Answer(SourceRow):
    claims: list[_Claim] | None = None


class _Metadata(SourceRow):
    field: str | None = None


class _Question(SourceRow):
    question: str
    answers: dict[str, _Answer | None] = Field(min_length=1)
    metadata: _Metadata | None = None


def convert_expertqa(sources: Sequence[Path]) -> Conversion:
    """A claim of an answer is a claim, its evidence (all pieces) the document, the answer its
    response.

    Completely supported is 1, partly or not supported 0. ``topic`` is the expert's field.
    """
    claims = []
    for path in sources:
        answered = [
            (one, *item) for one in read_rows(path, _Question) for item in one.answers.items()
        ]
        for question, system, answer in answered:
            response = f"expertqa:{path.stem}:{question.position}:{system}"
            for number, claim in enumerate((answer and answer.claims) or []):
                if not claim.claim_string.strip():
                    continue
                claims.append(
                    {
                        "claim_id": f"{response}:{number}",
                        "dataset": "ExpertQA",
                        "system": system,
                        "response_id": response,
                        "topic": question.metadata and question.metadata.field,
                        "claim": claim.claim_string,
                        "doc": "\n\n".join(claim.evidence or []) or None,
                        "label": _SUPPORT.get(normalise_words(claim.support or "")),
                        "question": question.question,
                    }
                )
    return Conversion.from_claims("expertqa", claims)
