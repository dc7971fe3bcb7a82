"""BUMP: reference summaries and their minimally changed, unfaithful twins (Ma et al. 2023).

Files: ``data/task1_dataset.json`` (a kind of error asked for) and ``task2_dataset.json`` of dataminr-ai/BUMP, with the
scores of twelve metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_items,
)
from factaudit.tables import list_plain_rows
from factaudit.text.display_text import format_count


class BumpSummaryPair(DatasetSourceRow):
    article_id: str
    article: str
    reference_summary: str
    edited_summary: str
    error_type: str | None = None
    corrected_error_type: str | None = None
    scores: dict[str, float | None] | None = None


def convert_bump(sources: Sequence[Path]) -> Conversion:
    """A reference is attributable, its edited twin is not; ``pair_of`` of the twin names the reference (audit pairs).

    A metric whose scores lie in [0, 1] is an evaluator.
    """
    rows: dict[str, dict[str, Any]] = {}
    scores: list[dict[str, Any]] = []
    n_pairs = 0
    for path in expand_dataset_source_folders(sources, "task*_dataset.json"):
        dataset = f"BUMP-{path.stem.split('_')[0]}"
        for pair in read_dataset_source_items(path, BumpSummaryPair).values():
            at = pair.position - 1
            reference = f"bump:{dataset}:{pair.article_id}:{len(pair.reference_summary)}"
            shared = {"dataset": dataset, "task": "summarization", "doc_id": pair.article_id, "doc": pair.article}
            kind = pair.corrected_error_type or pair.error_type
            twin = f"bump:{dataset}:edited:{at}"
            first = reference not in rows
            rows.setdefault(reference, {**shared, "claim_id": reference, "claim": pair.reference_summary, "label": 1})
            rows[twin] = {**shared, "claim_id": twin, "claim": pair.edited_summary, "label": 0}
            rows[twin] |= {"pair_of": reference, "error_type": kind}
            n_pairs += 1
            for name, score in (pair.scores or {}).items():
                metric, _, side = name.rpartition("_")
                if side == "edited" or (side == "reference" and first):
                    claim_id = twin if side == "edited" else reference
                    scores.append({"claim_id": claim_id, "evaluator": metric, "score": score})
    notes = [f"{format_count(n_pairs, 'pair')}: {format_count(len(rows), 'claim')}"]
    table = pd.DataFrame(scores, columns=["claim_id", "evaluator", "score"]).dropna()
    inside = table.groupby("evaluator")["score"].transform(lambda values: values.between(0, 1).all()).astype(bool)
    if left := table.loc[~inside, "evaluator"].unique().tolist():
        notes.append(f"left out, being on other scales than [0, 1]: {', '.join(left)}")
    return Conversion.from_rows(list(rows.values()), list_plain_rows(table[inside]), source="bump", notes=notes)
