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

from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCostBudget, LLMModelPrice
from factaudit.llm.ledger import CallLedger
from factaudit.llm.process_identity import has_process_ended, identify_this_process
from factaudit.llm.reply_cache import ReplyCache

#: A dollar a token: figures are whole.
DOLLAR = {"m": LLMModelPrice(1e6, 1e6)}


def request(text: str = "hello") -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), {"max_tokens": 1})


# The ledger ----------------------------------------------------------------------------------------------------------


def test_a_send_is_written_down_before_it_is_made(tmp_path: Path) -> None:
    ledger = CallLedger(tmp_path / "ledger.sqlite")
    seen: list[float] = []

    def plan(body: dict[str, Any], attempt: int) -> Plan:
        seen.append(CallLedger(tmp_path / "ledger.sqlite").sum_spent_dollars())
        return Plan()

    with FaultServer(plan=plan) as server:
        ask(server, request(), budget=LLMCostBudget(100.0, DOLLAR, ledger))
    # At most 3 + 3 tokens of format, 5 of text and 1 of reply; it was 1 and 1.
    assert seen == [12.0]
    assert ledger.sum_spent_dollars() == 2.0


@pytest.mark.parametrize("fault", ["not-json", "truncated", "empty-choices", "wrong-shape"])
def test_a_server_of_malformed_answers_does_not_pass_the_limit(fault: str) -> None:
    budget = LLMCostBudget(60.0, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        replies = ask(server, *(request(f"{i:05}") for i in range(30)), budget=budget, concurrency=4)
        billed = sum(server.seen.values())
    assert {reply.status for reply in replies} <= {"error", "skipped"}
    assert 0 < budget.spent <= 60.0
    told = budget.ledger.summarise_accounts()[""]
    assert told["calls"] == billed
    assert told["cost"] == budget.spent >= 2.0 * billed


def test_an_answer_that_is_none_counts_as_its_usage_says() -> None:
    budget = LLMCostBudget(None, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan("empty-choices") if attempt == 0 else Plan()) as server:
        (reply,) = ask(server, request(), budget=budget)
    assert reply.status == "ok"
    assert budget.ledger.summarise_accounts()[""] == {
        "calls": 2,
        "prompt_tokens": 2,
        "completion_tokens": 2,
        "cost": 4.0,
        "possible_calls": 0,
        "possible_cost": 0.0,
    }


@pytest.mark.parametrize(
    ("fault", "calls", "possible"), [("hang", 1, 1), ("reset", 1, 1), ("close", 1, 1), ("500", 0, 0), ("429", 0, 0)]
)
def test_what_may_have_been_charged_counts_and_what_was_not_does_not(fault: str, calls: int, possible: int) -> None:
    budget = LLMCostBudget(None, DOLLAR)
    with FaultServer(plan=lambda body, attempt: Plan(fault) if attempt == 0 else Plan()) as server:
        (reply,) = ask(server, request(), budget=budget, timeout=0.5)
    assert reply.status == "ok"
    told = budget.ledger.summarise_accounts()[""]
    assert (told["calls"], told["possible_calls"]) == (calls + 1, possible)
    assert (told["cost"], told["possible_cost"]) == (2.0 + 12.0 * possible, 12.0 * possible)


def test_one_limit_holds_over_processes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    budgets = [LLMCostBudget(30.0, DOLLAR, path) for _ in range(2)]
    sends = [budget.try_open_send("a", 1, 12.0) for budget in budgets]
    assert all(sends)
    assert budgets[0].try_open_send("a", 1, 12.0) is None
    for budget, send in zip(budgets, sends, strict=True):
        assert send
        budget.ledger.settle_send(send, "ok", 1, 1, 10.0)
    assert budgets[1].try_open_send("a", 1, 12.0) is False


def test_a_process_is_known_to_be_gone() -> None:
    code = "from factaudit.llm.process_identity import identify_this_process as name; print(name())"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert has_process_ended(name)
    assert has_process_ended(f"{name}/2")
    assert not has_process_ended(identify_this_process())
    host, pid, _ = identify_this_process().rsplit(":", 2)
    assert has_process_ended(f"{host}:{pid}:1"), "another process has had this number before"
    assert not has_process_ended(f"elsewhere:{name.rsplit(':', 2)[1]}:1"), "of another machine nobody knows"


# Two processes, one cache --------------------------------------------------------------------------------------------

WORKER = """
import sys
from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm.cost import LLMCostBudget, LLMModelPrice
url, folder, first, number, limit, seed = sys.argv[1:]
judge = LLMJudge(model="m", base_url=url, cache=f"{folder}/cache.sqlite", concurrency=16, timeout=2.0, max_retries=3)
judge.budget = LLMCostBudget(float(limit) or None, {"m": LLMModelPrice(1e6, 1e6)}, f"{folder}/ledger.sqlite")
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
    assert CallLedger(tmp_path / "ledger.sqlite").summarise_accounts()[""]["calls"] == 200


def test_a_claim_of_a_process_that_was_killed_holds_nobody_up(tmp_path: Path) -> None:
    code = "import os, sys; from factaudit.llm.reply_cache import ReplyCache\n"
    code += "ReplyCache(sys.argv[1]).take_lease(b'k')\nos._exit(9)"
    cache = ReplyCache(tmp_path / "cache.sqlite")
    assert cache.take_lease(b"mine")
    assert cache.take_lease(b"mine"), "one's own can be renewed"
    assert not ReplyCache(tmp_path / "cache.sqlite").take_lease(b"mine")
    subprocess.run([sys.executable, "-c", code, str(cache.path)], stdout=subprocess.DEVNULL)
    assert not cache.take_lease(b"k")  # finds out that nobody is there
    assert cache.take_lease(b"k")
    cache.put(b"k", "m", "", ChatReply("ok", "Yes"))
    assert not cache.take_lease(b"k"), "there is a reply"
    cache.release_lease(b"mine")
    assert ReplyCache(tmp_path / "cache.sqlite").take_lease(b"mine")


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
    with ReplyCache(tmp_path / "cache.sqlite") as cache:
        (kept,) = cache._run_guarded(lambda c: c.execute("SELECT COUNT(*) FROM replies").fetchone())
    assert kept == sent == sum(server.paid.values())
    (journal,) = (tmp_path / ".v.jsonl.journal").glob("*.jsonl")
    assert journal.read_text().count('"claim_id"') >= sent


# Who answered --------------------------------------------------------------------------------------------------------


def test_who_answered_is_kept_and_another_model_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def served(model: str) -> list[ChatReply]:
        plan = Plan(model=model, fingerprint="fp_1")
        with FaultServer(plan=lambda body, attempt: plan) as server:
            return ask(server, request(model), request(model + "2"), cache=tmp_path / "c.sqlite", server_name="s")

    for name in ("m", "m-2024-08-06", "org/M", "m:latest"):
        replies = served(name)
        assert [(reply.model, reply.fingerprint) for reply in replies] == [(name, "fp_1")] * 2
    assert not caplog.records
    served("m-mini")
    (record,) = caplog.records
    assert "m was asked for, and the server answered as m-mini" in record.getMessage()
    # From the cache, too.
    client = LLMClient("m", base_url="http://unused/v1", cache=tmp_path / "c.sqlite", server_name="s")
    assert client.find_cached_replies([request("m")])[0] == ChatReply(
        "ok", "Yes", "stop", None, 7, 1, cached=True, model="m", fingerprint="fp_1"
    )
    assert client.usage.served == {"m (fp_1)": 1}
