"""RAGTruth's numbers that ship (factaudit/start/demo): they are consistent, and 200 labels say what all 1,800 do."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from factaudit.datasets import convert
from factaudit.estimate.label_sample import read_sample
from factaudit.estimate.rate_estimation import estimate_rates
from factaudit.tables.annotations import read_annotations

ROOT = Path(__file__).parents[1]
DATA = ROOT / "factaudit" / "start" / "demo"


def test_only_numbers_and_ids_ship() -> None:
    with gzip.open(DATA / "responses.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    assert len(rows) == 1800
    keys = {"response_id", "source_id", "task_type", "system", "hallucinated", "scores"}
    assert all(set(row) == keys for row in rows)


def test_the_published_rates_come_out() -> None:
    claims = convert("ragtruth-scores", [DATA / "responses.jsonl.gz"]).claims
    answers = claims[claims["dataset"] == "RAGTruth-QA"]
    rates = 1 - answers.groupby("system")["label"].mean().astype(float)
    published = {"gpt-4-0613": 0.7, "gpt-3.5-turbo-0613": 3.3, "mistral-7B-instruct": 20.7}
    published |= {"llama-2-7b-chat": 34.7, "llama-2-13b-chat": 24.0, "llama-2-70b-chat": 23.3}
    assert {system: round(100 * rate, 1) for system, rate in rates.items()} == published


@pytest.mark.slow
def test_two_hundred_labels_tell_the_rates_within_their_intervals() -> None:
    found = convert("ragtruth-scores", [DATA / "responses.jsonl.gz"])
    claims, verdicts = found.claims, found.verdicts
    assert verdicts is not None
    annotations = read_annotations(DATA / "labels.jsonl", claims=claims)
    known = claims.set_index("claim_id")["label"]
    assert (annotations["label"].to_numpy() == known[annotations["claim_id"]].to_numpy()).all()
    estimates = estimate_rates(
        claims,
        verdicts,
        annotations=annotations,
        sample=read_sample(DATA / "sample.parquet"),
        main="modernbert_a",
        levels=["claim"],
    )
    truth = 1 - claims.groupby(["dataset", "system"])["label"].mean().astype(float)
    rows = [
        row for row in estimates.audits()["estimates"] if row["method"] == "hierarchical" and row["system"] != "__all__"
    ]
    assert len(rows) == 12
    covered = [row["rate_low"] <= truth[row["dataset"], row["system"]] <= row["rate_high"] for row in rows]
    assert sum(covered) >= 10
    bias = [abs(row["rate"] - truth[row["dataset"], row["system"]]) for row in rows]
    assert sum(bias) / len(bias) < 0.1
