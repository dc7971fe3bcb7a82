"""How fast requests go out: so many a minute, and not before the server wants them again."""

from __future__ import annotations

import asyncio
import random
from collections import deque

from factaudit.llm.stop_signals import is_stopping
from factaudit.llm.stop_signals import sleep_until_signal as wait


class MinuteRateLimiter:
    """So many units per minute, evenly spaced: no window of a minute ever holds more."""

    def __init__(self, per_minute: float | None) -> None:
        self._interval = None if per_minute is None else 60.0 / per_minute
        self._next = 0.0

    async def wait(self, units: float) -> None:
        """Wait until ``units`` more may be used; who asks first goes first."""
        if self._interval is not None:
            now = asyncio.get_running_loop().time()
            start = max(now, self._next)
            self._next = start + units * self._interval
            if start > now:
                await wait(start - now)


class ConcurrencyLimiter:
    """At most ``n`` at a time; who asks first goes first. Handed on in constant time, however many wait for one."""

    def __init__(self, n_slots: int) -> None:
        self._free = n_slots
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():  # it was given one all the same
                self._hand_on_slot()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._hand_on_slot()

    def _hand_on_slot(self) -> None:
        while self._waiting:
            if not (next_one := self._waiting.popleft()).done():
                next_one.set_result(None)
                return
        self._free += 1


class ServerRateLimits:
    """The limits of one account at one server, and the pauses that the server asks for.

    Attempts are repeated after an exponential backoff with jitter, between ``backoff`` and ``max_backoff`` seconds.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        backoff: float,
        max_backoff: float,
        seed: int | None,
    ) -> None:
        self._requests = MinuteRateLimiter(requests_per_minute)
        self._tokens = MinuteRateLimiter(tokens_per_minute)
        self._backoff, self._max_backoff = backoff, max_backoff
        self._random = random.Random(seed)
        self._paused_until = 0.0

    async def wait_before_request(self, tokens: int) -> None:
        """Wait until a request of so many tokens may be sent."""
        clock = asyncio.get_running_loop().time
        while True:
            while (pause := self._paused_until - clock()) > 0 and not is_stopping():
                await wait(pause)
            await self._requests.wait(1)
            await self._tokens.wait(tokens)
            # A pause that began meanwhile: when it ends, those that waited for it keep their distance too.
            if self._paused_until <= clock() or is_stopping():
                return

    async def wait_after_failure(self, attempt: int, retry_after: float | None) -> None:
        """Wait after a failed attempt (counted from 0), ``retry_after`` seconds where the server says so."""
        delay = min(self._max_backoff, self._backoff * 2**attempt) * self._random.uniform(0.5, 1.0)
        if retry_after is not None:
            # Every request to this server must wait, not only the one that was told so.
            self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + retry_after)
            delay = retry_after + delay * 0.1
        await wait(delay)
