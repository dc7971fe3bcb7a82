"""Logs in the form of Inspect (inspect_ai, version 2, JSON), for its viewer and its data frames."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from factaudit.files import make_safe_file_name, write_json
from factaudit.results import Results
from factaudit.signature import hash_texts
from factaudit.tables import list_plain_rows, read_run_tables


def export_inspect_log(run_dir: Path, out: Path) -> list[Path]:
    """Write ``DATASET.json`` for each data set: a sample is a claim, a scorer an evaluator, an epoch a repeat.

    The claim is the model's output, the document and the label are metadata; a score is the number where there is one,
    else C or I as the evaluator found the claim attributable or not, N where it said neither.
    """
    claims, verdicts = read_run_tables(run_dir)
    results = Results.load(run_dir)
    created = datetime.fromtimestamp((run_dir / "results.json").stat().st_mtime, UTC).isoformat(timespec="seconds")
    said = {key: list_plain_rows(part) for key, part in verdicts.groupby(["claim_id", "repeat"])}
    paths = []
    for dataset, part in claims[claims["abstained"].isna()].groupby("dataset", sort=False):
        samples = []
        for claim in list_plain_rows(part):
            epoch = 0
            while (rows := said.get((claim["claim_id"], epoch))) is not None:
                samples.append(_make_inspect_sample_to_export(claim, rows, epoch + 1))
                epoch += 1
        path = out / f"{make_safe_file_name(str(dataset))}.json"
        if path in paths:  # two names of data sets that differ in blanks or signs
            path = path.with_stem(f"{path.stem}-{hash_texts(str(dataset))[:8]}")
        write_json(path, _make_inspect_log_to_export(str(dataset), samples, results, created))
        paths.append(path)
    return paths


def _make_inspect_log_to_export(
    dataset: str, samples: list[dict[str, Any]], results: Results, created: str
) -> dict[str, Any]:
    names = list(dict.fromkeys(name for sample in samples for name in sample["scores"]))
    key = hash_texts(results.signature, dataset)
    ids = list(dict.fromkeys(sample["id"] for sample in samples))
    scores = [{"name": name, "scorer": name, "params": {}, "metrics": {}} for name in names]
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": key,
            "run_id": key,
            "created": created,
            "task": dataset,
            "task_id": key,
            "task_version": 0,
            "task_args": {},
            "dataset": {"name": dataset, "samples": len(ids), "sample_ids": ids, "shuffled": False},
            "model": "none/none",
            "model_args": {},
            "config": {"epochs": max(sample["epoch"] for sample in samples)},
            "packages": {"factaudit": str(results.about.get("factaudit", ""))},
            "metadata": {"signature": results.signature},
            "scorers": [{"name": name, "options": {}, "metrics": [], "metadata": {}} for name in names],
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores},
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": samples,
    }


def _make_inspect_sample_to_export(
    claim: dict[str, Any], verdict_rows: list[dict[str, Any]], epoch: int
) -> dict[str, Any]:
    text, system = claim["claim"] or "(no text)", claim["system"] or "none/none"
    label = claim["label"]
    metadata = {"document": claim["doc"], "label": label, "response_id": claim["response_id"]}
    message = {"role": "assistant", "content": text, "source": "generate", "model": system}
    return {
        "id": claim["claim_id"],
        "epoch": epoch,
        "input": "Is the claim attributable to the document?",
        "target": "" if label is None else str(label),
        "messages": [message],
        "output": {"model": system, "choices": [{"message": message, "stop_reason": "stop"}], "completion": text},
        "scores": {row["evaluator"]: _make_inspect_score_to_export(row) for row in verdict_rows},
        "metadata": {key: value for key, value in metadata.items() if value is not None},
    }


def _make_inspect_score_to_export(verdict_row: dict[str, Any]) -> dict[str, Any]:
    told = {"metadata": {"status": verdict_row["status"]}} | (
        {"explanation": verdict_row["raw"]} if verdict_row["raw"] else {}
    )
    letter = {None: "N", 1: "C", 0: "I"}[verdict_row["prediction"]]
    return {"value": letter if verdict_row["score"] is None else verdict_row["score"], **told}
