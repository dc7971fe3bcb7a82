"""Writes tests/logs/phoenix.* with Arize Phoenix's evaluators themselves (pip install arize-phoenix-evals==3.9.4).

`evaluate_dataframe` with two evaluators of our own: one gives a number, the other a label with a score.
"""

import re
import sys
from pathlib import Path

import pandas as pd
from phoenix.evals import create_evaluator, evaluate_dataframe

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]


def words(text):
    return re.findall(r"\w+", text.lower())


@create_evaluator(name="overlap", kind="code")
def overlap(output: str, context: str) -> float:
    found = words(output)
    return sum(word in words(context) for word in found) / len(found)


@create_evaluator(name="hallucination", kind="code", direction="minimize")
def hallucination(output: str, context: str) -> dict:
    made_up = "wood" in output
    return {"score": float(made_up), "label": "hallucinated" if made_up else "factual", "explanation": "looked it up"}


table = pd.DataFrame({"input": ["What is known?"] * 3, "output": CLAIMS, "context": DOCS, "label": [1, 0, 1]})
found = evaluate_dataframe(dataframe=table, evaluators=[overlap, hallucination], hide_tqdm_bar=True)
folder = Path(sys.argv[1])
found.to_csv(folder / "phoenix.csv", index=False)
found.to_json(folder / "phoenix.jsonl", orient="records", lines=True)
