"""FaithBench: summaries of ten models on which detectors disagreed, spans graded by people (Bao et
al. 2024).

Files: ``data_for_release/batch_*.json`` of vectara/FaithBench. Each has the summaries, the spans
that two or three annotators marked, and what eight detectors said.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from factaudit.datasets.conversion import ANNOTATIONS, VERDICTS, Conversion, reads
from factaudit.datasets.source_files import SourceRow, read_rows

#: From the best to the worst; a summary on which an annotator marked nothing is consistent to that
#: annotator.
GRADES = ("Consistent", "Benign", "Questionable", "Unwanted")
#: Of the metadata, what is no detector.
_OTHER_METADATA = ("summarizer", "raw_sample_id")


class _Span(SourceRow):
    annotator_name: str
    label: list[str] = Field(min_length=1)
    note: str | None = None
    summary_start: int | None = None
    summary_end: int | None = None

    @property
    def grade(self) -> str:
        """The worst of a span's labels; ``Unwanted.Intrinsic`` is a kind of Unwanted."""
        known = [label.split(".")[0] for label in self.label]
        return max(
            (label for label in known if label in GRADES), key=GRADES.index, default="Questionable"
        )


class _Sample(SourceRow):
    sample_id: str
    source: str
    summary: str
    annotations: list[_Span]
    metadata: dict[str, Any]


@reads(
    "faithbench",
    "FaithBench's batches: spans graded by several annotators, verdicts of eight detectors (Bao et"
    " al. 2024)",
    "factaudit convert faithbench data_for_release/ --out claims.csv --verdicts v.csv --annotations"
    " a.csv",
    ["batch_*.json"],
    options={
        "rule": "how annotators' labels become one (default any_unattributable)",
        "lowest": (
            "this grade and worse are unattributable: Benign, Questionable (default) or Unwanted"
        ),
    },
    marks=["samples[].annotations samples[].metadata.summarizer"],
)
def convert_faithbench(
    sources: Sequence[Path],
    *,
    rule: str = "any_unattributable",
    lowest: Literal["Benign", "Questionable", "Unwanted"] = "Questionable",
) -> Conversion:
    """A summary is a claim; its detectors are the evaluators.

    An annotator's grade of a summary is the worst of the spans that he or she marked on it, or
    Consistent where there
    are none: who marked a span anywhere in a batch has read all of it. ``lowest``: this grade and
    worse are unattributable (upstream's binarize.py: Questionable). ``rule``: upstream's "worst" is
    any_unattributable, "best" is all_attributable turned round; any rule of
    `factaudit.tables.annotations` will do.
    """
    claims = []
    documents: dict[str, str] = {}
    for path in sources:
        samples = read_rows(path, _Sample, "samples")
        readers = dict.fromkeys(
            span.annotator_name for sample in samples for span in sample.annotations
        )
        for sample in samples:
            claim_id = f"faithbench:{path.stem}:{sample.sample_id}"
            claims.append(
                {
                    "claim_id": claim_id,
                    "dataset": "FaithBench",
                    "task": "summarization",
                    "system": str(sample.metadata.get("summarizer") or "") or None,
                    "response_id": claim_id,
                    "doc_id": documents.setdefault(sample.source, f"faithbench:{len(documents)}"),
                    "claim": sample.summary,
                    "doc": sample.source,
                    ANNOTATIONS: [
                        row for name in readers for row in _list_annotations(sample, name)
                    ],
                    VERDICTS: [
                        {"evaluator": name, "score": float(score)}
                        for name, score in sample.metadata.items()
                        if name not in _OTHER_METADATA
                        and isinstance(score, int | float)
                        and 0 <= score <= 1
                    ],
                }
            )
    grades = {grade: int(at < GRADES.index(lowest)) for at, grade in enumerate(GRADES)}
    return Conversion.from_claims("faithbench", claims, rule=rule, grades=grades)


def _list_annotations(sample: _Sample, annotator: str) -> list[dict[str, Any]]:
    spans = [span for span in sample.annotations if span.annotator_name == annotator]
    worst = max((span.grade for span in spans), key=GRADES.index, default="Consistent")
    said: dict[str, Any] = {"annotator": annotator, "grade": worst}
    rows = [
        said | {"start": span.summary_start, "end": span.summary_end, "note": span.note}
        for span in spans
    ]
    return rows or [said]
