"""The bridge from plain code to the event loop."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

import pytest
from llm_server import FaultServer, Plan

from factaudit.llm.ask_all import ask_all
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.garbage_collection import collect_garbage_rarely


class Double:
    """Doubles numbers. ``under_way`` counts the calls that wait; ``hold`` are never answered, ``fail`` raise."""

    signature = "double"

    def __init__(self, hold: Container[int] = (), fail: Container[int] = ()) -> None:
        self.hold, self.fail = hold, fail
        self.under_way = self.cancelled = 0

    async def ask(self, request: ChatRequest) -> ChatReply:
        number = int(request.messages[0]["content"])
        self.under_way += 1
        try:
            await asyncio.sleep(60 if number in self.hold else 0.001 * (number % 3))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.under_way -= 1
        if number in self.fail:
            raise ValueError("no")
        return ChatReply("ok", str(2 * number))


def requests(numbers: Iterable[int]) -> Iterator[tuple[int, ChatRequest]]:
    return ((number, ChatRequest(({"role": "user", "content": str(number)},))) for number in numbers)


def test_every_item_comes_back_once_with_its_result() -> None:
    found = [(item, reply.text) for item, reply in ask_all(Double(), requests(range(3000)))]
    assert sorted(found) == [(i, str(2 * i)) for i in range(3000)]
    assert list(ask_all(Double(), [])) == []


def test_what_needs_no_waiting_starts_no_loop_and_what_does_comes_beside_it(tmp_path: Path) -> None:
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.02)) as server:
        client = LLMClient("m", base_url=server.url, cache=tmp_path / "c.sqlite", concurrency=7)
        assert len(list(ask_all(client, requests(range(300))))) == 300
        assert server.most_in_flight == 7
        before = threading.active_count()
        replies = dict(ask_all(client, requests(range(300))))
        assert all(reply.cached for reply in replies.values())
        assert threading.active_count() == before
        mixed = dict(ask_all(client, requests(range(200, 400))))
        assert [reply.cached for _, reply in sorted(mixed.items())] == [True] * 100 + [False] * 100
        assert set(server.seen.values()) == {1}


@pytest.mark.parametrize("leave", ["close", "exception"])
def test_leaving_cancels_what_is_under_way(leave: str) -> None:
    llm = Double(hold=range(1, 5), fail=(0,) if leave == "exception" else ())
    replies = ask_all(llm, requests(range(5)))
    if leave == "exception":
        with pytest.raises(ValueError, match="no"):
            next(replies)
    else:
        assert next(replies)[0] == 0
        replies.close()  # type: ignore[attr-defined]
    assert (llm.under_way, llm.cancelled) == (0, 4)


def test_the_collector_is_as_it_was_afterwards() -> None:
    before = gc.get_threshold()
    try:
        with collect_garbage_rarely():
            assert gc.get_threshold()[0] > before[0]
            with collect_garbage_rarely():
                pass
            assert gc.get_threshold()[0] > before[0]
        assert gc.get_threshold() == before
        gc.set_threshold(0)
        with collect_garbage_rarely():
            assert gc.get_threshold()[0] == 0, "it was turned off"
    finally:
        gc.set_threshold(*before)
