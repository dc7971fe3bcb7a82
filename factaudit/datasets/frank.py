"""FRANK: sentences of summaries, each with the errors that three annotators saw (Pagnoni et al.
2021).

File: ``data/human_annotations_sentence.json`` of artidoro/frank.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from factaudit.datasets.conversion import ANNOTATIONS, Conversion, reads
from factaudit.datasets.source_files import SourceRow, read_rows
from factaudit.errors import Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row

#: What an annotator says of a sentence without an error.
NO_ERROR = "NoE"


class _Summary(SourceRow):
    hash: str
    model_name: str
    article: str | None = None
    split: str | None = None
    summary_sentences: list[str] = Field(min_length=1)
    summary_sentences_annotations: list[dict[str, list[str]]]


@reads(
    "frank",
    "FRANK's human_annotations_sentence.json: three annotators, kinds of error (Pagnoni et al."
    " 2021)",
    "factaudit convert frank human_annotations_sentence.json --out claims.parquet --annotations"
    " people.parquet",
    ["human_annotations_sentence*.json"],
    options={"rule": "how annotators' labels become one (default majority)"},
    marks=["model_name summary_sentences summary_sentences_annotations"],
)
def convert_frank(sources: Sequence[Path], *, rule: str = "majority") -> Conversion:
    """A sentence is a claim, a summary its response; an annotator who saw no error finds it
    attributable.

    ``note`` of an annotation has the kinds of error (PredE, EntE, ...), ``error_type`` of a claim
    the commonest. A 40-digit hash is an article of CNN/DM, another one of XSum.
    """
    claims = []
    for file, one in ((path, row) for path in sources for row in read_rows(path, _Summary)):
        n_sentences, n_annotated = (
            len(one.summary_sentences),
            len(one.summary_sentences_annotations),
        )
        if n_sentences != n_annotated:
            message = (
                f"expected annotations of each of {n_sentences} sentences, found {n_annotated}"
            )
            leave_out_unreadable_row(
                file, Problem(message, one.position, "summary_sentences_annotations", "item")
            )
            continue
        response = f"{one.hash}/{one.model_name}"
        pairs = zip(one.summary_sentences, one.summary_sentences_annotations, strict=True)
        for at, (sentence, said) in enumerate(pairs):
            found = [kind for kinds in said.values() for kind in kinds if kind != NO_ERROR]
            claims.append(
                {
                    "claim_id": f"frank:{response}/{at}",
                    "dataset": "FRANK-CNN/DM" if len(one.hash) >= 40 else "FRANK-XSum",
                    "task": "summarization",
                    "system": one.model_name,
                    "response_id": response,
                    "doc_id": one.hash,
                    "split": one.split,
                    "claim": sentence,
                    "doc": one.article,
                    "error_type": max(found, key=found.count, default=None),
                    ANNOTATIONS: [
                        {
                            "annotator": name,
                            "label": int({*kinds} == {NO_ERROR}),
                            "note": ", ".join(kinds),
                        }
                        for name, kinds in said.items()
                        if kinds
                    ],
                }
            )
    return Conversion.from_claims("frank", claims, rule=rule)
