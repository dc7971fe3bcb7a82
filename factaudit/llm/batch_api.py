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
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import BATCH_DISCOUNT, count_prompt_tokens
from factaudit.llm.ledger import NOT_BILLED
from factaudit.llm.reply_cache import KEPT_STATUSES, ReplyCache
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.stop_signals import is_stopping
from factaudit.text.progress_lines import ProgressLines

if TYPE_CHECKING:
    from openai import OpenAI

    from factaudit.llm.client import LLMClient

#: Documented limits of one input file; the size with a margin.
MAX_BATCH_LINES = 50_000
MAX_BATCH_BYTES = 190_000_000
#: Lines that failed in a way that may pass are submitted again so many times.
MAX_ROUNDS = 3
#: Where the digest stands in a batch's metadata.
_DIGEST_KEY = "factaudit"
_ENDED_STATUSES = ("completed", "failed", "expired", "cancelled")

_log = logging.getLogger("factaudit.batch")
_Item = TypeVar("_Item")


class BatchWaitInterrupt(Exception):
    """Nobody waits any more. The batches go on, and the next run collects them."""


def ask_through_batch_api(
    client: LLMClient,
    item_requests: Iterable[tuple[_Item, ChatRequest | None]],
    *,
    reply_without_request: ChatReply | None = None,
    poll_seconds: float = 30.0,
    max_lines: int = MAX_BATCH_LINES,
    max_bytes: int = MAX_BATCH_BYTES,
    show_progress: bool = True,
    is_stopped: Callable[[], bool] = is_stopping,
) -> Iterator[tuple[_Item, ChatReply]]:
    """Yield ``(item, reply)``: what is cached at once, the rest when its batch has ended.

    ``item_requests`` is read lazily; prompts go straight to a file on disk and only items and keys stay in memory. An
    item whose request is None gets ``reply_without_request``. ``poll_seconds`` is the number of seconds between two
    looks at the batches. Raises `FactauditError` where the server refuses a batch as a whole, and `BatchWaitInterrupt`
    once ``is_stopped`` says so.
    """
    assert client.cache is not None, "the Batch API needs the cache"
    run = _BatchRun(client, client.cache, poll_seconds, show_progress, is_stopped)
    with ExitStack() as stack:
        if run.cache.list_open_batches(client.server_address(), client.model):
            run.wait_for_batches()
        waiting: dict[bytes, list[_Item]] = {}
        lines = stack.enter_context(tempfile.TemporaryFile(prefix="factaudit-batch-"))
        for item, request in item_requests:
            if request is None:
                assert reply_without_request is not None
                yield item, reply_without_request
                continue
            key = client.request_key(request)
            if key in waiting:
                waiting[key].append(item)
                client.usage.count_cached_calls()
            elif (cached := client.find_cached_replies([request])[0]) is not None:
                # Counted as a call when its batch was collected, so not once more as a cached one.
                client.usage.count_cached_calls(-(key in run.collected_keys))
                yield item, cached
            else:
                reply = run.reserve_cost(key, request)
                if reply is not None:
                    yield item, reply
                    continue
                waiting[key] = [item]
                lines.write(run.make_input_line(key, request))
        for round_number in range(MAX_ROUNDS):
            todo = run.list_missing_keys(waiting)
            if not todo:
                break
            if round_number:
                todo = [key for key in todo if key in run.open_sends or run._open_send(key)]
                _log.warning("%d lines of the last batches failed: submitting them again", len(todo))
            run.submit_batches(lines, set(todo), max_lines, max_bytes)
            run.wait_for_batches()
        for key, items in waiting.items():
            reply = (
                run.final_replies.get(key) or client.cache.get(key) or ChatReply("error", error=run.format_failure(key))
            )
            for item in items:
                yield item, reply
            run.settle_without_reply(key)


@dataclass
class _BatchRun:
    client: LLMClient
    cache: ReplyCache
    poll_seconds: float
    show_progress: bool
    is_stopped: Callable[[], bool]
    final_replies: dict[bytes, ChatReply] = field(default_factory=dict)  # answers that are no reply to keep
    collected_keys: set[bytes] = field(default_factory=set)
    failure_reasons: dict[bytes, str] = field(default_factory=dict)
    open_sends: dict[bytes, int] = field(default_factory=dict)  # the ledger's numbers of lines that are not settled
    cost_bounds: dict[bytes, tuple[int, float | None]] = field(default_factory=dict)  # tokens of the prompt, most cost

    def list_missing_keys(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those without an answer; another process, or another client here, may have collected some."""
        left = [key for key in keys if key not in self.final_replies and key not in self.collected_keys]
        return [key for key, reply in zip(left, self.cache.get_many(left), strict=True) if reply is None]

    def reserve_cost(self, key: bytes, request: ChatRequest) -> ChatReply | None:
        """Write into the ledger what a line may cost; the reply that says so where the limit would be passed."""
        most = self.client.budget.most_cost(self.client.model_price(), request)
        self.cost_bounds[key] = count_prompt_tokens(request), None if most is None else BATCH_DISCOUNT * most
        return None if self._open_send(key) else self.client.make_over_limit_reply()

    def _open_send(self, key: bytes) -> bool:
        budget, account = self.client.budget, self.client.usage.account
        # A run that was killed has written it down already.
        send = budget.ledger.find_open_send(key) or budget.try_open_send(account, *self.cost_bounds[key], key=key)
        if send:
            self.open_sends[key] = send
        return bool(send)

    def settle_without_reply(self, key: bytes) -> None:
        """Settle a line of which nothing can be kept. Where nothing came back for it, nobody knows what it cost."""
        if (send := self.open_sends.pop(key, None)) is not None:
            self.client.budget.ledger.settle_send(send, NOT_BILLED if key in self.final_replies else "dropped")

    def make_input_line(self, key: bytes, request: ChatRequest) -> bytes:
        """One line of an input file."""
        record = {
            "custom_id": key.hex(),
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": self.client.request_body(request),
        }
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"

    def format_failure(self, key: bytes) -> str:
        return f"gave up after {MAX_ROUNDS} batches: {self.failure_reasons.get(key, 'no line came back for it')}"

    def submit_batches(self, lines: IO[bytes], keys: set[bytes], max_lines: int, max_bytes: int) -> None:
        """Put the lines of ``keys`` into as many batches as the limits ask for."""
        with closing(self.client.make_sync_client()) as api:
            lines.seek(0)
            more: bytes | None = next(lines, None)
            while more is not None:
                count, size, digest = 0, 0, hashlib.sha256()
                with tempfile.TemporaryFile(prefix="factaudit-batch-") as part:
                    while more is not None and count < max_lines and (count == 0 or size + len(more) <= max_bytes):
                        key = _parse_line_key(more)
                        if key in keys:
                            part.write(more)
                            digest.update(key)
                            count, size = count + 1, size + len(more)
                        more = next(lines, None)
                    if count:
                        part.seek(0)
                        # The time makes a second batch with the same lines another batch.
                        digest.update(str(time.time_ns()).encode())
                        self._create_batch(api, part, digest.hexdigest())

    def _create_batch(self, api: OpenAI, input_file: IO[bytes], digest: str) -> None:
        import openai

        self.cache.add_batch(digest, self.client.server_address(), self.client.model)
        try:
            uploaded = api.files.create(file=("factaudit.jsonl", input_file), purpose="batch")
            try:
                # Not repeated by the SDK: a repeated POST could submit twice.
                batch_id = (
                    api.with_options(max_retries=0)
                    .batches.create(
                        input_file_id=uploaded.id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={_DIGEST_KEY: digest},
                    )
                    .id
                )
            except (openai.APIConnectionError, openai.InternalServerError) as error:
                found = _find_batch_id(api, digest)
                if found is None:
                    raise FactauditError(
                        f"{self.client.server_address()}: the batch was not submitted: {error}"
                    ) from error
                batch_id = found
        except openai.APIStatusError as error:
            self.cache.drop_batch(digest)
            self._raise_refusal(error)
        self.cache.name_batch(digest, batch_id)

    def _raise_refusal(self, error: Any) -> None:
        self.client.parse_http_answer(error.response.status_code, error.response.headers, error.response.text)
        raise FactauditError(f"{self.client.server_address()} refuses the batch: HTTP {error.response.status_code}")

    def wait_for_batches(self) -> None:
        """Wait until every open batch has ended, collecting each as it does."""
        import openai
        from tqdm import tqdm

        server, model = self.client.server_address(), self.client.model
        with closing(self.client.make_sync_client()) as api:
            for digest, batch_id in self.cache.list_open_batches(server, model).items():
                if batch_id is None:
                    # Killed between the note and the server's answer: the server knows whether it was submitted.
                    if (found := _find_batch_id(api, digest)) is None:
                        self.cache.drop_batch(digest)
                    else:
                        self.cache.name_batch(digest, found)
            with tqdm(desc="batches", unit="request", disable=None if self.show_progress else True) as bar:
                lines = ProgressLines("batches", "requests", shown=self.show_progress)
                done = 0
                while open_ := self.cache.list_open_batches(server, model):
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
                        if batch.status in _ENDED_STATUSES:
                            self._collect_batch(api, batch)
                            self.cache.drop_batch(digest)
                    bar.total = max(bar.total or 0, done + total)
                    bar.n = max(bar.n, done + counted)
                    bar.refresh()
                    lines.show(bar.n, bar.total)
                    if self.cache.list_open_batches(server, model):
                        self._sleep_until_poll()

    def _sleep_until_poll(self) -> None:
        until = time.monotonic() + self.poll_seconds
        while (left := until - time.monotonic()) > 0:
            if self.is_stopped():
                raise BatchWaitInterrupt
            time.sleep(min(left, 0.5))

    def _collect_batch(self, api: OpenAI, batch: Any) -> None:
        if batch.status in ("failed", "cancelled") and not (batch.output_file_id or batch.error_file_id):
            told = "; ".join(str(error.message) for error in (batch.errors.data or ())) if batch.errors else ""
            for digest, batch_id in self.cache.list_open_batches(
                self.client.server_address(), self.client.model
            ).items():
                if batch_id == batch.id:
                    self.cache.drop_batch(digest)
            raise FactauditError(
                f"{self.client.server_address()}: batch {batch.id} {batch.status}: {told or 'no reason given'}"
            )
        for name in filter(None, (batch.output_file_id, batch.error_file_id)):
            with api.files.with_streaming_response.content(name) as response:
                for line in _split_batch_result_lines(response.iter_bytes()):
                    if line.strip():
                        self._collect_result_line(line)

    def _collect_result_line(self, line: bytes) -> None:
        try:
            record = parse_json_file_text(line)
            key = bytes.fromhex(record["custom_id"])
            response, error = record.get("response"), record.get("error")
            status = int(response["status_code"]) if response else 0
            body = response["body"] if response else None
        except (ValueError, TypeError, LookupError):
            _log.warning("a line of the results cannot be read: %.200r", line)
            return
        if not response:
            self.failure_reasons[key] = str((error or {}).get("message") or "no response")
            if (send := self.open_sends.pop(key, None)) is not None:
                self.client.budget.ledger.settle_send(send, NOT_BILLED)
            return
        answer = self.client.parse_http_answer(status, {}, body if isinstance(body, str) else json.dumps(body))
        send = self.open_sends.pop(key, None) or self.client.budget.ledger.find_open_send(key)
        ledger = self.client.budget.ledger
        if isinstance(answer, ChatReply) and answer.status in KEPT_STATUSES:
            if self.cache.get(key) is None:
                send = send or ledger.open_send(
                    self.client.usage.account, *self.cost_bounds.get(key, (0, None)), key=key
                )
                assert send is not None, "without a limit it is always written"
                # A batch that an earlier version submitted has keys without a server.
                asked = key in self.cost_bounds
                self.client.keep_paid_reply(key, send, answer, BATCH_DISCOUNT, is_server_in_key=asked)
            self.collected_keys.add(key)
        elif send is not None:
            # An answer that is none was paid for, up to what it can have cost.
            ledger.settle_send(
                send, "dropped" if isinstance(answer, ServerAttemptFailure) and answer.malformed else NOT_BILLED
            )
        if isinstance(answer, ServerAttemptFailure):
            self.failure_reasons[key] = answer.reason
        elif answer.status not in KEPT_STATUSES:
            self.final_replies[key] = answer


def _find_batch_id(api: OpenAI, digest: str) -> str | None:
    """The id of the batch that carries ``digest``; the newest come first."""
    for batch in api.batches.list(limit=100):
        if (batch.metadata or {}).get(_DIGEST_KEY) == digest:
            return batch.id
    return None


def _split_batch_result_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in a newline and nothing else: a reply may hold any of Unicode's other line ends."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    yield rest


def _parse_line_key(line: bytes) -> bytes:
    start = line.index(b'"custom_id": "') + len(b'"custom_id": "')
    return bytes.fromhex(line[start : start + 64].decode())
