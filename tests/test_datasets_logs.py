"""Logs of evaluation frameworks, read from files that the frameworks themselves wrote
(tests/logs/README.md)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit import convert
from factaudit.cli import main
from factaudit.datasets.input_tables import load_input_tables
from factaudit.errors import InputError
from factaudit.tables import read_claims

LOGS = Path(__file__).parent / "logs"


def test_an_inspect_archive_without_zstandard_is_read_alike(tmp_path: Path) -> None:
    log = json.loads((LOGS / "inspect.json").read_text())
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "header.json",
            json.dumps({key: value for key, value in log.items() if key != "samples"}),
        )
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    found, expected = (
        convert("inspect", [tmp_path / "log.eval"]),
        convert("inspect", [LOGS / "inspect.eval"]),
    )
    pd.testing.assert_frame_equal(found.claims, expected.claims)
    assert found.verdicts is not None
    pd.testing.assert_frame_equal(found.verdicts, expected.verdicts)


def test_an_option_of_the_command_line_is_text(tmp_path: Path) -> None:
    path = tmp_path / "samples_mine.jsonl"
    rows = [
        {"doc_id": at, "doc": {"claim": "c"}, "target": target}
        for at, target in enumerate(["yes", "maybe"])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "claims.csv"
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "convert",
                "lm-eval",
                str(path),
                "--option",
                "mapping={labels: {'yes': 1, maybe: 0}}",
                "--out",
                str(out),
            ]
        )
    assert stop.value.code == 0
    assert read_claims(out)["label"].tolist() == [1, 0]


def test_a_log_without_labels_of_people_says_so(tmp_path: Path) -> None:
    log = json.loads((LOGS / "promptfoo.json").read_text())
    assert not any(
        "labels    none" in note for note in convert("promptfoo", [LOGS / "promptfoo.json"]).notes
    )
    for result in log["results"]["results"]:
        del result["vars"]["human"]
    (tmp_path / "log.json").write_text(json.dumps(log))
    notes = convert("promptfoo", [tmp_path / "log.json"]).notes
    assert any(note.startswith("labels    none found") for note in notes)


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
        ("BUMP", {"reference_summary": "a", "edited_summary": "b", "article": "c"}),
    ],
)
def test_a_file_that_is_told_and_not_read_says_what_to_give(
    tool: str, row: dict[str, Any], tmp_path: Path
) -> None:
    path = write_lines(tmp_path / "log.jsonl", [row])
    with pytest.raises(
        InputError,
        match=f"a file of {tool}, which is not read: save a table with a row for each claim",
    ):
        load_input_tables([path])
