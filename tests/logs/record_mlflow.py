"""Writes tests/logs/mlflow_*.json* with MLflow itself (pip install mlflow==3.17.2), offline.

`mlflow.genai.evaluate` with two scorers of our own, and what a person said of each trace: the table of results and the
traces with their assessments. `mlflow.models.evaluate` with a metric of grades from 1 to 5, as its GenAI metrics give
them: the table that it stores.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{tempfile.mkdtemp()}/log.db"

import mlflow
import pandas as pd
from mlflow.entities import AssessmentSource, Feedback
from mlflow.genai import scorer
from mlflow.metrics import MetricValue, make_metric

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = ["yes", "no", "yes"]
folder = Path(sys.argv[1]).resolve()
os.chdir(tempfile.mkdtemp())


def words(text):
    return re.findall(r"\w+", text.lower())


@scorer
def overlap(inputs, outputs):
    found = words(outputs)
    return sum(word in words(inputs["document"]) for word in found) / len(found)


@scorer
def grounded(outputs):
    return Feedback(value="no" if "wood" in outputs else "yes", rationale="looked it up")


mlflow.set_experiment("mini")
rows = [{"inputs": {"question": "?", "document": d}, "outputs": c} for d, c in zip(DOCS, CLAIMS, strict=True)]
mlflow.genai.evaluate(data=rows, scorers=[overlap, grounded])
person = AssessmentSource(source_type="HUMAN", source_id="ann")
for trace in mlflow.search_traces(return_type="list"):
    at = DOCS.index(trace.data.spans[0].inputs["document"])
    mlflow.log_feedback(trace_id=trace.info.trace_id, name="supported", value=LABELS[at], source=person)
table = mlflow.search_traces()
for column in ("trace_metadata", "tags"):
    table[column] = [{} for _ in range(len(table))]
table["trace"] = None
table.to_json(folder / "mlflow_traces.jsonl", orient="records", lines=True, default_handler=str)


def count_grades(predictions):
    grades = [1 if "wood" in text else 5 for text in predictions]
    return MetricValue(scores=grades, justifications=["looked it up"] * len(grades), aggregate_results={"mean": 3.7})


frame = pd.DataFrame({"inputs": ["?"] * 3, "context": DOCS, "outputs": CLAIMS, "label": LABELS})
metric = make_metric(eval_fn=count_grades, greater_is_better=True, name="faithfulness", version="v1")
result = mlflow.models.evaluate(data=frame, predictions="outputs", extra_metrics=[metric])
result.tables["eval_results_table"].to_json(folder / "mlflow_eval_results_table.json", orient="split", index=False)
