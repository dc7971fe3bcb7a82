"""Money: what was sent is written down before it is, no limit is passed, and no reply is paid for
twice."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import llm_server
import pytest
from llm_server import FaultServer, Plan
from scripted_llm import (
    ChatReply,
    ChatReplyToken,
    ChatRequest,
    LLMCostBudget,
    LLMJudge,
    ReplyStore,
    Send,
)

from factaudit import Claim, FactauditError, UsageError
from factaudit.llm.cost import estimate_llm_judging_cost
from factaudit.llm.store import hash_request, summarise_reply_store

#: A dollar a token: figures are whole.
DOLLAR = {"input": 1e6, "output": 1e6}


def request(text: str = "hello") -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), {"max_tokens": 1})


def ask(server: FaultServer, *requests: ChatRequest, **options: Any) -> list[ChatReply]:
    return llm_server.ask(server, *requests, **{"prices": DOLLAR, **options})


# What was sent
# ------------------------------------------------------------


def test_a_send_is_written_down_before_it_is_made(tmp_path):
    path = tmp_path / "cache.sqlite"
    budget, seen = LLMCostBudget(100.0), []

    def plan(body, attempt):
        seen.append(ReplyStore(path).spent(budget.run))
        return Plan()

    with FaultServer(plan=plan) as server:
        ask(server, request(), budget=budget, cache=path)
    # At most 3 + 3 tokens of format, 5 of text and 1 of reply; it was 1 and 1.
    assert seen == [12.0]
    assert budget.spent == 2.0


#: A fault of the first attempt, what it counts as, and what it costs beside the reply's 2 dollars.
FAULTS = [
    ("hang", 1, 1, 12.0),
    ("reset", 1, 1, 12.0),
    ("close", 1, 1, 12.0),
    ("500", 0, 0, 0.0),
    ("429", 0, 0, 0.0),
    ("not-json", 1, 0, 12.0),
    ("empty-choices", 1, 0, 12.0),
]


@pytest.mark.parametrize(("fault", "calls", "possible", "cost"), FAULTS)
def test_what_may_have_been_charged_counts_and_what_was_not_does_not(fault, calls, possible, cost):
    budget = LLMCostBudget(None)
    with FaultServer(plan=lambda body, attempt: Plan(None if attempt else fault)) as server:
        (reply,) = ask(server, request(), budget=budget, timeout=0.5)
    assert reply.status == "ok"
    told = budget.summarise_callers()[""]
    assert (told["calls"], told["cost"]) == (calls + 1, 2.0 + cost)
    assert (told["possible_calls"], told["possible_cost"]) == (possible, cost * possible)


@pytest.mark.parametrize("fault", ["not-json", "truncated", "empty-choices", "wrong-shape"])
def test_a_server_of_malformed_answers_does_not_pass_the_limit(fault):
    budget = LLMCostBudget(60.0)
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        replies = ask(
            server, *(request(f"{i:05}") for i in range(30)), budget=budget, concurrency=4
        )
        billed = sum(server.seen.values())
    assert {reply.status for reply in replies} <= {"error", "skipped"}
    told = budget.summarise_callers()[""]
    assert told["calls"] == billed
    assert told["cost"] == budget.spent <= 60.0
    assert told["cost"] >= 2.0 * billed > 0


def test_the_money_limit_is_never_passed_and_with_more_money_the_rest_follows(
    tmp_path,
):
    def run(limit):
        budget = LLMCostBudget(limit)
        requests = [request(f"{i:05}") for i in range(40)]
        with FaultServer(plan=lambda body, attempt: Plan(delay=0.002)) as server:
            replies = ask(
                server,
                *requests,
                budget=budget,
                cache=tmp_path / "c.sqlite",
                concurrency=8,
                server_name="s",
            )
            return replies, budget, sum(server.paid.values())

    replies, budget, calls = run(40.0)
    skipped = [reply for reply in replies if reply.status == "skipped"]
    # One more call's upper bound (3 + 3 + 5 bytes, 1 token) would not have fitted.
    assert 40.0 - 12.0 < budget.spent <= 40.0
    assert len(skipped) == 40 - calls
    assert "max_cost" in (skipped[0].error or "")
    replies, _, more = run(1000.0)
    assert {reply.status for reply in replies} == {"ok"}
    assert calls + more == 40


def test_a_limit_needs_a_price_and_a_bound_on_replies():
    for prices, params, said in (
        (None, {"max_tokens": 1}, "max_cost needs the price"),
        (DOLLAR, {}, "max_tokens"),
    ):
        asked = ChatRequest(({"role": "user", "content": "x"},), params)
        with FaultServer() as server, pytest.raises(UsageError, match=said):
            ask(server, asked, budget=LLMCostBudget(1.0), prices=prices)


def test_a_reply_without_counts_is_estimated():
    budget = LLMCostBudget()
    with FaultServer(plan=lambda body, attempt: Plan(usage=False)) as server:
        ask(server, request("12345678"), budget=budget, prices={"input": 1e6, "output": 2e6})
    used = budget.summarise_callers()[""]
    assert (used["calls"], used["prompt_tokens"]) == (1, 3 + 3 + 2)
    assert used["cost"] == pytest.approx(8.0 + 2.0)  # and one of the reply


def test_one_limit_holds_over_processes(tmp_path):
    stores = [ReplyStore(tmp_path / "cache.sqlite") for _ in range(2)]
    sends = [Send(bytes([n]), "run", most_cost=12.0) for n in range(4)]
    assert [store.begin(send, 30.0) for store, send in zip(stores, sends, strict=False)] == [
        "send",
        "send",
    ]
    assert stores[0].begin(sends[2], 30.0) == "wait", "it may fit when the others have settled"
    assert stores[0].begin(Send(b"x", "other", most_cost=12.0), 30.0) == "send", (
        "another run's money is its own"
    )
    for store, send in zip(stores, sends, strict=False):
        store.finish(send.key, "ok", (1, 1), 10.0)
    assert stores[1].begin(sends[2], 30.0) == "over"
    assert stores[1].begin(sends[2], 32.0) == "send"


# Two processes, one cache
# ------------------------------------------------------------

WORKER = """
import sys
from factaudit import Claim
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm import rate_limits
from factaudit.llm.cost import LLMCostBudget
url, folder, first, number, limit, seed = sys.argv[1:]
cache = f"{folder}/cache.sqlite"
rate_limits.BACKOFF_SECONDS = 0.002
prices = {"input": 1e6, "output": 1e6}
judge = LLMJudge(model="m", base_url=url, cache=cache, timeout=2.0, max_retries=3, prices=prices)
judge.llm.budget = LLMCostBudget(float(limit) or None, run="r")
order = range(int(first), int(first) + int(number))
for verdict in judge.judge(Claim(f"c{i}", f"number {i}", f"doc {i % 50}") for i in order):
    print(verdict.claim_id, verdict.status, flush=True)
"""


def worker(
    server: FaultServer, folder: Path, first: int, number: int, limit: float = 0.0
) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-c",
        WORKER,
        server.url,
        str(folder),
        str(first),
        str(number),
        str(limit),
        "0",
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def statuses(process: subprocess.Popen[str]) -> dict[str, str]:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return dict(line.split() for line in out.splitlines())


def test_two_processes_on_one_cache_pay_for_each_reply_once(tmp_path):
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.05)) as server:
        both = [
            statuses(process) for process in [worker(server, tmp_path, 0, 200) for _ in range(2)]
        ]
    assert both[0] == both[1] == {f"c{i}": "ok" for i in range(200)}
    assert Counter(server.paid.values()) == {1: 200}
    assert ReplyStore(tmp_path / "cache.sqlite").summarise_callers("r")[""]["calls"] == 200


def test_a_send_of_a_process_that_was_killed_holds_nobody_up(tmp_path):
    code = "import os, sys; from factaudit.llm.store import ReplyStore, Send\n"
    code += "ReplyStore(sys.argv[1]).begin(Send(b'k', 'r', most_cost=3.0))\n"
    code += "print(flush=True); sys.stdin.read(); os._exit(9)"
    path = tmp_path / "cache.sqlite"
    one, other = ReplyStore(path), ReplyStore(path)
    assert one.begin(Send(b"mine")) == "send"
    assert one.begin(Send(b"mine")) == other.begin(Send(b"mine")) == "wait"
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        assert one.begin(Send(b"k")) == "wait"
        process.communicate(timeout=60)
    assert process.returncode == 9, "to look whether it lives did not end it"
    assert one.begin(Send(b"k")) == "send"
    assert one.summarise_callers("r")[""]["possible_cost"] == 3.0, "it may have been paid for"
    one.finish(b"k", "ok", reply=ChatReply("ok", "Yes"))
    assert other.begin(Send(b"k")) == ChatReply("ok", "Yes", cached=True)
    one.finish(b"mine", "not billed")
    assert other.begin(Send(b"mine")) == "send"


# Faults and kills
# ------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.slow
def test_a_signal_lets_calls_under_way_finish_and_sends_no_more(tmp_path, number, code):
    rows = [
        {"dataset": "d", "claim": f"number {i}", "doc": f"doc {i}", "label": 1} for i in range(200)
    ]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    environment = {**os.environ, "FACTAUDIT_CACHE": str(tmp_path / "cache.sqlite")}
    with FaultServer(plan=lambda body, attempt: Plan(delay=1.0)) as server:
        spec = f"llm:model=m,base_url={server.url},concurrency=8"
        command = [
            sys.executable,
            "-m",
            "factaudit",
            "judge",
            str(tmp_path / "claims.jsonl"),
            "--evaluator",
            spec,
        ]
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path / "v.jsonl")],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
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
    # All that was paid for is in the cache.
    kept = summarise_reply_store(tmp_path / "cache.sqlite")["replies"]
    assert kept == sent == sum(server.paid.values())


# The file
# ------------------------------------------------------------

REPLY = ChatReply(
    "ok",
    "Yes – 是",
    "stop",
    (ChatReplyToken("Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}),),
    12,
    3,
)


def put(path: Path, *keys: int, text: str = "Yes – 是") -> None:
    cache = ReplyStore(path)
    for key in keys:
        cache.finish(bytes([key]), "ok", (1, 1), 0.0, replace(REPLY, text=text))
    cache.close()


def test_replies_come_back_whole_and_the_first_one_stays(tmp_path):
    put(tmp_path / "c.sqlite", *range(0, 100, 2))
    put(tmp_path / "c.sqlite", 0, text="another")
    cache = ReplyStore(tmp_path / "c.sqlite")
    kept = replace(REPLY, cached=True)
    assert [cache.get(bytes([i])) for i in range(100)] == [kept, None] * 50


def test_the_key_hangs_on_everything_that_changes_a_reply():
    def make(
        server="",
        model="m",
        revision="",
        texts="user hi",
        **params,
    ):
        messages = tuple(
            dict(zip(("role", "content"), text.split(" "), strict=True))
            for text in texts.split("|")
        )
        return hash_request(model, ChatRequest(messages, params), revision, server)

    given = [
        {},
        *({"server": server} for server in "ab"),
        {"model": "n"},
        {"revision": "1"},
        *({"texts": texts} for texts in ("system hi", "user h|user i", "user hi|user ")),
        *({"temperature": value} for value in (0, 0.5)),
        {"temperature": 0, "seed": 1},
        {"max_tokens": 1},
    ]
    assert len({make(**one) for one in given}) == len(given)
    assert make(temperature=0, seed=1) == make(seed=1, temperature=0)
    assert make(texts="user \ud800") != make(texts="user ?")


def test_a_damaged_cache_is_left_as_it_is_and_the_way_out_is_told(tmp_path):
    path = tmp_path / "c.sqlite"
    put(path, *range(200), text="x" * 1000)
    content = path.read_bytes()
    damaged = content[:4096] + b"\xff" * 40_000 + content[44_096:]
    path.write_bytes(damaged)
    with pytest.raises(FactauditError, match=r"The file is damaged: move it away.*\.recover"):
        list(map(ReplyStore(path).get, map(bytes, ([i] for i in range(200)))))
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    "content", [b"My notes.\n", b"\0" * 5000, "CREATE TABLE mine (x)", "PRAGMA user_version = 99"]
)
@pytest.mark.parametrize("call", [ReplyStore, summarise_reply_store])
def test_a_file_that_is_no_cache_is_left_as_it_is(tmp_path, content, call):
    path = tmp_path / "notes.txt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with closing(sqlite3.connect(path)) as other:
            other.execute(content)
            other.commit()
    before = path.read_bytes()
    with pytest.raises(
        FactauditError, match="not a cache of replies of this version; nothing was changed"
    ):
        call(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_cache_holds_is_told_and_nothing_is_written(tmp_path):
    path = tmp_path / "c.sqlite"
    put(path, 1, 2, 3)
    before = path.read_bytes()
    info = summarise_reply_store(path)
    assert info["replies"] == 3
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]
    with pytest.raises(FactauditError, match="no such file"):
        summarise_reply_store(tmp_path / "none")


# Prices, and what a run would cost
# ------------------------------------------------------------

CLAIMS = [Claim(f"c{i}", f"Claim number {i}.", f"Document {i}. " * 20) for i in range(10)]


def test_an_estimate_is_what_the_run_then_uses(tmp_path):
    cache, prices = tmp_path / "cache.sqlite", {"input": 2.0, "output": 8.0}
    with FaultServer() as server:
        judge = LLMJudge(model="m", base_url=server.url, cache=str(cache), prices=prices)
        row = estimate_llm_judging_cost(judge, CLAIMS)
        assert not cache.exists()
        assert sum(server.seen.values()) == 0
        assert (row["calls"], row["cached_calls"], row["max_completion_tokens"]) == (10, 0, 10 * 8)
        assert row["cost"] == pytest.approx((2.0 * row["prompt_tokens"] + 8.0 * 80) / 1e6)
        half = estimate_llm_judging_cost(replace(judge, batch=True), CLAIMS)
        assert half["cost"] == pytest.approx(row["cost"] / 2)
        judge.llm.budget = LLMCostBudget()
        list(judge.judge(CLAIMS[:4]))
        assert judge.llm.budget.summarise_callers()[""]["calls"] == 4
        row = estimate_llm_judging_cost(judge, [*CLAIMS, CLAIMS[9]])
        assert (row["calls"], row["cached_calls"]) == (6, 5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"prices": None}, "no price"),
        ({"params": {"max_tokens": None}}, "length"),
    ],
)
def test_a_cost_that_is_not_known_is_null_with_a_reason(tmp_path, options, reason):
    given = {"model": "m", "prices": DOLLAR, "cache": str(tmp_path / "none.sqlite"), **options}
    row = estimate_llm_judging_cost(LLMJudge(**given), CLAIMS)
    assert row["cost"] is None
    assert reason in row["reason"]
