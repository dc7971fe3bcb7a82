"""Prices, token counts, and what a run would cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer

from factaudit.cli.result_display import _format_spared_calls
from factaudit.errors import InputError, UsageError
from factaudit.evaluators.base import Claim
from factaudit.evaluators.lexical_baselines import AlwaysYesEvaluator
from factaudit.evaluators.llm_judges import LLMJudge, NoContextLLMJudge
from factaudit.llm.cost import (
    LLMCostBudget,
    LLMModelPrice,
    estimate_llm_judging_cost,
    find_model_price,
    read_llm_price_table,
)
from factaudit.llm.store import Send

CLAIMS = [Claim(f"c{i}", f"Claim number {i}.", f"Document {i}. " * 20) for i in range(10)]


@pytest.mark.parametrize("named_by", ["path", "environment"])
def test_prices_are_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named_by: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text("model,input,output\ngpt-4o,1,2\nmine,0,0\n", encoding="utf-8-sig")  # as Excel writes it
    if named_by == "environment":
        monkeypatch.setenv("FACTAUDIT_PRICES", str(path))
    assert (read_llm_price_table() == {}) == (named_by == "path")
    prices = read_llm_price_table(path if named_by == "path" else None)
    if named_by == "environment":
        assert LLMCostBudget(1.0).model_price("gpt-4o") == prices["gpt-4o"]
    assert prices["gpt-4o"] == LLMModelPrice(1.0, 2.0)
    assert prices["mine"] == LLMModelPrice(0.0, 0.0)
    assert find_model_price("gpt-4o-2024-08-06", prices) == LLMModelPrice(1.0, 2.0)
    assert find_model_price("gpt-4o-audio", prices) is None


@pytest.mark.parametrize("row", ["m,x,1", "m,1,", ",1,1", "m,-1,1", "m,nan,1"])
def test_a_wrong_price_is_named_by_its_row(tmp_path: Path, row: str) -> None:
    path = tmp_path / "prices.csv"
    path.write_text(f"model,input,output\ngood,1,1\n{row}\n")
    with pytest.raises(InputError, match="row 2"):
        read_llm_price_table(path)


def test_a_price_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="price table"):
        read_llm_price_table(tmp_path / "none.csv")
    (tmp_path / "latin.csv").write_bytes("model,input,output\né,1,1\n".encode("latin-1"))
    with pytest.raises(UsageError, match="not UTF-8"):
        read_llm_price_table(tmp_path / "latin.csv")


def test_an_estimate_is_what_the_run_then_uses(tmp_path: Path) -> None:
    prices = {"m": LLMModelPrice(2.0, 8.0, "2026-01-01")}
    cache = tmp_path / "cache.sqlite"
    with FaultServer() as server:
        judge = LLMJudge(model="m", base_url=server.url, cache=str(cache))
        evaluators = {"judge": judge, "always-yes": AlwaysYesEvaluator()}
        (row,) = estimate_llm_judging_cost(evaluators, CLAIMS, prices=prices)
        assert not cache.exists()
        assert sum(server.seen.values()) == 0
        assert (row["evaluator"], row["calls"], row["cached_calls"]) == ("judge", 10, 0)
        assert row["max_completion_tokens"] == 10 * 8
        assert row["cost"] == pytest.approx((2.0 * row["prompt_tokens"] + 8.0 * 80) / 1e6)
        assert (row["price_date"], row["reason"]) == ("2026-01-01", None)

        judge.budget = LLMCostBudget()
        list(judge.judge(CLAIMS[:4]))
        used = judge.budget.summarise_callers()[""]
        assert judge.usage.calls == used["calls"] == 4
        (row,) = estimate_llm_judging_cost(evaluators, CLAIMS, prices=prices)
        assert (row["calls"], row["cached_calls"], row["repeated_calls"]) == (6, 4, 0)
        # The double counts a token per four characters too, without what wraps a message.
        assert used["prompt_tokens"] == pytest.approx(row["prompt_tokens"] / 6 * 4, rel=0.05)


def test_equal_prompts_and_batches_are_counted_at_what_they_cost(tmp_path: Path) -> None:
    prices = {"m": LLMModelPrice(2.0, 8.0)}
    options: dict[str, Any] = {"model": "m", "cache": str(tmp_path / "none.sqlite")}
    (row,) = estimate_llm_judging_cost({"judge": NoContextLLMJudge(**options)}, [CLAIMS[0]] * 5, prices=prices)
    assert (row["calls"], row["cached_calls"], row["repeated_calls"]) == (1, 4, 4)
    assert _format_spared_calls(row) == " (0 more are cached, 4 are the same as others and asked only once)"
    (full,) = estimate_llm_judging_cost({"judge": LLMJudge(**options)}, CLAIMS, prices=prices)
    (half,) = estimate_llm_judging_cost({"judge": LLMJudge(**options, batch=True)}, CLAIMS, prices=prices)
    assert half["cost"] == pytest.approx(full["cost"] / 2)


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"model": "unknown"}, "no price"), ({"model": "m", "params": {"max_tokens": None}}, "length")],
)
def test_a_cost_that_is_not_known_is_null_with_a_reason(tmp_path: Path, options: dict[str, Any], reason: str) -> None:
    judge = LLMJudge(**options, cache=str(tmp_path / "none.sqlite"))
    (row,) = estimate_llm_judging_cost({"judge": judge}, CLAIMS, prices={"m": LLMModelPrice(1.0, 1.0)})
    assert row["cost"] is None
    assert reason in row["reason"]
    assert row["prompt_tokens"] > 0


def test_a_limit_that_is_reached_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    budget = LLMCostBudget(1.0, {})
    sends = [Send(bytes([n]), budget.run, most_cost=0.75) for n in range(4)]
    assert budget.begin(budget.own_store, sends[0]) == "send"
    assert budget.begin(budget.own_store, sends[1]) == "full"
    assert not budget.is_exhausted
    budget.own_store.finish(sends[0].key, "ok", (1, 1), 0.75)
    assert [budget.begin(budget.own_store, send) for send in sends[1:]] == ["over"] * 3
    assert budget.is_exhausted
    (record,) = caplog.records
    assert "$0.75 of $1.00 are spent" in record.getMessage()
    assert "raise max_cost" in record.getMessage()
    for wrong in (-1.0, float("nan")):
        with pytest.raises(UsageError, match="max_cost"):
            LLMCostBudget(wrong)
