"""How is a language model asked? Any OpenAI-compatible server: limited, retried, cached and counted."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from factaudit.errors import FactauditError
from factaudit.llm.chat_completion import parse_chat_completion
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import (
    LLMCallUsage,
    LLMCostBudget,
    LLMModelPrice,
    approximate_token_count,
    count_prompt_tokens,
    find_reply_token_limit,
)
from factaudit.llm.http_transport import HTTPTransport
from factaudit.llm.ledger import NOT_BILLED, POSSIBLY_BILLED
from factaudit.llm.prompt_cuts import count_least_prompt_tokens, fail_cut_prompt
from factaudit.llm.rate_limits import AccountPace, ConcurrencyLimiter, hash_account
from factaudit.llm.refused_params import RefusedParams
from factaudit.llm.reply_cache import KEPT_STATUSES, ReplyCache, hash_cached_request
from factaudit.llm.server_errors import PermanentServerError, ServerAttemptFailure, parse_server_error_response
from factaudit.llm.settings import LLMSettings
from factaudit.llm.sqlite_transactions import SqliteTransactionQueue
from factaudit.llm.stop_signals import grace_seconds_left, is_stopping, sleep_until_signal
from factaudit.llm.transport_choice import find_server_of_cached_llm_replies, make_transport
from factaudit.llm.user_client import BlockingClientError

if TYPE_CHECKING:
    from openai import OpenAI

#: A reply that is no completion has been paid for all the same, so it is not asked for as often as a dropped one.
MALFORMED_RETRIES = 2
#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2
#: Seconds between two looks at what another process has asked.
_LEASE_POLL_SECONDS = 0.05
_STOPPED_REPLY = ChatReply("skipped", error="stopped by a signal before it was sent")

_log = logging.getLogger("factaudit.llm")


class LLMClient:
    """Ask one model of one server; an async context manager.

    ``settings``: an `LLMSettings`, or a model's name with ``options`` that are its fields. ``OPENAI_BASE_URL`` may
    hold an address with a password. Nothing is looked up, connected or started before a request is not in the cache.
    ``concurrency`` bounds the requests under way, ``timeout`` (seconds) each attempt; attempts that fail in a way that
    may pass (429, 5xx, timeouts, dropped connections, half a reply) are repeated up to ``max_retries`` times with
    exponential backoff and jitter between ``backoff`` and ``max_backoff`` seconds, or when the server says. A reply is
    kept as its server's: another server is asked itself, though its model has the same name.

    A parameter that the model refuses is left out from then on. A prompt of which the server has read only a part is an
    error. The limits of the account hold for all clients of all processes.

    `ask` raises `FactauditError` only for what would befall every request: no key, a key refused, no such model, an
    account without credit, no server at the address.
    """

    def __init__(
        self,
        settings: LLMSettings | str,
        *,
        cache: str | Path | ReplyCache | None = None,
        budget: LLMCostBudget | None = None,
        usage: LLMCallUsage | None = None,
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
        self.budget = LLMCostBudget() if budget is None else budget
        self.usage = LLMCallUsage() if usage is None else usage
        self.cache = cache if isinstance(cache, ReplyCache) or cache is None else ReplyCache(cache)
        self._own_price = settings.price()
        self._transport = make_transport(settings, api_key)
        self._pacing = AccountPace(settings.requests_per_minute, settings.tokens_per_minute, backoff, max_backoff, seed)
        self._answered = False
        self._others: set[str] = set()
        self._bind_event_loop()

    @property
    def signature(self) -> str:
        """Model, parameters and revision; never a key or an address."""
        return self.settings.signature

    async def __aenter__(self) -> LLMClient:
        self._bind_event_loop()
        self._transport.bind_event_loop()
        return self

    def _bind_event_loop(self) -> None:
        """What belongs to an event loop: a client may be opened again in another one."""
        self._slots = ConcurrencyLimiter(self.concurrency)
        self._flights: dict[bytes, asyncio.Future[ChatReply]] = {}
        self._in_ledger = SqliteTransactionQueue(self.budget.ledger)
        self._in_cache = None if self.cache is None else SqliteTransactionQueue(self.cache)

    async def __aexit__(self, *_: object) -> None:
        # Nobody waits for these any more; after a signal they are given their time all the same.
        if flights := set(self._flights.values()):
            if left := grace_seconds_left():
                await asyncio.wait(flights, timeout=left)
            for flight in flights:
                flight.cancel()
            await asyncio.gather(*flights, return_exceptions=True)
        await self._transport.close()

    @cached_property
    def cache_server(self) -> str:
        """The server as cache keys have it."""
        return find_server_of_cached_llm_replies(self.settings, self._transport)

    @cached_property
    def refused_params(self) -> RefusedParams:
        """What the model does not take."""
        return RefusedParams(self.cache_server, self.model, self.cache)

    @cached_property
    def _account(self) -> str:
        return hash_account(self.cache_server, self._transport.find_account_key())

    def request_key(self, request: ChatRequest) -> bytes:
        """The cache's key of a request."""
        return self._hash_full_request(self._fill_request_params(request))

    def _hash_full_request(self, full_request: ChatRequest) -> bytes:
        return hash_cached_request(self.model, full_request, self.revision, self.cache_server)

    def find_cached_replies(self, requests: Sequence[ChatRequest]) -> list[ChatReply | None]:
        """What the cache has for each request, read many at a time; needs no event loop."""
        if self.cache is None:
            return [None] * len(requests)
        replies = self.cache.get_many([self.request_key(request) for request in requests])
        return [None if reply is None else self._count_cached_reply(reply) for reply in replies]

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The reply to one request. Equal requests at the same time are sent once, by whatever process."""
        request = self._fill_request_params(request)
        key = self._hash_full_request(request)
        if (flight := self._flights.get(key)) is not None:
            reply = await asyncio.shield(flight)
            return self._count_cached_reply(replace(reply, cached=True)) if reply.status in KEPT_STATUSES else reply
        # A task of its own: what was sent is awaited after a signal, though who asked has gone.
        flight = self._flights[key] = asyncio.ensure_future(self._buy_reply(key, request))
        flight.add_done_callback(lambda done: self._drop_flight(key, done))
        return await asyncio.shield(flight)

    def _drop_flight(self, key: bytes, flight: asyncio.Future[ChatReply]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen: nobody may be waiting any more

    def _count_cached_reply(self, reply: ChatReply) -> ChatReply:
        self.usage.count_cached_calls(reply=reply)
        self._count_serving_model(reply)
        return reply

    def request_body(self, request: ChatRequest) -> dict[str, Any]:
        """The body of the chat request, as the API has it, without what the model is known to refuse."""
        return self.refused_params.adapt_body(self._make_request_body(self._fill_request_params(request)))

    def model_price(self) -> LLMModelPrice | None:
        """The model's price: the settings', else the price table's."""
        return self._own_price or self.budget.model_price(self.model)

    def keep_paid_reply(self, key: bytes, send_number: int | None, reply: ChatReply, discount: float = 1.0) -> None:
        """Put a reply that was paid for into the cache, and settle its send, if it is ours."""
        if self.cache is not None:
            self.cache.put(key, self.model, self.revision, reply, self.cache_server)
        if send_number is not None:
            self._settle_paid_send(send_number, reply, discount)

    def _settle_paid_send(self, send_number: int, reply: ChatReply, discount: float = 1.0) -> None:
        price = self.model_price()
        cost = None if price is None else discount * price.cost(reply.prompt_tokens, reply.completion_tokens)
        self.budget.ledger.settle_send(send_number, reply.status, reply.prompt_tokens, reply.completion_tokens, cost)
        self.usage.count_paid_call(reply.prompt_tokens, reply.completion_tokens, cost)
        self._count_serving_model(reply)

    def make_over_limit_reply(self) -> ChatReply:
        """The reply to a request that the limit of money does not allow."""
        if is_stopping():
            return _STOPPED_REPLY
        return ChatReply("skipped", error=f"max_cost of {self.budget.max_cost} would be passed: raise it to resume")

    def server_address(self) -> str:
        """The server's address without user, password or query."""
        return self._transport.server_address()

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        assert isinstance(self._transport, HTTPTransport), "settings refuse batches through a client object"
        return self._transport.make_sync_client()

    def parse_http_answer(
        self, status: int, headers: Mapping[str, str], body: str, *, sent_params: Iterable[str] = ()
    ) -> ChatReply | ServerAttemptFailure:
        """What an HTTP answer means: a reply, or a failure that may pass. Raises what no request will get past.

        sent_params: what the request's body had.
        """
        self._answered = True
        if status == 200:
            return self._redact_failure(parse_chat_completion(body))
        try:
            answer = parse_server_error_response(
                status, headers, body, has_answered=self.usage.calls > 0, sent_params=sent_params
            )
        except PermanentServerError as error:
            said = self._redact_keys(str(error))
            if status == 404 and not urlsplit(self.server_address()).path.rstrip("/"):
                said += " (most servers' address ends in /v1)"
            if (
                status == 401
                and isinstance(self._transport, HTTPTransport)
                and self._transport.find_api_key() == "none"
            ):
                said += " (no key was sent: api_key_env names the variable that holds it)"
            raise PermanentServerError(f"{self.server_address()}, model {self.model!r}: {said}") from None
        if isinstance(answer, ChatReply):
            return replace(
                answer, text=self._redact_keys(answer.text), error=answer.error and self._redact_keys(answer.error)
            )
        return self._redact_failure(answer)

    def _redact_failure(self, answer: ChatReply | ServerAttemptFailure) -> ChatReply | ServerAttemptFailure:
        return (
            replace(answer, reason=self._redact_keys(answer.reason))
            if isinstance(answer, ServerAttemptFailure)
            else answer
        )

    def _fill_request_params(self, request: ChatRequest) -> ChatRequest:
        return ChatRequest(request.messages, self.settings.request_params(request.params))

    def _make_request_body(self, full_request: ChatRequest) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [dict(message) for message in full_request.messages],
            **full_request.params,
        }

    async def _buy_reply(self, key: bytes, request: ChatRequest) -> ChatReply:
        if (cache := self.cache) is None or self._in_cache is None:
            return await self._send_with_retries(key, request)
        kept = False
        try:
            # What another process is asking for is awaited: its reply is ours, too.
            def find_or_lease() -> ChatReply | bool:
                return cache.get(key) or cache.take_lease(key)

            while not (found := await self._in_cache(find_or_lease)):
                if is_stopping():
                    return _STOPPED_REPLY
                await sleep_until_signal(_LEASE_POLL_SECONDS)
            reply = (
                self._count_cached_reply(found)
                if isinstance(found, ChatReply)
                else await self._send_with_retries(key, request)
            )
            kept = reply.status in KEPT_STATUSES
            return reply
        finally:
            if not kept:
                cache.release_lease(key)

    async def _send_with_retries(self, key: bytes, request: ChatRequest) -> ChatReply:
        full_body = self._make_request_body(request)
        expected, least = count_prompt_tokens(request), count_least_prompt_tokens(request)
        malformed, attempt = 0, 0
        while True:
            body = self.refused_params.adapt_body(full_body)
            answer = await self._send_once(key, body, request, expected, least)
            if isinstance(answer, ChatReply):
                return answer
            if answer.refused_params:
                # Each refusal makes the body smaller, so this ends.
                self.refused_params.add(answer.refused_params)
                continue
            malformed += answer.malformed
            if answer.unreached and not self._answered and attempt >= min(_UNREACHED_RETRIES, self.max_retries):
                raise FactauditError(f"no server answers at {self.server_address()}: {answer.reason}")
            attempt += 1
            if attempt > self.max_retries or malformed > MALFORMED_RETRIES or is_stopping():
                return ChatReply("error", error=f"gave up after {attempt} attempts: {answer.reason}")
            await self._pacing.wait_after_failure(self._account, attempt - 1, answer.retry_after)

    async def _send_once(
        self, key: bytes, body: dict[str, Any], request: ChatRequest, expected_tokens: int, least_tokens: int
    ) -> ChatReply | ServerAttemptFailure:
        """One send, written into the ledger before it is made and settled by whatever comes of it."""
        async with self._slots:
            # What is sent decides what it can cost: a limit that the model refuses is none.
            most_cost = self.budget.most_cost(self.model_price(), ChatRequest(request.messages, body))
            tokens = expected_tokens + (find_reply_token_limit(body) or 0)
            await self._pacing.wait_before_request(self._account, tokens)
            if is_stopping():
                return _STOPPED_REPLY
            if not (send := await self._reserve_cost(expected_tokens, most_cost)):
                return self.make_over_limit_reply()
            status = "dropped"  # of a send that is cancelled nobody knows what it cost
            try:
                answer = await self._post_body(body)
                if isinstance(answer, ChatReply):
                    answer = fail_cut_prompt(answer, least_tokens)
                if isinstance(answer, ChatReply) and answer.status in KEPT_STATUSES:
                    answer = _fill_llm_client_token_counts(answer, expected_tokens)
                    status = answer.status
                elif isinstance(answer, ChatReply):
                    # An answer to a part of the prompt was paid for like any other.
                    status = "malformed" if answer.prompt_tokens else NOT_BILLED
                else:
                    status = answer.status
            except BlockingClientError:
                raise
            except FactauditError:
                status = NOT_BILLED
                raise
            finally:
                if status in POSSIBLY_BILLED:
                    self.usage.count_paid_call(expected_tokens, 0, most_cost)
                if status in POSSIBLY_BILLED or status == NOT_BILLED:
                    self.budget.ledger.settle_send(send, status)
            if status == "malformed":
                self._settle_malformed_send(send, answer, expected_tokens, most_cost)
            if isinstance(answer, ServerAttemptFailure) or answer.status not in KEPT_STATUSES:
                return answer
            if self.cache is not None and self._in_cache is not None:
                await self._in_cache(partial(self.cache.put, key, self.model, self.revision, answer, self.cache_server))
        # It is on disk, and others may be sent.
        await self._in_ledger(partial(self._settle_paid_send, send, answer))
        return answer

    async def _reserve_cost(self, expected_tokens: int, most_cost: float | None) -> int | Literal[False]:
        """Reserve as `LLMCostBudget.try_open_send`, and wait for other sends where that may help. False at a signal."""
        opened = partial(self.budget.try_open_send, self.usage.account, expected_tokens, most_cost)
        while (send := await self._in_ledger(opened)) is None:
            if is_stopping():
                return False
            # Clients may live on different event loops and in different processes: nothing else can be waited for.
            await asyncio.sleep(0.02)
        return send

    def _settle_malformed_send(
        self, send_number: int, answer: ChatReply | ServerAttemptFailure, expected_tokens: int, most_cost: float | None
    ) -> None:
        price = self.model_price()
        billed = (
            (answer.prompt_tokens, answer.completion_tokens) if isinstance(answer, ChatReply) else answer.billed_tokens
        )
        tokens = billed or (expected_tokens, 0)
        cost = most_cost if billed is None or price is None else price.cost(*tokens)
        self.budget.ledger.settle_send(send_number, "malformed", *tokens, cost)
        self.usage.count_paid_call(*tokens, cost)

    async def _post_body(self, body: dict[str, Any]) -> ChatReply | ServerAttemptFailure:
        answer = await self._transport.post(body)
        return answer if isinstance(answer, ServerAttemptFailure) else self.parse_http_answer(*answer, sent_params=body)

    def _count_serving_model(self, reply: ChatReply) -> None:
        """Count who answered, and say it once where that is another model than was asked for."""
        if (name := self.usage.count_serving_model(reply)) is not None:
            self.budget.ledger.record_serving_model(self.usage.account, name)
        if reply.model and reply.model not in self._others and not _is_same_llm_model(self.model, reply.model):
            self._others.add(reply.model)
            _log.warning("%s was asked for, and the server answered as %s", self.model, reply.model)

    def _redact_keys(self, text: str) -> str:
        return self._transport.redact_keys(text)


def _fill_llm_client_token_counts(reply: ChatReply, expected_tokens: int) -> ChatReply:
    """A reply with tokens to pay for, where the server counted none."""
    if reply.prompt_tokens:
        return reply
    return replace(reply, prompt_tokens=expected_tokens, completion_tokens=approximate_token_count(reply.text))


def _is_same_llm_model(requested_model: str, serving_model: str) -> bool:
    """Whether a server's name is that of the model asked for: a dated snapshot, a tag or a folder before it aside.

    >>> _is_same_llm_model("gpt-4o", "gpt-4o-2024-08-06"), _is_same_llm_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    one, other = (
        name.lower().rstrip("/").rpartition("/")[2].removesuffix(":latest") for name in (requested_model, serving_model)
    )
    one, other = one.removesuffix(".gguf"), other.removesuffix(".gguf")
    return one == other or re.fullmatch(re.escape(one) + r"[-@:.]v?\d[\d.-]*", other) is not None
