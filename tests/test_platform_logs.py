"""Logs of platforms: recorded ones, odd ones of their shapes, and those that are told and not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from factaudit.datasets import Conversion, convert
from factaudit.datasets.input_tables import load_input_tables
from factaudit.errors import InputError
from factaudit.tables.questions import AmbiguousReadingError

LOGS = Path(__file__).parent / "logs"
DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = [1, 0, 1]
#: The shares of each claim's words in its document.
OVERLAP = [1.0, 5 / 6, 1.0]


def list_by_claim(found: Conversion, evaluator: str, column: str) -> list[Any]:
    """What an evaluator said of `CLAIMS`, in their order."""
    assert found.verdicts is not None
    own = found.verdicts[found.verdicts["evaluator"] == evaluator].set_index("claim_id")[column]
    ids = found.claims.set_index("claim")["claim_id"]
    return [own[ids[claim]] for claim in CLAIMS]


def check_texts_and_labels(found: Conversion) -> None:
    table = found.claims.set_index("claim")
    assert [table.loc[claim, "doc"] for claim in CLAIMS] == DOCS
    assert [table.loc[claim, "label"] for claim in CLAIMS] == LABELS


@pytest.mark.parametrize(("name", "files"), [("braintrust", ["braintrust.jsonl"])])
def test_a_recorded_log_is_claims_labels_and_two_evaluators(name: str, files: list[str]) -> None:
    found = convert(name, [LOGS / file for file in files])
    check_texts_and_labels(found)
    assert found.verdicts is not None
    assert set(found.verdicts["evaluator"]) == {"overlap", "grounded"}  # no cost, time, count or person
    assert list_by_claim(found, "overlap", "score") == pytest.approx(OVERLAP)
    assert list_by_claim(found, "grounded", "prediction") == [1, 0, 1]
    loaded = load_input_tables([LOGS / file for file in files])
    assert loaded.verdicts is not None
    assert loaded.verdicts.equals(found.verdicts)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_score_of_people_is_the_label_and_no_evaluator(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "braintrust.jsonl").read_text().splitlines()]
    for row, label in zip(rows, LABELS, strict=True):
        row["metadata"], row["scores"]["human"] = {}, float(label)
    rows[0]["scores"]["overlap"] = None
    rows.append({"id": "x", "span_id": "x", "root_span_id": "span-0", "input": "q", "output": "a", "scores": None})
    path = tmp_path / "experiment.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = convert("braintrust", [path])
    check_texts_and_labels(found)
    assert found.verdicts is not None
    assert set(found.verdicts["evaluator"]) == {"overlap", "grounded"}
    assert found.verdicts["status"].value_counts().to_dict() == {"ok": 5, "skipped": 1}


def test_numbers_beyond_one_are_grades_of_their_scale(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "braintrust.jsonl").read_text().splitlines()]
    path = tmp_path / "experiment.jsonl"
    for grades, scores in (([5, 1, 4], [1.0, 0.0, 0.75]), ([3, 1, 2], None)):
        for row, grade in zip(rows, grades, strict=True):
            row["scores"]["overlap"] = grade
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if scores is not None:
            assert list_by_claim(convert("braintrust", [path]), "overlap", "score") == scores
            continue
        with pytest.raises(AmbiguousReadingError, match="overlap holds numbers from 1 to 3: on which scale"):
            convert("braintrust", [path])


def test_two_tasks_of_one_harness_keep_their_samples_apart(tmp_path: Path) -> None:
    for task in ("one", "two"):
        row = {"doc_id": 0, "doc": {"claim": f"Of {task}."}, "target": "yes", "filtered_resps": ["yes"]}
        (tmp_path / f"samples_{task}.jsonl").write_text(json.dumps(row) + "\n")
    found = convert("lm-eval", [tmp_path])
    assert found.claims["claim"].tolist() == ["Of one.", "Of two."]
    assert found.claims["dataset"].tolist() == ["one", "two"]


@pytest.mark.parametrize(
    ("tool", "row"),
    [
        ("Langfuse", {"traceId": "t", "name": "faithful", "source": "EVAL", "value": 0.5}),
        ("LangSmith", {"run_type": "chain", "feedback_stats": {}, "dotted_order": "1"}),
        ("MLflow", {"trace_id": "t", "assessments": [], "response": "a"}),
        ("OpenAI Evals", {"spec": {"completion_fns": ["gpt"], "eval_name": "e"}}),
        ("HELM", {"instance_id": "1", "train_trial_index": 0, "stats": [{"name": {"name": "f"}}]}),
        ("OpenFactCheck", {"idx": 1, "solver": "s", "continue": True, "state": {"response": "r"}}),
        ("FELM", {"prompt": "p", "segmented_response": ["a"], "labels": [True]}),
        ("BUMP", {"reference_summary": "a", "edited_summary": "b", "article": "c"}),
    ],
)
def test_a_file_that_is_told_and_not_read_says_what_to_give(tool: str, row: dict[str, Any], tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [row])
    with pytest.raises(
        InputError, match=f"a file of {tool}, which is not read: save a table with a row for each claim"
    ):
        load_input_tables([path])
