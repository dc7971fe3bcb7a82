"""The bridge between loops, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer, Plan

from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm_judges import LLMJudge
from factaudit.llm import event_loop_thread
from factaudit.llm.event_loop_thread import stream_from_event_loop


async def double(item: int) -> int:
    await asyncio.sleep(0.001 * (item % 3))
    return 2 * item


def test_every_item_comes_back_once_with_its_result() -> None:
    assert dict(stream_from_event_loop(double, range(100), in_flight=8)) == {i: 2 * i for i in range(100)}
    assert list(stream_from_event_loop(double, [], in_flight=8)) == []


def test_no_more_are_under_way_than_allowed() -> None:
    under_way = most = 0

    async def ask(item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.002)
        under_way -= 1
        return item

    assert len(list(stream_from_event_loop(ask, range(50), in_flight=7))) == 50
    assert most == 7


def test_what_needs_no_waiting_starts_no_loop() -> None:
    async def ask(item: int) -> int:
        raise AssertionError("nothing is left to ask")

    def now(items: Sequence[int]) -> list[int]:
        assert threading.current_thread() is threading.main_thread()
        return [-item for item in items]

    before = threading.active_count()
    results = []
    for item, result in stream_from_event_loop(ask, range(1000), in_flight=4, answer_at_once=now):
        results.append((item, result))
        assert threading.active_count() == before
    assert results == [(i, -i) for i in range(1000)]


def test_answers_at_once_and_answers_later_are_mixed() -> None:
    def now(items: Sequence[int]) -> list[int | None]:
        return [None if item % 10 == 0 else 2 * item for item in items]

    assert dict(stream_from_event_loop(double, range(2000), in_flight=8, answer_at_once=now)) == {
        i: 2 * i for i in range(2000)
    }


@pytest.mark.parametrize("leave", ["close", "exception"])
def test_leaving_cancels_what_is_under_way_and_closes_the_session(leave: str) -> None:
    events: list[str] = []

    @asynccontextmanager
    async def session() -> AsyncIterator[None]:
        events.append("open")
        yield
        events.append("closed")

    async def ask(item: int) -> int:
        try:
            await asyncio.sleep(0 if item == 0 else 60)
        except asyncio.CancelledError:
            events.append("cancelled")
            raise
        if leave == "exception":
            raise ValueError("no")
        return item

    results: Iterator[tuple[int, int]] = stream_from_event_loop(ask, range(5), in_flight=3, session=session())
    if leave == "exception":
        with pytest.raises(ValueError, match="no"):
            next(results)
    else:
        assert next(results) == (0, 0)
        results.close()  # type: ignore[attr-defined]
    assert events == ["open", "cancelled", "cancelled", "closed"]


@pytest.mark.parametrize("late", [False, True])
def test_a_session_that_cannot_open_is_an_exception_here(monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    start = event_loop_thread._EventLoopThread.start_items

    def after_the_loop_has_ended(self: Any, items: Any) -> None:
        self._thread.join(10)
        start(self, items)

    if late:
        monkeypatch.setattr(event_loop_thread._EventLoopThread, "start_items", after_the_loop_has_ended)

    @asynccontextmanager
    async def session() -> AsyncIterator[None]:
        raise OSError("no model")
        yield

    with pytest.raises(OSError, match="no model"):
        list(stream_from_event_loop(double, range(5), in_flight=3, session=session()))


WORKER = """
import sys
from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm_judges import LLMJudge
judge = LLMJudge(model="m", base_url=sys.argv[1], cache=sys.argv[2], concurrency=8)
for verdict in judge.judge(Claim(f"c{i}", f"number {i}", "d") for i in range(200)):
    print(verdict.claim_id, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_killed_run_repeats_at_most_what_was_in_flight(tmp_path: Path, number: signal.Signals) -> None:
    cache = tmp_path / "cache.sqlite"
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.02)) as server:
        command = [sys.executable, "-c", WORKER, server.url, str(cache)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(40):
                process.stdout.readline()
            process.send_signal(number)
            _, errors = process.communicate(timeout=30)
        assert process.returncode != 0
        if number == signal.SIGINT:
            assert "SignalInterrupt: SIGINT" in errors
        assert 40 <= sum(server.seen.values()) < 200
        judge = LLMJudge(model="m", base_url=server.url, cache=str(cache), concurrency=8)
        verdicts = list(judge.judge(Claim(f"c{i}", f"number {i}", "d") for i in range(200)))
        assert {verdict.claim_id for verdict in verdicts} == {f"c{i}" for i in range(200)}
        assert judge.usage.cached_calls >= 40
        repeated = sum(count - 1 for count in server.seen.values())
        assert repeated <= 8
        assert set(server.seen.values()) <= {1, 2}
        assert Counter(verdict.status for verdict in verdicts) == {"ok": 200}


@pytest.mark.slow
def test_a_money_limit_holds_over_runs_that_are_stopped_killed_and_resumed(tmp_path: Path) -> None:
    """The command line in processes of its own, a model with slashes in its name, a price table of the user's."""
    rows = [{"dataset": "d", "claim": f"number {i} 是", "doc": f"doc {i % 7}", "label": i % 2} for i in range(100)]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "prices.csv").write_text("model,input,output\norg/model-8B,1000,1000\n")
    environment = {
        **os.environ,
        "FACTAUDIT_PRICES": str(tmp_path / "prices.csv"),
        "FACTAUDIT_CACHE": str(tmp_path / "cache.sqlite"),
        "OPENAI_API_KEY": "sk-very-secret-key",
    }
    out = tmp_path / "out"

    def start(verb: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "factaudit", verb, str(tmp_path / "e.yaml"), *arguments]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
        )

    def run(max_cost: float) -> tuple[dict[str, Any], str]:
        process = start("run", "--out", str(out), "--set", f"max_cost={max_cost}")
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        (calls,) = json.loads((out / "results.json").read_text(encoding="utf-8"))["calls"]
        return calls, errors

    def stopped(number: signal.Signals, after: int) -> str:
        before = sum(server.paid.values())
        process = start("run", "--out", str(out), "--set", "max_cost=12")
        while sum(server.paid.values()) < before + after and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=30)
        assert process.returncode != 0
        return errors

    with FaultServer(plan=lambda body, attempt: Plan(p_yes=0.7, delay=0.03)) as server:
        (tmp_path / "e.yaml").write_text(
            "claims: claims.jsonl\naudits: [rates]\nreplicates: 0\nevaluators:\n"
            f"  - llm: {{model: org/model-8B, base_url: '{server.url}/', concurrency: 4, max_tokens: 1}}\n"
        )
        first, errors = run(3)
        assert 0 < first["cost"] <= 3
        assert first["calls"] == sum(server.paid.values()) < 100
        assert "raise max_cost" in errors

        assert "run the same command again" in stopped(signal.SIGINT, 8)
        assert "Traceback" not in stopped(signal.SIGKILL, 8)
        again, _ = run(12)
        # Those in flight when it was killed: perhaps paid for, and nobody was left to hear of it.
        assert sum(server.paid.values()) <= again["calls"] <= sum(server.paid.values()) + 4
        assert first["cost"] < again["cost"] <= 12
        assert again["possible_calls"] <= 4
        assert sum(server.paid.values()) < 100
        told, _ = start("run", "--dry-run").communicate(timeout=60)
        cached = again["calls"] - again["possible_calls"]
        assert f"{100 - cached} calls ({cached} more are cached)" in told

        last, _ = run(1000)
        assert last["calls"] == 100 + last["possible_calls"]
        assert 100 <= sum(server.paid.values()) <= last["calls"] <= 104
        assert set(server.paid.values()) <= {1, 2}
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"very-secret" not in file.read_bytes()
