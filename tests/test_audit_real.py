"""Audits on published data: labelled rates as published, and rates as scikit-learn computes them
from the raw files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_tables import compute, find, join
from sklearn.metrics import balanced_accuracy_score, recall_score

from factaudit import Judgements, convert, validate_verdicts


def say_yes(claims: pd.DataFrame) -> Judgements:
    """An evaluator that finds everything attributable, so that labelled rates are over all labelled
    claims."""
    return join(
        claims,
        validate_verdicts(
            pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": "yes", "prediction": 1})
        ),
    )


def labelled(rows: list[dict], level: str, dataset: str) -> dict[str, float]:
    """Labelled error rates of the systems in percent, as the papers print them."""
    return {
        row["system"].removeprefix("Model-"): round(100 * row["labelled_error_rate"], 1)
        for row in rows
        if row["level"] == level and row["dataset"] == dataset and row["system"] != "__all__"
    }


def test_tofueval_labelled_error_rates_are_those_of_the_paper(shared):
    rows = compute("quantification", say_yes(convert("tofueval", [shared / "tofueval"]).claims))
    expected = {
        ("TofuEval-MediaSum", "claim"): [19.7, 20.4, 20.0, 18.6, 19.3, 19.2],
        ("TofuEval-MediaSum", "response"): [38.1, 41.9, 39.4, 37.5, 38.5, 49.0],
        ("TofuEval-MeetingBank", "claim"): [19.9, 22.4, 20.1, 11.8, 19.3, 14.0],
        ("TofuEval-MeetingBank", "response"): [35.2, 45.2, 34.6, 26.0, 34.4, 29.8],
    }
    for (dataset, level), figures in expected.items():
        assert labelled(rows, level, dataset) == dict(
            zip([*"ABCDE", "Extra"], figures, strict=True)
        )
    sizes = {
        row["system"]: row["n"]
        for row in rows
        if (row["dataset"], row["level"]) == ("TofuEval-MediaSum", "claim")
    }
    assert [sizes[f"Model-{name}"] for name in ("Extra", *"ABCDE")] == [
        395,
        274,
        284,
        290,
        269,
        301,
    ]


@pytest.fixture(scope="module")
def ragtruth(shared: Path) -> Judgements:
    found = convert("ragtruth-scores", [shared / "ragtruth" / "responses_test_scores.jsonl"])
    assert found.verdicts is not None
    return join(found.claims, found.verdicts)


def test_ragtruth_hallucination_rates_per_system(shared, ragtruth):
    rows = compute("quantification", ragtruth, levels=["response"])
    question = next(name for name in ragtruth.dataset_names if "QA" in name)
    figures = {
        row["system"]: round(100 * row["labelled_error_rate"], 1)
        for row in rows
        if row["dataset"] == question
        and row["evaluator"] == ragtruth.evaluators[0]
        and row["system"] != "__all__"
    }
    assert sorted(figures.values()) == [0.7, 3.3, 20.7, 23.3, 24.0, 34.7]
    raw = pd.DataFrame(
        map(json.loads, (shared / "ragtruth/responses_test_scores.jsonl").open(encoding="utf-8"))
    )
    expected = raw.groupby(["task_type", "system"])["hallucinated"].mean()
    for (task, system), rate in expected.items():
        found = [
            row
            for row in rows
            if row["system"] == system and task.lower() in row["dataset"].lower()
        ]
        assert len(found) == len(ragtruth.evaluators)
        for row in found:
            assert row["labelled_error_rate"] == pytest.approx(rate, abs=1e-12)
            said = [
                scores[row["evaluator"]]
                for scores in raw[(raw.task_type == task) & (raw.system == system)].scores
            ]
            assert row["predicted_error_rate"] == pytest.approx(
                np.mean([not 1 - s > 0.5 for s in said]), abs=1e-12
            )


@pytest.fixture(scope="module")
def aggrefact(shared: Path) -> Judgements:
    found = convert("aggrefact-scores", [shared / "aggrefact_scores"])
    assert found.verdicts is not None
    return join(found.claims, found.verdicts)


def test_aggrefact_rates_equal_scikit_learns_on_the_raw_arrays(shared, aggrefact):
    raw = json.loads((shared / "aggrefact_scores/factcg-base.json").read_text(encoding="utf-8"))
    rows = compute("rates", aggrefact)
    assert len(raw) == 11
    baccs = []
    for dataset, pairs in raw.items():
        label = np.array([pair[0] for pair in pairs], dtype=int)
        said = (np.array([pair[1] for pair in pairs]) > 0.5).astype(int)
        row = find(rows, dataset=dataset, evaluator="factcg-base")
        assert row["n"] == len(pairs)
        assert row["tpr"] == pytest.approx(recall_score(label, said), abs=1e-12)
        assert row["tnr"] == pytest.approx(recall_score(label, said, pos_label=0), abs=1e-12)
        assert row["bacc"] == pytest.approx(balanced_accuracy_score(label, said), abs=1e-12)
        assert row["ppr"] == pytest.approx(said.mean(), abs=1e-12)
        baccs.append(row["bacc"])
    macro = find(rows, dataset="__macro__", evaluator="factcg-base")
    assert macro["bacc"] == pytest.approx(np.mean(baccs), abs=1e-12)
    assert (macro["n"], macro["n_datasets"]) == (29_320, 11)
