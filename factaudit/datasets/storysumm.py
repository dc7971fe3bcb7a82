"""StorySumm: summaries of short stories, labelled by sentence and as a whole (Subbiah et al. 2024).

File: ``storysumm.json`` of melaniesubbiah/storysumm; ``predictions`` are the files of ``evaluators/predicted_labels``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from factaudit.datasets.source_files import (
    BinaryLabel,
    Conversion,
    DatasetSourceRow,
    PathsOption,
    expand_dataset_source_folders,
    read_dataset_source_items,
)
from factaudit.errors import Problem
from factaudit.tables.unreadable_rows import leave_out_unreadable_row
from factaudit.text.display_text import format_count

_DATASETS = {"sentence": "StorySumm-sentences", "summary": "StorySumm-summaries"}


class StorySummary(DatasetSourceRow):
    label: BinaryLabel
    story: str
    summary: list[str] = Field(min_length=1)
    errors: list[BinaryLabel]
    story_id: str = Field(validation_alias="story-id")
    difficulty: str | None = None
    split: str | None = None
    model: str | None = None


class PredictedLabels(DatasetSourceRow):
    label: BinaryLabel | None = None
    sentence_labels: list[BinaryLabel] | None = None
    probs: Any = None


def convert_storysumm(
    sources: Sequence[Path], *, level: Literal["both", "sentence", "summary"] = "both", predictions: PathsOption = ()
) -> Conversion:
    """Sentences and whole summaries as claims, in one run: a data set for each level, with the same documents.

    The response of a sentence is its summary. An evaluator that judged whole summaries has verdicts on these, one that
    judged sentences on both, each on its own claims; the name is the file's, with its folder's where that is a model's.
    """
    levels = ["sentence", "summary"] if level == "both" else [level]
    summaries: dict[str, StorySummary] = {}
    for path in expand_dataset_source_folders(sources, "storysumm*.json"):
        for key, one in read_dataset_source_items(path, StorySummary).items():
            if len(one.errors) == len(one.summary):
                summaries[key] = one
                continue
            message = f"expected a label for each of {len(one.summary)} sentences, found {len(one.errors)}"
            leave_out_unreadable_row(path, Problem(f"{key}: {message}", one.position, "errors", "item"))
    rows = [row for key, one in summaries.items() for row in _list_storysumm_claims(key, one, levels)]
    verdicts, unknown = [], 0
    for path in expand_dataset_source_folders(predictions, "*.json"):
        name = path.stem if path.parent.name in ("predicted_labels", "") else f"{path.parent.name} {path.stem}"
        for key, said in read_dataset_source_items(path, PredictedLabels).items():
            unknown += key not in summaries
            verdicts += [{**row, "evaluator": name} for row in _list_storysumm_verdicts(key, said) if key in summaries]
    n_summaries = format_count(len(summaries), "summary").replace("summarys", "summaries")
    notes = [f"{n_summaries}, {format_count(len(rows), 'claim')}"]
    if unknown:
        notes.append(f"{format_count(unknown, 'prediction')} of summaries that are not in the file")
    if level != "both":
        verdicts = [row for row in verdicts if row["claim_id"].endswith(":whole") == (level == "summary")]
    return Conversion.from_rows(rows, verdicts, source="storysumm", notes=notes)


def _list_storysumm_claims(summary_id: str, summary: StorySummary, levels: Sequence[str]) -> Iterator[dict[str, Any]]:
    shared = {"task": "summarization", "system": summary.model, "doc_id": summary.story_id, "doc": summary.story}
    shared |= {"split": summary.split, "difficulty": summary.difficulty, "response_id": summary_id}
    if "sentence" in levels:
        for at, (sentence, label) in enumerate(zip(summary.summary, summary.errors, strict=True)):
            dataset = _DATASETS["sentence"]
            yield {**shared, "dataset": dataset, "claim_id": f"{summary_id}:{at}", "claim": sentence, "label": label}
    if "summary" in levels:
        text = " ".join(summary.summary)
        dataset = _DATASETS["summary"]
        yield {**shared, "dataset": dataset, "claim_id": f"{summary_id}:whole", "claim": text, "label": summary.label}


def _list_storysumm_verdicts(summary_id: str, predicted_labels: PredictedLabels) -> Iterator[dict[str, Any]]:
    probs = predicted_labels.probs
    if predicted_labels.label is not None:
        raw = probs if isinstance(probs, str) else None
        yield {
            "claim_id": f"{summary_id}:whole",
            "prediction": predicted_labels.label,
            "raw": raw,
            "score": _parse_probability(probs),
        }
    elif _parse_probability(probs) is not None:
        yield {"claim_id": f"{summary_id}:whole", "score": _parse_probability(probs)}
    for at, label in enumerate(predicted_labels.sentence_labels or ()):
        score = _parse_probability(probs[at]) if isinstance(probs, list) and at < len(probs) else None
        yield {"claim_id": f"{summary_id}:{at}", "prediction": label, "score": score}


def _parse_probability(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value <= 1 else None
