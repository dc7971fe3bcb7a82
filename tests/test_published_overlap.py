"""Word overlap and chunks on published texts, where these are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_tables import find

from factaudit.datasets import convert
from factaudit.evaluators.judging import judge
from factaudit.results import compare


def test_a_trained_detector_finds_fewer_errors_the_more_words_an_answer_shares(shared: Path, root: Path) -> None:
    """VC's Fig. 5 on RAGTruth's answers to questions and four detectors."""
    text = [shared / "ragtruth/qa_test_text.jsonl"]
    found = convert("ragtruth-scores", [shared / "ragtruth/responses_test_scores.jsonl"], text=text)
    assert found.verdicts is not None
    audits = ["surface_bias", "covariates"]
    results = compare(found.claims, found.verdicts, audits=audits, replicates=0)
    told = compare(found.claims, found.verdicts, audits=[{"covariates": {"bins": 5}}])
    bins = [
        row for row in results.rows("surface_bias") if row["task"] == "long-form QA" and row["evaluator"] == "deberta"
    ]
    assert [row["n"] for row in bins] == [120, 120, 120, 121, 119]
    assert [round(100 * row["tnr"]) for row in bins] == [80, 76, 62, 40, 44]
    assert [round(100 * row["tpr"]) for row in bins] == [80, 69, 81, 81, 89]
    slopes = {}
    for name in ("deberta", "modernbert_a", "modernbert_b"):
        for rate in ("tpr", "tnr"):
            keys = {"task": "long-form QA", "covariate": "ROUGE-2 precision", "value": "slope"}
            row = find(told.rows("covariates"), **keys, evaluator=name, rate=rate)
            slopes[name, rate] = [round(row[key], 2) for key in ("difference", "difference_low", "difference_high")]
    assert slopes["deberta", "tnr"] == [-1.08, -1.6, -0.56]
    assert slopes["deberta", "tpr"] == [0.22, 0.01, 0.42]
    assert [slopes[name, "tnr"][0] for name in ("modernbert_a", "modernbert_b")] == [-0.57, -0.4]
    assert all(slopes[name, "tnr"][2] > 0 and slopes[name, "tpr"][1] > 0 for name in ("modernbert_a", "modernbert_b"))
    assert bins[-1]["tnr"] == pytest.approx(4 / 9)


@pytest.mark.parametrize(("evaluator", "zero", "positive"), [("rouge2", 0.0, 7.0), ("unigram", 17.0, 23.5)])
def test_chunks_turn_verdicts_where_the_words_lie_in_several(
    evaluator: str, zero: float, positive: float, shared: Path, root: Path
) -> None:
    """VC's R2-diff on WiCE's long documents."""
    claims = convert("wice", [shared / "wice/dev.jsonl"]).claims
    verdicts = judge(claims, [evaluator, {"chunked": {"evaluator": evaluator, "size": 200}}])
    rows = compare(claims, verdicts, audits=[{"chunking": {"size": 200}}], replicates=0).rows("chunking")
    flips = {row["r2_diff"]: round(100 * row["flip_1_to_0"], 1) for row in rows}
    assert flips == {"zero": zero, "positive": positive}
    assert {row["r2_diff"]: row["n"] for row in rows} == {"zero": 135, "positive": 213}
