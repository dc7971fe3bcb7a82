"""Logs of evaluation frameworks, read from files that the frameworks themselves wrote (tests/logs/README.md)."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from factaudit.datasets import convert
from factaudit.errors import InputError, UsageError

LOGS = Path(__file__).parent / "logs"
DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = [1, 0, 1]
#: What the logs' metric of overlapping words gave.
OVERLAP = [1.0, 5 / 6, 0.8]


def verdicts_of(name: str, file: str, metric: str, **options: Any) -> list[list[Any]]:
    found = convert(name, [LOGS / file], **options)
    assert [claim.capitalize() for claim in found.claims["claim"]] == [claim.capitalize() for claim in CLAIMS]
    assert found.verdicts is not None
    part = found.verdicts[found.verdicts["evaluator"] == metric]
    return part[["score", "prediction", "status"]].to_numpy().tolist()


@pytest.mark.parametrize("file", ["inspect.eval", "inspect.json"])
def test_inspect(file: str) -> None:
    found = convert("inspect", [LOGS / file])
    assert found.claims["doc"].tolist() == DOCS
    assert found.claims["label"].tolist() == LABELS
    assert found.claims["system"].tolist() == ["mockllm/model"] * 3
    assert [row[1] for row in verdicts_of("inspect", file, "grounded")] == [1, 0, 1]
    assert [row[0] for row in verdicts_of("inspect", file, "overlap")] == pytest.approx(OVERLAP)
    assert found.verdicts is not None
    assert found.verdicts["evaluator"].unique().tolist() == ["grounded", "overlap"]


def test_inspect_epochs_are_repeats_and_errors_are_no_verdicts(tmp_path: Path) -> None:
    log = json.loads((LOGS / "inspect.json").read_text())
    again = json.loads(json.dumps(log["samples"]))
    for sample in again:
        sample["epoch"] = 2
    again[0]["error"] = {"message": "the sandbox is gone"}
    log["samples"] += again
    (tmp_path / "log.json").write_text(json.dumps(log))
    found = convert("inspect", [tmp_path / "log.json"])
    assert len(found.claims) == 3
    assert found.verdicts is not None
    assert found.verdicts["repeat"].value_counts().to_dict() == {0: 6, 1: 6}
    assert found.verdicts["status"].value_counts().to_dict() == {"ok": 10, "error": 2}


def test_lm_evaluation_harness() -> None:
    file = "lm_eval_samples_mini_support.jsonl"
    rows = verdicts_of("lm-eval", file, "tiny", evaluator="tiny")
    first = json.loads((LOGS / file).read_text().splitlines()[0])
    no, yes = (math.exp(float(one[0])) for one in first["filtered_resps"])
    assert rows[0][0] == pytest.approx(yes / (no + yes))
    found = convert("lm-eval", [LOGS / file], evaluator="tiny")
    assert found.claims["label"].tolist() == LABELS
    assert found.claims["doc"].tolist() == DOCS
    # The harness counts a prediction as right where it is the target.
    right = [float(json.loads(line)["acc"]) for line in (LOGS / file).read_text().splitlines()]
    assert [float(row[1] == label) for row, label in zip(rows, LABELS, strict=True)] == right


def test_deepeval() -> None:
    rows = verdicts_of("deepeval", "deepeval.json", "Word Overlap")
    assert [row[0] for row in rows] == pytest.approx(OVERLAP)
    assert [row[1] for row in rows] == [1, 0, 0]  # by the metric's own threshold of 0.9, not by 0.5
    assert convert("deepeval", [LOGS / "deepeval.json"]).claims["doc"].tolist() == DOCS


def test_promptfoo() -> None:
    rows = verdicts_of("promptfoo", "promptfoo.json", "grounded")
    assert [row[1] for row in rows] == [0, 0, 1]
    found = convert("promptfoo", [LOGS / "promptfoo.json"], metrics="close")
    assert found.verdicts is not None
    assert found.verdicts["evaluator"].unique().tolist() == ["close"]
    assert found.claims["label"].tolist() == LABELS
    assert found.claims["system"].tolist() == ["echo"] * 3


@pytest.mark.parametrize("file", ["ragas.csv", "ragas.jsonl"])
def test_ragas(file: str) -> None:
    rows = verdicts_of("ragas", file, "faithfulness")
    assert [row[0] for row in rows] == pytest.approx(OVERLAP)
    docs = convert("ragas", [LOGS / file]).claims["doc"].tolist()
    assert docs == [f"{doc}\n\nNothing else is known." for doc in DOCS]


def test_openai_evals_a_grader_is_the_evaluator_of_what_a_model_wrote() -> None:
    samples = LOGS / "openai_evals_graded_samples.jsonl"
    rows = verdicts_of("openai-evals", "openai_evals_graded.jsonl", "grounded", samples=samples)
    assert [row[:2] for row in rows] == [[1.0, 1], [0.0, 0], [1.0, 1]]
    found = convert("openai-evals", [LOGS / "openai_evals_graded.jsonl"], samples=samples)
    assert found.claims["doc"].tolist() == DOCS
    assert found.claims["label"].tolist() == LABELS
    assert found.claims["system"].tolist() == ["writer"] * 3
    assert found.verdicts is not None
    assert found.verdicts["raw"][0] == "The submission says what the text says.\nY"
    without = convert("openai-evals", [LOGS / "openai_evals_graded.jsonl"])
    assert without.claims["claim"].tolist() == CLAIMS
    assert without.claims["doc"].isna().all()  # the log has no field for it: only prompts


def test_openai_evals_a_model_that_was_asked_is_the_evaluator() -> None:
    samples = LOGS / "openai_evals_match_samples.jsonl"
    rows = verdicts_of("openai-evals", "openai_evals_match.jsonl", "asked", samples=samples)
    assert [row[1] for row in rows] == [1, 0, 0]  # it was wrong on the last one
    found = convert("openai-evals", [LOGS / "openai_evals_match.jsonl"], samples=samples)
    assert found.claims["label"].tolist() == LABELS
    assert found.claims["doc"].tolist() == DOCS
    report = json.loads((LOGS / "openai_evals_match.jsonl").read_text().splitlines()[1])["final_report"]
    right = [row[1] == label for row, label in zip(rows, LABELS, strict=True)]
    assert sum(right) / 3 == pytest.approx(report["accuracy"])


@pytest.mark.parametrize("file", ["phoenix.csv", "phoenix.jsonl"])
def test_phoenix(file: str) -> None:
    assert [row[0] for row in verdicts_of("phoenix", file, "overlap")] == pytest.approx([1, 5 / 6, 1])
    # Hallucination is to be minimised: its 1 is not supported.
    assert [row[:2] for row in verdicts_of("phoenix", file, "hallucination")] == [[1.0, 1], [0.0, 0], [1.0, 1]]
    found = convert("phoenix", [LOGS / file])
    assert found.claims["doc"].tolist() == DOCS
    assert found.claims["label"].tolist() == LABELS
    assert found.verdicts is not None
    assert found.verdicts["raw"].dropna().unique().tolist() == ["looked it up"]


def test_trulens() -> None:
    assert [row[0] for row in verdicts_of("trulens", "trulens.jsonl", "Groundedness")] == pytest.approx([1, 5 / 6, 1])
    found = convert("trulens", [LOGS / "trulens.jsonl"])
    assert found.claims["doc"].tolist() == DOCS  # what the feedback function was called with
    assert found.claims["system"].tolist() == ["writer"] * 3


@pytest.mark.parametrize(
    ("name", "file", "options", "said"),
    [
        ("inspect", "inspect.json", {"doc": "metadata.docs"}, "did you mean 'metadata.document'?"),
        ("inspect", "inspect.json", {"metrics": "overlab"}, "did you mean 'overlap'?"),
        ("deepeval", "promptfoo.json", {}, "testCases"),
        ("promptfoo", "deepeval.json", {}, "results"),
        ("inspect", "deepeval.json", {}, "holds no samples"),
        ("inspect", "ragas.csv", {}, "not a log of Inspect"),
        ("lm-eval", "ragas.jsonl", {}, "doc_id"),
        ("openai-evals", "ragas.jsonl", {}, "'spec'"),
        ("openai-evals", "openai_evals_match.jsonl", {"samples": LOGS / "ragas.csv", "doc": "sample.d"}, "'sample."),
        ("trulens", "ragas.jsonl", {}, "NAME_calls"),
        ("phoenix", "ragas.csv", {}, "NAME_score"),
    ],
)
def test_another_log_or_field_is_a_clear_error(name: str, file: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError)) as error:
        convert(name, [LOGS / file], **options)
    assert said in str(error.value)
