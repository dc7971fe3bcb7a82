"""FactBench: claims of four data sets, true or false (OpenFactCheck, Wang et al. 2024).

File: ``Factbench.jsonl`` of yuxiaw/Factcheck-GPT; ``predictions`` are OpenFactCheck's result files of one checker each
(JSONL with a claim and ``*_output``, ``label`` or ``factuality``), matched by the claim's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.sources import Conversion, Paths, Row, expand, read_rows
from factaudit.errors import InputError, Problem
from factaudit.intake.words import polarity
from factaudit.tables import read_table, validate_claims, validate_verdicts
from factaudit.text.printable import count


class Response(Row):
    source: str
    prompt: str | None = None
    response: str | None = None
    claims: list[str] | None = None
    claim_labels: list[bool | None] | None = None
    response_label: bool | None = None


def convert(sources: Sequence[Path], *, predictions: Paths = ()) -> Conversion:
    """A claim of a response is a claim; a response without claims is one itself, where it is labelled. No documents."""
    rows: list[dict[str, Any]] = []
    for path in expand(sources, "*actbench*.jsonl"):
        for at, one in enumerate(read_rows(path, Response)):
            shared = {"dataset": f"FactBench-{one.source}", "question": one.prompt, "doc": None}
            shared |= {"response_id": f"factbench:{at}", "doc_id": f"factbench:{at}"}
            labels: Sequence[bool | None] = one.claim_labels or []
            texts: Sequence[str] = one.claims or []
            if not texts and one.response and one.response_label is not None:
                texts, labels = [one.response], [one.response_label]
            if len(labels) != len(texts):
                message = f"expected a label for each of {len(texts)} claims, found {len(labels)}"
                raise InputError(str(path), [Problem(message, at + 1, "claim_labels", "line")])
            for place, (text, label) in enumerate(zip(texts, labels, strict=True)):
                claim = {"claim_id": f"factbench:{at}:{place}", "claim": text}
                rows.append({**shared, **claim, "label": None if label is None else int(label)})
    claims = validate_claims(pd.DataFrame(rows), source="factbench")
    notes = [f"{count(len(claims), 'claim')} of {count(claims['dataset'].nunique(), 'source')}, no documents"]
    verdicts = [row for path in expand(predictions, "*.jsonl") for row in _predicted(path, claims, notes)]
    table = validate_verdicts(pd.DataFrame(verdicts), claims=claims, source="factbench") if verdicts else None
    return Conversion(claims, table, notes)


def _predicted(path: Path, claims: pd.DataFrame, notes: list[str]) -> list[dict[str, Any]]:
    """A verdict for each claim of that text; a text that stands for several claims is each time the next of them."""
    table = read_table(path)
    column = next((c for c in table.columns if c.endswith("_output") or c in ("label", "factuality")), None)
    if "claim" not in table or column is None:
        raise InputError(str(path), [Problem("expected a claim and one of *_output, label or factuality")])
    places: dict[str, list[str]] = {}
    for claim_id, text in zip(claims["claim_id"], claims["claim"], strict=True):
        places.setdefault(text, []).append(claim_id)
    rows, unknown = [], 0
    for text, said in zip(table["claim"], table[column], strict=True):
        if not places.get(text):
            unknown += 1
            continue
        meaning = polarity(said)
        row = {"claim_id": places[text].pop(0), "evaluator": path.stem, "prediction": meaning, "raw": str(said)}
        rows.append(row | {"status": "ok" if meaning is not None else "unparsed"})
    if unknown:
        notes.append(f"{path.name}: {count(unknown, 'claim')} that the file of claims has not")
    return rows
