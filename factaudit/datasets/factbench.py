"""FactBench: claims of four data sets, true or false (OpenFactCheck, Wang et al. 2024).

File: ``Factbench.jsonl`` of yuxiaw/Factcheck-GPT; ``predictions`` are OpenFactCheck's result files of one checker each
(JSONL with a claim and ``*_output``, ``label`` or ``factuality``), matched by the claim's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    PathsOption,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.tables.vocabulary import parse_label_word
from factaudit.text.display_text import format_count


class FactBenchResponse(DatasetSourceRow):
    source: str
    prompt: str | None = None
    response: str | None = None
    claims: list[str] | None = None
    claim_labels: list[bool | None] | None = None
    response_label: bool | None = None


def convert_factbench(sources: Sequence[Path], *, predictions: PathsOption = ()) -> Conversion:
    """A claim of a response is a claim; a response without claims is one itself, where it is labelled. No documents."""
    rows: list[dict[str, Any]] = []
    for path in expand_dataset_source_folders(sources, "*actbench*.jsonl"):
        for one in read_dataset_source_rows(path, FactBenchResponse):
            at = one.position - 1
            shared = {"dataset": f"FactBench-{one.source}", "question": one.prompt, "doc": None}
            shared |= {"response_id": f"factbench:{at}", "doc_id": f"factbench:{at}"}
            labels: Sequence[bool | None] = one.claim_labels or []
            texts: Sequence[str] = one.claims or []
            if not texts and one.response and one.response_label is not None:
                texts, labels = [one.response], [one.response_label]
            if len(labels) != len(texts):
                message = f"expected a label for each of {len(texts)} claims, found {len(labels)}"
                leave_out_unreadable_row(path, Problem(message, one.position, "claim_labels", "line"))
                continue
            for place, (text, label) in enumerate(zip(texts, labels, strict=True)):
                claim = {"claim_id": f"factbench:{at}:{place}", "claim": text}
                rows.append({**shared, **claim, "label": None if label is None else int(label)})
    n_sources = len({row["dataset"] for row in rows})
    notes = [f"{format_count(len(rows), 'claim')} of {format_count(n_sources, 'source')}, no documents"]
    verdicts = [
        verdict
        for path in expand_dataset_source_folders(predictions, "*.jsonl")
        for verdict in _read_factbench_verdicts(path, rows, notes)
    ]
    return Conversion.from_rows(rows, verdicts, source="factbench", notes=notes)


def _read_factbench_verdicts(
    path: Path, claim_rows: Sequence[dict[str, Any]], notes: list[str]
) -> list[dict[str, Any]]:
    """A verdict for each claim of that text; where several claims have it, each row is of the next of them."""
    table = read_table(path)
    column = next((c for c in table.columns if c.endswith("_output") or c in ("label", "factuality")), None)
    if "claim" not in table or column is None:
        raise InputError(str(path), [Problem("expected a claim and one of *_output, label or factuality")])
    claim_ids: dict[str, list[str]] = {}
    for claim in claim_rows:
        claim_ids.setdefault(claim["claim"], []).append(claim["claim_id"])
    rows, unknown = [], 0
    for text, said in zip(table["claim"], table[column], strict=True):
        if not claim_ids.get(text):
            unknown += 1
            continue
        meaning = parse_label_word(said)
        raw = None if pd.isna(said) else str(said)
        row = {"claim_id": claim_ids[text].pop(0), "evaluator": path.stem, "prediction": meaning, "raw": raw}
        rows.append(row | {"status": "ok" if meaning is not None else "unparsed"})
    if unknown:
        notes.append(f"{path.name}: {format_count(unknown, 'claim')} left out: not in the file of claims")
    return rows
