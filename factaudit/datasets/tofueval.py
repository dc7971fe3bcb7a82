"""TofuEval: topic-focused dialogue summaries, labelled sentence by sentence (Tang et al. 2024; VC
Tables 11 to 16).

Files: ``factual_consistency/{mediasum,meetingbank}_factual_eval_{dev,test}.csv`` of
amazon-science/tofueval. They have no dialogues; upstream's README says how to extract them, and
``docs`` takes the CSVs that its code writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field

from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import (
    PathsOption,
    SourceRow,
    describe_wrong_file,
    parse_split_name,
    read_rows,
)
from factaudit.text.display_text import format_count

_DATASETS = {"mediasum": "TofuEval-MediaSum", "meetingbank": "TofuEval-MeetingBank"}


class _Sentence(SourceRow):
    doc_id: str
    annotation_id: str
    topic: str
    model_name: str
    summ_sent: str
    sent_label: Literal["yes", "no"]
    type: str | None = None


class _Document(SourceRow):
    doc_id: str = Field(validation_alias=AliasChoices("doc_id", "meeting_id"))
    source: str


def convert_tofueval(sources: Sequence[Path], *, docs: PathsOption = ()) -> Conversion:
    """Summary sentences as claims; a response is one summary: (doc_id, annotation_id, topic,
    model_name).

    System names are as in the papers' tables (``model_A`` is Model-A). ``error_type`` is kept as an
    extra column. Documents are null unless ``docs`` has them.
    """
    documents = {row.doc_id: row.source for path in docs for row in read_rows(path, _Document)}
    claims = []
    for path in sources:
        rows = read_rows(path, _Sentence)
        name = next((name for part, name in _DATASETS.items() if part in path.name.lower()), None)
        if name is None:
            message = "expected mediasum or meetingbank in the file's name"
            raise describe_wrong_file(path, message)
        for one in rows:
            system = one.model_name.replace("model_", "Model-")
            claims.append(
                {
                    "dataset": name,
                    "system": system,
                    "response_id": "/".join((one.doc_id, one.annotation_id, one.topic, system)),
                    "doc_id": one.doc_id,
                    "topic": one.topic,
                    "split": parse_split_name(path),
                    "claim": one.summ_sent,
                    "doc": documents.get(one.doc_id),
                    "label": int(one.sent_label == "yes"),
                    "error_type": one.type,
                }
            )
    notes = []
    if without := sum(row["doc"] is None for row in claims):
        more = (
            "they are not in docs" if documents else "audits that read text need them (option docs)"
        )
        notes = [f"{format_count(without, 'claim')} without a document: {more}"]
    return Conversion.from_claims("tofueval", claims, notes)
