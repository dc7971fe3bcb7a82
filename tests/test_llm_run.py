"""The bridge between loops, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

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
