"""The cost of calls: estimated before (`estimate_llm_judging_cost`), limited (`LLMCostBudget`) and counted
(`LLMCallUsage`).
"""

from __future__ import annotations

import csv
import logging
import math
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from factaudit.errors import InputError, Problem, UsageError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.store import EMPTY_CALLER_ROW, ReplyStore, Send, hash_request, name_serving_model

#: OpenAI's Batch API costs half (OpenAI help centre, "Batch API FAQ").
BATCH_DISCOUNT = 0.5
#: Chat formats wrap each message in a few tokens of their own (OpenAI cookbook, "How to count tokens": 3, and 3 more).
_TOKENS_PER_MESSAGE = 3
_APPROXIMATION_NOTE = "1 token per 4 bytes of UTF-8"

_log = logging.getLogger("factaudit.cost")


@dataclass(frozen=True)
class LLMModelPrice:
    """US dollars per million tokens, on a date."""

    input: float
    output: float
    date: str = ""

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens. A provider's discount on prompts that it has cached is not counted."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def read_llm_price_table(path: str | Path | None = None) -> dict[str, LLMModelPrice]:
    """The prices in a CSV: ``path``, else the file that ``$FACTAUDIT_PRICES`` names, else none. Nobody's prices stay as
    they were, so none come with the package.

    Columns: model, input, output (US dollars per million tokens), and optionally date.
    """
    path = path or os.environ.get("FACTAUDIT_PRICES")
    if not path:
        return {}
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"price table {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"price table {path}: not UTF-8 text ({error.reason})") from error
    prices = {}
    for number, row in enumerate(csv.DictReader(lines), start=1):
        try:
            price = LLMModelPrice(float(row["input"]), float(row["output"]), row.get("date") or "")
            if not row["model"] or not (0 <= price.input < math.inf and 0 <= price.output < math.inf):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            expected = "expected model, input and output: a name, and US dollars per million tokens"
            raise InputError(str(path), [Problem(expected, number)]) from None
        prices[row["model"]] = price
    return prices


def find_model_price(model: str, prices: Mapping[str, LLMModelPrice]) -> LLMModelPrice | None:
    """The price of a model; a dated snapshot (``gpt-4o-2024-08-06``) without a row costs what its name does."""
    undated = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)
    return prices.get(model) or prices.get(undated)


@dataclass
class LLMCallUsage:
    """What one evaluator has asked so far, in this process. What it cost stands in the store, under ``caller``.

    ``calls`` are sends that were, or may have been, paid for, repeats among them. ``served``: the models, as the
    server named them, that replies came from (cached ones too). ``started``: when the counting began, and
    ``oldest_cached``, ``newest_cached``: when the cache got what it had by then (Unix seconds).
    """

    calls: int = 0
    cached_calls: int = 0
    started: int = field(default_factory=lambda: int(time.time()), compare=False)
    oldest_cached: int | None = None
    newest_cached: int | None = None
    caller: str = field(default="", compare=False)
    served: set[str] = field(default_factory=set, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def count_paid_call(self) -> None:
        """Count one send that the server was, or may have been, paid for."""
        with self._lock:
            self.calls += 1

    def count_cached_calls(self, count: int = 1, reply: ChatReply | None = None) -> None:
        """Count replies that cost nothing: from the cache (then with the reply), or shared with an equal request."""
        with self._lock:
            self.cached_calls += count
            # What came later is a reply to an equal request of this run.
            if reply is not None and (created := reply.created) is not None and created <= self.started:
                self.oldest_cached = min(created, self.oldest_cached or created)
                self.newest_cached = max(created, self.newest_cached or created)

    def forget_cached_replies(self) -> None:
        """Begin anew with what `row` says of cached replies."""
        self.started, self.oldest_cached, self.newest_cached = int(time.time()), None, None

    def count_serving_model(self, reply: ChatReply) -> None:
        """Note which model a reply is from."""
        if name := name_serving_model(reply):
            self.served.add(name)

    def row(self) -> dict[str, Any]:
        """The counts, and from when the cached replies are (ISO dates, or None)."""
        ends = {"cached_from": self.oldest_cached, "cached_until": self.newest_cached}
        dates = {
            name: None if seconds is None else datetime.fromtimestamp(seconds, UTC).date().isoformat()
            for name, seconds in ends.items()
        }
        return {"calls": self.calls, "cached_calls": self.cached_calls, **dates}


class LLMCostBudget:
    """A limit of money that several clients, and several processes that share a cache, keep together.

    Without ``max_cost`` there is no limit; prices are looked up and sends written down all the same. Each send is first
    written down at the most that it can cost, so the limit is never passed, whatever comes of it; where it does not fit
    beside what is or may be spent, it is refused (the reply's status is "skipped"), and the run can be resumed with a
    higher limit. run: whose money it is: the name of a run folder's counts in the store; by default this object's.
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
        """What was, or may have been, spent: also by other processes and earlier ones of the same run."""
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

    def begin(self, store: ReplyStore, send: Send) -> ChatReply | Literal["send", "wait", "full", "over"]:
        """Reserve what a send may cost, as `ReplyStore.begin`."""
        limit = self.max_cost
        if limit is not None:
            limit -= sum(other.spent(self.run) for other in self._stores.values() if other is not store)
        state = store.begin(send, limit, keep=store is not self.own_store)
        if state == "over" and not self.is_exhausted:
            self.is_exhausted = True
            _log.warning(
                "max_cost: $%.2f of $%.2f are spent, and one more call could pass it: the rest is left out;"
                " raise max_cost and run the same again to go on",
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
        """The price of ``model``. Raises `UsageError` where a limit is set and no price is known."""
        price = find_model_price(model, self.prices)
        if price is None and self.max_cost is not None:
            raise UsageError(
                f"max_cost needs the price of {model!r}: give it beside the model, in US dollars per million tokens"
                " (`prices: {input: 0.15, output: 0.6}`), or name a CSV of model, input, output with FACTAUDIT_PRICES"
            )
        return price

    def most_cost(self, price: LLMModelPrice | None, request: ChatRequest) -> float | None:
        """The most that one send can cost: no tokenizer makes more tokens than there are bytes. None without a price.

        Where the length of replies is not limited, and there is no ``max_cost``, it is that of the prompt alone.
        """
        if price is None:
            return None
        limit = find_reply_token_limit(request.params)
        if limit is None and self.max_cost is not None and price.output > 0:
            raise UsageError(
                "max_cost needs a limit on the length of a reply: set max_tokens (max_completion_tokens for a model"
                " that reasons)"
            )
        most = _count_message_tokens(request, lambda text: len(text.encode("utf-8", "surrogatepass")))
        return price.cost(most, limit or 0)


def approximate_token_count(text: str) -> int:
    """One token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def count_prompt_tokens(request: ChatRequest) -> int:
    """The approximate number of tokens of a request's messages."""
    return _count_message_tokens(request, approximate_token_count)


def find_reply_token_limit(params: Mapping[str, Any]) -> int | None:
    """The most tokens that a reply may have, where a request's parameters limit them."""
    return params.get("max_completion_tokens") or params.get("max_tokens")


def _count_message_tokens(request: ChatRequest, count_tokens: Callable[[str], int]) -> int:
    return _TOKENS_PER_MESSAGE + sum(
        _TOKENS_PER_MESSAGE + count_tokens(message["content"]) for message in request.messages
    )


def estimate_llm_judging_cost(
    evaluators: Mapping[str, Any], claims: Iterable[Any], prices: Mapping[str, LLMModelPrice] | None = None
) -> list[dict[str, Any]]:
    """What judging ``claims`` would cost: one row per evaluator that asks a language model, nothing sent.

    An evaluator is counted where it has ``requests(claims)``, ``client_key()`` (model and revision as the cache has
    them), ``cache_server``, ``batch`` and ``cache_path``; ``claims`` is read once for each, so it must be a sequence
    or re-iterable. A row is ``{"evaluator", "model", "calls", "cached_calls", "repeated_calls", "prompt_tokens",
    "max_completion_tokens", "cost", "price_date", "counted", "reason"}``: ``cached_calls`` are not sent, since their
    replies are in the cache or, ``repeated_calls`` of them, those of another call; ``cost`` has replies of full length,
    and is as good as ``counted`` says the prompts' tokens are; None (with a reason) where no price or no limit on the
    length of replies is known.
    """
    prices = read_llm_price_table() if prices is None else prices
    return [
        {"evaluator": name, **_estimate_calls(evaluator, claims, prices)}
        for name, evaluator in evaluators.items()
        if hasattr(evaluator, "requests")
    ]


def _estimate_calls(evaluator: Any, claims: Iterable[Any], prices: Mapping[str, LLMModelPrice]) -> dict[str, Any]:
    model, revision = evaluator.client_key()
    path, server = Path(evaluator.cache_path() or ""), evaluator.cache_server
    row: dict[str, Any] = {"model": model, "calls": 0, "cached_calls": 0, "repeated_calls": 0, "prompt_tokens": 0}
    completion: int | None = 0
    seen: set[bytes] = set()
    with ReplyStore(path, read_only=True) if path.is_file() else nullcontext() as store:
        for request in evaluator.requests(claims):
            key = hash_request(model, request, revision, server)
            if key in seen or (store is not None and store.get(key)):
                row["cached_calls"] += 1
                row["repeated_calls"] += key in seen
                continue
            seen.add(key)
            row["calls"] += 1
            row["prompt_tokens"] += count_prompt_tokens(request)
            limit = find_reply_token_limit(request.params)
            completion = None if limit is None or completion is None else completion + limit
    price = LLMModelPrice(0.0, 0.0) if evaluator.base_url == "local" else find_model_price(model, prices)
    cost, reason = None, None
    if price is None:
        reason = f"cost: no price is known for {model!r}"
    elif completion is None:
        reason = "cost: the length of replies is not limited (max_tokens)"
    else:
        cost = (BATCH_DISCOUNT if evaluator.batch else 1.0) * price.cost(row["prompt_tokens"], completion)
    return row | {
        "max_completion_tokens": completion,
        "cost": cost,
        "price_date": (price.date or None) if price else None,
        "counted": f"approximately, {_APPROXIMATION_NOTE}",
        "reason": reason,
    }
