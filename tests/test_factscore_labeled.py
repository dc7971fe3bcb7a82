"""FActScore against people's labels: constructed cases, and the published files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.factscore.labeled import agreement, calibration, discrimination, human_score, thresholds
from factaudit.engines.factscore.score import penalty
from factaudit.engines.responses import read_responses
from factaudit.knowledge.build import build
from factaudit.tables import validate_claims, validate_verdicts

Row = dict[str, Any]


def row(human: float | None, predicted: float | None, system: str = "s", score: float | None = None) -> Row:
    counts = None
    if human is not None:
        supported = round(human * 20)
        counts = {"n_supported": supported, "n_not_supported": 20 - supported, "n_irrelevant": 0}
    figures = {"init_score": predicted, "score": predicted if score is None else score}
    return {"system": system, "human": counts, "evaluators": {"e": figures}}


def test_the_human_score_and_its_two_conventions() -> None:
    counts = {"n_supported": 3, "n_not_supported": 1, "n_irrelevant": 2}
    assert human_score(counts) == 0.75
    assert human_score(counts, "unsupported") == 0.5
    assert human_score({"n_supported": 0, "n_not_supported": 0, "n_irrelevant": 2}) is None
    assert human_score({"n_supported": 0, "n_not_supported": 0, "n_irrelevant": 2}, "unsupported") == 0
    assert human_score(None) is None


def test_agreement_equals_scipys_and_leaves_nothing_out_silently() -> None:
    rng = np.random.default_rng(1)
    human = rng.integers(0, 21, 30) / 20
    predicted = np.clip(human + rng.normal(0, 0.2, 30), 0, 1)
    rows = [row(h, p) for h, p in zip(human, predicted, strict=True)] + [row(0.5, None), row(None, 0.5)]
    found = agreement(rows, replicates=500)[0]
    assert (found["system"], found["figure"], found["n"], found["n_missing"]) == ("s", "init_score", 30, 1)
    assert (found["n_annotated"], found["human_respond_ratio"]) == (31, 31 / 32)
    assert found["human_annotated"] == pytest.approx((human.sum() + 0.5) / 31)
    assert found["mae"] == pytest.approx(np.abs(predicted - human).mean())
    assert found["rmse"] == pytest.approx(np.sqrt(((predicted - human) ** 2).mean()))
    assert found["bias"] == pytest.approx((predicted - human).mean())
    for key, reference in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        assert found[f"{key}_r"] == pytest.approx(reference(human, predicted).statistic)
        assert found[f"{key}_p"] == pytest.approx(reference(human, predicted).pvalue)
        assert found[f"{key}_r_low"] < found[f"{key}_r"] < found[f"{key}_r_high"]
    assert found == agreement(rows, replicates=500)[0]


def test_the_penalised_score_is_compared_too_and_all_systems_together() -> None:
    rows = [row(0.5, 1.0, "a", 0.25), row(0.25, 0.5, "b", 0.5), row(1.0, 1.0, "b", 1.0)]
    found = {(one["system"], one["figure"]): one for one in agreement(rows, replicates=0)}
    assert set(found) == {(system, figure) for system in ("__all__", "a", "b") for figure in ("init_score", "score")}
    assert found["__all__", "init_score"]["mae"] == pytest.approx(0.25)
    assert found["__all__", "score"]["mae"] == pytest.approx(0.5 / 3)
    assert found["a", "score"]["mae_low"] is None


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([row(0.5, None)], "no response has both scores"),
        ([row(0.5, 0.4), row(1.0, 0.9)], "fewer than three"),
        ([row(0.5, 0.4), row(0.5, 0.9), row(0.5, 0.1)], "one score is constant"),
    ],
)
def test_an_undefined_correlation_is_null_with_a_reason(rows: list[Row], reason: str) -> None:
    for found in agreement(rows, replicates=20):
        assert reason in found["reason"]
        assert (found["pearson_r"], found["pearson_p"], found["spearman_r_low"]) == (None, None, None)
        json.dumps(found, allow_nan=False)


def test_threshold_metrics() -> None:
    rows = [row(0.9, 0.8), row(0.7, 0.2), row(0.1, 0.9), row(0.0, 0.0)]
    found = {one["threshold"]: one for one in thresholds(rows) if one["figure"] == "init_score"}
    assert {key: found[0.5][key] for key in ("n", "n_human", "n_predicted", "precision", "recall", "f1")} == {
        "n": 4,
        "n_human": 2,
        "n_predicted": 2,
        "precision": 0.5,
        "recall": 0.5,
        "f1": 0.5,
    }
    assert found[0.1]["n_human"] == 3  # at the threshold counts
    none = thresholds([row(0.1, 0.05)], grid=[0.9])[0]
    assert (none["precision"], none["recall"], none["f1"]) == (None, None, None)
    assert none["reason"] == "no response reaches the threshold"


def test_calibration_bins() -> None:
    found = calibration([row(0.2, 0.05), row(0.4, 0.09), row(1.0, 1.0), row(0.5, None)])
    assert [(one["bin"], one["n"]) for one in found] == [(1, 2), (10, 1)]
    assert (found[0]["predicted"], found[0]["human"]) == (pytest.approx(0.07), pytest.approx(0.3))


def test_auc_equals_scikit_learns_with_ties_and_missing_scores() -> None:
    rng = np.random.default_rng(2)
    n = 400
    labels = rng.integers(0, 2, n)
    scores = np.round(np.clip(rng.normal(0.4 + 0.2 * labels, 0.2), 0, 1), 1)
    claims = validate_claims(
        pd.DataFrame(
            {
                "claim_id": [str(i) for i in range(n)],
                "dataset": "d",
                "claim": "c",
                "label": [None if i % 50 == 0 else int(label) for i, label in enumerate(labels)],
                "response_id": [str(i // 10) for i in range(n)],
                "system": ["a" if i < 200 else "b" for i in range(n)],
            }
        )
    )
    given = [None if i % 40 == 1 else float(score) for i, score in enumerate(scores)]
    verdicts = validate_verdicts(
        pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": "e", "score": given, "prediction": 1})
    )
    verdicts = verdicts.sample(frac=1, random_state=0)
    found = {one["system"]: one for one in discrimination(claims, verdicts, replicates=300)}
    use = np.array([i % 50 != 0 and i % 40 != 1 for i in range(n)])
    for system, part in (("__all__", use), ("a", use & (np.arange(n) < 200)), ("b", use & (np.arange(n) >= 200))):
        assert found[system]["auc"] == pytest.approx(roc_auc_score(labels[part], scores[part]))
        assert found[system]["n"] == part.sum()
        assert found[system]["auc_low"] < found[system]["auc"] < found[system]["auc_high"]
    assert found["__all__"]["n_unscored"] == 10
    one_class = discrimination(claims.assign(label=pd.array([1] * n, dtype="Int8")), verdicts)[0]
    assert (one_class["auc"], one_class["reason"]) == (None, "labels of one class only")


# ------------------------------------------------------------------------------------------------ the published files


@pytest.mark.parametrize(
    ("system", "irrelevant", "n", "score", "respond"),
    [
        ("ChatGPT", "exclude", 157, 0.6233, 157 / 183),
        ("ChatGPT", "unsupported", 157, 0.583, 157 / 183),
        ("InstructGPT", "exclude", 180, 0.4739, 182 / 183),
    ],
)
def test_the_published_human_scores(
    shared: Path, system: str, irrelevant: str, n: int, score: float, respond: float
) -> None:
    responses = read_responses(shared / f"factscore/labeled/{system}.jsonl")
    keys = ("n_supported", "n_not_supported", "n_irrelevant")
    counts = [None if one.human is None else dict(zip(keys, one.human, strict=True)) for one in responses]
    scores = [human_score(one, irrelevant) for one in counts]
    known = [one for one in scores if one is not None]
    assert len(known) == n
    assert np.mean(known) == pytest.approx(score, abs=5e-5 if irrelevant == "exclude" else 5e-4)
    assert np.mean([one is not None for one in counts]) == pytest.approx(respond)
    assert {one.system for one in responses} == {system}


@pytest.mark.parametrize(("system", "facts", "n"), [("ChatGPT", "human", 5426), ("ChatGPT", "model", 5622)])
def test_facts_are_taken_from_the_annotations(shared: Path, system: str, facts: str, n: int) -> None:
    responses = read_responses(shared / f"factscore/labeled/{system}.jsonl", facts=facts)
    assert sum(len(one.facts or ()) for one in responses) == n
    assert [one.abstained for one in responses] == [one.human is None for one in responses]


def test_the_generic_detector_finds_the_annotated_abstentions(shared: Path) -> None:
    from factaudit.engines.abstain import is_abstained

    responses = read_responses(shared / "factscore/labeled/ChatGPT.jsonl", facts="human")
    assert [is_abstained(one.output) for one in responses] == [one.abstained for one in responses]


def test_chatgpts_human_facts_are_verified_end_to_end(shared: Path, tmp_path: Path) -> None:
    build(shared / "factscore/knowledge/passages_157_entities.jsonl", tmp_path / "wiki.db")
    scorer = FactScorer(tmp_path / "wiki.db", verifiers=["rouge2", "unigram"], replicates=100)
    responses = read_responses(shared / "factscore/labeled/ChatGPT.jsonl", facts="human")
    scored = scorer.score_responses(responses)
    assert (len(scored.claims), scored.claims["abstained"].sum()) == (5426 + 26, 26)
    assert len(scored.verdicts) == 2 * 5426
    facts = scored.claims[scored.claims["claim"].notna()]
    assert facts["doc"].notna().all()
    assert facts["label"].isna().sum() == 540
    summary = scored.summary
    assert (summary["n_scored"], summary["respond_ratio"]) == (157, 157 / 183)
    # The score again, from the tables alone.
    joined = scored.claims.merge(scored.verdicts[scored.verdicts["evaluator"] == "unigram"], on="claim_id")
    shares = joined.groupby("response_id")["prediction"].agg(["mean", "size"])
    expected = np.mean([share * penalty(int(size)) for share, size in zip(shares["mean"], shares["size"], strict=True)])
    unigram = next(one for one in summary["evaluators"] if one["evaluator"] == "unigram")
    assert unigram["score"] == pytest.approx(expected)
    found = {
        one["evaluator"]: one for one in agreement(scored.responses, replicates=100) if one["figure"] == "init_score"
    }
    assert found["unigram"]["human"] == pytest.approx(0.6233, abs=5e-5)
    assert found["unigram"]["pearson_r"] > found["rouge2"]["pearson_r"] > 0.2
    auc = {one["evaluator"]: one["auc"] for one in discrimination(scored.claims, scored.verdicts, replicates=0)}
    assert auc["rouge2"] > 0.6
    assert auc["unigram"] > 0.6
    # tfidf looks at every sentence of every document: some responses are enough here, the experiment takes them all.
    few = FactScorer(tmp_path / "wiki.db", verifiers=["tfidf"], replicates=0).score_responses(responses[:20])
    assert few.verdicts["score"].notna().all()
    assert few.claims["claim_id"].tolist() == scored.claims["claim_id"].tolist()[: len(few.claims)]
    assert discrimination(few.claims, few.verdicts, replicates=0)[0]["auc"] > 0.6
