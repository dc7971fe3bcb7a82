"""Logs of platforms (MLflow, Langfuse, LangSmith, Braintrust, HELM): recorded ones, and odd ones of their shapes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit.datasets import convert
from factaudit.datasets.format_detection import detect_dataset_format
from factaudit.datasets.source_files import Conversion
from factaudit.errors import InputError
from factaudit.input_tables import load_input_tables

LOGS = Path(__file__).parent / "logs"
DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = [1, 0, 1]
#: The shares of each claim's words in its document.
OVERLAP = [1.0, 5 / 6, 1.0]
RECORDED = {
    "mlflow_traces.jsonl": "mlflow",
    "mlflow_eval_results_table.json": "mlflow",
    "langsmith_experiment.csv": "langsmith",
    "langsmith_runs.jsonl": "langsmith",
    "braintrust.jsonl": "braintrust",
    "langfuse_scores.json": "langfuse",
    "langfuse_observations.json": "langfuse",
}


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


@pytest.mark.parametrize(("file", "name"), RECORDED.items())
def test_a_recorded_log_is_recognised(file: str, name: str) -> None:
    assert detect_dataset_format(LOGS / file) == name


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("mlflow", ["mlflow_traces.jsonl"]),
        ("langsmith", ["langsmith_experiment.csv"]),
        ("langsmith", ["langsmith_runs.jsonl"]),
        ("braintrust", ["braintrust.jsonl"]),
        ("langfuse", ["langfuse_scores.json", "langfuse_observations.json"]),
    ],
)
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


def test_grades_of_mlflow_are_from_one_to_five() -> None:
    found = convert("mlflow", [LOGS / "mlflow_eval_results_table.json"])
    check_texts_and_labels(found)
    assert list_by_claim(found, "faithfulness/v1", "score") == [1.0, 0.0, 1.0]
    assert list_by_claim(found, "faithfulness/v1", "raw") == ["looked it up"] * 3


def test_mlflow_traces_that_failed_or_were_taken_back(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "mlflow_traces.jsonl").read_text().splitlines()]
    for row in rows:
        for one in row["assessments"]:
            if one["assessment_name"] == "grounded":
                one["feedback"] = {"value": None, "error": {"error_code": "TIMEOUT"}}
            one["valid"] = one["assessment_name"] != "overlap"
    # The form of `Trace.to_json()`.
    rows = [
        {"info": {"trace_id": row["trace_id"], "assessments": row["assessments"]}}
        | {"request": json.dumps(row["request"]), "response": json.dumps(row["response"])}
        for row in rows
    ]
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert detect_dataset_format(path) == "mlflow"
    found = convert("mlflow", [path])
    check_texts_and_labels(found)
    assert found.verdicts is not None
    assert found.verdicts["evaluator"].unique().tolist() == ["grounded"]
    assert found.verdicts["status"].tolist() == ["error"] * 3
    # MLflow 3 keeps both texts under "data".
    rows = [{"info": row["info"], "data": {key: row[key] for key in ("request", "response")}} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    check_texts_and_labels(convert("mlflow", [path]))


def test_a_langfuse_score_of_a_trace_goes_to_its_only_observation(tmp_path: Path) -> None:
    page = json.loads((LOGS / "langfuse_scores.json").read_text())
    for one in page["data"]:
        del one["observationId"]
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps(page))
    found = convert("langfuse", [scores, LOGS / "langfuse_observations.json"])
    check_texts_and_labels(found)
    with pytest.raises(InputError, match="give the file of observations or traces too"):
        convert("langfuse", [scores])


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("kind", ["scores", "export", "nested"])
def test_langfuse_traces_go_with_scores_of_their_ids(kind: str, tmp_path: Path) -> None:
    traces: list[dict[str, Any]] = [
        {"id": f"t{k}", "input": {"context": "A text."}, "output": f"The claim {k}."} for k in range(4)
    ]
    judged = [{"id": f"e{k}", "name": "nli", "value": 0.2 * k, "source": "EVAL"} for k in range(4)]
    people = [("ana", "1101"), ("ben", "1001")]
    said = [
        {"id": f"{who}{k}", "name": "fine", "value": int(labels[k]), "source": "ANNOTATION", "dataType": "BOOLEAN"}
        for who, labels in people
        for k in range(4)
    ]
    scores = [{**one, "traceId": f"t{one['id'][-1]}"} for one in [*judged, *said]]
    if kind == "export":  # to a blob storage
        names = {"traceId": "trace_id", "dataType": "data_type"}
        scores = [{names.get(key, key): value for key, value in one.items()} for one in scores]
    if kind == "nested":
        traces = [{**row, "scores": [one for one in scores if one["traceId"] == row["id"]]} for row in traces]
        for row in traces:
            for one in row["scores"]:
                del one["traceId"]
        (tmp_path / "traces.json").write_text(json.dumps({"data": traces}))
        paths = [tmp_path / "traces.json"]
    else:
        paths = [write_lines(tmp_path / "scores.jsonl", scores), write_lines(tmp_path / "traces.jsonl", traces)]
    loaded = load_input_tables(paths)
    assert loaded.claims is not None
    assert loaded.verdicts is not None
    labels = loaded.claims.set_index("response_id")["label"].sort_index()
    assert labels.fillna(-1).tolist() == [1, -1, 0, 1]  # of two who differ neither counts
    assert loaded.verdicts.set_index("claim_id")["prediction"].tolist() == [0, 0, 0, 1]


def test_langsmith_feedback_of_a_file_of_its_own_goes_to_its_runs(tmp_path: Path) -> None:
    runs = [
        {"id": f"r{k}", "run_type": "chain", "inputs": {"context": "A text."}, "outputs": {"output": f"The claim {k}."}}
        for k in range(4)
    ]
    said = [
        {"id": f"{kind}{k}", "run_id": f"r{k}", "key": key, "score": int(digits[k]), "feedback_source": {"type": kind}}
        for kind, key, digits in (("model", "grounded", "1011"), ("app", "correct", "0011"))
        for k in range(4)
    ]
    feedback = write_lines(tmp_path / "feedback.jsonl", said)
    loaded = load_input_tables([feedback, write_lines(tmp_path / "runs.jsonl", runs)])
    assert loaded.claims is not None
    assert loaded.verdicts is not None
    assert loaded.claims["label"].tolist() == [0, 0, 1, 1]
    assert loaded.verdicts["evaluator"].unique().tolist() == ["grounded"]
    assert loaded.verdicts["prediction"].tolist() == [1, 0, 1, 1]
    with pytest.raises(InputError, match="give the file of runs too"):
        load_input_tables([feedback])


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


def test_numbers_beyond_one_are_no_shares(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "braintrust.jsonl").read_text().splitlines()]
    for row, grade in zip(rows, [5, 1, 4], strict=True):
        row["scores"]["overlap"] = grade
    path = tmp_path / "experiment.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = convert("braintrust", [path])
    assert pd.isna(
        list_by_claim(found, "overlap", "score")
    ).all()  # the 1 too: it is the worst grade, not the best share
    assert any(note.startswith("not all numbers of overlap are between 0 and 1") for note in found.notes)
    assert list_by_claim(found, "grounded", "prediction") == [1, 0, 1]


def write_helm_run(folder: Path) -> Path:
    """A run of HELM, as crfm-helm writes it: stats by instance, and the requests that they are of."""

    def stat(name: str, mean: float | None, count: int = 1) -> dict[str, Any]:
        own = {"name": {"name": name, "split": "test"}, "count": count}
        return own if mean is None else own | {"sum": mean, "sum_squared": mean**2, "mean": mean, "min": mean}

    stats, requests = [], []
    for at, (doc, claim) in enumerate(zip(DOCS, CLAIMS, strict=True)):
        for perturbation in (None, {"name": "typos"}):
            shared = {"perturbation": perturbation} if perturbation else {}
            judged = stat("faithfulness", float("wood" not in claim)) if not perturbation else stat("faithfulness", 0)
            counted = [stat("num_output_tokens", 7), stat("inference_runtime", 0.3), stat("logprob", -2.5)]
            own = {"instance_id": f"id{at}", "train_trial_index": 0, "stats": [judged, *counted, stat("f1", None, 0)]}
            stats.append(own | shared)
            instance = {"id": f"id{at}", "input": {"text": doc}, "references": [], "split": "test", **shared}
            instance["extra_data"] = {"label": LABELS[at]}
            result = {"completions": [{"text": claim, "logprob": -2.5}], "success": True}
            requests.append({"instance": instance, "train_trial_index": 0, "result": result})
    folder.mkdir()
    (folder / "per_instance_stats.json").write_text(json.dumps(stats))
    state = {"adapter_spec": {"model": "openai/gpt2"}, "request_states": requests}
    (folder / "scenario_state.json").write_text(json.dumps(state))
    return folder


def test_helm_stats_are_evaluators_of_completions(tmp_path: Path) -> None:
    folder = write_helm_run(tmp_path / "summaries")
    assert (
        detect_dataset_format(folder / "per_instance_stats.json")
        == detect_dataset_format(folder / "scenario_state.json")
        == "helm"
    )
    for sources in ([folder], [folder / "per_instance_stats.json"]):
        found = convert("helm", sources)
        check_texts_and_labels(found)
        assert found.claims["system"].unique().tolist() == ["openai/gpt2"]
        assert found.verdicts is not None
        assert found.verdicts["evaluator"].unique().tolist() == ["faithfulness"]
        assert list_by_claim(found, "faithfulness", "prediction") == [1, 0, 1]
    (folder / "scenario_state.json").unlink()
    with pytest.raises(InputError, match=r"scenario_state.json, which is not beside it"):
        convert("helm", [folder])


@pytest.mark.parametrize(
    ("name", "file"),
    [("mlflow", "ragas.csv"), ("langsmith", "ragas.csv"), ("helm", "deepeval.json"), ("langfuse", "ragas.jsonl")],
)
def test_another_log_is_a_clear_error(name: str, file: str) -> None:
    with pytest.raises(InputError, match=file.replace(".", r"\.")):
        convert(name, [LOGS / file])


def test_two_tasks_of_one_harness_keep_their_samples_apart(tmp_path: Path) -> None:
    for task in ("one", "two"):
        row = {"doc_id": 0, "doc": {"claim": f"Of {task}."}, "target": "yes", "filtered_resps": ["yes"]}
        (tmp_path / f"samples_{task}.jsonl").write_text(json.dumps(row) + "\n")
    found = convert("lm-eval", [tmp_path])
    assert found.claims["claim"].tolist() == ["Of one.", "Of two."]
    assert found.claims["dataset"].tolist() == ["one", "two"]


def test_what_people_and_a_model_said_under_one_key_is_not_mixed(tmp_path: Path) -> None:
    """LangSmith: the label was the mean of both."""
    runs = [
        {"id": f"r{k}", "run_type": "chain", "inputs": {"q": "?"}, "outputs": {"answer": CLAIMS[k]}} for k in range(3)
    ]
    said = [
        {"run_id": f"r{k}", "key": "faithful", "score": score, "feedback_source": {"type": source}}
        for k, label in enumerate(LABELS)
        for source, score in (("model", 1 - label), ("app", label))
    ]
    for name, rows in (("runs.jsonl", runs), ("feedback.jsonl", said)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = load_input_tables([tmp_path / "runs.jsonl", tmp_path / "feedback.jsonl"])
    assert found.claims is not None
    assert found.claims["label"].tolist() == LABELS
    assert found.verdicts is not None
    assert found.verdicts["prediction"].tolist() == [1 - label for label in LABELS]


@pytest.mark.parametrize("texts", [{"info": "response_preview"}, {"": "response"}])
def test_a_trace_of_mlflow_has_its_text_in_a_preview_or_under_any_key(texts: dict[str, str], tmp_path: Path) -> None:
    """They were claims without a text."""
    path = tmp_path / "traces.jsonl"
    rows = []
    for k, label in enumerate(LABELS):
        assessments = [
            {
                "assessment_name": name,
                "source": {"source_type": source},
                "feedback": {"value": "yes" if value else "no"},
            }
            for name, source, value in (("grounded", "LLM_JUDGE", 1), ("checked", "HUMAN", label))
        ]
        row = {"info": {"trace_id": f"t{k}", "assessments": assessments}, "data": {"spans": []}}
        where = row["info"] if "info" in texts else row
        where |= {one: CLAIMS[k] if part else json.dumps({"a": CLAIMS[k]}) for part, one in texts.items()}
        rows.append(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    claims = convert("mlflow", [path]).claims
    assert (claims["claim"].tolist(), claims["label"].tolist()) == (CLAIMS, LABELS)
