"""A real model on loopback: the whole path without a key."""

from __future__ import annotations

import os

import pytest
from scripted_llm import LLMClient, LLMCostBudget, LLMJudge, ask_all

from factaudit import Claim, UsageError
from factaudit.llm.cost import estimate_llm_judging_cost
from factaudit.llm.local_server import LocalModelServer

CLAIMS = [
    Claim("a", "Paris is in France.", "Paris is the capital of France."),
    Claim("b", "Paris is in Spain.", "Paris is the capital of France."),
    Claim("c", "Rome is old.", "Rome was founded in 753 BC."),
    Claim("d", "Rome is old.", None),
]


@pytest.mark.slow
@pytest.mark.local
def test_the_local_model_judges_and_its_replies_are_kept(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    cache = tmp_path / "cache.sqlite"
    judge = LLMJudge(base_url="local", template="short", cache=str(cache), concurrency=2)
    judge.llm.budget = LLMCostBudget()
    verdicts = {verdict.claim_id: verdict for verdict in judge.judge(CLAIMS)}
    assert set(verdicts) == {"a", "b", "c", "d"}
    assert verdicts["d"].status == "skipped"
    for key in "abc":
        # What 135 million parameters say is not asserted; that it was said, and read, is.
        assert verdicts[key].status in ("ok", "unparsed")
        assert verdicts[key].raw
        if verdicts[key].status == "ok":
            assert 0.0 <= (verdicts[key].score or 0.0) <= 1.0
    used = judge.llm.budget.summarise_callers()[""]
    assert used["calls"] == 3
    assert used["prompt_tokens"] > 100
    assert used["cost"] == 0.0
    assert "SmolLM2-135M-Instruct" in judge.signature
    assert "sha256:" in judge.signature
    assert os.environ["OMP_WAIT_POLICY"] == "passive"

    # Again from the cache: no model is loaded.
    monkeypatch.setattr(
        LocalModelServer, "start", lambda self: pytest.fail("nothing is left to ask")
    )
    again = LLMJudge(base_url="local", template="short", cache=str(cache))
    assert {verdict.claim_id: verdict for verdict in again.judge(CLAIMS)} == verdicts
    row = estimate_llm_judging_cost(again, CLAIMS)
    assert (row["calls"], row["cached_calls"], row["cost"]) == (0, 3, 0.0)


@pytest.mark.slow
@pytest.mark.local
def test_log_probabilities_and_a_prompt_that_is_too_long_come_from_the_real_server(
    tmp_path,
):
    judge = LLMJudge(template="no-context", base_url="local", cache="none", concurrency=1)
    long = Claim("long", "word " * 9000, None)
    verdicts = {verdict.claim_id: verdict for verdict in judge.judge([*CLAIMS[:1], long])}
    assert verdicts["long"].status == "skipped"
    assert "context" in (verdicts["long"].raw or "")
    ((_, reply),) = ask_all(
        LLMClient("smollm2", base_url="local"), [(0, *judge.requests(CLAIMS[:1]))]
    )
    assert reply.status == "ok"
    assert reply.tokens
    assert len(reply.tokens[0].alternatives) > 10
    assert all(value <= 0 for value in reply.tokens[0].alternatives.values())


def test_a_model_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="no GGUF file at"):
        LocalModelServer.find_model("/nowhere/model.gguf")
    with pytest.raises(UsageError, match="smollm2"):
        LocalModelServer.find_model("gpt-4o")


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("factaudit.llm.local_server.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"factaudit\[local\]"):
        LocalModelServer.find_model("smollm2")
