"""How are requests sent through OpenAI's Batch API? At half the price, within a day: another way to fill the store.

Limits and shapes as documented at developers.openai.com/api/reference/resources/batches: a file holds at most 50,000
requests and 200 MB; each line has a ``custom_id`` (here the store's key); results come in any order, in a file of
outputs and a file of errors. A batch is noted in the store, and its lines are begun there, before it is submitted,
under a digest that is also put into the batch's metadata; so a run that was killed at any point finds its batches again
and submits none of them twice. Runs that share a store wait only for batches that hold lines of theirs.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import BATCH_DISCOUNT
from factaudit.llm.prompt_cuts import fail_cut_prompt
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.stop_signals import is_stopping
from factaudit.llm.store import KEPT_STATUSES, NOT_BILLED, Send
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
    """Yield ``(item, reply)``: what is kept at once, the rest when its batch has ended.

    ``item_requests`` is read lazily; prompts go straight to a file on disk and only items and keys stay in memory. An
    item whose request is None gets ``reply_without_request``. ``poll_seconds`` is the number of seconds between two
    looks at the batches. Raises `FactauditError` where the server refuses a batch as a whole, and `BatchWaitInterrupt`
    once ``is_stopped`` says so.
    """
    waiting: dict[bytes, list[_Item]] = {}
    with ExitStack() as stack:
        prompts = stack.enter_context(tempfile.TemporaryFile(prefix="factaudit-batch-"))
        batches = _Batches(client, stack, prompts, max_lines, max_bytes)
        for item, request in item_requests:
            if request is None:
                assert reply_without_request is not None
                yield item, reply_without_request
                continue
            key = client.request_key(request)
            if key in waiting:
                waiting[key].append(item)
                client.usage.count_cached_calls()
            elif (reply := client.find_cached_replies([request])[0] or batches.add(key, request)) is not None:
                yield item, reply
            else:
                waiting[key] = [item]
        batches.submit()
        # What was in the batch of another run at first was no round of this one.
        rounds_left = MAX_ROUNDS - 1 + batches.began_with_others
        while True:
            batches.wait(poll_seconds, show_progress, is_stopped)
            missing = batches.list_missing(waiting)
            if not missing or not rounds_left:
                break
            rounds_left -= 1
            _log.warning("%d lines of the last batches failed: submitting them again", len(missing))
            for key in missing:
                batches.add_again(key)
            batches.submit()
        for key, items in waiting.items():
            reply = batches.find_reply(key)
            for item in items:
                yield item, reply


class _Batches:
    """The batches that hold lines of one run.

    Its lines stand in the file ``prompts``, each at a known place; ``failures`` says of those without a reply why.
    """

    def __init__(self, client: LLMClient, stack: ExitStack, prompts: IO[bytes], max_lines: int, max_bytes: int) -> None:
        assert client.cache is not None, "the Batch API needs the cache"
        self.client, self.store = client, client.cache
        self.began_with_others = False
        self._stack = stack
        self._prompts = prompts
        self._max_lines, self._max_bytes = max_lines, max_bytes
        self._places: dict[bytes, tuple[int, int]] = {}
        self._sends: dict[bytes, Send] = {}
        self._part: list[bytes] = []  # the keys of the next batch
        self._part_bytes = 0
        self._digest = ""
        self._awaited: set[str] = set()
        self._own: set[str] = set()
        self._collected: set[bytes] = set()
        self._answers: dict[bytes, ChatReply] = {}  # answers that are no reply to keep
        self._failures: dict[bytes, str] = {}

    @cached_property
    def api(self) -> OpenAI:
        """The server; where all is kept it needs no key."""
        return self._stack.enter_context(closing(self.client.make_sync_client()))

    def add(self, key: bytes, request: ChatRequest) -> ChatReply | None:
        """Make a request a line of the next batch, or wait for the batch that has it; else the reply that says why
        neither can be."""
        send = self.client.make_send(key, request, BATCH_DISCOUNT)
        self._sends[key] = send
        line = _encode_line(key, self.client.request_body(request))
        self._places[key] = self._prompts.seek(0, 2), len(line)
        self._prompts.write(line)
        if (digest := self.store.find_batch_of(key)) is not None and digest != self._digest:
            # Submitted already: by a run that was killed, or by another one.
            self._awaited.add(digest)
            self.began_with_others = True
            return None
        return self._begin(key)

    def add_again(self, key: bytes) -> None:
        """Make a line that has failed one of the next batch."""
        if (digest := self.store.find_batch_of(key)) is not None and digest != self._digest:
            self._awaited.add(digest)
        elif (reply := self._begin(key)) is not None:
            self._answers[key] = reply

    def _begin(self, key: bytes) -> ChatReply | None:
        size = self._places[key][1]
        if self._part and (len(self._part) >= self._max_lines or self._part_bytes + size > self._max_bytes):
            self.submit()
        if not self._part:
            self._digest = uuid.uuid4().hex
        send = self._sends[key] = replace(self._sends[key], batch=self._digest)
        state = self.client.budget.begin(self.store, send)
        if isinstance(state, ChatReply):
            return state
        if state != "send":
            return self.client.make_over_limit_reply()
        self._part.append(key)
        self._part_bytes += size
        return None

    def submit(self) -> None:
        """Send what was added since the last time as one batch."""
        import openai

        if not self._part:
            return
        digest, keys = self._digest, self._part
        self._digest, self._part, self._part_bytes = "", [], 0
        self._awaited.add(digest)
        self._own.add(digest)
        with tempfile.TemporaryFile(prefix="factaudit-batch-") as lines:
            for key in keys:
                line = self._read_line(key)
                if self.client.refused_params.names:
                    line = _encode_line(key, self.client.refused_params.adapt_body(json.loads(line)["body"]))
                lines.write(line)
            lines.seek(0)
            try:
                uploaded = self.api.files.create(file=("factaudit.jsonl", lines), purpose="batch")
                try:
                    # Not repeated by the SDK: a repeated POST could submit twice.
                    batch = self.api.with_options(max_retries=0).batches.create(
                        input_file_id=uploaded.id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={_DIGEST_KEY: digest},
                    )
                    batch_id: str | None = batch.id
                except (openai.APIConnectionError, openai.InternalServerError) as error:
                    if (batch_id := self._find_submitted(digest)) is None:
                        address = self.client.server_address()
                        raise FactauditError(f"{address}: the batch was not submitted: {error}") from error
            except openai.APIStatusError as error:
                self.store.drop_batch(digest, NOT_BILLED)
                answer = error.response
                self.client.parse_http_answer(answer.status_code, answer.headers, answer.text)
                address = self.client.server_address()
                raise FactauditError(f"{address} refuses the batch: HTTP {answer.status_code}") from error
        self.store.name_batch(digest, batch_id or "")

    def _read_line(self, key: bytes) -> bytes:
        """A line as it was written; what the model has refused since is left out when it is sent."""
        place, size = self._places[key]
        self._prompts.seek(place)
        return self._prompts.read(size)

    def wait(self, poll_seconds: float, show_progress: bool, is_stopped: Callable[[], bool]) -> None:
        """Wait until every batch with lines of this run has ended, collecting each as it does."""
        from tqdm import tqdm

        if not self._awaited:
            return
        with tqdm(desc="batches", unit="request", disable=None if show_progress else True) as bar:
            lines = ProgressLines("batches", "requests", shown=show_progress)
            while True:
                counted, total = 0, 0
                for digest in sorted(self._awaited):
                    batch = self._retrieve(digest)
                    if batch is None:
                        continue
                    if counts := batch.request_counts:
                        counted += counts.completed + counts.failed
                        total += counts.total
                    if batch.status in _ENDED_STATUSES:
                        self._collect(batch, digest)
                bar.total, bar.n = max(bar.total or 0, total), max(bar.n, counted)
                bar.refresh()
                lines.show(bar.n, bar.total)
                if not self._awaited:
                    return
                until = time.monotonic() + poll_seconds
                while (left := until - time.monotonic()) > 0:
                    if is_stopped():
                        raise BatchWaitInterrupt
                    time.sleep(min(left, 0.5))

    def _retrieve(self, digest: str) -> Any:
        """The server's record of a batch. None where there is none: yet, because another process is about to submit it;
        or any more, and then it is no longer awaited."""
        import openai

        noted = self.store.find_batch_id(digest)
        if noted is None:  # another process has collected it
            self._awaited.discard(digest)
            return None
        batch_id, has_submitter_ended = noted
        if batch_id is None:
            if not has_submitter_ended:
                return None
            # Killed between the note and the server's answer: the server knows whether it was submitted.
            if (batch_id := self._find_submitted(digest)) is None:
                self._drop(digest, NOT_BILLED)
                return None
            self.store.name_batch(digest, batch_id)
        try:
            return self.api.batches.retrieve(batch_id)
        except openai.NotFoundError:
            server = self.client.server_address()
            _log.warning("batch %s is unknown to %s: its lines are submitted again", batch_id, server)
            self._drop(digest, "dropped")
            return None

    def _find_submitted(self, digest: str) -> str | None:
        """The id of the batch that carries a digest; the newest come first."""
        found = (batch.id for batch in self.api.batches.list(limit=100) if _read_digest(batch) == digest)
        return next(found, None)

    def _drop(self, digest: str, status: str) -> None:
        self.store.drop_batch(digest, status)
        self._awaited.discard(digest)

    def _collect(self, batch: Any, digest: str) -> None:
        if batch.status in ("failed", "cancelled") and not (batch.output_file_id or batch.error_file_id):
            told = "; ".join(str(error.message) for error in (batch.errors.data or ())) if batch.errors else ""
            self._drop(digest, NOT_BILLED)
            message = f"{self.client.server_address()}: batch {batch.id} {batch.status}: {told or 'no reason given'}"
            if digest in self._own:
                raise FactauditError(message)
            _log.warning("%s: another run submitted it, its lines are submitted again", message)
            return
        least_tokens = self.store.list_batch_lines(digest)
        for name in filter(None, (batch.output_file_id, batch.error_file_id)):
            with self.api.files.with_streaming_response.content(name) as response:
                for line in _split_lines(response.iter_bytes()):
                    if line.strip():
                        self._collect_line(line, digest, least_tokens)
        # Of a line that nothing came back for nobody knows what it cost.
        self._drop(digest, "dropped")

    def _collect_line(self, line: bytes, digest: str, least_tokens: Mapping[bytes, int]) -> None:
        try:
            record = parse_json_file_text(line)
            key = bytes.fromhex(record["custom_id"])
            response, error = record.get("response"), record.get("error")
            status = int(response["status_code"]) if response else 0
            body = response["body"] if response else None
        except (ValueError, TypeError, LookupError):
            _log.warning("a line of the results cannot be read: %.200r", line)
            return
        if response:
            text = body if isinstance(body, str) else json.dumps(body)
            answer = self.client.parse_http_answer(status, {}, text, sent_params=self._list_sent_params(key))
        else:
            answer = ServerAttemptFailure(str((error or {}).get("message") or "no response"))
        if isinstance(answer, ChatReply):
            answer = fail_cut_prompt(answer, least_tokens.get(key, 0))
        is_kept = isinstance(answer, ChatReply) and answer.status in KEPT_STATUSES
        # An answer that is none was paid for, up to what it can have cost.
        came_to_nothing = "dropped" if status == 200 else NOT_BILLED
        send = replace(self._sends.get(key, Send(key)), batch=digest)
        is_ours = self.client.settle(send, answer if is_kept else came_to_nothing, BATCH_DISCOUNT)
        if is_kept:
            if key in self._sends and not is_ours and key not in self._collected:
                self.client.usage.count_cached_calls()  # another run has paid for it
            self._collected.add(key)
        elif isinstance(answer, ServerAttemptFailure):
            self.client.refused_params.add(answer.refused_params)
            self._failures[key] = answer.reason
        else:
            self._answers[key] = answer

    def _list_sent_params(self, key: bytes) -> Iterable[str]:
        return json.loads(self._read_line(key))["body"] if key in self._places else ()

    def list_missing(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those without an answer; another process may have collected some."""
        left = [key for key in keys if key not in self._answers and key not in self._collected]
        return [key for key, reply in zip(left, self.store.get_many(left), strict=True) if reply is None]

    def find_reply(self, key: bytes) -> ChatReply:
        """What became of a line."""
        reason = self._failures.get(key, "no line came back for it")
        failed = ChatReply("error", error=f"gave up after {MAX_ROUNDS} batches: {reason}")
        return self._answers.get(key) or self.store.get(key) or failed


def _encode_line(key: bytes, body: Mapping[str, Any]) -> bytes:
    """One line of an input file."""
    record = {"custom_id": key.hex(), "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def _read_digest(batch: Any) -> str | None:
    return (batch.metadata or {}).get(_DIGEST_KEY)


def _split_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines that end in a newline and nothing else: a reply may hold any of Unicode's other line ends."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
    yield rest
