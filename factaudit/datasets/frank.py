"""FRANK: sentences of summaries, each with the errors that three annotators saw (Pagnoni et al. 2021).

File: ``data/human_annotations_sentence.json`` of artidoro/frank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.annotated_claims import convert_annotated_claims
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_items,
)
from factaudit.errors import Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row

#: What an annotator says of a sentence without an error.
NO_ERROR = "NoE"


class FrankSummary(DatasetSourceRow):
    hash: str
    model_name: str
    article: str | None = None
    split: str | None = None
    summary_sentences: list[str] = Field(min_length=1)
    summary_sentences_annotations: list[dict[str, list[str]]]


def convert_frank(sources: Sequence[Path], *, rule: str = "majority") -> Conversion:
    """A sentence is a claim, a summary its response; an annotator who saw no error finds it attributable.

    ``note`` of an annotation has the kinds of error (PredE, EntE, ...), ``error_type`` of a claim the commonest. A
    40-digit hash is an article of CNN/DM, another one of XSum.
    """
    claims: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for path in expand_dataset_source_folders(sources, "human_annotations_sentence*.json"):
        for one in read_dataset_source_items(path, FrankSummary).values():
            if len(one.summary_sentences) != len(one.summary_sentences_annotations):
                expected = f"expected annotations of each of {len(one.summary_sentences)} sentences"
                message = f"{expected}, found {len(one.summary_sentences_annotations)}"
                leave_out_unreadable_row(path, Problem(message, one.position, "summary_sentences_annotations", "item"))
                continue
            dataset = "FRANK-CNN/DM" if len(one.hash) >= 40 else "FRANK-XSum"
            response = f"{one.hash}/{one.model_name}"
            pairs = zip(one.summary_sentences, one.summary_sentences_annotations, strict=True)
            for at, (sentence, said) in enumerate(pairs):
                kinds = [kind for kinds in said.values() for kind in kinds if kind != NO_ERROR]
                claims.append(
                    {
                        "claim_id": f"frank:{response}/{at}",
                        "dataset": dataset,
                        "task": "summarization",
                        "system": one.model_name,
                        "response_id": response,
                        "doc_id": one.hash,
                        "split": one.split,
                        "claim": sentence,
                        "doc": one.article,
                        "error_type": max(kinds, key=kinds.count, default=None),
                    }
                )
                annotations += [
                    {
                        "claim_id": f"frank:{response}/{at}",
                        "annotator": annotator,
                        "label": int(all(kind == NO_ERROR for kind in kinds)),
                        "note": ", ".join(kinds),
                    }
                    for annotator, kinds in said.items()
                    if kinds
                ]
    return convert_annotated_claims(claims, annotations, rule=rule, grades=None, source="frank")
