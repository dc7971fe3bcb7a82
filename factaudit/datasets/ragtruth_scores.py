"""RAGTruth's responses with several detectors' P(hallucinated): claims, and verdicts with score = 1 − P.

File: JSONL of {response_id, source_id, task_type, system, hallucinated, scores: {detector: P}}, as
rag-hallucination-detector publishes it. It has no text; ``text`` takes files that have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from factaudit.datasets import registry
from factaudit.datasets.ragtruth import claim_id, describe, read_responses
from factaudit.datasets.sources import Conversion, Label, Paths, Probability, Row, expand, no_text, read_rows
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count


class Scored(Row):
    response_id: str
    source_id: str
    task_type: Literal["QA", "Summary", "Data2txt"]
    system: str
    hallucinated: Label
    scores: dict[str, Probability | None]


def convert(sources: Sequence[Path], *, text: Paths = ()) -> Conversion:
    """Responses as claims (1 where not hallucinated), and one verdict per detector and response.

    ``claim_id`` is `ragtruth.claim_id`'s, so that the verdicts also fit the claims that ``ragtruth`` makes. A detector
    without a score for a response has no verdict on it: the claim is unscored.
    """
    rows = [row for path in expand(sources, "*.jsonl", "*.jsonl.gz") for row in read_rows(path, Scored)]
    texts = {}
    if text:
        texts = {response.response_id: (response, info) for response, info in read_responses(text)[0]}
    claims = []
    for number, row in enumerate(rows, start=1):
        dataset = f"RAGTruth-{row.task_type}"
        known = texts.get(row.response_id)
        claims.append(
            {
                "dataset": dataset,
                "task": registry.task(dataset),
                "system": row.system,
                "response_id": row.response_id,
                "doc_id": row.source_id,
                "claim": known[0].response if known else no_text(dataset, number),
                "doc": describe(*known)["doc"] if known else None,
                "claim_id": claim_id(row.response_id),
                "label": 1 - row.hallucinated,
            }
        )
    verdicts = [
        {"claim_id": claim_id(row.response_id), "evaluator": name, "score": 1 - score}
        for row in rows
        for name, score in row.scores.items()
        if score is not None
    ]
    detectors = {name for row in rows for name in row.scores}
    notes = [f"{count(len(claims), 'claim')}, {count(len(detectors), 'evaluator')}"]
    if missing := len(rows) * len(detectors) - len(verdicts):
        notes.append(f"{count(missing, 'score')} missing: those claims are unscored")
    if without := sum(row.response_id not in texts for row in rows):
        notes.append(f"{count(without, 'claim')} without text or document (option text)")
    table = validate_claims(pd.DataFrame(claims), source="ragtruth-scores")
    columns = ["claim_id", "evaluator", "score"]
    checked = validate_verdicts(pd.DataFrame(verdicts, columns=columns), claims=table, source="ragtruth-scores")
    return Conversion(table, checked, notes)
