"""How is a language model asked? A client asks one model of any OpenAI-compatible server: it keeps
the account's limits, repeats what may pass, stores replies and counts what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import (
    LLMCallUsage,
    LLMCostBudget,
    approximate_token_count,
    count_prompt_tokens,
    find_reply_token_limit,
)
from factaudit.llm.rate_limits import AccountPace, hash_account
from factaudit.llm.reply import fail_cut_prompt, parse_chat_completion
from factaudit.llm.server import Server
from factaudit.llm.server_errors import (
    RefusedParams,
    ServerAttemptFailure,
    parse_server_error_response,
)
from factaudit.llm.settings import LLMSettings
from factaudit.llm.store import (
    DROPPED,
    KEPT_STATUSES,
    NOT_BILLED,
    ReplyStore,
    Send,
    hash_request,
)

#: Where nothing has ever answered at an address, more patience does not help.
_UNREACHED_RETRIES = 2
#: Seconds between two looks at a request that somebody else has sent, or at the money that is left:
#: at first, and at the most.
_POLL_SECONDS = 0.05
_MAX_POLL_SECONDS = 0.4
#: Seconds for which calls under way are awaited when nobody wants their replies any more. They are
#: paid for all the same, so their replies are kept.
GRACE_SECONDS = 10.0
#: Seconds after which a send of a lost machine is taken to be over, beside the time that it can
#: take.
_LEASE_SECONDS = 900.0

#: What comes of an attempt.
Answer = ChatReply | ServerAttemptFailure


class LLMClient:
    """Ask one model of one server, through `factaudit.llm.ask_all.ask_all`.

    ``settings``: an `LLMSettings`, or a model's name with ``options`` that are its fields (and no
    cache, unless they name one). Nothing is looked up, connected or started before a request is not
    in the cache. ``concurrency`` bounds the requests under way, ``timeout`` (seconds) each attempt;
    attempts that fail in a way that may pass (429, 5xx, timeouts, dropped connections, half a
    reply) are repeated up to ``max_retries`` times with exponential backoff and jitter, or when the
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
        budget: LLMCostBudget | None = None,
        **options: Any,
    ) -> None:
        if isinstance(settings, str):
            settings = LLMSettings(model=settings, **{"cache": "none", **options})
        self.settings = settings
        self.model, self.revision = settings.client_key()
        local = settings.local_model
        # What a local server cannot work on would wait there, and its time would run out.
        self.concurrency = settings.concurrency if local is None else local.slots
        #: What was asked so far.
        self.usage = LLMCallUsage()
        self.cache = settings.cache_path()
        #: The limit of money, which a run replaces by its own.
        self.budget = budget or LLMCostBudget()
        self.server = Server(settings)
        self._pacing = AccountPace(settings.requests_per_minute, settings.tokens_per_minute)
        self._slots = asyncio.Semaphore(self.concurrency)
        self._under_way: set[asyncio.Task[Answer]] = set()
        self._has_answered = False

    @property
    def store(self) -> ReplyStore:
        """Where sends stand: the cache, or what the budget has in its place."""
        return self.budget.open_store(self.cache)

    @property
    def signature(self) -> str:
        """Model, parameters and revision; never a key or an address."""
        return self.settings.signature

    @property
    def cache_server(self) -> str:
        """The server as cache keys have it."""
        return self.server.cache_name

    def cache_path(self) -> Path | None:
        """The cache's file; None without one."""
        return self.cache

    @cached_property
    def refused_params(self) -> RefusedParams:
        """What the model does not take."""
        return RefusedParams(self.cache_server, self.model, self.store)

    @cached_property
    def _account(self) -> str:
        return hash_account(self.cache_server, self.server.find_api_key())

    # Requests --------------------------------------------------------------------------------

    def request_key(self, request: ChatRequest) -> bytes:
        """The cache's key of a request."""
        request = ChatRequest(request.messages, self.settings.request_params(request.params))
        return hash_request(self.model, request, self.revision, self.cache_server)

    def request_body(self, request: ChatRequest) -> dict[str, Any]:
        """The body of the chat request, as the API has it, without what the model is known to
        refuse."""
        params = self.settings.request_params(request.params)
        body = {"model": self.model, "messages": list(map(dict, request.messages)), **params}
        return self.refused_params.adapt_body(body)

    def find_cached_reply(self, request: ChatRequest) -> ChatReply | None:
        """What the cache has for a request; needs no event loop."""
        return None if self.cache is None else self.store.get(self.request_key(request))

    # Sending ---------------------------------------------------------------------------------

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The reply to one request, after as many attempts as it needs and the settings allow."""
        key, max_retries = self.request_key(request), self.settings.max_retries
        n_failed = 0
        while True:
            body = self.request_body(request)
            send = self.make_send(key, ChatRequest(request.messages, body))
            answer = await self._begin_and_send(send, body)
            if isinstance(answer, ChatReply):
                return answer
            if answer.refused_params:
                # Each refusal makes the body smaller, so this ends.
                self.refused_params.add(answer.refused_params)
                continue
            is_patient = self._has_answered or n_failed < min(_UNREACHED_RETRIES, max_retries)
            if answer.unreached and not is_patient:
                raise FactauditError(f"no server answers at {self.server.address}: {answer.reason}")
            n_failed += 1
            if n_failed > max_retries:
                error = f"gave up after {n_failed} attempts: {answer.reason}"
                return ChatReply("error", error=error)
            await self._pacing.wait_after_failure(n_failed - 1, answer.retry_after)

    async def _begin_and_send(self, send: Send, body: dict[str, Any]) -> Answer:
        """Send a request, or give the reply that is kept. If another process has sent the same one,
        this one waits for that reply and uses it."""
        delay = _POLL_SECONDS
        while True:
            async with self._slots:
                state = self.budget.begin(self.store, send)
                if state == "send":
                    return await self._send(send, body)
            if isinstance(state, ChatReply):
                return state
            if state == "over":
                return self.make_over_limit_reply()
            await asyncio.sleep(delay)
            delay = min(2 * delay, _MAX_POLL_SECONDS)

    async def _send(self, send: Send, body: dict[str, Any]) -> Answer:
        """One send, which `begin` has written down, when it is its turn."""
        try:
            tokens = send.prompt_tokens + (find_reply_token_limit(body) or 0)
            await self._pacing.wait_before_request(self._account, tokens)
        except BaseException:
            self.settle(send, ServerAttemptFailure("never sent"))
            raise
        # From here on it may be billed: it goes on when nobody waits for it any more (`close`).
        task = asyncio.create_task(self._post_and_settle(send, body))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _post_and_settle(self, send: Send, body: dict[str, Any]) -> Answer:
        """The answer, as an error where the server has read only a part of the prompt, and with
        counts of tokens."""
        answer: Answer = ServerAttemptFailure("cancelled", DROPPED)  # nobody knows what it costs
        try:
            posted = await self.server.post(body)
            if isinstance(posted, ServerAttemptFailure):
                answer = posted
            else:
                answer = self.parse_http_answer(*posted, sent_params=body)
            if isinstance(answer, ChatReply):
                answer = fail_cut_prompt(answer, body["messages"])
                if answer.status in KEPT_STATUSES and not answer.prompt_tokens:
                    # The server counted none.
                    n_tokens = approximate_token_count(answer.text)
                    answer = replace(
                        answer, prompt_tokens=send.prompt_tokens, completion_tokens=n_tokens
                    )
            return answer
        except FactauditError:
            answer = ServerAttemptFailure("refused")
            raise
        finally:
            self.settle(send, answer)

    async def close(self) -> None:
        """Wait a little for calls under way, whose replies are kept, and close the connections. The
        client may then be used again."""
        under_way = list(self._under_way)
        if under_way:
            await asyncio.wait(under_way, timeout=GRACE_SECONDS)
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)
        await self.server.close()

    def make_send(self, key: bytes, request: ChatRequest, discount: float = 1.0) -> Send:
        """A request as the store has it; its parameters decide what it can cost."""
        most = self.budget.most_cost(self.settings.price(), request)
        n_tokens = count_prompt_tokens(request)
        pace = self._pacing.count_seconds(n_tokens + (find_reply_token_limit(request.params) or 0))
        return Send(
            key,
            run=self.budget.run,
            caller=self.usage.caller,
            most_cost=None if most is None else discount * most,
            prompt_tokens=n_tokens,
            seconds=_LEASE_SECONDS + self.settings.timeout + self.concurrency * pace,
        )

    def settle(self, send: Send, answer: Answer, discount: float = 1.0) -> None:
        """Write down what came of a send. What is an answer is kept."""
        reply = answer if isinstance(answer, ChatReply) else ChatReply(answer.status)
        tokens, price = (reply.prompt_tokens, reply.completion_tokens), self.settings.price()
        is_kept, status = reply.status in KEPT_STATUSES, reply.status
        if status in ("error", "skipped") and not reply.prompt_tokens:
            status = NOT_BILLED  # an answer to a part of the prompt was paid for like any other
        cost: float | None = 0.0
        if status != NOT_BILLED:
            cost = None if price is None else discount * price.cost(*tokens)
        kept = reply if is_kept else None
        self.store.finish(send.key, status, tokens, cost, kept, send.batch)

    def make_over_limit_reply(self) -> ChatReply:
        """The reply to a request that the limit of money does not allow."""
        limit = self.budget.max_cost
        return ChatReply(
            "skipped", error=f"max_cost of {limit} would be passed: raise it to resume"
        )

    def parse_http_answer(
        self, status: int, headers: Mapping[str, str], body: str, *, sent_params: Iterable[str] = ()
    ) -> Answer:
        """What an HTTP answer means: a reply, or a failure that may pass. Raises what no request
        will get past.

        sent_params: what the request's body had.
        """
        redact, address = self.server.redact, self.server.address
        if status == 200:
            self._has_answered = True
            answer = parse_chat_completion(body)
            if isinstance(answer, ServerAttemptFailure):
                return replace(answer, reason=redact(answer.reason))
            return answer
        hint = ""
        if status == 404 and not urlsplit(address).path.rstrip("/"):
            hint = " (most servers' address ends in /v1)"
        if status == 401 and self.server.find_api_key() == "none":
            hint = " (no key was sent: api_key_env names the variable that holds it)"
        return parse_server_error_response(
            status,
            headers,
            redact(body),
            asked=f"{address}, model {self.model!r}",
            hint=hint,
            has_answered=self._has_answered,
            sent_params=sent_params,
        )
