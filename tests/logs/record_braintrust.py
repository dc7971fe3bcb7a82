"""Writes tests/logs/braintrust.jsonl with Braintrust's SDK itself (pip install braintrust==0.47.0), offline.

`Eval(..., no_send_logs=True)` with two scorers of our own; its results in the rows of an experiment's export, whose
keys are those of the SDK's `ExperimentEvent`.
"""

import json
import re
import sys
from pathlib import Path

from braintrust import Eval
from braintrust._generated_types import ExperimentEvent

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = [1, 0, 1]


def words(text):
    return re.findall(r"\w+", text.lower())


def overlap(input, output, expected=None):
    found = words(output)
    return sum(word in words(input["context"]) for word in found) / len(found)


def grounded(input, output, expected=None):
    return float("wood" not in output)


found = Eval(
    "mini",
    data=[
        {"input": {"question": "?", "context": doc}, "expected": "A sentence.", "metadata": {"label": label}}
        for doc, label in zip(DOCS, LABELS, strict=True)
    ],
    task=lambda input: CLAIMS[DOCS.index(input["context"])],
    scores=[overlap, grounded],
    no_send_logs=True,
)
with (Path(sys.argv[1]) / "braintrust.jsonl").open("w") as file:
    for at, one in enumerate(sorted(found.results, key=lambda one: DOCS.index(one.input["context"]))):
        row = {"id": f"row-{at}", "span_id": f"span-{at}", "root_span_id": f"span-{at}", "is_root": True}
        row |= {"project_id": "p", "experiment_id": "e", "_xact_id": "1", "created": "2026-11-23T10:00:00Z"}
        row |= {"input": one.input, "output": one.output, "expected": one.expected, "error": one.error}
        row |= {"scores": one.scores, "metadata": one.metadata, "tags": one.tags}
        row |= {
            "metrics": {"start": 1.5, "end": 2.5, "tokens": 12},
            "span_attributes": {"name": "eval", "type": "eval"},
        }
        assert row.keys() <= ExperimentEvent.__annotations__.keys(), row.keys() - ExperimentEvent.__annotations__.keys()
        file.write(json.dumps(row) + "\n")
