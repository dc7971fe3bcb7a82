"""What calls cost: before they are made (`estimate`), while they are (`Budget`), and after (`Usage`)."""

from __future__ import annotations

import csv
import logging
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from factaudit.errors import InputError, Problem, UsageError
from factaudit.llm.cache import Cache, request_key
from factaudit.llm.ledger import Ledger
from factaudit.llm.types import Reply, Request

#: OpenAI's Batch API costs half (OpenAI help centre, "Batch API FAQ").
BATCH_DISCOUNT = 0.5
#: Chat formats wrap each message in a few tokens of their own (OpenAI cookbook, "How to count tokens": 3, and 3 more).
_MESSAGE_TOKENS = 3
_APPROXIMATION = "1 token per 4 bytes of UTF-8"

_log = logging.getLogger("factaudit.cost")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens, on a date, as a source gave them."""

    input: float
    output: float
    date: str = ""
    source: str = ""

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens. A provider's discount on prompts that it has cached is not counted."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def load_prices(path: str | Path | None = None) -> dict[str, Price]:
    """The price table that ships with the package, with the rows of the user's own (a CSV of the same form) over it.

    The user's is ``path``, else the file that ``$FACTAUDIT_PRICES`` names. Columns: model, input, output (US dollars
    per million tokens), and optionally date and source.
    """
    shipped = files("factaudit.llm").joinpath("prices.csv").read_text(encoding="utf-8")
    prices = _parse_prices(shipped.splitlines(), "prices.csv")
    if path := path or os.environ.get("FACTAUDIT_PRICES"):
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except OSError as error:
            raise UsageError(f"price table {path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise UsageError(f"price table {path}: not UTF-8 text ({error.reason})") from error
        prices |= _parse_prices(lines, str(path))
    return prices


def _parse_prices(lines: Iterable[str], source: str) -> dict[str, Price]:
    prices = {}
    for number, row in enumerate(csv.DictReader(lines), start=1):
        for column in ("model", "input", "output"):
            if not row.get(column):
                raise InputError(source, [Problem("expected a value, found none", number, column)])
        try:
            figures = float(row["input"]), float(row["output"])
        except ValueError:
            raise InputError(source, [Problem("expected dollars per million tokens", number, "input")]) from None
        if not all(0 <= figure < float("inf") for figure in figures):
            raise InputError(source, [Problem("expected a price of 0 or more", number, "input")])
        prices[row["model"]] = Price(*figures, row.get("date") or "", row.get("source") or "")
    return prices


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model; a dated snapshot (``gpt-4o-2024-08-06``) without a row costs what its name does."""
    undated = re.sub(r"-\d{4}-\d{2}-\d{2}$", "", model)
    return prices.get(model) or prices.get(undated)


@dataclass
class Usage:
    """What one evaluator has used so far, in this process.

    ``calls`` are sends that were, or may have been, paid for, repeats among them; ``cost`` is None where no price is
    known for one of them. ``account``: the name under which the ledger has the sends. ``served``: how many replies
    (cached ones too) came from which model, as the server named it.
    """

    calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    account: str = field(default="", compare=False)
    served: Counter[str] = field(default_factory=Counter, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def paid(self, prompt_tokens: int, completion_tokens: int, cost: float | None) -> None:
        """Count one send that the server was, or may have been, paid for."""
        with self._lock:
            self.calls += 1
            self.prompt_tokens += prompt_tokens
            self.completion_tokens += completion_tokens
            self.cost = None if self.cost is None or cost is None else self.cost + cost

    def cached(self, count: int = 1) -> None:
        """Count replies that cost nothing: from the cache, or shared with an equal request."""
        with self._lock:
            self.cached_calls += count

    def replied(self, reply: Reply) -> str | None:
        """Count which model a reply is from; its name where it is the first from there."""
        if not reply.model:
            return None
        name = f"{reply.model} ({reply.fingerprint})" if reply.fingerprint else reply.model
        with self._lock:
            self.served[name] += 1
            return name if self.served[name] == 1 else None

    def row(self) -> dict[str, Any]:
        """The figures as they stand in ``results.json`` under ``calls``."""
        names = ("calls", "cached_calls", "prompt_tokens", "completion_tokens", "cost")
        return {name: getattr(self, name) for name in names}


class Budget:
    """A limit of money that several clients, and several processes with one ledger, share.

    Without ``max_cost`` there is no limit; prices are looked up and sends written down all the same. Each send is first
    written into the ledger at the most that it can cost, so the limit is never passed, whatever comes of it; where it
    does not fit beside what is or may be spent, it is refused (the reply's status is "skipped"), and the run can be
    resumed with a higher limit. ``ledger``: its file; without one the limit is this object's alone.
    """

    def __init__(
        self,
        max_cost: float | None = None,
        prices: Mapping[str, Price] | None = None,
        ledger: Ledger | str | Path | None = None,
    ) -> None:
        if max_cost is not None and not max_cost >= 0:
            raise UsageError(f"max_cost: expected US dollars, 0 or more, found {max_cost!r}")
        self.max_cost = max_cost
        self.prices = load_prices() if prices is None else prices
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self.exhausted = False

    @property
    def spent(self) -> float:
        """What was, or may have been, spent: also by other processes and earlier ones with the same ledger."""
        return self.ledger.spent()

    def price(self, model: str) -> Price | None:
        """The price of ``model``. Raises `UsageError` where a limit is set and no price is known."""
        price = price_of(model, self.prices)
        if price is None and self.max_cost is not None:
            raise UsageError(
                f"max_cost needs the price of {model!r}, which no price table has: put it into a CSV of model, input,"
                " output (US dollars per million tokens) and set FACTAUDIT_PRICES to its path"
            )
        return price

    def most(self, price: Price | None, request: Request) -> float | None:
        """The most that one send can cost: no tokenizer makes more tokens than there are bytes. None without a price.

        Where the length of replies is not limited, and there is no ``max_cost``, it is that of the prompt alone.
        """
        if price is None:
            return None
        limit = reply_limit(request.params)
        if limit is None and self.max_cost is not None and price.output > 0:
            raise UsageError(
                "max_cost needs a limit on the length of a reply: set max_tokens (max_completion_tokens for a model"
                " that reasons)"
            )
        most = _prompt_tokens(request, lambda text: len(text.encode("utf-8", "surrogatepass")))
        return price.cost(most, limit or 0)

    def try_open(
        self, account: str, prompt_tokens: int, most: float | None, key: bytes | None = None
    ) -> int | Literal[False] | None:
        """The ledger's number of a send; False where it can never fit, None where it may once others have settled."""
        send = self.ledger.open(account, prompt_tokens, most, self.max_cost, key)
        if send is not None or self.max_cost is None:
            return send
        if self.ledger.spent(under_way=False) + (most or 0.0) <= self.max_cost:
            # Those under way may turn out cheaper; of processes that have ended nothing more will come.
            self.ledger.bury()
            return None
        if not self.exhausted:
            _log.warning(
                "max_cost: $%.2f of $%.2f are spent, and one more call could pass it: the rest is left out;"
                " raise max_cost and run the same again to go on",
                self.ledger.spent(under_way=False),
                self.max_cost,
            )
        self.exhausted = True
        return False


def approximate_tokens(text: str) -> int:
    """One token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


def token_counter(model: str) -> tuple[Callable[[str], int], str]:
    """A function that counts the tokens of a text for ``model``, and how it does: tiktoken, or an approximation.

    tiktoken knows OpenAI's models only, and fetches their vocabularies when first used; where it is missing, does not
    know the model, or cannot fetch, the approximation is used and says so.
    """
    try:
        import tiktoken

        encoding = tiktoken.encoding_for_model(model)
    except Exception:  # missing, unknown model, no network: tiktoken raises whatever its downloader does
        return approximate_tokens, f"approximately, {_APPROXIMATION}"
    return lambda text: len(encoding.encode(text, disallowed_special=())), f"tiktoken {encoding.name}"


def prompt_tokens(request: Request) -> int:
    """The approximate number of tokens of a request's messages."""
    return _prompt_tokens(request, approximate_tokens)


def reply_limit(params: Mapping[str, Any]) -> int | None:
    """The most tokens that a reply may have, where a request's parameters limit them."""
    return params.get("max_completion_tokens") or params.get("max_tokens")


def _prompt_tokens(request: Request, count: Callable[[str], int]) -> int:
    return _MESSAGE_TOKENS + sum(_MESSAGE_TOKENS + count(message["content"]) for message in request.messages)


def estimate(
    evaluators: Mapping[str, Any],
    claims: Iterable[Any],
    cache: str | Path | None = None,
    prices: Mapping[str, Price] | None = None,
) -> list[dict[str, Any]]:
    """What judging ``claims`` would cost: one row per evaluator that asks a language model, nothing sent.

    An evaluator is counted where it has ``requests(claims)``, ``client_key()`` (model and revision as the cache has
    them), ``batch`` and ``cache``; ``claims`` is read once for each, so it must be a sequence or re-iterable. A row is
    ``{"evaluator", "model", "calls", "cached_calls", "prompt_tokens", "max_completion_tokens", "cost", "price_date",
    "counted", "reason"}``; ``cost`` has replies of full length, and is as good as ``counted`` says the prompts' tokens
    are; None (with a reason) where no price or no limit on the length of replies is known.
    """
    prices = load_prices() if prices is None else prices
    rows = []
    for name, evaluator in evaluators.items():
        if not hasattr(evaluator, "requests"):
            continue
        model, revision = evaluator.client_key()
        path = Path(cache if cache is not None else evaluator.cache_path() or "")
        store = Cache(path, read_only=True) if path.is_file() else None
        count, how = token_counter(model)
        row = {"evaluator": name, "model": model, "calls": 0, "cached_calls": 0, "prompt_tokens": 0}
        completion: int | None = 0
        seen: set[bytes] = set()
        for request in evaluator.requests(claims):
            key = request_key(model, request, revision)
            if key in seen or (store is not None and store.get(key) is not None):
                row["cached_calls"] += 1
                continue
            seen.add(key)
            row["calls"] += 1
            row["prompt_tokens"] += _prompt_tokens(request, count)
            limit = reply_limit(request.params)
            completion = None if limit is None or completion is None else completion + limit
        if store is not None:
            store.close()
        price = Price(0.0, 0.0) if evaluator.base_url == "local" else price_of(model, prices)
        reason = None
        if price is None:
            reason = f"cost: no price is known for {model!r}"
        elif completion is None:
            reason = "cost: the length of replies is not limited (max_tokens)"
        share = BATCH_DISCOUNT if evaluator.batch else 1.0
        known = price is not None and completion is not None
        row |= {
            "max_completion_tokens": completion,
            "cost": share * price.cost(row["prompt_tokens"], completion) if known else None,  # type: ignore
            "price_date": (price.date or None) if price else None,
            "counted": how,
            "reason": reason,
        }
        rows.append(row)
    return rows
