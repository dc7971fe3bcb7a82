"""RAGTruth's numbers that ship (factaudit/start/demo): they are consistent, and what was published."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from factaudit.datasets import convert
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


def test_the_labels_that_ship_are_those_of_the_responses() -> None:
    claims = convert("ragtruth-scores", [DATA / "responses.jsonl.gz"]).claims
    annotations = read_annotations(DATA / "labels.jsonl", claims=claims)
    known = claims.set_index("claim_id")["label"][annotations["claim_id"]]
    assert annotations["label"].tolist() == known.tolist()
