"""WiCE: claims of Wikipedia articles and the web pages that they cite (Kamoi et al. 2023; VC Table 8).

Files: ``data/entailment_retrieval/{claim,subclaim}/{train,dev,test}.jsonl`` of ryokamoi/wice.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    parse_split_name,
    read_dataset_source_rows,
)
from factaudit.text.display_text import format_count


class WiceMetadata(DatasetSourceRow):
    id: str
    claim_title: str | None = None


class WiceEntry(DatasetSourceRow):
    claim: str
    evidence: list[str] = Field(min_length=1)
    label: Literal["supported", "partially_supported", "not_supported"]
    meta: WiceMetadata


def convert_wice(sources: Sequence[Path], *, level: Literal["claim", "subclaim"] = "claim") -> Conversion:
    """Claims with the cited page as the document; "supported" is 1, partly supported 0 (as VC reads it).

    People wrote the claims, so ``system`` is null. The topic is the article's title. With ``level="subclaim"``, for the
    files of decomposed claims, the response is the claim that the subclaim is part of.
    """
    rows, notes = [], []
    for path in expand_dataset_source_folders(sources, "*.jsonl"):
        entries = read_dataset_source_rows(path, WiceEntry)
        rows += [_make_wice_claim(entry, level, parse_split_name(path)) for entry in entries]
        partial = sum(entry.label == "partially_supported" for entry in entries)
        notes.append(f"{path.name}: {format_count(len(entries), level)}, {partial:,} partially supported (label 0)")
    return Conversion.from_rows(rows, source="wice", notes=notes)


def _make_wice_claim(entry: WiceEntry, level: str, split: str | None) -> dict[str, object]:
    # A subclaim's id is its claim's, a hyphen and a number.
    response = entry.meta.id if level == "claim" else entry.meta.id.rpartition("-")[0] or entry.meta.id
    return {
        "claim_id": f"wice:{entry.meta.id}",
        "dataset": "WiCE",
        "task": find_dataset_task("WiCE"),
        "response_id": response,
        "doc_id": response,
        "topic": entry.meta.claim_title,
        "split": split,
        "claim": entry.claim,
        "doc": "\n".join(entry.evidence),
        "label": int(entry.label == "supported"),
    }
