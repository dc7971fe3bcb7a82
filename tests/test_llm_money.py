"""Money: what was sent is written down before it is, no limit is passed, and no reply is paid for twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer, Plan, ask

from factaudit.cli.result_display import _format_spared_calls
from factaudit.errors import InputError, UsageError
from factaudit.evaluators.base import Claim
from factaudit.evaluators.lexical_baselines import AlwaysYesEvaluator
from factaudit.evaluators.llm_judges import LLMJudge, NoContextLLMJudge
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import (
    LLMCostBudget,
    LLMModelPrice,
    estimate_llm_judging_cost,
    find_model_price,
    read_llm_price_table,
)
from factaudit.llm.store import ReplyStore, Send, _has_process_ended, _identify_process, summarise_reply_store

#: A dollar a token: figures are whole.
DOLLAR = {"m": LLMModelPrice(1e6, 1e6)}


def request(text: str = "hello") -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), {"max_tokens": 1})


# What was sent --------------------------------------------------------------------------------------------------------


def test_a_send_is_written_down_before_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    budget, seen = LLMCostBudget(100.0, DOLLAR), []

    def plan(body: dict[str, Any], attempt: int) -> Plan:
        seen.append(ReplyStore(path).spent(budget.run))
        return Plan()

    with FaultServer(plan=plan) as server:
        ask(server, request(), budget=budget, cache=path)
    # At most 3 + 3 tokens of format, 5 of text and 1 of reply; it was 1 and 1.
    assert seen == [12.0]
    assert budget.spent == 2.0


@pytest.mark.parametrize("fault", ["not-json", "truncated", "empty-choices", "wrong-shape"])
def test_a_server_of_malformed_answers_does_not_pass_the_limit(fault: str) -> None:
    budget = LLMCostBudget(60.0, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        replies = ask(server, *(request(f"{i:05}") for i in range(30)), budget=budget, concurrency=4)
        billed = sum(server.seen.values())
    assert {reply.status for reply in replies} <= {"error", "skipped"}
    assert 0 < budget.spent <= 60.0
    told = budget.summarise_callers()[""]
    assert told["calls"] == billed
    assert told["cost"] == budget.spent >= 2.0 * billed


def test_an_answer_that_is_none_counts_as_its_usage_says() -> None:
    budget = LLMCostBudget(None, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan("empty-choices") if attempt == 0 else Plan()) as server:
        (reply,) = ask(server, request(), budget=budget)
    assert reply.status == "ok"
    assert budget.summarise_callers()[""] == {
        "calls": 2,
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "cost": 4.0,
        "possible_calls": 0,
        "possible_cost": 0.0,
        "served": ("m",),
    }


@pytest.mark.parametrize(
    ("fault", "calls", "possible"), [("hang", 1, 1), ("reset", 1, 1), ("close", 1, 1), ("500", 0, 0), ("429", 0, 0)]
)
def test_what_may_have_been_charged_counts_and_what_was_not_does_not(fault: str, calls: int, possible: int) -> None:
    budget = LLMCostBudget(None, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan(fault) if attempt == 0 else Plan()) as server:
        (reply,) = ask(server, request(), budget=budget, timeout=0.5)
    assert reply.status == "ok"
    told = budget.summarise_callers()[""]
    assert (told["calls"], told["possible_calls"]) == (calls + 1, possible)
    assert (told["cost"], told["possible_cost"]) == (2.0 + 12.0 * possible, 12.0 * possible)


def test_one_limit_holds_over_processes(tmp_path: Path) -> None:
    stores = [ReplyStore(tmp_path / "cache.sqlite") for _ in range(2)]
    sends = [Send(bytes([n]), "run", most_cost=12.0) for n in range(4)]
    assert [store.begin(send, 30.0) for store, send in zip(stores, sends, strict=False)] == ["send", "send"]
    assert stores[0].begin(sends[2], 30.0) == "full", "it may fit when the others have settled"
    assert stores[0].begin(Send(b"x", "other", most_cost=12.0), 30.0) == "send", "another run's money is its own"
    for store, send in zip(stores, sends, strict=False):
        store.finish(send.key, "ok", (1, 1), 10.0)
    assert stores[1].begin(sends[2], 30.0) == "over"
    assert stores[1].begin(sends[2], 32.0) == "send"


def test_a_process_is_known_to_be_gone() -> None:
    code = "from factaudit.llm.store import _identify_process as name; print(name())"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert _has_process_ended(name)
    assert not _has_process_ended(_identify_process())
    host, pid, _ = _identify_process().rsplit(":", 2)
    assert _has_process_ended(f"{host}:{pid}:1"), "another process has had this number before"
    assert not _has_process_ended(f"elsewhere:{name.rsplit(':', 2)[1]}:1"), "of another machine nobody knows"


# Two processes, one cache --------------------------------------------------------------------------------------------

WORKER = """
import sys
from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm.cost import LLMCostBudget, LLMModelPrice
url, folder, first, number, limit, seed = sys.argv[1:]
judge = LLMJudge(model="m", base_url=url, cache=f"{folder}/cache.sqlite", concurrency=16, timeout=2.0, max_retries=3)
judge.budget = LLMCostBudget(float(limit) or None, {"m": LLMModelPrice(1e6, 1e6)}, run="r")
judge._make_client = lambda own=judge._make_client: _quick(own())
def _quick(client):
    client._pacing._backoff = 0.002
    return client
order = range(int(first), int(first) + int(number))
for verdict in judge.judge(Claim(f"c{i}", f"number {i}", f"doc {i % 50}") for i in order):
    print(verdict.claim_id, verdict.status, flush=True)
"""


def worker(server: FaultServer, folder: Path, first: int, number: int, limit: float = 0.0) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, server.url, str(folder), str(first), str(number), str(limit), "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def statuses(process: subprocess.Popen[str]) -> dict[str, str]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return dict(line.split() for line in out.splitlines())


def test_two_processes_on_one_cache_pay_for_each_reply_once(tmp_path: Path) -> None:
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.05)) as server:
        both = [statuses(process) for process in [worker(server, tmp_path, 0, 200) for _ in range(2)]]
    assert both[0] == both[1] == {f"c{i}": "ok" for i in range(200)}
    assert Counter(server.paid.values()) == {1: 200}
    assert ReplyStore(tmp_path / "cache.sqlite").summarise_callers("r")[""]["calls"] == 200


def test_a_send_of_a_process_that_was_killed_holds_nobody_up(tmp_path: Path) -> None:
    code = "import os, sys; from factaudit.llm.store import ReplyStore, Send\n"
    code += "ReplyStore(sys.argv[1]).begin(Send(b'k', 'r', most_cost=3.0))\nos._exit(9)"
    path = tmp_path / "cache.sqlite"
    one, other = ReplyStore(path), ReplyStore(path)
    assert one.begin(Send(b"mine")) == "send"
    assert one.begin(Send(b"mine")) == other.begin(Send(b"mine")) == "wait"
    subprocess.run([sys.executable, "-c", code, str(path)], stdout=subprocess.DEVNULL)
    assert one.begin(Send(b"k")) == "send"
    assert one.summarise_callers("r")[""]["possible_cost"] == 3.0, "it may have been paid for"
    one.finish(b"k", "ok", reply=ChatReply("ok", "Yes"), origin=("", "m", ""))
    assert other.begin(Send(b"k")) == ChatReply("ok", "Yes", cached=True)
    one.finish(b"mine", "not billed")
    assert other.begin(Send(b"mine")) == "send"


# Faults and kills ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_a_signal_lets_calls_under_way_finish_and_sends_no_more(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    rows = [{"dataset": "d", "claim": f"number {i}", "doc": f"doc {i}", "label": 1} for i in range(200)]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {**os.environ, "FACTAUDIT_CACHE": str(tmp_path / "cache.sqlite")}
    with FaultServer(plan=lambda body, attempt: Plan(delay=1.0)) as server:
        spec = f"llm:model=m,base_url={server.url},concurrency=8"
        command = [sys.executable, "-m", "factaudit", "judge", str(tmp_path / "claims.jsonl"), "--evaluator", spec]
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "v.jsonl")], env=environment, stderr=subprocess.PIPE, text=True
        )
        while sum(server.paid.values()) < 12 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        time.sleep(0.2)
        sent = sum(server.seen.values())
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code, errors
        assert "run the same command again" in errors
        assert sum(server.seen.values()) == sent, "no new call"
    # All that was paid for is in the cache, and in the journal.
    kept = summarise_reply_store(tmp_path / "cache.sqlite")["replies"]
    assert kept == sent == sum(server.paid.values())
    (journal,) = (tmp_path / ".v.jsonl.journal").glob("*.jsonl")
    assert journal.read_text().count('"claim_id"') >= sent


# Prices, and what a run would cost ----------------------------------------------------------------------------------

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
    with pytest.raises(UsageError, match="as UTF-8 text"):
        read_llm_price_table(tmp_path / "latin.csv")


def test_an_estimate_is_what_the_run_then_uses(tmp_path: Path) -> None:
    prices = {"m": LLMModelPrice(2.0, 8.0)}
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
        assert row["reason"] is None

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
