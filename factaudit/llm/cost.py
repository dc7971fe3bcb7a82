"""The cost of calls: estimated before (`estimate_llm_judging_cost`), limited (`LLMCostBudget`) and
counted (`LLMCallUsage`).
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from factaudit.errors import UsageError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.store import EMPTY_CALLER_ROW, ReplyStore, Send, hash_request, name_serving_model

#: OpenAI's Batch API costs half (OpenAI help centre, "Batch API FAQ").
BATCH_DISCOUNT = 0.5
#: Chat formats wrap each message in a few tokens of their own (OpenAI cookbook, "How to count
#: tokens": 3, and 3 more).
_TOKENS_PER_MESSAGE = 3
_BYTES_PER_TOKEN = 4

_log = logging.getLogger("factaudit.cost")


@dataclass(frozen=True)
class LLMModelPrice:
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens. A provider's discount on prompts that it has cached is not
        counted."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def read_llm_price_table(path: str | Path | None = None) -> dict[str, LLMModelPrice]:
    """The prices in a table: ``path``, else the file that ``$FACTAUDIT_PRICES`` names, else none.
    Nobody's prices stay as they were, so none come with the package.

    Columns: model, input, output (US dollars per million tokens).
    """
    path = path or os.environ.get("FACTAUDIT_PRICES")
    if not path:
        return {}
    from factaudit.datasets.source_files import SourceRow, read_rows

    class PriceRow(SourceRow):
        model: Annotated[str, Field(min_length=1)]
        input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
        output: Annotated[float, Field(ge=0, allow_inf_nan=False)]

    rows = read_rows(Path(path), PriceRow, is_counted=True)
    return {row.model: LLMModelPrice(row.input, row.output) for row in rows}


def find_model_price(model: str, prices: Mapping[str, LLMModelPrice]) -> LLMModelPrice | None:
    """The price of a model; a dated snapshot (``gpt-4o-2024-08-06``) without a row costs what its
    name does."""
    undated = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)
    return prices.get(model) or prices.get(undated)


@dataclass
class LLMCallUsage:
    """What one evaluator has asked so far, in this process. What it cost stands in the store, under
    ``caller``.

    ``calls`` are sends that were, or may have been, paid for, repeats among them. ``served``: the
    models, as the server named them, that replies came from (cached ones too). ``started``: when
    the counting began, and ``kept``: when the cache got the first and the last of what it had by
    then (Unix seconds).
    """

    calls: int = 0
    cached_calls: int = 0
    started: float = field(default_factory=time.time, compare=False)
    kept: tuple[int, int] | None = field(default=None, compare=False)
    caller: str = field(default="", compare=False)
    served: set[str] = field(default_factory=set, compare=False)

    def count_reply(self, reply: ChatReply) -> None:
        """Note a reply: which model it is from, and of a cached one from when it is."""
        if name := name_serving_model(reply):
            self.served.add(name)
        self.cached_calls += reply.cached
        # What came later is a reply to an equal request of this run.
        if reply.cached and reply.created is not None and reply.created <= self.started:
            first, last = self.kept or (reply.created, reply.created)
            self.kept = min(first, reply.created), max(last, reply.created)

    def forget_cached_replies(self) -> None:
        """Begin anew with what `row` says of cached replies."""
        self.started, self.kept = time.time(), None

    def row(self) -> dict[str, Any]:
        """The counts, and from when the cached replies are (ISO dates, or None)."""
        first, last = [_format_date(seconds) for seconds in self.kept or (None, None)]
        counts = {"calls": self.calls, "cached_calls": self.cached_calls}
        return {**counts, "cached_from": first, "cached_until": last}


def _format_date(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()


class LLMCostBudget:
    """A limit of money that several clients, and several processes that share a cache, keep
    together.

    Without ``max_cost`` there is no limit; prices are looked up and sends written down all the
    same. Each send is first written down at the most that it can cost, so the limit is never
    passed, whatever comes of it; where it does not fit beside what is or may be spent, it is
    refused (the reply's status is "skipped"), and the run can be resumed with a
    higher limit. run: whose money it is: the name of a run folder's counts in the store; by default
    this object's.
    path: a store for clients without a cache; by default in memory.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        prices: Mapping[str, LLMModelPrice] | None = None,
        *,
        run: str | None = None,
        path: str | Path | None = None,
    ) -> None:
        if max_cost is not None and not max_cost >= 0:
            raise UsageError(f"max_cost: expected US dollars, 0 or more, found {max_cost!r}")
        self.max_cost = max_cost
        self.prices = read_llm_price_table() if prices is None else prices
        self.run = uuid.uuid4().hex if run is None else run
        self.is_exhausted = False
        self.own_store = ReplyStore(path)
        self._stores = {self.own_store.name: self.own_store}

    def open_store(self, cache: Path | ReplyStore) -> ReplyStore:
        """The store of a cache's file: one for all clients, as its money is counted once."""
        store = cache if isinstance(cache, ReplyStore) else ReplyStore(cache)
        return self._stores.setdefault(store.name, store)

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
                known = callers.setdefault(caller, dict(EMPTY_CALLER_ROW))
                for name, value in row.items():
                    known[name] = None if None in (value, known[name]) else known[name] + value
        return callers

    def begin(
        self, store: ReplyStore, send: Send
    ) -> ChatReply | Literal["send", "wait", "full", "over"]:
        """Reserve what a send may cost, as `ReplyStore.begin`."""
        limit = self.max_cost
        if limit is not None:
            limit -= sum(
                other.spent(self.run) for other in self._stores.values() if other is not store
            )
        state = store.begin(send, limit, keep=store is not self.own_store)
        if state == "over" and not self.is_exhausted:
            self.is_exhausted = True
            _log.warning(
                "max_cost: $%.2f of $%.2f are spent, and one more call could pass it: the rest is"
                " left out; raise max_cost and run the same again to go on",
                self.spent,
                self.max_cost,
            )
        return state

    def settle_ended_processes(self) -> None:
        """Settle what processes that were killed left open."""
        for store in self._stores.values():
            store.settle_ended_processes()

    def close(self) -> None:
        """Close the files; the next use opens them again."""
        for store in self._stores.values():
            store.close()

    def model_price(self, model: str) -> LLMModelPrice | None:
        """The price of ``model``. Raises `UsageError` where a limit is set and no price is
        known."""
        price = find_model_price(model, self.prices)
        if price is None and self.max_cost is not None:
            raise UsageError(
                f"max_cost needs the price of {model!r}: give it beside the model, in US dollars"
                " per million tokens (`prices: {input: 0.15, output: 0.6}`), or name a CSV of"
                " model, input, output with FACTAUDIT_PRICES"
            )
        return price

    def most_cost(self, price: LLMModelPrice | None, request: ChatRequest) -> float | None:
        """The most that one send can cost: no tokenizer makes more tokens than there are bytes.
        None without a price.

        Where the length of replies is not limited, and there is no ``max_cost``, it is that of the
        prompt alone.
        """
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


def estimate_llm_judging_cost(
    judge: Any, claims: Iterable[Any], prices: Mapping[str, LLMModelPrice] | None = None
) -> dict[str, Any]:
    """What judging ``claims`` by a judge that has ``requests(claims)`` would cost; nothing is sent.

    Returns ``{"model", "calls", "cached_calls", "repeated_calls", "prompt_tokens",
    "max_completion_tokens", "cost", "reason"}``: ``cached_calls`` are not sent, since their replies
    are in the cache or, ``repeated_calls`` of them, those of another call; tokens are counted
    approximately, one per four bytes; ``cost`` has replies of full length; None (with a reason)
    where no price or no limit on the length of replies is known.
    """
    model, revision = judge.client_key()
    path = Path(judge.cache_path() or "")
    counts = dict.fromkeys(("calls", "cached_calls", "repeated_calls", "prompt_tokens"), 0)
    most: float = 0
    seen: set[bytes] = set()
    with ReplyStore(path) if path.is_file() else nullcontext() as store:
        for request in judge.requests(claims):
            key = hash_request(model, request, revision, judge.cache_server)
            is_repeated, is_kept = key in seen, store is not None and store.get(key) is not None
            seen.add(key)
            counts["repeated_calls"] += is_repeated
            counts["cached_calls"] += is_repeated or is_kept
            if not is_repeated and not is_kept:
                counts["calls"] += 1
                counts["prompt_tokens"] += count_prompt_tokens(request)
                most += find_reply_token_limit(request.params) or math.inf
    known = read_llm_price_table() if prices is None else prices
    price, cost, reason = judge.price() or find_model_price(model, known), None, None
    if price is None:
        reason = f"no price is known for {model!r}"
    elif math.isinf(most):
        reason = "the length of replies is not limited (max_tokens)"
    else:
        cost = (BATCH_DISCOUNT if judge.batch else 1.0) * price.cost(counts["prompt_tokens"], most)
    completion = None if math.isinf(most) else int(most)
    return {
        "model": model,
        **counts,
        "max_completion_tokens": completion,
        "cost": cost,
        "reason": reason,
    }
