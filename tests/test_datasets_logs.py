"""Logs of evaluation frameworks, read from files that the frameworks themselves wrote
(tests/logs/README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from audit_tables import load_input_tables

from factaudit import InputError

LOGS = Path(__file__).parent / "logs"


def test_a_log_without_labels_of_people_says_so(tmp_path):
    log = json.loads((LOGS / "promptfoo.json").read_text())
    for has_labels in (True, False):
        path = tmp_path / f"{has_labels}.json"
        path.write_text(json.dumps(log))
        notes = []
        load_input_tables([path], None, notes.append)
        assert any(note.startswith("labels    none found") for note in notes) != has_labels
        for result in log["results"]["results"]:
            result["vars"].pop("human", None)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


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
        ("HaluEval", {"knowledge": "a", "right_answer": "b", "hallucinated_answer": "c"}),
        ("Braintrust", {"scores": {}, "output": "a", "root_span_id": "r"}),
        ("BUMP", {"reference_summary": "a", "edited_summary": "b", "article": "c"}),
    ],
)
def test_a_file_that_is_told_and_not_read_says_what_to_give(tool, row, tmp_path):
    path = write_lines(tmp_path / "log.jsonl", [row])
    with pytest.raises(
        InputError,
        match=f"a file of {tool}, which is not read: save a table with a row for each claim",
    ):
        load_input_tables([path])
