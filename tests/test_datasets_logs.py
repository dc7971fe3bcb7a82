"""Logs of evaluation frameworks, read from files that the frameworks themselves wrote (tests/logs/README.md)."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit.cli import main
from factaudit.datasets import convert
from factaudit.errors import InputError, UsageError
from factaudit.tables import read_claims
from factaudit.tables.questions import AmbiguousReadingError

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


def test_an_inspect_archive_without_zstandard_is_read_alike(tmp_path: Path) -> None:
    log = json.loads((LOGS / "inspect.json").read_text())
    with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({key: value for key, value in log.items() if key != "samples"}))
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    found, expected = convert("inspect", [tmp_path / "log.eval"]), convert("inspect", [LOGS / "inspect.eval"])
    pd.testing.assert_frame_equal(found.claims, expected.claims)
    assert found.verdicts is not None
    pd.testing.assert_frame_equal(found.verdicts, expected.verdicts)


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


def test_another_answer_of_a_later_epoch_is_another_claim(tmp_path: Path) -> None:
    """Its verdict was a repeat of the first answer's, whose text it was not about."""
    log = json.loads((LOGS / "inspect.json").read_text())
    again = json.loads(json.dumps(log["samples"]))
    for sample in again:
        sample["epoch"] = 2
    again[1]["output"]["completion"] = "Another answer."
    log["samples"] += again
    (tmp_path / "log.json").write_text(json.dumps(log))
    found = convert("inspect", [tmp_path / "log.json"])
    assert found.claims["claim"].tolist()[3:] == ["Another answer."]
    assert found.claims["label"].tolist() == [*LABELS, LABELS[1]]
    assert found.verdicts is not None
    assert found.verdicts["repeat"].value_counts().to_dict() == {0: 8, 1: 4}
    assert found.verdicts["claim_id"].value_counts().to_dict()[found.claims["claim_id"][3]] == 2


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


@pytest.mark.parametrize(
    ("targets", "choices", "options", "labels"),
    [
        (["yes", "no", "Yes"], [" no", " yes"], {}, [1, 0, 1]),
        (["0", "1", "0"], [" yes", " no"], {}, [1, 0, 1]),  # the choices' texts say which number means yes
        ([0, 1, 0], [" A", " B"], {"attributable": "A"}, [1, 0, 1]),
        (["A", "B", "A"], None, {"attributable": "A"}, [1, 0, 1]),
        (["1", "0", "1"], [" B", " A"], {"attributable": "1"}, [1, 0, 1]),
        ([True, False, True], None, {}, [1, 0, 1]),
    ],
)
def test_targets_of_lm_eval_are_read_by_their_words(
    targets: list[Any], choices: list[str] | None, options: dict[str, str], labels: list[int], tmp_path: Path
) -> None:
    lines = []
    for at, target in enumerate(targets):
        line: dict[str, Any] = {"doc_id": at, "doc": {"claim": CLAIMS[at]}, "target": target}
        if choices is None:
            line["filtered_resps"] = [str(target)]
        else:
            ranked = [["-0.1", "True"], ["-2.5", "False"]] if labels[at] == 1 else [["-2.5", "False"], ["-0.1", "True"]]
            # The likelier choice is always the one that the target means.
            means_first = options.get("attributable", "").strip() == choices[0].strip() or choices[0].strip() == "yes"
            line["filtered_resps"] = ranked if means_first else ranked[::-1]
            line["arguments"] = {f"gen_args_{i}": {"arg_0": "?", "arg_1": text} for i, text in enumerate(choices)}
        lines.append(json.dumps(line) + "\n")
    (tmp_path / "samples_mine.jsonl").write_text("".join(lines))
    found = convert("lm-eval", [tmp_path], **options)
    assert found.claims["label"].tolist() == labels
    assert found.verdicts is not None
    assert found.verdicts["prediction"].tolist() == labels


@pytest.mark.parametrize("targets", [["A", "B", "A"], [1, 0, 1], ["(1)", "(2)", "(1)"]])
def test_what_letters_and_numbers_of_lm_eval_mean_is_asked(targets: list[Any], tmp_path: Path) -> None:
    """The prompt may say "0: supported" as well as "0: unsupported"."""
    lines = [
        {"doc_id": at, "doc": {"claim": CLAIMS[at]}, "target": target, "filtered_resps": [str(target)]}
        for at, target in enumerate(targets)
    ]
    (tmp_path / "samples_mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(InputError, match="unknown target"):
        convert("lm-eval", [tmp_path])
    found = convert("lm-eval", [tmp_path], attributable=str(targets[0]))
    assert found.claims["label"].tolist() == LABELS
    assert found.verdicts is not None
    assert found.verdicts["prediction"].tolist() == LABELS


def test_unknown_labels_of_a_log_are_listed_and_can_be_told(tmp_path: Path) -> None:
    log = json.loads((LOGS / "inspect.json").read_text())
    for sample, grade in zip(log["samples"], ["fine", "bad", None], strict=True):
        sample["metadata"]["human"] = grade
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    with pytest.raises(AmbiguousReadingError, match="label has 'fine', 'bad': supported, not supported"):
        convert("inspect", [path])
    claims = convert("inspect", [path], labels="fine=1,bad=0").claims
    assert [None if pd.isna(label) else label for label in claims["label"]] == [1, 0, None]


def test_filters_of_lm_eval_are_an_evaluator_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {
            "doc_id": at,
            "doc": {"claim": claim},
            "target": "yes",
            "filtered_resps": [answer],
            "filter": name,
            "arguments": {},
        }
        for name, answers in (("strict-match", ["yes", "[invalid]"]), ("flexible-extract", ["yes", "no"]))
        for at, (claim, answer) in enumerate(zip(CLAIMS, answers, strict=False))
    ]
    (tmp_path / "samples_support.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = convert("lm-eval", [tmp_path / "samples_support.jsonl"], evaluator="m")
    assert len(found.claims) == 2
    assert found.verdicts is not None
    said = found.verdicts.groupby("evaluator")["prediction"].agg(list)
    assert said["m (flexible-extract)"] == [1, 0]
    assert said["m (strict-match)"] == [1, pd.NA]
    with pytest.raises(SystemExit):  # a folder, as `audit` takes it
        main(["inspect", str(tmp_path)])
    assert "(strict-match): 1 with a prediction" in capsys.readouterr().out


def test_unknown_targets_of_lm_eval_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "samples_mine.jsonl"
    rows = [{"doc_id": at, "doc": {"claim": "c"}, "target": target} for at, target in enumerate("AB")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r'unknown target .A. \(.A., .B.\): say attributable="TARGET"'):
        convert("lm-eval", [path])
    with pytest.raises(UsageError, match="no choice and no target is 'C'; there are 'A', 'B'"):
        convert("lm-eval", [path], attributable="C")


def test_an_option_of_the_command_line_is_text(tmp_path: Path) -> None:
    path = tmp_path / "samples_mine.jsonl"
    rows = [{"doc_id": at, "doc": {"claim": "c"}, "target": target} for at, target in enumerate(["yes", "maybe"])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "claims.csv"
    with pytest.raises(SystemExit) as stop:
        main(["convert", "lm-eval", str(path), "--option", "attributable=yes", "--out", str(out)])
    assert stop.value.code == 0
    assert read_claims(out)["label"].tolist() == [1, 0]


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


def test_a_log_without_labels_of_people_says_so(tmp_path: Path) -> None:
    log = json.loads((LOGS / "promptfoo.json").read_text())
    assert not any("labels  none" in note for note in convert("promptfoo", [LOGS / "promptfoo.json"]).notes)
    for result in log["results"]["results"]:
        del result["vars"]["human"]
    (tmp_path / "log.json").write_text(json.dumps(log))
    notes = convert("promptfoo", [tmp_path / "log.json"]).notes
    assert any(note.startswith("labels  none found") for note in notes)


def test_a_check_without_a_value_said_nothing(tmp_path: Path) -> None:
    log = json.loads((LOGS / "inspect.json").read_text())
    log["samples"][0]["scores"]["grounded"] = {"value": None}
    log["samples"][1]["scores"]["grounded"] = {"value": "c", "explanation": "GRADE: c"}  # Inspect's grade is C
    (tmp_path / "log.json").write_text(json.dumps(log))
    verdicts = convert("inspect", [tmp_path / "log.json"]).verdicts
    assert verdicts is not None
    said = verdicts[verdicts["evaluator"] == "grounded"]
    assert said["status"].tolist() == ["skipped", "unparsed", "ok"]
    assert pd.isna(said["raw"].iloc[0])
    assert said["raw"].iloc[1] == "GRADE: c"


@pytest.mark.parametrize("file", ["ragas.csv", "ragas.jsonl"])
def test_ragas(file: str) -> None:
    rows = verdicts_of("ragas", file, "faithfulness")
    assert [row[0] for row in rows] == pytest.approx(OVERLAP)
    docs = convert("ragas", [LOGS / file]).claims["doc"].tolist()
    assert docs == [f"{doc}\n\nNothing else is known." for doc in DOCS]


def test_columns_beside_ragas_metrics_that_judge_nothing_are_no_evaluators(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "ragas.jsonl").read_text().splitlines()]
    further = {
        "latency_ms": 0.4,
        "epoch": 1,
        "total_tokens": 12,
        "cost": 0.01,
        "human_correct": 1,
        "row_id": 7,
        "meta": {},
    }
    path = tmp_path / "ragas.jsonl"
    path.write_text("".join(json.dumps(row | further) + "\n" for row in rows))
    found = convert("ragas", [path])
    assert found.verdicts is not None
    assert found.verdicts["evaluator"].unique().tolist() == ["faithfulness"]
    named = convert("ragas", [path], label="human_correct")
    assert named.claims["label"].tolist() == [1, 1, 1]


def test_judgements_beside_ragas_metrics_are_read_or_asked_about(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (LOGS / "ragas.jsonl").read_text().splitlines()]

    def convert_with(**columns: list[Any]) -> Any:
        path = tmp_path / "ragas.jsonl"
        cells = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        path.write_text("".join(json.dumps(row | more) + "\n" for row, more in zip(rows, cells, strict=True)))
        return convert("ragas", [path])

    for name, values in {"human_label": [1, 0, 1], "reviewer_verdict": ["pass", "fail", "pass"]}.items():
        assert convert_with(**{name: values}).claims["label"].tolist() == [1, 0, 1]
    said = convert_with(gpt4_verdict=["yes", "no", "yes"]).verdicts
    assert said[said["evaluator"] == "gpt4"]["prediction"].tolist() == [1, 0, 1]
    turned = convert_with(has_hallucination=["yes", "no", "yes"])
    assert turned.claims["label"].tolist() == [0, 1, 0]
    for asked in (
        {"gt_label": [1, 0, 1]},
        {"anna": [1, 0, 1]},
        {"MK": ["yes", "no", "yes"]},
        {"annotator": [1, 0, 1]},
        {"human_reviewed": [True, False, True]},  # whether somebody looked, perhaps
        {"human_rating": [5, 2, 4]},
    ):
        with pytest.raises(AmbiguousReadingError, match=next(iter(asked))) as question:
            convert_with(**asked)
        named = [one.mapping["evaluator"] for one in question.value.readings if "evaluator" in one.mapping]
        assert all("faithfulness" in one for one in named)  # the log's own metric stays one


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
        ("trulens", "ragas.jsonl", {}, "NAME_calls"),
        ("phoenix", "ragas.csv", {}, "NAME_score"),
    ],
)
def test_another_log_or_field_is_a_clear_error(name: str, file: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises((InputError, UsageError)) as error:
        convert(name, [LOGS / file], **options)
    assert said in str(error.value)


def test_yes_of_halueval_is_a_hallucination_in_lm_evals_log(tmp_path: Path) -> None:
    path = tmp_path / "samples_halueval_qa_2026-01-01.jsonl"
    rows = [
        {
            "doc_id": at,
            "doc": {"knowledge": DOCS[at], "question": "?", "answer": CLAIMS[at], "hallucination": word},
            "target": word,
            "arguments": [["...", " yes"], ["...", " no"]],
            "resps": [[["-1.2", "False"]]],
            "filtered_resps": [reply],
        }
        for at, (word, reply) in enumerate([("no", "no"), ("yes", "no"), ("no", "yes")])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = convert("lm-eval", [path])
    assert found.claims["doc"].tolist() == DOCS
    assert found.claims["label"].tolist() == LABELS
    assert found.verdicts is not None
    assert found.verdicts["prediction"].tolist() == [1, 1, 0]
