"""StorySumm: summaries of short stories, labelled by sentence and as a whole (Subbiah et al. 2024).

File: ``storysumm.json`` of melaniesubbiah/storysumm; ``predictions`` are the files of ``evaluators/predicted_labels``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from factaudit.datasets.sources import Conversion, Label, Paths, Row, expand, read_json
from factaudit.tables import validate_claims, validate_verdicts
from factaudit.text.printable import count

_DATASETS = {"sentence": "StorySumm-sentences", "summary": "StorySumm-summaries"}


class Summary(Row):
    label: Label
    story: str
    summary: list[str] = Field(min_length=1)
    errors: list[Label]
    story_id: str = Field(validation_alias="story-id")
    difficulty: str | None = None
    split: str | None = None
    model: str | None = None


class Predicted(Row):
    label: Label | None = None
    sentence_labels: list[Label] | None = None
    probs: Any = None


def convert(
    sources: Sequence[Path], *, level: Literal["both", "sentence", "summary"] = "both", predictions: Paths = ()
) -> Conversion:
    """Sentences and whole summaries as claims, in one run: a data set for each level, with the same documents.

    The response of a sentence is its summary. An evaluator that judged whole summaries has verdicts on these, one that
    judged sentences on both, each on its own claims; the name is the file's, with its folder's where that is a model's.
    """
    levels = ["sentence", "summary"] if level == "both" else [level]
    summaries: dict[str, Summary] = {}
    for path in expand(sources, "storysumm*.json"):
        summaries |= read_json(path, dict[str, Summary])
    rows = [row for key, one in summaries.items() for row in _claims(key, one, levels)]
    claims = validate_claims(pd.DataFrame(rows), source="storysumm")
    verdicts, unknown = [], 0
    for path in expand(predictions, "*.json"):
        name = path.stem if path.parent.name in ("predicted_labels", "") else f"{path.parent.name} {path.stem}"
        predicted: dict[str, Predicted] = read_json(path, dict[str, Predicted])
        for key, said in predicted.items():
            unknown += key not in summaries
            verdicts += [{**row, "evaluator": name} for row in _verdicts(key, said) if key in summaries]
    notes = [f"{count(len(summaries), 'summary').replace('summarys', 'summaries')}, {count(len(claims), 'claim')}"]
    if unknown:
        notes.append(f"{count(unknown, 'prediction')} of summaries that are not in the file")
    kept = [row for row in verdicts if row["claim_id"].rpartition(":")[2].isdigit() == ("sentence" in levels)]
    kept = verdicts if level == "both" else kept
    table = validate_verdicts(pd.DataFrame(kept), claims=claims, source="storysumm") if kept else None
    return Conversion(claims, table, notes)


def _claims(key: str, one: Summary, levels: Sequence[str]) -> Iterator[dict[str, Any]]:
    shared = {"task": "summarization", "system": one.model, "doc_id": one.story_id, "doc": one.story}
    shared |= {"split": one.split, "difficulty": one.difficulty, "response_id": key}
    if "sentence" in levels:
        for at, (sentence, label) in enumerate(zip(one.summary, one.errors, strict=False)):
            dataset = _DATASETS["sentence"]
            yield {**shared, "dataset": dataset, "claim_id": f"{key}:{at}", "claim": sentence, "label": label}
    if "summary" in levels:
        text = " ".join(one.summary)
        yield {
            **shared,
            "dataset": _DATASETS["summary"],
            "claim_id": f"{key}:whole",
            "claim": text,
            "label": one.label,
        }


def _verdicts(key: str, said: Predicted) -> Iterator[dict[str, Any]]:
    probs = said.probs
    if said.label is not None:
        raw = probs if isinstance(probs, str) else None
        yield {"claim_id": f"{key}:whole", "prediction": said.label, "raw": raw, "score": _share(probs)}
    elif _share(probs) is not None:
        yield {"claim_id": f"{key}:whole", "score": _share(probs)}
    for at, label in enumerate(said.sentence_labels or ()):
        score = _share(probs[at]) if isinstance(probs, list) and at < len(probs) else None
        yield {"claim_id": f"{key}:{at}", "prediction": label, "score": score}


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None
