"""What do calls cost? The cost is estimated before (`estimate_llm_judging_cost`), limited
(`LLMCostBudget`), and counted in the store; `LLMCallUsage` notes what came from the cache.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from factaudit.errors import UsageError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.settings import LLMModelPrice
from factaudit.llm.store import EMPTY_CALLER_ROW, ReplyStore, Send, name_serving_model

#: OpenAI's Batch API costs half (OpenAI help centre, "Batch API FAQ").
BATCH_DISCOUNT = 0.5
#: Chat formats wrap each message in a few tokens of their own (OpenAI cookbook, "How to count
#: tokens": 3, and 3 more).
_TOKENS_PER_MESSAGE = 3
_BYTES_PER_TOKEN = 4


@dataclass
class LLMCallUsage:
    """What one evaluator has asked so far, in this process. What it cost stands in the store, under
    ``caller``.

    ``served``: the models, as the server named them, that replies came from (cached ones too).
    ``kept``: when the cache got the first and the last of the replies that came from it (Unix
    seconds).
    """

    cached_calls: int = 0
    kept: tuple[int, ...] = field(default=(), compare=False)
    caller: str = field(default="", compare=False)
    served: set[str] = field(default_factory=set, compare=False)

    def count_reply(self, reply: ChatReply) -> None:
        """Note a reply: which model it is from, and of a cached one from when it is."""
        if name := name_serving_model(reply):
            self.served.add(name)
        self.cached_calls += reply.cached
        if reply.created is not None:
            dates = (*self.kept, reply.created)
            self.kept = min(dates), max(dates)

    def row(self) -> dict[str, Any]:
        """How many replies came from the cache, and from when they are (ISO dates, or None)."""
        dates = [datetime.fromtimestamp(seconds, UTC).date().isoformat() for seconds in self.kept]
        first, last = dates or (None, None)
        return {"cached_calls": self.cached_calls, "cached_from": first, "cached_until": last}


class LLMCostBudget:
    """A limit of money that several clients, and several processes that share a cache, keep
    together.

    Without ``max_cost`` there is no limit; sends are written down all the same.
    Each send is first written down at the most that it can cost, so the limit is never passed,
    whatever comes of it. Where it does not fit beside what is or may be spent, it is refused (the
    reply's status is "skipped"), and the run can be resumed with a higher limit.

    run: whose money it is: the name of a run folder's counts in the store; by default this
    object's. path: a store for clients without a cache; by default in memory.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        *,
        run: str | None = None,
        path: str | Path | None = None,
    ) -> None:
        self.max_cost = max_cost
        self.run = run or uuid.uuid4().hex
        self._path = path
        self._stores: dict[Path | None, ReplyStore] = {}

    def open_store(self, cache: Path | None) -> ReplyStore:
        """The store of a cache's file, or of clients without a cache (None): one for all clients,
        as its money is counted once."""
        name = cache and cache.absolute()
        if name not in self._stores:
            self._stores[name] = ReplyStore(cache or self._path, is_cache=cache is not None)
        return self._stores[name]

    @property
    def spent(self) -> float:
        """What was, or may have been, spent: also by other processes and earlier ones of the same
        run."""
        return sum(store.spent(self.run) for store in self._stores.values())

    def summarise_callers(self) -> dict[str, dict[str, Any]]:
        """What each caller has spent (`ReplyStore.summarise_callers`), in all stores."""
        callers: dict[str, dict[str, Any]] = {}
        for store in self._stores.values():
            for caller, row in store.summarise_callers(self.run).items():
                known = callers.get(caller, EMPTY_CALLER_ROW)
                callers[caller] = {
                    name: None if None in (value, known[name]) else known[name] + value
                    for name, value in row.items()
                }
        return callers

    def begin(self, store: ReplyStore, send: Send) -> ChatReply | Literal["send", "wait", "over"]:
        """Reserve what a send may cost, as `ReplyStore.begin`."""
        limit = self.max_cost
        if limit is not None:
            limit -= self.spent - store.spent(self.run)  # what other stores have spent
        return store.begin(send, limit)

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        for store in self._stores.values():
            store.close()

    def most_cost(self, price: LLMModelPrice | None, request: ChatRequest) -> float | None:
        """The most that one send can cost: no tokenizer makes more tokens than there are bytes.
        None without a price.

        Where the length of replies is not limited, and there is no ``max_cost``, it is that of the
        prompt alone. Raises `UsageError` where a limit cannot be kept.
        """
        if price is None and self.max_cost is not None:
            raise UsageError(
                "max_cost needs the price of each model: give it beside the model, in US dollars"
                " per million tokens (`prices: {input: 0.15, output: 0.6}`)"
            )
        if price is None:
            return None
        limit = find_reply_token_limit(request.params)
        if limit is None and self.max_cost is not None and price.output > 0:
            raise UsageError(
                "max_cost needs a limit on the length of a reply: set max_tokens"
                " (max_completion_tokens for a model that reasons)"
            )
        return price.cost(count_prompt_tokens(request, bytes_per_token=1), limit or 0)


def approximate_token_count(text: str, bytes_per_token: int = _BYTES_PER_TOKEN) -> int:
    """One token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // bytes_per_token)


def count_prompt_tokens(request: ChatRequest, bytes_per_token: int = _BYTES_PER_TOKEN) -> int:
    """The approximate number of tokens of a request's messages."""
    texts = [message["content"] for message in request.messages]
    own = _TOKENS_PER_MESSAGE * (1 + len(texts))
    return own + sum(approximate_token_count(text, bytes_per_token) for text in texts)


def find_reply_token_limit(params: Mapping[str, Any]) -> int | None:
    """The most tokens that a reply may have, where a request's parameters limit them."""
    return params.get("max_completion_tokens") or params.get("max_tokens")


def estimate_llm_judging_cost(judge: Any, claims: Iterable[Any]) -> dict[str, Any]:
    """What judging ``claims`` by a judge that has ``requests(claims)`` would cost; nothing is sent.

    Returns ``{"model", "calls", "cached_calls", "prompt_tokens", "max_completion_tokens", "cost",
    "reason"}``: ``cached_calls`` are not sent, since their replies are in the cache or those of
    another call; tokens are counted approximately, one per four bytes; ``cost`` has replies of full
    length; None (with a reason) where no price or no limit on the length of replies is known.
    """
    from factaudit.llm.client import LLMClient

    path = judge.cache_path()
    if path is not None and not path.is_file():
        judge = copy(judge)
        judge.cache = "none"  # nothing is made on disk
    client = LLMClient(judge)
    requests = list(judge.requests(claims))
    to_send = {
        client.request_key(one): one for one in requests if client.find_cached_reply(one) is None
    }
    client.budget.close()
    n_prompt = sum(map(count_prompt_tokens, to_send.values()))
    limits = [find_reply_token_limit(request.params) for request in to_send.values()]
    most = None if None in limits else sum(filter(None, limits))
    price, cost, reason = judge.price(), None, None
    if price is None:
        reason = f"no price is known for {client.model!r} (prices: {{input: ..., output: ...}})"
    elif most is None:
        reason = "the length of replies is not limited (max_tokens)"
    else:
        cost = (BATCH_DISCOUNT if judge.batch else 1.0) * price.cost(n_prompt, most)
    return {
        "model": client.model,
        "calls": len(to_send),
        "cached_calls": len(requests) - len(to_send),
        "prompt_tokens": n_prompt,
        "max_completion_tokens": most,
        "cost": cost,
        "reason": reason,
    }
