"""Converters of published benchmarks, on authored files of the shape that each is published in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from factaudit.datasets import convert
from factaudit.errors import InputError
from factaudit.results import compare


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


def test_storysumm_has_both_levels_in_one_run(tmp_path):
    one = {"label": 0, "difficulty": "easy", "story": "A dog sat. It slept.", "summary": ["A dog sat.", "It ran."]}
    one |= {"errors": [1, 0], "story-id": 1, "explanations": ["It slept."], "split": "val", "model": "chatGPT"}
    source = write(tmp_path / "storysumm.json", {"a1": one, "b2": one | {"label": 1, "errors": [1, 1]}})
    labels = tmp_path / "predicted_labels"
    write(labels / "alignscore.json", {"a1": {"probs": 0.2}, "b2": {"probs": 0.7}})
    write(labels / "gpt-4" / "cot.json", {"a1": {"label": 1, "probs": "consistent, because"}, "b2": {"label": 1}})
    mini = {"label": 0, "sentence_labels": [1, 0], "probs": [0.9, 0.1]}
    write(labels / "minicheck.json", {"a1": mini, "gone": mini})
    found = convert("storysumm", [source], predictions=[labels])
    sizes = found.claims.groupby("dataset")["label"].apply(list).to_dict()
    assert sizes == {"StorySumm-sentences": [1, 0, 1, 1], "StorySumm-summaries": [0, 1]}
    assert found.verdicts is not None
    said = found.verdicts.groupby("evaluator")["claim_id"].apply(list).to_dict()
    assert said["minicheck"] == ["a1:whole", "a1:0", "a1:1"]
    assert set(said) == {"alignscore", "gpt-4 cot", "minicheck"}
    assert found.verdicts["score"].dropna().tolist() == pytest.approx([0.2, 0.7, 0.9, 0.1])
    assert "1 prediction of summaries that are not in the file" in found.notes
    assert len(convert("storysumm", [source], level="summary").claims) == 2
    # One run has the rates of both levels.
    rows = compare(found.claims, found.verdicts, audits=["rates"], replicates=0).audits["rates"]
    assert {row["dataset"] for row in rows} == {"StorySumm-sentences", "StorySumm-summaries", "__macro__"}


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


def test_bump_pairs_are_audited_by_kind_of_error(tmp_path):
    def pair(at: int, kind: str, edited: float) -> dict[str, Any]:
        scores = {"SummaC_edited": edited, "SummaC_reference": 0.9, "BLEU_edited": -1.0, "BLEU_reference": 3.0}
        pair = {"id": at, "article_id": at // 2, "article": f"Article {at // 2}", "error_type": "x", "scores": scores}
        pair |= {"reference_summary": f"A fox {at // 2}.", "edited_summary": f"A dog {at}."}
        return pair | {"corrected_error_type": kind}

    pairs = [pair(at, "Entity" if at % 2 else "Predicate", 0.2 if at % 2 else 0.8) for at in range(40)]
    found = convert("bump", [write(tmp_path / "task1_dataset.json", pairs)])
    assert len(found.claims) == 20 + 40
    assert "BLEU" in found.notes[1]
    assert found.verdicts is not None
    results = compare(found.claims, found.verdicts, audits=["pairs"])
    rows = {row["error_type"]: row for row in results.audits["pairs"]}
    assert {kind: row["told_apart"] for kind, row in rows.items()} == {"__all__": 0.5, "Entity": 1.0, "Predicate": 0.0}
    assert {kind: row["same"] for kind, row in rows.items()} == {"__all__": 0.5, "Entity": 0.0, "Predicate": 1.0}
    assert rows["Predicate"]["ranked"] == 1.0
    assert rows["Entity"]["told_apart_low"] < 1
    assert rows["__all__"]["n"] == 40
    # Half of the pairs is the limit: it is not significantly missed. A quarter is.
    assert "pairs" not in {each["id"] for each in results.finding_rows}
    pairs = [pair(at, "Entity" if at % 4 == 1 else "Predicate", 0.2 if at % 4 == 1 else 0.8) for at in range(40)]
    fewer = convert("bump", [write(tmp_path / "task1_dataset.json", pairs)])
    findings = compare(fewer.claims, fewer.verdicts, audits=["pairs"]).finding_rows
    (finding,) = [each for each in findings if each["id"] == "pairs"]
    assert finding["severity"] == "fail"
    assert "Predicate (0.0 %)" in finding["statement"]
    # Without a prediction of one of the two a pair is unscored, and the bounds say what it could change.
    less = found.verdicts.assign(
        prediction=found.verdicts["prediction"].where(found.verdicts.index != 1),
        score=found.verdicts["score"].where(found.verdicts.index != 1),
        status=found.verdicts["status"].where(found.verdicts.index != 1, "error"),
    )
    (row,) = [
        row
        for row in compare(found.claims, less, audits=["pairs"], replicates=0).audits["pairs"]
        if row["error_type"] == "__all__"
    ]
    assert row["n"] + row["n_unscored"] == 40
    assert row["n_unscored"] > 0
    assert row["told_apart_min"] <= row["told_apart"] <= row["told_apart_max"]


def test_pairs_are_not_computed_where_there_are_none(tmp_path):
    found = convert("faithbench", [faithbench(tmp_path)])
    assert found.verdicts is not None
    assert "pairs" not in compare(found.claims, found.verdicts, replicates=0).audits


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


def test_felm(tmp_path):
    row = {"index": "0", "source": "quora", "prompt": "Why?", "response": "So. Not.", "ref": ["https://a.org"]}
    row |= {"segmented_response": ["So.", "Not."], "labels": [False, True], "type": ["knowledge_error", None]}
    found = convert("felm", [write(tmp_path / "wk.jsonl", [row | {"comment": ["", ""], "ref_contents": ""}])])
    assert found.claims["label"].tolist() == [0, 1]
    assert found.claims["error_type"].tolist()[0] == "knowledge_error"
    assert found.claims["doc"].isna().all()
    with pytest.raises(InputError, match="a label for each of 2 segments"):
        convert("felm", [write(tmp_path / "science.jsonl", [row | {"labels": [True]}])])


def test_factbench_with_a_checkers_results(tmp_path):
    rows = [
        {"source": "felm-wk", "prompt": "?", "response": "r", "claims": ["A.", "B.", "A."]}
        | {"claim_labels": [True, False, None], "response_label": False},
        {
            "source": "halueval",
            "prompt": "?",
            "response": "C.",
            "claims": [],
            "claim_labels": [],
            "response_label": True,
        },
    ]
    results = [
        {"claim": text, "langchain_output": said}
        for text, said in (("A.", "True"), ("B.", "I believe so"), ("A.", "False"), ("Z.", "True"))
    ]
    predictions = write(tmp_path / "langchain_results.jsonl", results)
    found = convert("factbench", [write(tmp_path / "Factbench.jsonl", rows)], predictions=[predictions])
    assert found.claims["label"].fillna(-1).tolist() == [1, 0, -1, 1]
    assert found.verdicts is not None
    assert found.verdicts["prediction"].fillna(-1).tolist() == [1, -1, 0]
    assert found.verdicts["status"].tolist() == ["ok", "unparsed", "ok"]
    assert "1 claim left out: not in the file of claims" in found.notes[-1]


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
