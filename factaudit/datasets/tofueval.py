"""TofuEval: topic-focused dialogue summaries, labelled sentence by sentence (Tang et al. 2024; VC Tables 11 to 16).

Files: ``factual_consistency/{mediasum,meetingbank}_factual_eval_{dev,test}.csv`` of amazon-science/tofueval. They have
no dialogues; upstream's README says how to extract them, and ``docs`` takes the CSVs that its code writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    PathsOption,
    expand_dataset_source_folders,
    parse_split_name,
    read_dataset_source_rows,
)
from factaudit.errors import InputError, Problem
from factaudit.text.display_text import format_count

_DATASETS = {"mediasum": "TofuEval-MediaSum", "meetingbank": "TofuEval-MeetingBank"}


class TofuEvalSentence(DatasetSourceRow):
    doc_id: str
    annotation_id: str
    topic: str
    model_name: str
    summ_sent: str
    sent_label: Literal["yes", "no"]
    type: str | None = None


class TofuEvalDocument(DatasetSourceRow):
    doc_id: str = Field(validation_alias=AliasChoices("doc_id", "meeting_id"))
    source: str


def convert_tofueval(sources: Sequence[Path], *, docs: PathsOption = (), dataset: str | None = None) -> Conversion:
    """Summary sentences as claims; a response is one summary: (doc_id, annotation_id, topic, model_name).

    System names are as in the papers' tables (``model_A`` is Model-A). ``error_type`` is kept as an extra column.
    Documents are null unless ``docs`` has them.
    """
    documents = {row.doc_id: row.source for path in docs for row in read_dataset_source_rows(path, TofuEvalDocument)}
    rows, notes = [], []
    for path in expand_dataset_source_folders(sources, "*_factual_eval_*.csv"):
        name = dataset or _find_tofueval_dataset(path)
        sentences = read_dataset_source_rows(path, TofuEvalSentence)
        rows += [_make_tofueval_claim(sentence, name, parse_split_name(path), documents) for sentence in sentences]
        notes.append(f"{path.name}: {format_count(len(sentences), 'claim')} of {name}")
    if without := sum(row["doc"] is None for row in rows):
        more = "audits that read text need them (option docs)" if not documents else "they are not in docs"
        notes.append(f"{format_count(without, 'claim')} without a document: {more}")
    return Conversion.from_rows(rows, source="tofueval", notes=notes)


def _make_tofueval_claim(
    sentence: TofuEvalSentence, dataset: str, split: str | None, documents: dict[str, str]
) -> dict[str, object]:
    system = sentence.model_name.replace("model_", "Model-")
    return {
        "dataset": dataset,
        "task": find_dataset_task(dataset),
        "system": system,
        "response_id": "/".join((sentence.doc_id, sentence.annotation_id, sentence.topic, system)),
        "doc_id": sentence.doc_id,
        "topic": sentence.topic,
        "split": split,
        "claim": sentence.summ_sent,
        "doc": documents.get(sentence.doc_id),
        "label": int(sentence.sent_label == "yes"),
        "error_type": sentence.type,
    }


def _find_tofueval_dataset(path: Path) -> str:
    for part, name in _DATASETS.items():
        if part in path.name.lower():
            return name
    message = "expected mediasum or meetingbank in the file's name, or the option dataset"
    raise InputError(str(path), [Problem(message)])
