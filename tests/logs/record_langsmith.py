"""Writes tests/logs/langsmith_* with LangSmith's SDK itself (pip install langsmith==0.15.0 pandas), offline.

`evaluate(..., upload_results=False)` with two evaluators of our own: its frame as CSV, and its runs as the SDK's model
of a run dumps them, with the feedback that the service would count (`feedback_stats`).
"""

import json
import os
import re
import sys
import uuid
from datetime import datetime
from pathlib import Path

os.environ |= {"LANGSMITH_TRACING": "false", "LANGSMITH_API_KEY": "none"}

from langsmith import evaluate
from langsmith.schemas import Example, Run

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = ["yes", "no", "yes"]
folder = Path(sys.argv[1])


def words(text):
    return re.findall(r"\w+", text.lower())


def overlap(inputs, outputs):
    found = words(outputs["answer"])
    return {"key": "overlap", "score": sum(word in words(inputs["context"]) for word in found) / len(found)}


def grounded(outputs):
    return {"key": "grounded", "score": "wood" not in outputs["answer"], "comment": "looked it up"}


examples = [
    Example(
        id=uuid.uuid5(uuid.NAMESPACE_DNS, doc),
        inputs={"question": "What is known?", "context": doc},
        outputs={"label": label},
        dataset_id=uuid.uuid5(uuid.NAMESPACE_DNS, "mini"),
        created_at=datetime(2026, 1, 1),
    )
    for doc, label in zip(DOCS, LABELS, strict=True)
]
found = evaluate(
    lambda inputs: {"answer": CLAIMS[DOCS.index(inputs["context"])]},
    data=examples,
    evaluators=[overlap, grounded],
    upload_results=False,
)
found.to_pandas().to_csv(folder / "langsmith_experiment.csv", index=False)
with (folder / "langsmith_runs.jsonl").open("w") as file:
    for row in found:
        fields = json.loads(row["run"].model_dump_json())
        fields["extra"] = {"metadata": {"label": row["example"].outputs["label"]}}
        fields["feedback_stats"] = {
            one.key: {"n": 1, "avg": float(one.score), "values": {}} for one in row["evaluation_results"]["results"]
        }
        run = Run(**fields)
        file.write(run.model_dump_json() + "\n")
