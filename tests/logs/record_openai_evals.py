"""Writes tests/logs/openai_evals_*.jsonl with the library itself (pip install evals==3.0.1.post1, any OPENAI_API_KEY).

Two runs of its own classes with functions in place of models: the model-graded eval `closedqa`, where a grader judges
what a model wrote, and `Match`, where a model is asked whether a document supports a claim.
"""

import json
import sys
from pathlib import Path

import evals
import evals.record
from evals.base import RunSpec
from evals.elsuite.basic.match import Match
from evals.elsuite.modelgraded.classify import ModelBasedClassify
from evals.registry import Registry

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = ["Yes", "No", "Yes"]
folder = Path(sys.argv[1]).resolve()


class Says:
    def __init__(self, name, answer):
        self.name, self.answer = name, answer

    def __call__(self, prompt, **kwargs):
        text = prompt if isinstance(prompt, str) else "\n".join(part["content"] for part in prompt)
        said = self.answer(text)
        evals.record.record_sampling(prompt=prompt, sampled=[said], model=self.name)
        return Said(said)


class Said:
    def __init__(self, text):
        self.text = text

    def get_completions(self):
        return [self.text]


def grade(text):
    return "N" if "wood" in text else "The submission says what the text says.\nY"


def writes(text):
    return next(claim for doc, claim in zip(DOCS, CLAIMS, strict=True) if doc in text)


def run(cls, name, samples, models, log, **options):
    path = folder / f"{log}_samples.jsonl"
    path.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    spec = RunSpec(
        completion_fns=[model.name for model in models],
        eval_name=f"{name}.dev.v0",
        base_eval=name,
        split="dev",
        run_config={"eval_spec": {"args": {"samples_jsonl": path.name}}},
        created_by="",
    )
    recorder = evals.record.LocalRecorder(str(folder / f"{log}.jsonl"), spec)
    task = cls(
        completion_fns=models, samples_jsonl=str(path), eval_registry_path=folder, name=spec.eval_name, **options
    )
    recorder.record_final_report(task.run(recorder))
    recorder.flush_events()


run(
    ModelBasedClassify,
    "grounded",
    [
        {
            "input": f"Say in one sentence what this text says: {doc}",
            "document": doc,
            "label": label,
            "criteria": "it says what the text says",
        }
        for doc, label in zip(DOCS, LABELS, strict=True)
    ],
    [Says("writer", writes), Says("grader", grade)],
    "openai_evals_graded",
    modelgraded_spec="closedqa",
    registry=Registry(),
)
run(
    Match,
    "support",
    [
        {
            "input": [{"role": "user", "content": f"{doc}\nIs this supported: {claim}"}],
            "ideal": label,
            "document": doc,
            "claim": claim,
        }
        for doc, claim, label in zip(DOCS, CLAIMS, LABELS, strict=True)
    ],
    [Says("asked", lambda text: "No" if "wood" in text or "foxes" in text else "Yes")],
    "openai_evals_match",
)
