"""Cascades: certified as a whole, told at what they cost, and run as they were told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Call
from estimate_data import World, annotated, tables, without_labels
from llm_server import FaultServer, Plan

from factaudit.errors import InputError, UsageError
from factaudit.estimate.cascade import certify_cascade
from factaudit.evaluators.base import Claim, Verdict
from factaudit.evaluators.cascade_rule import CascadeRule, read_cascade_rule
from factaudit.evaluators.error_odds import ErrorOdds
from factaudit.evaluators.judging import judge, make_named_evaluator
from factaudit.tables import write_table

WORLD = World(rates=(-1.5, -1.5), size=400, skill=(2.5, 4.0))


def draw_labels(claims: pd.DataFrame, n: int = 250, seed: int = 0) -> pd.DataFrame:
    ids = claims["claim_id"].sample(n, random_state=seed)
    return annotated(claims, ids).astype({"label": "Int8"}).assign(seconds=30.0)


def test_the_whole_cascade_is_certified_and_its_cost_told_beside_the_second_judge_of_all():
    claims, verdicts = tables(WORLD)
    found = certify_cascade(
        without_labels(claims), verdicts, "e1", annotations=draw_labels(claims), max_error=0.05, call_cost=0.01
    )
    first, cascade, second = found.ways
    assert (first["n_asked"], second["n_asked"]) == (0, 800)
    assert 0 < cascade["n_asked"] < 600
    assert cascade["cost"] == pytest.approx(0.01 * cascade["n_asked"])
    assert second["cost"] == pytest.approx(8.0)
    assert cascade["minutes"] == pytest.approx(cascade["n_review"] / 2)
    assert first["n_passing"] < cascade["n_passing"]
    passing = found.queue.loc[found.queue["passes"] == 1, "claim_id"]
    assert len(passing) == cascade["n_passing"] == 800 - cascade["n_review"]
    assert 1 - claims.set_index("claim_id")["label"][passing].mean() <= 0.05
    (promise,) = found.promises
    assert f"e1 is asked of {cascade['n_asked']:,}" in promise["statement"]
    said = f"{cascade['n_passing']} of 800 claims pass without review, {cascade['n_known_errors']} known errors aside: "
    assert promise["statement"].startswith(f"{said}at most 5 %")


@pytest.mark.parametrize("lacking", [0, 3])
def test_the_cascade_on_stored_verdicts_costs_and_passes_what_it_says(tmp_path: Path, lacking: int):
    claims, verdicts = tables(WORLD)
    lost = verdicts["claim_id"].isin(claims["claim_id"][:lacking]) & (verdicts["evaluator"] == "e0")
    verdicts.loc[lost, ["score", "prediction"]] = [np.nan, pd.NA]
    verdicts.loc[lost, "status"] = "refused"
    found = certify_cascade(without_labels(claims), verdicts, "e1", annotations=draw_labels(claims), call_cost=0.01)
    found.rule.write(tmp_path / "rule.json")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    stored = [{"stored": {"path": str(tmp_path / "verdicts.parquet"), "evaluator": name}} for name in ("e0", "e1")]
    named = make_named_evaluator({"cascade": {"rule": str(tmp_path / "rule.json"), "evaluators": stored}})
    assert named.name == "cascade(e0, then e1)"
    second = named.evaluator._members[1].evaluator
    asked: list[str] = []

    class CountingJudge:
        signature = "counting"

        def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
            some = list(claims)
            asked.extend(claim.claim_id for claim in some)
            yield from second.judge(some)

    object.__setattr__(named.evaluator._members[1], "evaluator", CountingJudge())
    judged = judge(claims, [named], journal=tmp_path / "journal")
    cascade = found.ways[1]
    assert len(asked) == len(set(asked)) == cascade["n_asked"]
    assert int(judged["prediction"].sum()) == cascade["n_passing"] + cascade["n_known_errors"]  # it sees no label
    passing = found.queue.loc[found.queue["passes"] == 1, "claim_id"]
    others = set(judged.loc[judged["prediction"] == 1, "claim_id"]) - set(passing)
    assert others <= set(found.queue.loc[found.queue["label"] == 0, "claim_id"])
    again = judge(claims, [named], journal=tmp_path / "journal")
    assert len(asked) == cascade["n_asked"]  # what is in the journal is not asked again
    assert again["prediction"].tolist() == judged["prediction"].tolist()


def test_a_second_judge_of_labelled_claims_only_gives_estimates_and_leaves_the_others_to_ask():
    claims, verdicts = tables(WORLD)
    annotations = draw_labels(claims)
    has_label = verdicts["claim_id"].isin(annotations["claim_id"])
    known = verdicts[(verdicts["evaluator"] == "e0") | has_label].reset_index(drop=True)
    found = certify_cascade(without_labels(claims), known, "e1", annotations=annotations, max_error=0.1)
    first, cascade, second = found.ways
    assert [row["is_estimated"] for row in found.ways] == [False, True, True]
    assert (cascade["cost"], second["cost"], first["cost"]) == (None, None, 0.0)
    assert cascade["reason"] == "no price of a call is known"
    waiting = found.queue.loc[found.queue["decision"] == "ask", "claim_id"]
    assert 0 < len(waiting) <= cascade["n_asked"]
    assert not waiting.isin(annotations["claim_id"]).any()
    whole = certify_cascade(without_labels(claims), verdicts, "e1", annotations=annotations, max_error=0.1).ways[1]
    assert cascade["n_passing"] == pytest.approx(whole["n_passing"], abs=80)
    with pytest.raises(UsageError, match=r"'e1' has no verdict on 1 of 250 labelled claims"):
        certify_cascade(without_labels(claims), known.drop(known.index[-1]), "e1", annotations=annotations)


def test_judges_that_tell_nothing_promise_nothing_and_nobody_is_asked():
    claims, verdicts = tables(World(rates=(-1.0, -1.0), size=300, skill=(0.0, 0.0)))
    found = certify_cascade(without_labels(claims), verdicts, "e1", annotations=draw_labels(claims), call_cost=0.01)
    assert found.rule.limit is None
    assert (found.ways[1]["n_asked"], found.ways[1]["n_passing"], found.ways[1]["cost"]) == (0, 0, 0.0)
    assert "cannot promise of this cascade" in found.promises[0]["statement"]
    assert (found.queue["passes"] == 0).all()


def test_the_command_certifies_stored_verdicts_and_asks_a_judge_of_labelled_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
):
    monkeypatch.chdir(tmp_path)
    claims, verdicts = tables(WORLD)
    write_table(without_labels(claims), "claims.parquet")
    write_table(verdicts, "verdicts.parquet")
    write_table(draw_labels(claims), "labels.csv")
    given = ("triage", "claims.parquet", "verdicts.parquet", "--labels", "labels.csv", "--max-error", "0.1")
    code, out, err = call(*given, "--then", "e1", "--call-cost", "0.01", "--out", "t", "--format", "json")
    assert code == 0, err
    told = json.loads(out)
    assert [row["way"] for row in told["ways"]] == ["first", "cascade", "second"]
    assert read_cascade_rule("t/rule.json").promise["max_error"] == 0.1
    code, out, err = call(*given, "--evaluator", "e0", "--then", "always-yes", "--out", "u")
    assert code == 0, err
    assert "asking always-yes of 250 labelled claims" in out
    assert len(pd.read_parquet("u/then.parquet")) == 250
    for more, message in (
        (("--by", "system", "--then", "e1"), "one promise over all"),
        (("--call-cost", "1"), "--then"),
    ):
        code, _, err = call(*given, *more, "--out", "v")
        assert code == 2
        assert message in err


def test_another_file_is_no_cascade(tmp_path: Path):
    (tmp_path / "rule.json").write_text('{"schema": "factaudit.triage_rule/1"}')
    with pytest.raises(InputError, match=r"no rule of this version.*triage --then"):
        read_cascade_rule(tmp_path / "rule.json")
    rule = CascadeRule(ErrorOdds(0.0, {"a": 1.0}, {"a": 0.0}, {"a": 2.0}), "b", 0.3)
    rule.write(tmp_path / "rule.json")
    assert read_cascade_rule(tmp_path / "rule.json") == rule
    (tmp_path / "rule.json").write_text((tmp_path / "rule.json").read_text().replace("0.3", '"0.3"'))
    with pytest.raises(InputError, match="no rule of this version"):
        read_cascade_rule(tmp_path / "rule.json")


def test_a_language_model_is_asked_of_labelled_claims_then_of_unsure_ones_and_never_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    monkeypatch.setenv("FACTAUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    claims, verdicts = tables(World(rates=(-1.5,), size=300, skill=(3.0,)))
    claims = claims.assign(claim=[f"claim {at} ends" for at in range(len(claims))], doc="a document")
    truth = claims.set_index("claim")["label"].to_dict()

    def plan(body: dict, attempt: int) -> Plan:
        text = body["messages"][-1]["content"]
        return Plan(text="Yes" if truth[re.search(r"claim \d+ ends", text)[0]] else "No")

    annotations = draw_labels(claims, 150)
    write_table(without_labels(claims), "claims.parquet")
    write_table(verdicts, "verdicts.parquet")
    write_table(annotations, "labels.csv")
    with FaultServer(plan=plan) as server:
        spec = f"llm:model=gpt-4o-mini,base_url={server.url},name=second"
        arguments = ("triage", "claims.parquet", "verdicts.parquet", "--labels", "labels.csv", "--max-error", "0.1")
        code, out, err = call(*arguments, "--then", spec, "--out", "t", "--format", "json")
        assert code == 0, err
        assert sum(server.paid.values()) == 150
        told = json.loads(out)
        _, cascade, second = told["ways"]
        price = 1 - cascade["cost"] / second["cost"]
        assert price == pytest.approx(1 - cascade["n_asked"] / 300)  # dollars are per claim asked
        asked = pd.read_csv("t/queue.csv")["decision"].value_counts()["ask"]
        assert "claims wait for" in err
        write_table(verdicts.assign(raw=None), "stored.parquet")
        stored = {"stored": {"path": "stored.parquet", "evaluator": "e0"}}
        model = {"llm": {"model": "gpt-4o-mini", "base_url": server.url, "name": "second"}}
        judged = judge(claims, [{"cascade": {"rule": "t/rule.json", "evaluators": [stored, model]}}])
        assert sum(server.paid.values()) == 150 + asked  # of the labelled ones the replies are cached
        assert judged["prediction"].notna().all()
    passing = set(judged.loc[judged["prediction"] == 1, "claim_id"])
    assert 1 - claims.set_index("claim_id")["label"][list(passing)].mean() <= 0.1
