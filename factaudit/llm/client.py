"""The client of any OpenAI-compatible server: bounded, limited, retried where that helps, cached, counted."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
import random
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from factaudit.errors import FactauditError, UsageError
from factaudit.llm.cache import KEPT, Cache, request_key
from factaudit.llm.cost import Budget, Price, Usage, prompt_tokens, reply_limit
from factaudit.llm.local import LOCAL, LocalModel
from factaudit.llm.types import Reply, Request, Token
from factaudit.signature import signature

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

#: A reply that is no completion has been paid for all the same, so it is not asked for as often as a dropped one.
MALFORMED_RETRIES = 2
#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2
_CONTEXT = re.compile(
    r"context.?(length|size|window)|maximum context|exceeds? .{0,30}context|prompt is too long"
    r"|too many (input )?tokens",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content.?(filter|policy|management)|moderation|flagged|safety system", re.IGNORECASE)
_KEY = re.compile(r"\b(sk|key|hf|gsk)[-_][\w*.-]{6,}")


@dataclass(frozen=True)
class Failure:
    """One attempt that may be worth repeating, ``after`` so many seconds where the server says so."""

    reason: str
    after: float | None = None
    malformed: bool = False
    unreached: bool = False
    timed_out: bool = False


class Client:
    """Ask one model of one server; an async context manager.

    ``base_url`` and the key default to ``OPENAI_BASE_URL`` and the variable that ``api_key_env`` names; only the
    variable may hold an address with a password. ``base_url="local"`` starts a llama.cpp server for as long as the
    client is open. Nothing is looked up, connected or started before a request is not in the cache. ``concurrency``
    bounds the requests under way, ``timeout`` (seconds) each attempt; attempts that fail in a way that may pass (429,
    5xx, timeouts, dropped connections, half a reply) are repeated up to ``max_retries`` times with exponential backoff
    and jitter between ``backoff`` and ``max_backoff`` seconds, or when the server says. Where the model is served is
    not part of what a reply depends on: where two servers run different weights under one name, tell them apart by
    ``revision``.

    `ask` raises `FactauditError` only for what would befall every request: no key, a key refused, no such model, a
    parameter that the model does not take, an account without credit, no server at the address.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        concurrency: int = 16,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        timeout: float = 60.0,
        max_retries: int = 6,
        cache: str | Path | Cache | None = None,
        revision: str = "",
        budget: Budget | None = None,
        params: Mapping[str, Any] | None = None,
        backoff: float = 0.5,
        max_backoff: float = 30.0,
        seed: int | None = None,
        usage: Usage | None = None,
        api_key_env: str = "OPENAI_API_KEY",
    ) -> None:
        for name, value in (("concurrency", concurrency), ("timeout", timeout)):
            if not value > 0:
                raise UsageError(f"{name}: expected more than 0, found {value!r}")
        for name, limit in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
            if limit is not None and not limit > 0:
                raise UsageError(f"{name}: expected more than 0, found {limit!r}")
        if max_retries < 0:
            raise UsageError(f"max_retries: expected 0 or more, found {max_retries!r}")
        check_url(base_url)
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self._local = LocalModel.find(model, concurrency) if base_url == LOCAL else None
        self.model, self.revision = identity(model, revision, self._local)
        self.params = dict(params or {})
        # What a local server cannot work on would wait there, and its time would run out.
        self.concurrency = concurrency if self._local is None else self._local.slots
        self.max_retries = max_retries
        self.budget = Budget() if budget is None else budget
        self.usage = Usage() if usage is None else usage
        self.cache = cache if isinstance(cache, Cache) or cache is None else Cache(cache)
        self._timeout = timeout
        self._backoff, self._max_backoff = backoff, max_backoff
        self._random = random.Random(seed)
        self._api_key, self._api_key_env = api_key, api_key_env
        self._requests = _Pace(requests_per_minute)
        self._tokens = _Pace(tokens_per_minute)
        self._paused_until = 0.0
        self._answered = False
        self._flights: dict[bytes, asyncio.Future[Reply]] = {}
        self._slots = asyncio.Semaphore(self.concurrency)
        self._openai: AsyncOpenAI | None = None
        self._connecting = asyncio.Lock()

    @property
    def signature(self) -> str:
        """Model, sampling parameters and revision; never a key or an address."""
        return signature("llm", {"model": self.model, "revision": self.revision, **self.params})

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
        """The model's price; a model that runs here costs nothing."""
        return Price(0.0, 0.0) if self._local is not None else self.budget.price(self.model)

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
        key = self._api_key or os.environ.get(self._api_key_env)
        if not key and (self.base_url is None or urlsplit(self.base_url).hostname == "api.openai.com"):
            raise FactauditError(
                f"model {self.model!r} needs a key: set {self._api_key_env}, or give base_url for another server"
            )
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
            return self._completion(text)
        message, code = _error_of(text)
        message = self._redact(message)
        named = f"{code} {message}"
        said = f"HTTP {status}: {message}"
        if "insufficient_quota" in code:
            raise FactauditError(f"{self.server()}: the account has no credit left ({message})")
        if status == 429 and not re.search("request too large", message, re.IGNORECASE):
            return Failure(said, _retry_after(headers))
        if _CONTEXT.search(named) or status == 413 or status == 429:
            return Reply("skipped", error=f"the prompt is longer than the model's context ({said})")
        if status in (408, 409) or status >= 500:
            return Failure(said, _retry_after(headers))
        if _FILTER.search(named):
            return Reply("refused", said, finish_reason="content_filter")
        if status == 404 and not urlsplit(self.server()).path.rstrip("/"):
            said += " (most servers' address ends in /v1)"
        # Where others were answered, a 403 is this request's: a gateway that does not like a document.
        forbidden = status == 403 and not self.usage.calls
        if status in (401, 404) or forbidden or code in ("unsupported_parameter", "unsupported_value"):
            raise FactauditError(f"{self.server()} refuses every request for {self.model!r}: {said}")
        return Reply("error", error=said)

    def _full(self, request: Request) -> Request:
        return Request(request.messages, {**self.params, **request.params}) if self.params else request

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
                answer = await self._attempt(body, expected + (reply_limit(request) or 0))
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
                await self._wait(attempt, answer)
            return Reply("error", error=f"gave up after {attempt + 1} attempts: {reason}")
        finally:
            self.budget.settle(reserved, spent)

    async def _wait(self, attempt: int, failure: Failure) -> None:
        delay = min(self._max_backoff, self._backoff * 2**attempt) * self._random.uniform(0.5, 1.0)
        if failure.after is not None:
            # Every request to this server must wait, not only the one that was told so.
            self._paused_until = max(self._paused_until, asyncio.get_running_loop().time() + failure.after)
            delay = failure.after + delay * 0.1
        await asyncio.sleep(delay)

    async def _attempt(self, body: dict[str, Any], tokens: int) -> Reply | Failure:
        async with self._slots:
            clock = asyncio.get_running_loop().time
            while True:
                while (pause := self._paused_until - clock()) > 0:
                    await asyncio.sleep(pause)
                await self._requests.wait(1)
                await self._tokens.wait(tokens)
                # A pause that began meanwhile: when it ends, those that waited for it keep their distance too.
                if self._paused_until <= clock():
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

    def _completion(self, text: str) -> Reply | Failure:
        try:
            data = json.loads(text)
            choice = data["choices"][0]
            message = choice["message"]
            content, refusal = message.get("content"), message.get("refusal")
            finish = choice.get("finish_reason") or "stop"
            usage = data.get("usage") or {}
            tokens = _tokens(choice.get("logprobs"))
            counts = int(usage.get("prompt_tokens") or 0), int(usage.get("completion_tokens") or 0)
            if not (content is None or isinstance(content, str)) or not isinstance(finish, str):
                raise TypeError("content and finish_reason are not text")
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            return Failure(f"not a chat completion ({error!r}): {self._redact(text[:200])}", malformed=True)
        if refusal or finish == "content_filter":
            shown = refusal if isinstance(refusal, str) and refusal else content or ""
            return Reply("refused", _clean(shown), finish, tokens, *counts)
        return Reply("ok", _clean(content or ""), finish, tokens, *counts)

    def _redact(self, text: str) -> str:
        for key in (self._api_key, os.environ.get(self._api_key_env)):
            if key:
                text = text.replace(key, "[key]")
        return _KEY.sub("[key]", text)


def check_url(base_url: str | None) -> None:
    """Raise `UsageError` where a configured address is none, or has what must not stand in a lock file."""
    if base_url is None or base_url == LOCAL:
        return
    try:
        parts = urlsplit(base_url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known = False
    if not known:
        raise UsageError("base_url: expected 'local' or an address like http://localhost:8000/v1")
    if "@" in parts.netloc or parts.query:
        # Not shown: settings, and so addresses, are written into lock files and messages.
        raise UsageError("base_url: expected an address without password or query; OPENAI_BASE_URL may have a password")


def identity(model: str, revision: str, local: LocalModel | None) -> tuple[str, str]:
    """Model and revision as cache keys and signatures have them: a local model's are its name and its weights."""
    if local is None:
        return model, revision
    return local.name, " ".join(filter(None, (local.checksum, revision)))


class _Pace:
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
                await asyncio.sleep(start - now)


def _clean(text: str) -> str:
    """Half a surrogate pair, as a reply that was cut off may end in, can be neither stored nor printed."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    """The tokens of a choice's log-probabilities; None where there are none, or not in the API's shape."""
    try:
        return tuple(
            Token(_clean(item["token"]), float(item["logprob"]), _top(item.get("top_logprobs") or ()))
            for item in logprobs["content"]
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _top(alternatives: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    top: dict[str, float] = {}
    for item in alternatives:
        text, value = _clean(item["token"]), float(item["logprob"])
        if (other := top.get(text)) is not None:
            # Two tokens may read the same (bytes that are no text): together they have the sum of both.
            value = max(value, other) + math.log1p(math.exp(-abs(value - other)))
        top[text] = value
    return top


def _error_of(text: str) -> tuple[str, str]:
    """The message and the code(s) of an error body in any of the shapes that servers use."""
    try:
        data = json.loads(text)
    except ValueError:
        return text.strip()[:300] or "no message", ""
    error = data.get("error", data) if isinstance(data, dict) else data
    if not isinstance(error, dict):
        return str(error)[:300], ""
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type"), inner.get("code") if isinstance(inner, dict) else None]
    code = next((str(c) for c in codes[:1] if isinstance(c, str)), "") or " ".join(str(c) for c in codes[1:] if c)
    return str(error.get("message") or error.get("detail") or text)[:300], code


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``Retry-After`` (seconds or an HTTP date); at most ten minutes."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (value := headers.get("retry-after")) is None:
            return None
        elif re.fullmatch(r"\s*\d+(\.\d*)?\s*", value):
            seconds = float(value)
        else:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), 600.0) if math.isfinite(seconds) else None
