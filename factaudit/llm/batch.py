"""The same requests through OpenAI's Batch API: half the price, within a day.

Limits and shapes as documented at developers.openai.com/api/reference/resources/batches: a file holds at most 50,000
requests and 200 MB; each line has a ``custom_id`` (here the cache's key); results come in any order, in a file of
outputs and a file of errors. Before a batch is submitted it is noted in the cache, under a digest that is also put into
the batch's metadata; so a run that was killed at any point finds its batches again and submits none of them twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.llm.cache import KEPT, Cache
from factaudit.llm.cost import BATCH_DISCOUNT, prompt_tokens
from factaudit.llm.errors import Failure
from factaudit.llm.ledger import NOT_BILLED
from factaudit.llm.stopping import stopping
from factaudit.llm.types import Reply, Request

if TYPE_CHECKING:
    from openai import OpenAI

    from factaudit.llm.client import Client

#: Documented limits of one input file; the size with a margin.
MAX_LINES = 50_000
MAX_BYTES = 190_000_000
#: Lines that failed in a way that may pass are submitted again so many times.
ROUNDS = 3
#: Where the digest stands in a batch's metadata.
_TAG = "factaudit"
_ENDED = ("completed", "failed", "expired", "cancelled")

_log = logging.getLogger("factaudit.batch")
_Item = TypeVar("_Item")


class Stopped(Exception):
    """Nobody waits any more. The batches go on, and the next run collects them."""


def ask_all(
    client: Client,
    pairs: Iterable[tuple[_Item, Request | None]],
    *,
    no_request: Reply | None = None,
    poll: float = 30.0,
    max_lines: int = MAX_LINES,
    max_bytes: int = MAX_BYTES,
    progress: bool = True,
    stopped: Callable[[], bool] = stopping,
) -> Iterator[tuple[_Item, Reply]]:
    """Yield ``(item, reply)``: what is cached at once, the rest when its batch has ended.

    ``pairs`` is read lazily; prompts go straight to a file on disk and only items and keys stay in memory. An item
    whose request is None gets ``no_request``. ``poll`` is the number of seconds between two looks at the batches.
    Raises `FactauditError` where the server refuses a batch as a whole, and `Stopped` once ``stopped`` says so.
    """
    assert client.cache is not None, "the Batch API needs the cache"
    run = _Run(client, client.cache, poll, progress, stopped)
    with ExitStack() as stack:
        if run.cache.open_batches(client.server(), client.model):
            run.wait()
        waiting: dict[bytes, list[_Item]] = {}
        lines = stack.enter_context(tempfile.TemporaryFile(prefix="factaudit-batch-"))
        for item, request in pairs:
            if request is None:
                assert no_request is not None
                yield item, no_request
                continue
            key = client.key(request)
            if key in waiting:
                waiting[key].append(item)
                client.usage.cached()
            elif (cached := client.cached([request])[0]) is not None:
                # Counted as a call when its batch was collected, so not once more as a cached one.
                client.usage.cached(-(key in run.collected))
                yield item, cached
            else:
                reply = run.reserve(key, request)
                if reply is not None:
                    yield item, reply
                    continue
                waiting[key] = [item]
                lines.write(run.line(key, request))
        for round_number in range(ROUNDS):
            todo = run.missing(waiting)
            if not todo:
                break
            if round_number:
                todo = [key for key in todo if key in run.sends or run._open(key)]
                _log.warning("%d lines of the last batches failed: submitting them again", len(todo))
            run.submit(lines, set(todo), max_lines, max_bytes)
            run.wait()
        for key, items in waiting.items():
            reply = run.final.get(key) or client.cache.get(key) or Reply("error", error=run.reason(key))
            for item in items:
                yield item, reply
            run.give_up(key)


@dataclass
class _Run:
    client: Client
    cache: Cache
    poll: float
    progress: bool
    stopped: Callable[[], bool]
    final: dict[bytes, Reply] = field(default_factory=dict)  # answers that are no reply to keep
    collected: set[bytes] = field(default_factory=set)
    failures: dict[bytes, str] = field(default_factory=dict)
    sends: dict[bytes, int] = field(default_factory=dict)  # the ledger's numbers of lines that are not settled
    bounds: dict[bytes, tuple[int, float | None]] = field(default_factory=dict)  # tokens of the prompt, most cost

    def missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those without an answer; another process, or another client here, may have collected some."""
        left = [key for key in keys if key not in self.final and key not in self.collected]
        return [key for key, reply in zip(left, self.cache.get_many(left), strict=True) if reply is None]

    def reserve(self, key: bytes, request: Request) -> Reply | None:
        """Write into the ledger what a line may cost; the reply that says so where the limit would be passed."""
        most = self.client.budget.most(self.client.price(), request)
        self.bounds[key] = prompt_tokens(request), None if most is None else BATCH_DISCOUNT * most
        return None if self._open(key) else self.client.over_limit()

    def _open(self, key: bytes) -> bool:
        budget, account = self.client.budget, self.client.usage.account
        # A run that was killed has written it down already.
        send = budget.ledger.find(key) or budget.try_open(account, *self.bounds[key], key=key)
        if send:
            self.sends[key] = send
        return bool(send)

    def give_up(self, key: bytes) -> None:
        """Settle a line of which nothing can be kept. Where nothing came back for it, nobody knows what it cost."""
        if (send := self.sends.pop(key, None)) is not None:
            self.client.budget.ledger.settle(send, NOT_BILLED if key in self.final else "dropped")

    def line(self, key: bytes, request: Request) -> bytes:
        """One line of an input file."""
        record = {
            "custom_id": key.hex(),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": self.client.body(request),
        }
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    def reason(self, key: bytes) -> str:
        return f"gave up after {ROUNDS} batches: {self.failures.get(key, 'no line came back for it')}"

    def submit(self, lines: IO[bytes], keys: set[bytes], max_lines: int, max_bytes: int) -> None:
        """Put the lines of ``keys`` into as many batches as the limits ask for."""
        with closing(self.client.sync_client()) as api:
            lines.seek(0)
            more: bytes | None = next(lines, None)
            while more is not None:
                count, size, digest = 0, 0, hashlib.sha256()
                with tempfile.TemporaryFile(prefix="factaudit-batch-") as part:
                    while more is not None and count < max_lines and (count == 0 or size + len(more) <= max_bytes):
                        key = _key_of(more)
                        if key in keys:
                            part.write(more)
                            digest.update(key)
                            count, size = count + 1, size + len(more)
                        more = next(lines, None)
                    if count:
                        part.seek(0)
                        # The time makes a second batch with the same lines another batch.
                        digest.update(str(time.time_ns()).encode())
                        self._create(api, part, digest.hexdigest())

    def _create(self, api: OpenAI, part: IO[bytes], digest: str) -> None:
        import openai

        self.cache.add_batch(digest, self.client.server(), self.client.model)
        try:
            uploaded = api.files.create(file=("factaudit.jsonl", part), purpose="batch")
            try:
                # Not repeated by the SDK: a repeated POST could submit twice.
                batch_id = (
                    api.with_options(max_retries=0)
                    .batches.create(
                        input_file_id=uploaded.id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={_TAG: digest},
                    )
                    .id
                )
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                found = _find(api, digest)
                if found is None:
                    raise FactauditError(f"{self.client.server()}: the batch was not submitted: {error}") from error
                batch_id = found
        except openai.APIStatusError as error:
            self.cache.drop_batch(digest)
            self._refused(error)
        self.cache.name_batch(digest, batch_id)

    def _refused(self, error: Any) -> None:
        self.client.read(error.response.status_code, error.response.headers, error.response.text)
        raise FactauditError(f"{self.client.server()} refuses the batch: HTTP {error.response.status_code}")

    def wait(self) -> None:
        """Wait until every open batch has ended, collecting each as it does."""
        import openai
        from tqdm import tqdm

        server, model = self.client.server(), self.client.model
        with closing(self.client.sync_client()) as api:
            for digest, batch_id in self.cache.open_batches(server, model).items():
                if batch_id is None:
                    # Killed between the note and the server's answer: the server knows whether it was submitted.
                    if (found := _find(api, digest)) is None:
                        self.cache.drop_batch(digest)
                    else:
                        self.cache.name_batch(digest, found)
            with tqdm(desc="batches", unit="request", disable=None if self.progress else True) as bar:
                done = 0
                while open_ := self.cache.open_batches(server, model):
                    counted, total = 0, 0
                    for digest, batch_id in open_.items():
                        assert batch_id is not None
                        try:
                            batch = api.batches.retrieve(batch_id)
                        except openai.NotFoundError:
                            _log.warning("batch %s is unknown to %s: its lines are submitted again", batch_id, server)
                            self.cache.drop_batch(digest)
                            continue
                        counts = batch.request_counts
                        counted += counts.completed + counts.failed if counts else 0
                        total += counts.total if counts else 0
                        if batch.status in _ENDED:
                            self._collect(api, batch)
                            self.cache.drop_batch(digest)
                    bar.total = max(bar.total or 0, done + total)
                    bar.n = max(bar.n, done + counted)
                    bar.refresh()
                    if self.cache.open_batches(server, model):
                        self._pause()

    def _pause(self) -> None:
        until = time.monotonic() + self.poll
        while (left := until - time.monotonic()) > 0:
            if self.stopped():
                raise Stopped
            time.sleep(min(left, 0.5))

    def _collect(self, api: OpenAI, batch: Any) -> None:
        if batch.status in ("failed", "cancelled") and not (batch.output_file_id or batch.error_file_id):
            told = "; ".join(str(error.message) for error in (batch.errors.data or ())) if batch.errors else ""
            for digest, batch_id in self.cache.open_batches(self.client.server(), self.client.model).items():
                if batch_id == batch.id:
                    self.cache.drop_batch(digest)
            raise FactauditError(
                f"{self.client.server()}: batch {batch.id} {batch.status}: {told or 'no reason given'}"
            )
        for name in filter(None, (batch.output_file_id, batch.error_file_id)):
            with api.files.with_streaming_response.content(name) as response:
                for line in _lines(response.iter_bytes()):
                    if line.strip():
                        self._result(line)

    def _result(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            key = bytes.fromhex(record["custom_id"])
            response, error = record.get("response"), record.get("error")
            status = int(response["status_code"]) if response else 0
            body = response["body"] if response else None
        except (ValueError, TypeError, LookupError):
            _log.warning("a line of the results cannot be read: %.200r", line)
            return
        if not response:
            self.failures[key] = str((error or {}).get("message") or "no response")
            if (send := self.sends.pop(key, None)) is not None:
                self.client.budget.ledger.settle(send, NOT_BILLED)
            return
        answer = self.client.read(status, {}, body if isinstance(body, str) else json.dumps(body))
        send = self.sends.pop(key, None) or self.client.budget.ledger.find(key)
        ledger = self.client.budget.ledger
        if isinstance(answer, Reply) and answer.status in KEPT:
            if self.cache.get(key) is None:
                send = send or ledger.open(self.client.usage.account, *self.bounds.get(key, (0, None)), key=key)
                assert send is not None, "without a limit it is always written"
                self.client.keep(key, send, answer, BATCH_DISCOUNT)
            self.collected.add(key)
        elif send is not None:
            # An answer that is none was paid for, up to what it can have cost.
            ledger.settle(send, "dropped" if isinstance(answer, Failure) and answer.malformed else NOT_BILLED)
        if isinstance(answer, Failure):
            self.failures[key] = answer.reason
        elif answer.status not in KEPT:
            self.final[key] = answer


def _find(api: OpenAI, digest: str) -> str | None:
    """The id of the batch that carries ``digest``; the newest come first."""
    for batch in api.batches.list(limit=100):
        if (batch.metadata or {}).get(_TAG) == digest:
            return batch.id
    return None


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in a newline and nothing else: a reply may hold any of Unicode's other line ends."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    yield rest


def _key_of(line: bytes) -> bytes:
    start = line.index(b'"custom_id": "') + len(b'"custom_id": "')
    return bytes.fromhex(line[start : start + 64].decode())
