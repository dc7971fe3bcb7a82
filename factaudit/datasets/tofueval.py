"""TofuEval: topic-focused dialogue summaries, labelled sentence by sentence (Tang et al. 2024; VC Tables 11 to 16).

Files: ``factual_consistency/{mediasum,meetingbank}_factual_eval_{dev,test}.csv`` of amazon-science/tofueval. They have
no dialogues; upstream's README says how to extract them, and ``docs`` takes the CSVs that its code writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd
from pydantic import AliasChoices, Field

from factaudit.datasets import registry
from factaudit.datasets.sources import Conversion, Paths, Row, expand, read_rows, split_of
from factaudit.errors import InputError, Problem
from factaudit.tables import validate_claims
from factaudit.text.printable import count

_DATASETS = {"mediasum": "TofuEval-MediaSum", "meetingbank": "TofuEval-MeetingBank"}


class Sentence(Row):
    doc_id: str
    annotation_id: str
    topic: str
    model_name: str
    summ_sent: str
    sent_label: Literal["yes", "no"]
    type: str | None = None


class Document(Row):
    doc_id: str = Field(validation_alias=AliasChoices("doc_id", "meeting_id"))
    source: str


def convert(sources: Sequence[Path], *, docs: Paths = (), dataset: str | None = None) -> Conversion:
    """Summary sentences as claims; a response is one summary: (doc_id, annotation_id, topic, model_name).

    System names are as in the papers' tables (``model_A`` is Model-A). ``error_type`` is kept as an extra column.
    Documents are null unless ``docs`` has them.
    """
    documents = {row.doc_id: row.source for path in docs for row in read_rows(path, Document)}
    rows, notes = [], []
    for path in expand(sources, "*_factual_eval_*.csv"):
        name = dataset or _dataset(path)
        sentences = read_rows(path, Sentence)
        rows += [_claim(sentence, name, split_of(path), documents) for sentence in sentences]
        notes.append(f"{path.name}: {count(len(sentences), 'claim')} of {name}")
    claims = validate_claims(pd.DataFrame(rows), source="tofueval")
    without = int(claims["doc"].isna().sum())
    if without:
        more = "audits that read text need them (option docs)" if not documents else "they are not in docs"
        notes.append(f"{count(without, 'claim')} without a document: {more}")
    return Conversion(claims, notes=notes)


def _claim(row: Sentence, dataset: str, split: str | None, documents: dict[str, str]) -> dict[str, object]:
    system = row.model_name.replace("model_", "Model-")
    return {
        "dataset": dataset,
        "task": registry.task(dataset),
        "system": system,
        "response_id": "/".join((row.doc_id, row.annotation_id, row.topic, system)),
        "doc_id": row.doc_id,
        "topic": row.topic,
        "split": split,
        "claim": row.summ_sent,
        "doc": documents.get(row.doc_id),
        "label": int(row.sent_label == "yes"),
        "error_type": row.type,
    }


def _dataset(path: Path) -> str:
    for part, name in _DATASETS.items():
        if part in path.name.lower():
            return name
    message = "expected mediasum or meetingbank in the file's name, or the option dataset"
    raise InputError(str(path), [Problem(message)])
