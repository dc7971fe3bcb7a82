"""WiCE: claims of Wikipedia articles and the web pages that they cite (Kamoi et al. 2023; VC Table 8).

Files: ``data/entailment_retrieval/{claim,subclaim}/{train,dev,test}.jsonl`` of ryokamoi/wice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import Field

from factaudit.datasets import registry
from factaudit.datasets.sources import Conversion, Row, expand, read_rows, split_of
from factaudit.tables import validate_claims
from factaudit.text.printable import count


class Meta(Row):
    id: str
    claim_title: str | None = None


class Entry(Row):
    claim: str
    evidence: list[str] = Field(min_length=1)
    label: Literal["supported", "partially_supported", "not_supported"]
    meta: Meta


def convert(sources: Sequence[Path], *, level: Literal["claim", "subclaim"] = "claim") -> Conversion:
    """Claims with the cited page as the document; "supported" is 1, partly supported 0 (as VC reads it).

    People wrote the claims, so ``system`` is null. The topic is the article's title. With ``level="subclaim"``, for the
    files of decomposed claims, the response is the claim that the subclaim is part of.
    """
    rows, notes = [], []
    for path in expand(sources, "*.jsonl"):
        entries = read_rows(path, Entry)
        rows += [_claim(entry, level, split_of(path)) for entry in entries]
        partial = sum(entry.label == "partially_supported" for entry in entries)
        notes.append(f"{path.name}: {count(len(entries), level)}, {partial:,} partially supported (label 0)")
    return Conversion(validate_claims(pd.DataFrame(rows), source="wice"), notes=notes)


def _claim(entry: Entry, level: str, split: str | None) -> dict[str, object]:
    # A subclaim's id is its claim's, a hyphen and a number.
    response = entry.meta.id if level == "claim" else entry.meta.id.rpartition("-")[0] or entry.meta.id
    return {
        "claim_id": f"wice:{entry.meta.id}",
        "dataset": "WiCE",
        "task": registry.task("WiCE"),
        "response_id": response,
        "doc_id": response,
        "topic": entry.meta.claim_title,
        "split": split,
        "claim": entry.claim,
        "doc": "\n".join(entry.evidence),
        "label": int(entry.label == "supported"),
    }
