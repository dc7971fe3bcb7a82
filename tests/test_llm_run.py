"""The bridge between loops, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from llm_server import FaultServer, Plan

from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm import LLMJudge
from factaudit.llm.run import stream


async def double(item: int) -> int:
    await asyncio.sleep(0.001 * (item % 3))
    return 2 * item


def test_every_item_comes_back_once_with_its_result() -> None:
    assert dict(stream(double, range(100), in_flight=8)) == {i: 2 * i for i in range(100)}
    assert list(stream(double, [], in_flight=8)) == []


def test_no_more_are_under_way_than_allowed() -> None:
    under_way = most = 0

    async def ask(item: int) -> int:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.002)
        under_way -= 1
        return item

    assert len(list(stream(ask, range(50), in_flight=7))) == 50
    assert most == 7


def test_what_needs_no_waiting_starts_no_loop() -> None:
    async def ask(item: int) -> int:
        raise AssertionError("nothing is left to ask")

    def now(items: Sequence[int]) -> list[int]:
        assert threading.current_thread() is threading.main_thread()
        return [-item for item in items]

    before = threading.active_count()
    results = []
    for item, result in stream(ask, range(1000), in_flight=4, now=now):
        results.append((item, result))
        assert threading.active_count() == before
    assert results == [(i, -i) for i in range(1000)]


def test_answers_at_once_and_answers_later_are_mixed() -> None:
    def now(items: Sequence[int]) -> list[int | None]:
        return [None if item % 10 == 0 else 2 * item for item in items]

    assert dict(stream(double, range(2000), in_flight=8, now=now)) == {i: 2 * i for i in range(2000)}


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

    start = time.monotonic()
    results: Iterator[tuple[int, int]] = stream(ask, range(5), in_flight=3, session=session())
    if leave == "exception":
        with pytest.raises(ValueError, match="no"):
            next(results)
    else:
        assert next(results) == (0, 0)
        results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - start < 30
    assert events == ["open", "cancelled", "cancelled", "closed"]


def test_a_session_that_cannot_open_is_an_exception_here() -> None:
    @asynccontextmanager
    async def session() -> AsyncIterator[None]:
        raise OSError("no model")
        yield

    with pytest.raises(OSError, match="no model"):
        list(stream(double, range(5), in_flight=3, session=session()))


WORKER = """
import sys
from factaudit.evaluators.base import Claim
from factaudit.evaluators.llm import LLMJudge
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
            assert "KeyboardInterrupt" in errors
        assert 40 <= sum(server.seen.values()) < 200
        judge = LLMJudge(model="m", base_url=server.url, cache=str(cache), concurrency=8)
        verdicts = list(judge.judge(Claim(f"c{i}", f"number {i}", "d") for i in range(200)))
        assert {verdict.claim_id for verdict in verdicts} == {f"c{i}" for i in range(200)}
        assert judge.usage.cached_calls >= 40
        repeated = sum(count - 1 for count in server.seen.values())
        assert repeated <= 8
        assert set(server.seen.values()) <= {1, 2}
        assert Counter(verdict.status for verdict in verdicts) == {"ok": 200}
