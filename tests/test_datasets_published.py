"""Converters of published benchmarks, on authored files of the shape that each is published in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit.datasets import convert
from factaudit.errors import InputError


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(map(json.dumps, value)) if path.suffix == ".jsonl" else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return path


def faithbench(path: Path) -> Path:
    def span(who: str, *labels: str, start: int = 0) -> dict[str, Any]:
        found = {"annot_id": 1, "annotator_id": who * 9, "annotator_name": who, "label": list(labels), "note": "why"}
        return found | {"summary_span": "It", "summary_start": start, "summary_end": start + 2, "source_start": None}

    metadata = {"summarizer": "mistralai/Mistral-7B", "hhemv1": 0.6, "true_nli": 1, "gpt_4o": 0, "raw_sample_id": 29}
    samples = [
        [span("ann", "Questionable"), span("ann", "Unwanted", "Unwanted.Extrinsic", start=3), span("bob", "Benign")],
        [span("bob", "Questionable")],
        [],
    ]
    return write(
        path / "batch_1.json",
        {
            "samples": [
                {"sample_id": n, "source": "It rains.", "summary": f"It pours {n}.", "annotations": spans}
                | {"metadata": metadata}
                for n, spans in enumerate(samples)
            ]
        },
    )


def test_faithbench_has_grades_spans_detectors_and_rules(tmp_path):
    found = convert("faithbench", [faithbench(tmp_path)])
    assert found.claims["label"].tolist() == [0, 0, 1]
    assert found.annotations is not None
    assert found.verdicts is not None
    first = found.annotations[found.annotations["claim_id"] == "faithbench:batch_1:0"]
    assert first[["annotator", "grade"]].to_numpy().tolist() == [["ann", "Unwanted"]] * 2 + [["bob", "Benign"]]
    assert first["start"].tolist() == [0, 3, 0]
    assert set(found.annotations.loc[found.annotations["claim_id"] == "faithbench:batch_1:2", "grade"]) == {
        "Consistent"
    }
    assert found.verdicts.groupby("evaluator")["prediction"].first().to_dict() == {
        "hhemv1": 1,
        "true_nli": 1,
        "gpt_4o": 0,
    }
    assert found.claims["doc_id"].nunique() == 1
    # What is attributable hangs on the rule.
    assert convert("faithbench", [tmp_path], lowest="Unwanted").claims["label"].tolist() == [0, 1, 1]
    assert convert("faithbench", [tmp_path], rule="bob").claims["label"].tolist() == [1, 0, 1]
    assert pd.isna(convert("faithbench", [tmp_path], rule="majority").claims["label"].iloc[0])


def test_frank_has_three_annotators_and_kinds_of_error(tmp_path):
    row = {"hash": "1" * 40, "model_name": "bart", "article": "A fox.", "summary": "A fox. A dog.", "split": "test"}
    row |= {"summary_sentences": ["A fox.", "A dog."], "Factuality": 0.5}
    said = {"annotator_0": ["NoE"], "annotator_1": ["NoE"], "annotator_2": ["EntE"]}
    wrong = {"annotator_0": ["EntE", "OutE"], "annotator_1": ["EntE"], "annotator_2": ["NoE"]}
    row["summary_sentences_annotations"] = [said, wrong]
    source = write(tmp_path / "human_annotations_sentence.json", [row, row | {"hash": "123"}])
    found = convert("frank", [source])
    assert found.claims["label"].tolist() == [1, 0, 1, 0]
    assert found.claims["dataset"].unique().tolist() == ["FRANK-CNN/DM", "FRANK-XSum"]
    assert found.claims["error_type"].tolist() == ["EntE"] * 4
    assert convert("frank", [source], rule="any_unattributable").claims["label"].tolist() == [0, 0, 0, 0]
    assert found.annotations is not None
    assert len(found.annotations) == 12


def test_halueval(tmp_path):
    qa = {"knowledge": "Paris is in France.", "question": "Where?", "right_answer": "France"}
    general = [{"ID": "1", "user_query": "Hi", "chatgpt_response": "The moon is cheese.", "hallucination": "Yes"}]
    lines = json.dumps(qa | {"hallucinated_answer": "Spain"})
    (tmp_path / "qa_data.json").write_text(lines + "\n" + lines, encoding="utf-8")
    (tmp_path / "general_data.json").write_text(json.dumps(general[0]), encoding="utf-8")
    claims = convert("halueval", [tmp_path]).claims
    assert claims["label"].tolist() == [0, 1, 0, 1, 0]
    assert claims["pair_of"].dropna().tolist() == ["halueval:qa_data:0:right", "halueval:qa_data:1:right"]
    (tmp_path / "qa_data.json").write_text('{"question": "?"}', encoding="utf-8")
    with pytest.raises(InputError, match="right_answer and hallucinated_answer"):
        convert("halueval", [tmp_path / "qa_data.json"])


def test_scores_that_a_published_format_has_no_place_for_are_named(tmp_path):
    row = {"knowledge": "A town.", "question": "Where?", "right_answer": "There.", "hallucinated_answer": "Here."}
    path = tmp_path / "qa_data.json"
    beside = [{"gpt4_score": 0.91, "latency": 0.3}, {"gpt4_score": 0.12, "latency": 0.4}]
    path.write_text("".join(json.dumps(row | more) + "\n" for more in beside))
    notes = convert("halueval", [path]).notes
    assert [note for note in notes if note.startswith("qa_data.json: unread gpt4_score: ")]
    assert not any("latency" in note for note in notes)


def test_aggrefact_with_metrics_beside_the_claims(tmp_path):
    table = pd.DataFrame(
        {
            "dataset": ["FRANK", "FRANK"],
            "origin": ["cnndm", "xsum"],
            "id": [7, 8],
            "doc": ["It rains.", "It pours."],
            "summary": ["Rain.", "Sun."],
            "model_name": ["BART", "PEGASUS"],
            "label": [1, 0],
            "cut": ["test", "test"],
            "DAE_score": [0.9, 0.4],
            "DAE_label": [1, 1],
            "SummaC_score": [0.2, 0.8],
            "QAFE_score": [3.1, 0.2],
            "QAFE_label": [1, 0],
        }
    )
    table.to_csv(tmp_path / "aggre_fact_sota.csv", index=False)
    found = convert("predicted", [tmp_path / "aggre_fact_sota.csv"])
    assert found.claims["system"].tolist() == ["BART", "PEGASUS"]
    assert found.claims["split"].tolist() == ["test", "test"]
    assert found.verdicts is not None
    said = found.verdicts.groupby("evaluator")["prediction"].apply(list).to_dict()
    assert said == {"DAE": [1, 1], "SummaC": [0, 1], "QAFE": [1, 0]}
    assert found.verdicts.loc[found.verdicts["evaluator"] == "QAFE", "score"].isna().all()
    assert "DAE_score" not in found.claims
