"""FaithBench: summaries of ten models on which detectors disagreed, spans graded by people (Bao et al. 2024).

Files: ``data_for_release/batch_*.json`` of vectara/FaithBench. Each has the summaries, the spans that two or three
annotators marked, and what eight detectors said.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from factaudit.datasets.annotated_claims import convert_annotated_claims
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_items,
)
from factaudit.tables import validate_verdicts

#: From the best to the worst; a summary on which an annotator marked nothing is consistent to that annotator.
GRADES = ("Consistent", "Benign", "Questionable", "Unwanted")
#: Of the metadata, what is no detector.
_OTHER_METADATA = ("summarizer", "raw_sample_id")


class FaithBenchSpan(DatasetSourceRow):
    annotator_name: str
    label: list[str] = Field(min_length=1)
    note: str | None = None
    summary_start: int | None = None
    summary_end: int | None = None


class FaithBenchSample(DatasetSourceRow):
    sample_id: str
    source: str
    summary: str
    annotations: list[FaithBenchSpan]
    metadata: dict[str, Any]


def convert_faithbench(
    sources: Sequence[Path],
    *,
    rule: str = "any_unattributable",
    lowest: Literal["Benign", "Questionable", "Unwanted"] = "Questionable",
) -> Conversion:
    """A summary is a claim; its detectors are the evaluators.

    An annotator's grade of a summary is the worst of the spans that he or she marked on it, or Consistent where there
    are none: who marked a span anywhere in a batch has read all of it. ``lowest``: this grade and worse are
    unattributable (upstream's binarize.py: Questionable). ``rule``: upstream's "worst" is any_unattributable, "best"
    is all_attributable turned round; any rule of `factaudit.tables.annotations` will do.
    """
    grades = {grade: int(at < GRADES.index(lowest)) for at, grade in enumerate(GRADES)}
    claims: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    verdicts: list[dict[str, Any]] = []
    documents: dict[str, str] = {}
    for path in expand_dataset_source_folders(sources, "batch_*.json"):
        samples = list(read_dataset_source_items(path, FaithBenchSample, "samples").values())
        readers = list(dict.fromkeys(span.annotator_name for sample in samples for span in sample.annotations))
        for sample in samples:
            claim_id = f"faithbench:{path.stem}:{sample.sample_id}"
            doc_id = documents.setdefault(sample.source, f"faithbench:{len(documents)}")
            claims.append(
                {
                    "claim_id": claim_id,
                    "dataset": "FaithBench",
                    "task": "summarization",
                    "system": str(sample.metadata.get("summarizer") or "") or None,
                    "response_id": claim_id,
                    "doc_id": doc_id,
                    "claim": sample.summary,
                    "doc": sample.source,
                }
            )
            annotations += _list_faithbench_annotations(claim_id, sample, readers)
            verdicts += _list_faithbench_verdicts(claim_id, sample)
    table = validate_verdicts(pd.DataFrame(verdicts), source="faithbench") if verdicts else None
    return convert_annotated_claims(claims, annotations, rule=rule, grades=grades, source="faithbench", verdicts=table)


def _list_faithbench_annotations(
    claim_id: str, sample: FaithBenchSample, annotators: Sequence[str]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for reader in annotators:
        spans = [span for span in sample.annotations if span.annotator_name == reader]
        worst = max((_find_worst_grade(span) for span in spans), key=GRADES.index, default="Consistent")
        said = {"claim_id": claim_id, "annotator": reader, "grade": worst}
        rows += [
            {**said, "start": span.summary_start, "end": span.summary_end, "note": span.note} for span in spans
        ] or [said]
    return rows


def _find_worst_grade(span: FaithBenchSpan) -> str:
    """The worst of a span's labels; ``Unwanted.Intrinsic`` is a kind of Unwanted."""
    known = [label.split(".")[0] for label in span.label]
    return max((label for label in known if label in GRADES), key=GRADES.index, default="Questionable")


def _list_faithbench_verdicts(claim_id: str, sample: FaithBenchSample) -> list[dict[str, Any]]:
    return [
        {"claim_id": claim_id, "evaluator": name, "score": float(score)}
        for name, score in sample.metadata.items()
        if name not in _OTHER_METADATA and isinstance(score, int | float) and 0 <= score <= 1
    ]
