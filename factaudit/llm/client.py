"""The client of any OpenAI-compatible server: bounded, limited, retried where that helps, cached, counted."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from factaudit.errors import FactauditError
from factaudit.llm.cache import KEPT, Cache, request_key
from factaudit.llm.completion import read_completion
from factaudit.llm.cost import Budget, Price, Usage, approximate_tokens, prompt_tokens, reply_limit
from factaudit.llm.errors import Failure, Hopeless, read_error
from factaudit.llm.ledger import NOT_BILLED, POSSIBLY
from factaudit.llm.pacing import Pacing, Slots
from factaudit.llm.settings import LLMSettings
from factaudit.llm.stopping import pause, seconds_left, stopping
from factaudit.llm.transport import Transport
from factaudit.llm.types import Reply, Request
from factaudit.llm.writes import Writes

if TYPE_CHECKING:
    from openai import OpenAI

#: A reply that is no completion has been paid for all the same, so it is not asked for as often as a dropped one.
MALFORMED_RETRIES = 2
#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2
#: Seconds between two looks at what another process has asked.
_LOOK = 0.05
_STOPPED = Reply("skipped", error="stopped by a signal before it was sent")

_log = logging.getLogger("factaudit.llm")


class Client:
    """Ask one model of one server; an async context manager.

    ``settings``: an `LLMSettings`, or a model's name with ``options`` that are its fields. ``OPENAI_BASE_URL`` may
    hold an address with a password. Nothing is looked up, connected or started before a request is not in the cache.
    ``concurrency`` bounds the requests under way, ``timeout`` (seconds) each attempt; attempts that fail in a way that
    may pass (429, 5xx, timeouts, dropped connections, half a reply) are repeated up to ``max_retries`` times with
    exponential backoff and jitter between ``backoff`` and ``max_backoff`` seconds, or when the server says. Where the
    model is served is not part of what a reply depends on: where two servers run different weights under one name,
    tell them apart by ``revision``.

    `ask` raises `FactauditError` only for what would befall every request: no key, a key refused, no such model, a
    parameter that the model does not take, an account without credit, no server at the address.
    """

    #: Whether what is asked at the same time is sent together (`factaudit.llm.gathering`).
    gathers = False

    def __init__(
        self,
        settings: LLMSettings | str,
        *,
        cache: str | Path | Cache | None = None,
        budget: Budget | None = None,
        usage: Usage | None = None,
        api_key: str | None = None,
        backoff: float = 0.5,
        max_backoff: float = 30.0,
        seed: int | None = None,
        **options: Any,
    ) -> None:
        if isinstance(settings, str):
            settings = LLMSettings(model=settings, **options)
        elif options:
            settings = replace(settings, **options)
        self.settings = settings
        self.model, self.revision = settings.client_key()
        local = settings.local_model
        # What a local server cannot work on would wait there, and its time would run out.
        self.concurrency = settings.concurrency if local is None else local.slots
        self.max_retries = settings.max_retries
        self.budget = Budget() if budget is None else budget
        self.usage = Usage() if usage is None else usage
        self.cache = cache if isinstance(cache, Cache) or cache is None else Cache(cache)
        self._own_price = settings.price()
        self._transport = Transport(settings, api_key)
        self._pacing = Pacing(settings.requests_per_minute, settings.tokens_per_minute, backoff, max_backoff, seed)
        self._answered = False
        self._others: set[str] = set()
        self._begin()

    @property
    def signature(self) -> str:
        """Model, parameters and revision; never a key or an address."""
        return self.settings.signature

    async def __aenter__(self) -> Client:
        self._begin()
        self._transport.opened()
        return self

    def _begin(self) -> None:
        """What belongs to an event loop: a client may be opened again in another one."""
        self._slots = Slots(self.concurrency)
        self._flights: dict[bytes, asyncio.Future[Reply]] = {}
        self._in_ledger = Writes(self.budget.ledger)
        self._in_cache = None if self.cache is None else Writes(self.cache)

    async def __aexit__(self, *_: object) -> None:
        # Nobody waits for these any more; after a signal they are given their time all the same.
        if flights := set(self._flights.values()):
            if left := seconds_left():
                await asyncio.wait(flights, timeout=left)
            for flight in flights:
                flight.cancel()
            await asyncio.gather(*flights, return_exceptions=True)
        await self._transport.close()

    def key(self, request: Request) -> bytes:
        """The cache's key of a request."""
        return request_key(self.model, self._full(request), self.revision)

    def cached(self, requests: Sequence[Request]) -> list[Reply | None]:
        """What the cache has for each request, read many at a time; needs no event loop."""
        if self.cache is None:
            return [None] * len(requests)
        replies = self.cache.get_many([self.key(request) for request in requests])
        return [None if reply is None else self._hit(reply) for reply in replies]

    async def ask(self, request: Request) -> Reply:
        """The reply to one request. Equal requests at the same time are sent once, by whatever process."""
        request = self._full(request)
        key = request_key(self.model, request, self.revision)
        if (flight := self._flights.get(key)) is not None:
            reply = await asyncio.shield(flight)
            return self._hit(replace(reply, cached=True)) if reply.status in KEPT else reply
        # A task of its own: what was sent is awaited after a signal, though who asked has gone.
        flight = self._flights[key] = asyncio.ensure_future(self._bought(key, request))
        flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)

    def _landed(self, key: bytes, flight: asyncio.Future[Reply]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen: nobody may be waiting any more

    def _hit(self, reply: Reply) -> Reply:
        self.usage.cached()
        self._served(reply)
        return reply

    def body(self, request: Request) -> dict[str, Any]:
        """The body of the chat request, as the API has it."""
        return self._body(self._full(request))

    def price(self) -> Price | None:
        """The model's price: the settings', else the price table's."""
        return self._own_price or self.budget.price(self.model)

    def keep(self, key: bytes, send: int, reply: Reply, discount: float = 1.0) -> None:
        """Put a reply that was paid for into the cache, and settle its send."""
        if self.cache is not None:
            self.cache.put(key, self.model, self.revision, reply)
        self._count(send, reply, discount)

    def _count(self, send: int, reply: Reply, discount: float = 1.0) -> None:
        price = self.price()
        cost = None if price is None else discount * price.cost(reply.prompt_tokens, reply.completion_tokens)
        self.budget.ledger.settle(send, reply.status, reply.prompt_tokens, reply.completion_tokens, cost)
        self.usage.paid(reply.prompt_tokens, reply.completion_tokens, cost)
        self._served(reply)

    def over_limit(self) -> Reply:
        """The reply to a request that the limit of money does not allow."""
        if stopping():
            return _STOPPED
        return Reply("skipped", error=f"max_cost of {self.budget.max_cost} would be passed: raise it to resume")

    def server(self) -> str:
        """The server's address without user, password or query."""
        return self._transport.server()

    def sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        return self._transport.sync_client()

    def read(self, status: int, headers: Mapping[str, str], text: str) -> Reply | Failure:
        """What an HTTP answer means: a reply, or a failure that may pass. Raises what no request will get past."""
        self._answered = True
        if status == 200:
            return self._redacted(read_completion(text))
        try:
            answer = read_error(status, headers, text, answered=self.usage.calls > 0)
        except Hopeless as error:
            said = self._redact(str(error))
            if status == 404 and not urlsplit(self.server()).path.rstrip("/"):
                said += " (most servers' address ends in /v1)"
            raise Hopeless(f"{self.server()}, model {self.model!r}: {said}") from None
        if isinstance(answer, Reply):
            return replace(answer, text=self._redact(answer.text), error=answer.error and self._redact(answer.error))
        return self._redacted(answer)

    def _redacted(self, answer: Reply | Failure) -> Reply | Failure:
        return replace(answer, reason=self._redact(answer.reason)) if isinstance(answer, Failure) else answer

    def _full(self, request: Request) -> Request:
        return Request(request.messages, self.settings.request_params(request.params))

    def _body(self, full: Request) -> dict[str, Any]:
        return {"model": self.model, "messages": [dict(message) for message in full.messages], **full.params}

    async def _bought(self, key: bytes, request: Request) -> Reply:
        if (cache := self.cache) is None or self._in_cache is None:
            return await self._sent(key, request)
        kept = False
        try:
            # What another process is asking for is awaited: its reply is ours, too.
            while not (found := await self._in_cache(lambda: cache.get(key) or cache.claim(key))):
                if stopping():
                    return _STOPPED
                await pause(_LOOK)
            reply = self._hit(found) if isinstance(found, Reply) else await self._sent(key, request)
            kept = reply.status in KEPT
            return reply
        finally:
            if not kept:
                cache.release(key)

    async def _sent(self, key: bytes, request: Request) -> Reply:
        body = self._body(request)
        expected = prompt_tokens(request)
        most = self.budget.most(self.price(), request)
        malformed, attempt = 0, 0
        while True:
            answer = await self._attempt(key, body, request, expected, most)
            if isinstance(answer, Reply):
                return answer
            malformed += answer.malformed
            if answer.unreached and not self._answered and attempt >= min(_UNREACHED_RETRIES, self.max_retries):
                raise FactauditError(f"no server answers at {self.server()}: {answer.reason}")
            attempt += 1
            if attempt > self.max_retries or malformed > MALFORMED_RETRIES or stopping():
                return Reply("error", error=f"gave up after {attempt} attempts: {answer.reason}")
            await self._pacing.after(attempt - 1, answer.after)

    async def _attempt(
        self, key: bytes, body: dict[str, Any], request: Request, expected: int, most: float | None
    ) -> Reply | Failure:
        """One send, written into the ledger before it is made and settled by whatever comes of it."""
        async with self._slots:
            await self._pacing.before(expected + (reply_limit(request.params) or 0))
            if stopping():
                return _STOPPED
            if not (send := await self._reserved(expected, most)):
                return self.over_limit()
            status = "dropped"  # of a send that is cancelled nobody knows what it cost
            try:
                answer = await self._post(body)
                if isinstance(answer, Reply) and answer.status in KEPT:
                    answer = _counted(answer, expected)
                    status = answer.status
                else:
                    status = answer.status if isinstance(answer, Failure) else NOT_BILLED
            except FactauditError:
                status = NOT_BILLED
                raise
            finally:
                if status in POSSIBLY:
                    self.usage.paid(expected, 0, most)
                if status in POSSIBLY or status == NOT_BILLED:
                    self.budget.ledger.settle(send, status)
            if isinstance(answer, Failure) and answer.malformed:
                self._malformed(send, answer, expected, most)
            if isinstance(answer, Failure) or answer.status not in KEPT:
                return answer
            if self.cache is not None and self._in_cache is not None:
                await self._in_cache(partial(self.cache.put, key, self.model, self.revision, answer))
        # It is on disk, and others may be sent.
        await self._in_ledger(partial(self._count, send, answer))
        return answer

    async def _reserved(self, expected: int, most: float | None) -> int | Literal[False]:
        """As `Budget.try_open`, waiting for other sends to settle where that may help; False also at a signal."""
        opened = partial(self.budget.try_open, self.usage.account, expected, most)
        while (send := await self._in_ledger(opened)) is None:
            if stopping():
                return False
            # Clients may live on different event loops and in different processes: nothing else can be waited for.
            await asyncio.sleep(0.02)
        return send

    def _malformed(self, send: int, failure: Failure, expected: int, most: float | None) -> None:
        price = self.price()
        tokens = failure.usage or (expected, 0)
        cost = most if failure.usage is None or price is None else price.cost(*tokens)
        self.budget.ledger.settle(send, "malformed", *tokens, cost)
        self.usage.paid(*tokens, cost)

    async def _post(self, body: dict[str, Any]) -> Reply | Failure:
        answer = await self._transport.post(body)
        return answer if isinstance(answer, Failure) else self.read(*answer)

    def _served(self, reply: Reply) -> None:
        """Count who answered, and say it once where that is another model than was asked for."""
        if (name := self.usage.replied(reply)) is not None:
            self.budget.ledger.answered(self.usage.account, name)
        if reply.model and reply.model not in self._others and not _same_model(self.model, reply.model):
            self._others.add(reply.model)
            _log.warning("%s was asked for, and the server answered as %s", self.model, reply.model)

    def _redact(self, text: str) -> str:
        return self._transport.redact(text)


def _counted(reply: Reply, expected: int) -> Reply:
    """A reply with tokens to pay for, where the server counted none."""
    if reply.prompt_tokens:
        return reply
    return replace(reply, prompt_tokens=expected, completion_tokens=approximate_tokens(reply.text))


def _same_model(asked: str, served: str) -> bool:
    """Whether a server's name is that of the model asked for: a dated snapshot, a tag or a folder before it aside.

    >>> _same_model("gpt-4o", "gpt-4o-2024-08-06"), _same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    one, other = (name.lower().rstrip("/").rpartition("/")[2].removesuffix(":latest") for name in (asked, served))
    one, other = one.removesuffix(".gguf"), other.removesuffix(".gguf")
    return one == other or re.fullmatch(re.escape(one) + r"[-@:.]v?\d[\d.-]*", other) is not None
