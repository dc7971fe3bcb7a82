"""How is a language model asked? Any OpenAI-compatible server: limited, retried, kept and
counted."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import (
    LLMCallUsage,
    LLMCostBudget,
    LLMModelPrice,
    approximate_token_count,
    count_prompt_tokens,
    find_reply_token_limit,
)
from factaudit.llm.rate_limits import AccountPace, hash_account
from factaudit.llm.reply import count_least_prompt_tokens, fail_cut_prompt, parse_chat_completion
from factaudit.llm.server import BlockingClientError, Server
from factaudit.llm.server_errors import (
    PermanentServerError,
    RefusedParams,
    ServerAttemptFailure,
    parse_server_error_response,
)
from factaudit.llm.settings import LLMSettings
from factaudit.llm.stop_signals import is_stopping, sleep_until_signal
from factaudit.llm.store import (
    DROPPED,
    KEPT_STATUSES,
    MALFORMED,
    NOT_BILLED,
    ReplyStore,
    Send,
    hash_request,
)

if TYPE_CHECKING:
    from openai import OpenAI

#: A reply that is no completion has been paid for all the same, so it is not asked for as often as
#: a dropped one.
MALFORMED_RETRIES = 2
#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2
#: Seconds between two looks at what somebody else asks, first and at most, or at a limit that is
#: used up for now.
_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.4
_STOPPED_REPLY = ChatReply("skipped", error="stopped by a signal before it was sent")

_log = logging.getLogger("factaudit.llm")

#: What comes of an attempt.
Answer = ChatReply | ServerAttemptFailure


class LLMClient:
    """Ask one model of one server, through `factaudit.llm.ask_all.ask_all`.

    ``settings``: an `LLMSettings`, or a model's name with ``options`` that are its fields.
    ``OPENAI_BASE_URL`` may hold an address with a password. Nothing is looked up, connected or
    started before a request is not in the cache. ``concurrency`` bounds the requests under way,
    ``timeout`` (seconds) each attempt; attempts that fail in a way that may pass (429, 5xx,
    timeouts, dropped connections, half a reply) are repeated up to ``max_retries`` times with
    exponential backoff and jitter between ``backoff`` and ``max_backoff`` seconds, or when the
    server says. A reply is kept as its server's: another server is asked itself, though its model
    has the same name.

    A parameter that the model refuses is left out from then on. A prompt of which the server has
    read only a part is an error. The limits of the account hold for all clients of all processes.

    `ask` raises `FactauditError` only for what would befall every request: no key, a key refused,
    no such model, an account without credit, no server at the address.
    """

    def __init__(
        self,
        settings: LLMSettings | str,
        *,
        cache: str | Path | ReplyStore | None = None,
        budget: LLMCostBudget | None = None,
        usage: LLMCallUsage | None = None,
        api_key: str | None = None,
        backoff: float = 0.5,
        max_backoff: float = 30.0,
        **options: Any,
    ) -> None:
        self.settings = (
            LLMSettings(model=settings, **options) if isinstance(settings, str) else settings
        )
        self.model, self.revision = self.settings.client_key()
        local = self.settings.local_model
        # What a local server cannot work on would wait there, and its time would run out.
        self.concurrency = self.settings.concurrency if local is None else local.slots
        self.usage = usage or LLMCallUsage()
        self.cache = ReplyStore(cache) if isinstance(cache, str | Path) else cache
        self.budget = budget or LLMCostBudget()
        self._own_price = self.settings.price()
        self._server = Server(self.settings, api_key)
        limits = self.settings.requests_per_minute, self.settings.tokens_per_minute
        self._pacing = AccountPace(*limits, backoff, max_backoff)
        self._slots = asyncio.Semaphore(self.concurrency)
        self._has_answered = False
        self._others: set[str] = set()

    @property
    def budget(self) -> LLMCostBudget:
        """The limit of money, which a run replaces by its own."""
        return self._budget

    @budget.setter
    def budget(self, budget: LLMCostBudget) -> None:
        self._budget = budget
        if self.cache is not None:
            self.cache = budget.open_store(self.cache)
        #: Where sends stand: without a cache, a store of the budget's that keeps no replies.
        self.store = budget.own_store if self.cache is None else self.cache

    @property
    def signature(self) -> str:
        """Model, parameters and revision; never a key or an address."""
        return self.settings.signature

    async def close(self) -> None:
        """Close the connections. The client may then be used again."""
        await self._server.close()

    @property
    def cache_server(self) -> str:
        """The server as cache keys have it."""
        return self._server.cache_name

    @property
    def server_address(self) -> str:
        """The server's address without user, password or query."""
        return self._server.address

    @cached_property
    def refused_params(self) -> RefusedParams:
        """What the model does not take."""
        return RefusedParams(self.cache_server, self.model, self.cache)

    @cached_property
    def _account(self) -> str:
        return hash_account(self.cache_server, self._server.find_api_key())

    def model_price(self) -> LLMModelPrice | None:
        """The model's price: the settings', else the price table's."""
        return self._own_price or self.budget.model_price(self.model)

    # Requests
    # ------------------------------------------------------------

    def request_key(self, request: ChatRequest) -> bytes:
        """The cache's key of a request."""
        full_request = ChatRequest(request.messages, self.settings.request_params(request.params))
        return hash_request(self.model, full_request, self.revision, self.cache_server)

    def request_body(self, request: ChatRequest) -> dict[str, Any]:
        """The body of the chat request, as the API has it, without what the model is known to
        refuse."""
        messages = [dict(message) for message in request.messages]
        full_params = self.settings.request_params(request.params)
        return self.refused_params.adapt_body(
            {"model": self.model, "messages": messages, **full_params}
        )

    def find_cached_replies(self, requests: Sequence[ChatRequest]) -> list[ChatReply | None]:
        """What the cache has for each request, read many at a time; needs no event loop."""
        if self.cache is None:
            return [None] * len(requests)
        return self.cache.get_many([self.request_key(request) for request in requests])

    def note_reply(self, reply: ChatReply) -> None:
        """Count a reply, and say it once where another model answered than was asked for."""
        self.usage.count_reply(reply)
        if (
            reply.model
            and reply.model not in self._others
            and not _is_same_model(self.model, reply.model)
        ):
            self._others.add(reply.model)
            _log.warning("%s was asked for, and the server answered as %s", self.model, reply.model)

    # Sending
    # ------------------------------------------------------------

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The reply to one request."""
        key, max_retries = self.request_key(request), self.settings.max_retries
        n_failed = n_malformed = 0
        while True:
            body = self.request_body(request)
            answer = await self._send_once(
                self.make_send(key, ChatRequest(request.messages, body)), body
            )
            if isinstance(answer, ChatReply):
                return answer
            if answer.refused_params:
                # Each refusal makes the body smaller, so this ends.
                self.refused_params.add(answer.refused_params)
                continue
            if (
                answer.unreached
                and not self._has_answered
                and n_failed >= min(_UNREACHED_RETRIES, max_retries)
            ):
                raise FactauditError(f"no server answers at {self.server_address}: {answer.reason}")
            n_failed += 1
            n_malformed += answer.status == MALFORMED
            if n_failed > max_retries or n_malformed > MALFORMED_RETRIES or is_stopping():
                return ChatReply(
                    "error", error=f"gave up after {n_failed} attempts: {answer.reason}"
                )
            await self._pacing.wait_after_failure(self._account, n_failed - 1, answer.retry_after)

    async def _send_once(self, send: Send, body: dict[str, Any]) -> Answer:
        """One send, written down before it is made and settled by whatever comes of it; or the
        reply that is kept.

        If another process has sent the same request, this one waits for that reply and uses it.
        """
        delay = _POLL_SECONDS
        while not is_stopping():
            async with self._slots:
                while (
                    state := self.budget.begin(self.store, send)
                ) == "full" and not is_stopping():
                    # No other one may go either: the place is kept, so that few look whether there
                    # is money again.
                    await sleep_until_signal(_POLL_SECONDS)
                if state == "send":
                    return await self._send(send, body)
            if isinstance(state, ChatReply):
                return state
            if state == "over":
                return self.make_over_limit_reply()
            await sleep_until_signal(delay)
            delay = min(2 * delay, _MAX_POLL_SECONDS)
        return _STOPPED_REPLY

    async def _send(self, send: Send, body: dict[str, Any]) -> Answer:
        outcome: Answer = _STOPPED_REPLY
        try:
            tokens = send.prompt_tokens + (find_reply_token_limit(body) or 0)
            await self._pacing.wait_before_request(self._account, tokens)
            if not is_stopping():
                outcome = ServerAttemptFailure(
                    "cancelled", DROPPED
                )  # what a cancelled call costs is unknown
                outcome = self._check_reply(await self._post_body(body), send)
        except BlockingClientError:
            raise
        except FactauditError:
            outcome = _STOPPED_REPLY
            raise
        finally:
            self.settle(send, outcome)
        return outcome

    async def _post_body(self, body: dict[str, Any]) -> Answer:
        answer = await self._server.post(body)
        return (
            answer
            if isinstance(answer, ServerAttemptFailure)
            else self.parse_http_answer(*answer, sent_params=body)
        )

    def _check_reply(self, answer: Answer, send: Send) -> Answer:
        """An answer, as an error where the server has read only a part of the prompt, and with
        counts of tokens."""
        if isinstance(answer, ServerAttemptFailure):
            return answer
        reply = fail_cut_prompt(answer, send.least_tokens)
        if reply.status in KEPT_STATUSES and not reply.prompt_tokens:  # the server counted none
            reply_tokens = approximate_token_count(reply.text)
            return replace(reply, prompt_tokens=send.prompt_tokens, completion_tokens=reply_tokens)
        return reply

    def make_send(
        self, key: bytes, request: ChatRequest, discount: float = 1.0, batch: str = ""
    ) -> Send:
        """A request as the store has it; its parameters decide what it can cost."""
        most = self.budget.most_cost(self.model_price(), request)
        return Send(
            key,
            run=self.budget.run,
            caller=self.usage.caller,
            most_cost=None if most is None else discount * most,
            prompt_tokens=count_prompt_tokens(request),
            least_tokens=count_least_prompt_tokens(request),
            batch=batch,
        )

    def settle(self, send: Send, answer: Answer, discount: float = 1.0) -> bool:
        """Write down what came of a send. What is an answer is kept. Returns whether the send was
        this client's."""
        status, tokens, cost, reply = answer.status, (0, 0), None, None
        if isinstance(answer, ChatReply):
            tokens, price = (answer.prompt_tokens, answer.completion_tokens), self.model_price()
            cost = None if price is None else discount * price.cost(*tokens)
            reply = answer if status in KEPT_STATUSES else None
            # An answer to a part of the prompt was paid for like any other.
            status = status if reply is not None or answer.prompt_tokens else NOT_BILLED
        if status == NOT_BILLED:
            cost = 0.0
        origin = None if self.cache is None else (self.cache_server, self.model, self.revision)
        paid = self.store.finish(
            send.key, status, tokens, cost, reply=reply, origin=origin, batch=send.batch
        )
        is_ours = paid == (self.budget.run, self.usage.caller)
        self.usage.calls += is_ours and status != NOT_BILLED
        return is_ours

    def make_over_limit_reply(self) -> ChatReply:
        """The reply to a request that the limit of money does not allow."""
        return ChatReply(
            "skipped",
            error=f"max_cost of {self.budget.max_cost} would be passed: raise it to resume",
        )

    # Answers
    # ------------------------------------------------------------

    def make_sync_client(self) -> OpenAI:
        """A blocking client of the same server, for the Batch API."""
        return self._server.make_sync_client()

    def parse_http_answer(
        self, status: int, headers: Mapping[str, str], body: str, *, sent_params: Iterable[str] = ()
    ) -> Answer:
        """What an HTTP answer means: a reply, or a failure that may pass. Raises what no request
        will get past.

        sent_params: what the request's body had.
        """
        redact = self._server.redact
        if status == 200:
            self._has_answered = True
            answer = parse_chat_completion(body)
            return (
                answer
                if isinstance(answer, ChatReply)
                else replace(answer, reason=redact(answer.reason))
            )
        try:
            return parse_server_error_response(
                status,
                headers,
                redact(body),
                has_answered=self._has_answered,
                sent_params=sent_params,
            )
        except PermanentServerError as error:
            said = str(error)
            if status == 404 and not urlsplit(self.server_address).path.rstrip("/"):
                said += " (most servers' address ends in /v1)"
            if status == 401 and self._server.find_api_key() == "none":
                said += " (no key was sent: api_key_env names the variable that holds it)"
            raise PermanentServerError(
                f"{self.server_address}, model {self.model!r}: {said}"
            ) from None


def _is_same_model(requested_model: str, serving_model: str) -> bool:
    """Whether a server's name is that of the model asked for: a dated snapshot, a tag or a folder
    before it aside.

    >>> _is_same_model("gpt-4o", "gpt-4o-2024-08-06"), _is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    """
    one, other = (
        re.sub(r".*/|:latest$|\.gguf$", "", name.lower())
        for name in (requested_model, serving_model)
    )
    return re.fullmatch(re.escape(one) + r"([-@:.]v?\d[\d.-]*)?", other) is not None
