"""How is the Batch API used by code that asks one request at a time? Requests are collected and sent together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from factaudit.llm.batch_api import ask_through_batch_api
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.cost import LLMCostBudget
from factaudit.llm.settings import LLMSettings
from factaudit.llm.stop_signals import is_stopping

_PendingRequest = tuple[asyncio.Future[ChatReply], ChatRequest]


def make_llm_client(settings: LLMSettings, budget: LLMCostBudget | float | None = None) -> LLMClient:
    """The client that settings ask for. ``budget``: shared with other clients, or US dollars of its own."""
    kind = BatchClient if settings.batch else LLMClient
    return kind(
        settings,
        cache=settings.cache_path(),
        budget=budget if isinstance(budget, LLMCostBudget) else LLMCostBudget(budget),
    )


class BatchClient(LLMClient):
    """A `LLMClient` whose replies come at half the price within a day.

    When nobody has asked anything for ``quiet`` seconds, all that wait are put into batches, looked at every ``poll``
    seconds; what is asked meanwhile waits for the next round. So who asks in stages should ask all of a stage at once
    (``gathers`` tells). What is under way when a run is stopped or killed is collected by the next one.
    """

    gathers = True
    quiet: ClassVar[float] = 10.0
    poll: ClassVar[float] = 30.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: list[_PendingRequest] = []
        self._last = 0.0
        self._rounds: asyncio.Task[None] | None = None
        self._left = threading.Event()

    async def __aenter__(self) -> BatchClient:
        await super().__aenter__()
        self._waiting, self._rounds, self._left = [], None, threading.Event()
        return self

    async def __aexit__(self, *details: object) -> None:
        self._left.set()
        if self._rounds is not None:
            await asyncio.wait([self._rounds])
        await super().__aexit__(*details)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The reply to one request, once its batch has ended."""
        if (hit := self.find_cached_replies([request])[0]) is not None:
            return hit
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[ChatReply] = loop.create_future()
        self._waiting.append((answer, request))
        self._last = loop.time()
        if self._rounds is None or self._rounds.done():
            self._rounds = loop.create_task(self._send_rounds())
        return await answer

    async def _send_rounds(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and not self._is_stopped():
            if (left := self._last + self.quiet - loop.time()) > 0:
                await asyncio.sleep(min(left, 0.25))
                continue
            asked, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._send_round, loop, asked)
            except Exception as error:
                for answer, _ in asked:
                    if not answer.done():
                        answer.set_exception(error)

    def _send_round(self, loop: asyncio.AbstractEventLoop, pending_requests: Sequence[_PendingRequest]) -> None:
        """In a thread of its own: the Batch API is waited for, not awaited."""
        for answer, reply in ask_through_batch_api(
            self, pending_requests, poll_seconds=self.poll, is_stopped=self._is_stopped
        ):
            loop.call_soon_threadsafe(_set_future_reply, answer, reply)

    def _is_stopped(self) -> bool:
        return is_stopping() or self._left.is_set()


def _set_future_reply(future: asyncio.Future[ChatReply], reply: ChatReply) -> None:
    if not future.done():
        future.set_result(reply)
