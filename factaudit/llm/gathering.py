"""The Batch API for whoever asks one request at a time: what is asked is gathered, and sent together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any, ClassVar

from factaudit.llm.batch import ask_all
from factaudit.llm.client import Client
from factaudit.llm.cost import Budget
from factaudit.llm.settings import LLMSettings
from factaudit.llm.stopping import stopping
from factaudit.llm.types import Reply, Request

_Asked = tuple[asyncio.Future[Reply], Request]


def connect(settings: LLMSettings, budget: Budget | float | None = None) -> Client:
    """The client that settings ask for. ``budget``: shared with other clients, or US dollars of its own."""
    kind = BatchClient if settings.batch else Client
    return kind(settings, cache=settings.cache_path(), budget=budget if isinstance(budget, Budget) else Budget(budget))


class BatchClient(Client):
    """A `Client` whose replies come at half the price within a day.

    When nobody has asked anything for ``quiet`` seconds, all that wait are put into batches, looked at every ``poll``
    seconds; what is asked meanwhile waits for the next round. So who asks in stages should ask all of a stage at once
    (``gathers`` tells). What is under way when a run is stopped or killed is collected by the next one.
    """

    gathers = True
    quiet: ClassVar[float] = 10.0
    poll: ClassVar[float] = 30.0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._waiting: list[_Asked] = []
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

    async def ask(self, request: Request) -> Reply:
        """The reply to one request, once its batch has ended."""
        if (hit := self.cached([request])[0]) is not None:
            return hit
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((answer, request))
        self._last = loop.time()
        if self._rounds is None or self._rounds.done():
            self._rounds = loop.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting and not self._stopped():
            if (left := self._last + self.quiet - loop.time()) > 0:
                await asyncio.sleep(min(left, 0.25))
                continue
            asked, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(self._round, loop, asked)
            except Exception as error:
                for answer, _ in asked:
                    if not answer.done():
                        answer.set_exception(error)

    def _round(self, loop: asyncio.AbstractEventLoop, asked: Sequence[_Asked]) -> None:
        """In a thread of its own: the Batch API is waited for, not awaited."""
        for answer, reply in ask_all(self, asked, poll=self.poll, stopped=self._stopped):
            loop.call_soon_threadsafe(_settle, answer, reply)

    def _stopped(self) -> bool:
        return stopping() or self._left.is_set()


def _settle(answer: asyncio.Future[Reply], reply: Reply) -> None:
    if not answer.done():
        answer.set_result(reply)
