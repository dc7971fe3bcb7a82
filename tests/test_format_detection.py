"""Known formats are recognised by what files hold, in every verb, without `convert`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from conftest import run_command

from factaudit import InputError, read_claims, read_verdicts
from factaudit.datasets import FORMATS
from factaudit.datasets.format_detection import detect_dataset_format

LOGS = Path(__file__).parent / "logs"
LOG_FORMATS = {
    "deepeval.json": "deepeval",
    "inspect.json": "inspect",
    "lm_eval_samples_mini_support.jsonl": "lm-eval",
    "phoenix.csv": "phoenix",
    "phoenix.jsonl": "phoenix",
    "promptfoo.json": "promptfoo",
    "ragas.csv": "ragas",
    "ragas.jsonl": "ragas",
    "trulens.jsonl": "trulens",
}
#: Tables that people have, which are of no known format.
EVERYDAY_TABLES = {
    "own.csv": "dataset,claim,doc,label\na,b,c,1\n",
    "wide.csv": "case_id,model,human_label,judge_label\n1,m,1,0\n",
    "scores.csv": "question,answer,context,ground_truth,faithfulness\nq,a,c,g,1\n",
    "pairs.json": '[{"claim": "x", "label": 1, "scores": {"a": 0.5}}]',
    "split.json": '{"columns": ["claim", "label"], "data": [["x", 1]]}',
    "verdicts.jsonl": '{"claim_id": "1", "evaluator": "e", "score": 0.4}\n',
    "empty.jsonl": "",
    "broken.json": "{",
    "notes.txt": "testCases metricsData",
}


@pytest.mark.parametrize(("file", "name"), LOG_FORMATS.items())
def test_a_log_is_recognised_whatever_it_is_called(file, name, tmp_path):
    copy = tmp_path / f"mine{Path(file).suffix}"
    shutil.copy(LOGS / file, copy)
    assert detect_dataset_format(copy) == name


@pytest.mark.parametrize("name", EVERYDAY_TABLES)
def test_an_everyday_table_is_of_no_known_format(name, tmp_path):
    path = tmp_path / name
    path.write_text(EVERYDAY_TABLES[name])
    assert detect_dataset_format(path) is None


def test_a_file_that_looks_like_two_formats_is_asked_about(tmp_path):
    path = tmp_path / "both.json"
    deepeval = json.loads((LOGS / "deepeval.json").read_text())
    path.write_text(json.dumps(deepeval | json.loads((LOGS / "promptfoo.json").read_text())))
    with pytest.raises(InputError, match="looks like deepeval and like promptfoo: save a table"):
        detect_dataset_format(path)


@pytest.mark.slow
def test_verbs_take_a_log_as_it_is(tmp_path, capsys):
    log = tmp_path / "log.json"
    shutil.copy(LOGS / "inspect.json", log)
    assert run_command("inspect", log) == 0
    assert "format    inspect" in capsys.readouterr().out
    assert run_command("inspect", log) == 0
    assert "claims    3: " in capsys.readouterr().out
    assert run_command("audit", log, "--out", tmp_path / "audited") == 0
    assert read_claims(tmp_path / "audited" / "claims.parquet")["label"].tolist() == [1, 0, 1]
    assert (
        run_command("judge", log, "--evaluator", "rouge2", "--out", tmp_path / "verdicts.csv") == 0
    )
    assert len(read_verdicts(tmp_path / "verdicts.csv")) == 3


def test_a_nested_field_is_mapped_by_its_path(tmp_path, capsys):
    log = json.loads((LOGS / "inspect.json").read_text())
    for sample in log["samples"]:
        sample["metadata"]["review"] = {"verdict": "supported"}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    assert run_command("inspect", path, "--label", "metadata.review.verdict") == 0
    assert "label: metadata.review.verdict" in capsys.readouterr().out
    assert (
        run_command("audit", path, "--label", "metadata.review.verdit", "--out", tmp_path / "out")
        == 1
    )
    assert "did you mean 'metadata.review.verdict'?" in capsys.readouterr().err


def test_annotated_responses_are_for_the_engine(tmp_path, capsys):
    fact = {"text": "Ada was born.", "label": "S"}
    sentence = {"text": "Ada was born.", "is-relevant": True, "human-atomic-facts": [fact]}
    row = {
        "input": "Tell me",
        "output": "Ada was born.",
        "topic": "Ada",
        "annotations": [sentence],
    }
    path = tmp_path / "people.jsonl"
    path.write_text(json.dumps(row | {"annotations": None}) + "\n" + json.dumps(row) + "\n")
    assert run_command("inspect", path) == 0
    assert f"factaudit factscore {path} --facts human" in capsys.readouterr().out
    assert run_command("audit", path, "--out", tmp_path / "out") == 1
    assert f"factaudit factscore {path} --facts human" in capsys.readouterr().err


def test_a_format_without_a_mark_has_a_reason():
    """LLM-AggreFact has our own columns; y_true and y_score are everybody's."""
    assert {name for name, entry in FORMATS.items() if not entry.marks} == {
        "aggrefact",
        "score-csv",
    }
