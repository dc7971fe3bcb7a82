"""An ensemble learned from labels: measured on documents left out, and recommended only where it is surely better."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import Call
from estimate_data import World, tables

from factaudit.errors import InputError, UsageError
from factaudit.estimate.learned_ensemble import learn_ensemble
from factaudit.evaluators.judging import judge
from factaudit.evaluators.learned_ensemble import LearnedEnsembleRule, read_learned_ensemble
from factaudit.tables import write_table

#: Three evaluators whose errors are independent: their sum is better than each.
COMPLEMENTS = World(rates=(-1.0, -0.5), size=400, skill=(1.5, 1.5, 1.5))


def test_evaluators_that_complement_each_other_are_better_together():
    claims, verdicts = tables(COMPLEMENTS)
    found = learn_ensemble(claims, verdicts)
    ensemble, best, *members = found.rows
    assert [row["evaluator"] for row in members] == ["e0", "e1", "e2"]
    assert ensemble["gain"] == pytest.approx(ensemble["bacc"] - best["bacc"])
    assert ensemble["gain_low"] > 0
    assert found.statement.startswith("Use the ensemble")
    assert found.rule.measured["is_recommended"]
    assert all(slope > 0 for slope in found.rule.odds.slopes.values())


def test_its_figures_are_those_of_claims_that_it_was_not_fitted_on():
    """Trained on one draw, tried on a new one of 20,000 claims: near what cross-validation said, not above it."""
    claims, verdicts = tables(World(rates=(-0.5,), size=300, skill=(1.2, 1.0)))
    found = learn_ensemble(claims, verdicts)
    fresh, scores = tables(World(rates=(-0.5,), size=20_000, skill=(1.2, 1.0)), seed=9)
    score = scores.pivot(index="claim_id", columns="evaluator", values="score").loc[fresh["claim_id"]].to_numpy().T
    said = 1 - found.rule.odds.compute_error_probabilities(score) > found.rule.threshold
    label = fresh["label"].to_numpy(dtype=int)
    true_bacc = np.mean([(said == label)[label == value].mean() for value in (0, 1)])
    assert found.rows[0]["bacc"] == pytest.approx(true_bacc, abs=0.06)


def test_useless_members_get_no_weight_to_speak_of_and_the_best_is_kept():
    claims, verdicts = tables(World(rates=(-0.5,), size=500, skill=(3.0, 0.0)))
    found = learn_ensemble(claims, verdicts)
    assert found.rule.odds.slopes["e1"] < 0.1 * found.rule.odds.slopes["e0"]
    assert found.statement.startswith("Keep e0")
    assert "not significantly better than the member that is best on the other documents" in found.statement
    assert not found.rule.measured["is_recommended"]


@pytest.mark.slow
@pytest.mark.parametrize("skill", [(2.0, 0.0), (1.5, 0.2, 0.2)])
def test_an_ensemble_that_is_no_better_is_seldom_recommended(skill: tuple[float, ...]):
    found = []
    for seed in range(60):
        claims, verdicts = tables(World(rates=(-0.5,), size=200, skill=skill, documents=50, cluster=0.5), seed)
        found.append(learn_ensemble(claims, verdicts, seed=seed).rule.measured["is_recommended"])
    assert np.mean(found) <= 0.1


def test_the_command_writes_an_evaluator_that_judges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call):
    monkeypatch.chdir(tmp_path)
    claims, verdicts = tables(COMPLEMENTS)
    write_table(claims, "claims.parquet")
    write_table(verdicts, "verdicts.parquet")
    code, out, err = call(
        "estimate", "--combine", "claims.parquet", "verdicts.parquet", "--out", "e.json", "--format", "json"
    )
    assert code == 0, err
    assert json.loads(out)["statement"].startswith("Use the ensemble")
    stored = [{"stored": {"path": "verdicts.parquet", "evaluator": name}} for name in ("e2", "e0", "e1")]
    judged = judge(claims, [{"learned": {"rule": "e.json", "evaluators": stored}}])
    assert judged["evaluator"].unique().tolist() == ["learned(e0+e1+e2)"]
    rule = read_learned_ensemble("e.json")
    assert (judged["prediction"] == (judged["score"] > rule.threshold)).all()
    assert (judged["prediction"].to_numpy() == claims["label"].to_numpy()).mean() > 0.8
    Path("no.json").write_text("{}")
    with pytest.raises(InputError, match="estimate --combine"):
        read_learned_ensemble("no.json")


def test_too_little_to_learn_from_is_refused():
    claims, verdicts = tables(COMPLEMENTS)
    with pytest.raises(UsageError, match="two evaluators or more"):
        learn_ensemble(claims, verdicts, evaluators=["e0"])
    few = claims.assign(label=claims["label"].where(claims["label"] == 1))
    with pytest.raises(UsageError, match="10 labelled errors and as many correct claims, found 0"):
        learn_ensemble(few, verdicts)
    with pytest.raises(UsageError, match="two documents or more"):
        learn_ensemble(claims.assign(doc_id="d", response_id="r", dataset="a"), verdicts)
    assert LearnedEnsembleRule.fit(["a"], np.array([[0.1, 0.9]]), np.array([0, 1])).threshold < 1
