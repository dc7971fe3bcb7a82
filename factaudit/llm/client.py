"""The client of any OpenAI-compatible server: bounded, limited, retried where that helps, cached, counted."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from factaudit.errors import FactauditError
from factaudit.llm.cache import KEPT, Cache, request_key
from factaudit.llm.completion import read_completion
from factaudit.llm.cost import Budget, Price, Usage, prompt_tokens, reply_limit
from factaudit.llm.errors import Failure, Hopeless, read_error, redact
from factaudit.llm.pacing import Pacing
from factaudit.llm.settings import LLMSettings
from factaudit.llm.types import Reply, Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

#: A reply that is no completion has been paid for all the same, so it is not asked for as often as a dropped one.
MALFORMED_RETRIES = 2
#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2


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
        self.base_url = settings.base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._local = settings.local_model
        self.model, self.revision = settings.client_key()
        # What a local server cannot work on would wait there, and its time would run out.
        self.concurrency = settings.concurrency if self._local is None else self._local.slots
        self.max_retries = settings.max_retries
        self.budget = Budget() if budget is None else budget
        self.usage = Usage() if usage is None else usage
        self.cache = cache if isinstance(cache, Cache) or cache is None else Cache(cache)
        self._own_price = settings.price()
        self._timeout = settings.timeout
        self._api_key = api_key
        self._pacing = Pacing(settings.requests_per_minute, settings.tokens_per_minute, backoff, max_backoff, seed)
        self._answered = False
        self._flights: dict[bytes, asyncio.Future[Reply]] = {}
        self._slots = asyncio.Semaphore(self.concurrency)
        self._openai: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    @property
    def signature(self) -> str:
        """Model, parameters and revision; never a key or an address."""
        return self.settings.signature

    async def __aenter__(self) -> Client:
        # A client may be opened again in another event loop, and these belong to the one they first waited in.
        self._slots = asyncio.Semaphore(self.concurrency)
        self._connecting = asyncio.Lock()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._openai is not None:
            await self._openai.close()
            self._openai = None
        if self._local is not None:
            self._local.stop()

    def key(self, request: Request) -> bytes:
        """The cache's key of a request."""
        return request_key(self.model, self._full(request), self.revision)

    def cached(self, requests: Sequence[Request]) -> list[Reply | None]:
        """What the cache has for each request, read many at a time; needs no event loop."""
        if self.cache is None:
            return [None] * len(requests)
        replies = self.cache.get_many([self.key(request) for request in requests])
        self.usage.cached(sum(reply is not None for reply in replies))
        return replies

    async def ask(self, request: Request) -> Reply:
        """The reply to one request. Equal requests at the same time are sent once."""
        request = self._full(request)
        key = request_key(self.model, request, self.revision)
        if self.cache is not None and (hit := self.cache.get(key)) is not None:
            self.usage.cached()
            return hit
        if (flight := self._flights.get(key)) is not None:
            reply = await asyncio.shield(flight)
            if reply.status not in KEPT:
                return reply
            self.usage.cached()
            return replace(reply, cached=True)
        flight = self._flights[key] = asyncio.get_running_loop().create_future()
        try:
            reply = await self._bought(key, request)
        except BaseException as error:
            if isinstance(error, Exception):
                flight.set_exception(error)
                flight.exception()  # seen: nobody else may be waiting
            else:
                flight.cancel()
            raise
        finally:
            del self._flights[key]
        flight.set_result(reply)
        return reply

    def body(self, request: Request) -> dict[str, Any]:
        """The body of the chat request, as the API has it."""
        request = self._full(request)
        return {"model": self.model, "messages": [dict(message) for message in request.messages], **request.params}

    def price(self) -> Price | None:
        """The model's price: the settings', else the price table's."""
        return self._own_price or self.budget.price(self.model)

    def keep(self, key: bytes, reply: Reply, discount: float = 1.0) -> float:
        """Count a reply that was paid for, put it into the cache, and return its cost (0 where no price is known)."""
        price = self.price()
        cost = None if price is None else discount * price.cost(reply.prompt_tokens, reply.completion_tokens)
        self.usage.paid(reply.prompt_tokens, reply.completion_tokens, cost)
        if self.cache is not None:
            self.cache.put(key, self.model, self.revision, reply)
        return cost or 0.0

    def api_key(self) -> str:
        """The key; servers other than OpenAI's often need none. Raises `FactauditError` where OpenAI's is missing."""
        key = self._api_key or os.environ.get(self.settings.api_key_env)
        if not key and (self.base_url is None or urlsplit(self.base_url).hostname == "api.openai.com"):
            name = self.settings.api_key_env
            raise FactauditError(f"model {self.model!r} needs a key: set {name}, or give base_url for another server")
        return key or "none"

    def server(self) -> str:
        """The server's address without user, password or query."""
        if self.base_url is None:
            return "https://api.openai.com/v1"
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        from openai import OpenAI

        return OpenAI(**self._access(), timeout=self._timeout, max_retries=4)

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

    async def _bought(self, key: bytes, request: Request) -> Reply:
        price = self.price()
        most = self.budget.most(price, request)
        over = Reply("skipped", error=f"max_cost of {self.budget.max_cost} would be passed: raise it to resume")
        if not await self.budget.reserve(most):
            return over
        reserved, spent = most, 0.0
        try:
            body = self.body(request)
            # For a reply without a usage count, and for an attempt of which nobody knows what it cost.
            expected = prompt_tokens(request)
            malformed, reason = 0, ""
            for attempt in range(self.max_retries + 1):
                answer = await self._attempt(body, expected + (reply_limit(request.params) or 0))
                if isinstance(answer, Reply):
                    if answer.status in KEPT:
                        if not answer.prompt_tokens:
                            answer = replace(answer, prompt_tokens=expected)
                        spent = self.keep(key, answer)
                    return answer
                malformed, reason = malformed + answer.malformed, answer.reason
                if answer.unreached and not self._answered and attempt >= min(_UNREACHED_RETRIES, self.max_retries):
                    raise FactauditError(f"no server answers at {self.server()}: {answer.reason}")
                if answer.timed_out and price is not None:
                    # The server may have read the prompt, and charge for that.
                    self.budget.settle(reserved, price.cost(expected, 0))
                    reserved = 0.0
                    if not await self.budget.reserve(most):
                        return over
                    reserved = most
                if attempt == self.max_retries or malformed > MALFORMED_RETRIES:
                    break
                await self._pacing.after(attempt, answer.after)
            return Reply("error", error=f"gave up after {attempt + 1} attempts: {reason}")
        finally:
            self.budget.settle(reserved, spent)

    async def _attempt(self, body: dict[str, Any], tokens: int) -> Reply | Failure:
        async with self._slots:
            await self._pacing.before(tokens)
            return await self._post(body)

    async def _post(self, body: dict[str, Any]) -> Reply | Failure:
        import openai

        if (client := self._openai) is None:
            async with self._connecting:
                client = self._openai = self._openai or await self._connect()
        try:
            # The SDK's typed models cost more than all the rest of a call, and fail on what is not of their shape.
            async with asyncio.timeout(self._timeout):
                text = await client.post("/chat/completions", cast_to=str, body=body)
        except openai.APIStatusError as error:
            return self.read(error.response.status_code, error.response.headers, error.response.text)
        except TimeoutError:
            return Failure(f"no answer within {self._timeout:g} seconds", timed_out=True)
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            # By name: the transport is httpx or httpx2 as the SDK has it, and calls a refused connection a timeout.
            unreached = type(cause).__name__ in ("ConnectError", "ConnectTimeout")
            timed_out = isinstance(error, openai.APITimeoutError) and not unreached
            reason = self._redact(f"connection: {type(cause).__name__}: {cause}")
            return Failure(reason, unreached=unreached, timed_out=timed_out)
        except ValueError as error:  # a body that its declared encoding does not fit
            return Failure(f"unreadable answer: {self._redact(str(error))}", malformed=True)
        return self.read(200, {}, text)

    async def _connect(self) -> AsyncOpenAI:
        import openai

        # The aiohttp transport carries more than twice the calls per second of the default one.
        http: Any = None
        with suppress(AttributeError, RuntimeError):  # an older SDK, or no aiohttp: slower, and otherwise the same
            http = openai.DefaultAioHttpClient(timeout=self._timeout)
        if self._local is None:
            access = self._access()
        else:
            access = {"api_key": "none", "base_url": await asyncio.to_thread(self._local.start)}
        return openai.AsyncOpenAI(**access, max_retries=0, timeout=self._timeout, http_client=http)

    def _access(self) -> dict[str, Any]:
        """Where the server is and what opens it, as the SDK's clients take it."""
        netloc = urlsplit(self.base_url or "").netloc
        if "@" not in netloc:
            return {"api_key": self.api_key(), "base_url": self.base_url}
        # The HTTP client writes every address into its log: a password goes the way of a key.
        password = base64.b64encode(unquote(netloc.rpartition("@")[0]).encode()).decode()
        return {
            "api_key": self.api_key(),
            "base_url": self.server(),
            "default_headers": {"Authorization": f"Basic {password}"},
        }

    def _redact(self, text: str) -> str:
        return redact(text, self._api_key, os.environ.get(self.settings.api_key_env))
