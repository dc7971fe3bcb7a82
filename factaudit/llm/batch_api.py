"""How are requests sent through OpenAI's Batch API? At half the price, within a day: another way to
fill the store.

Limits and shapes as documented at developers.openai.com/api/reference/resources/batches: a file
holds at most 50,000 requests and 200 MB; each line has a ``custom_id`` (here the store's key);
results come in any order, in a file of outputs and a file of errors. A batch is noted in the store,
and its lines are begun there, before it is submitted, under a digest that is also put into the
batch's metadata; so a run that was killed at any point finds its batches again and submits none of
them twice. Runs that share a store wait only for batches that hold lines of theirs.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
import uuid
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import BATCH_DISCOUNT
from factaudit.llm.reply import fail_cut_prompt
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.stop_signals import is_stopping
from factaudit.llm.store import DROPPED, KEPT_STATUSES, NOT_BILLED, Send
from factaudit.text.progress_lines import progress_bar

if TYPE_CHECKING:
    from openai import OpenAI

    from factaudit.llm.client import LLMClient

#: Documented limits of one input file; the size with a margin.
MAX_BATCH_LINES = 50_000
MAX_BATCH_BYTES = 190_000_000
#: Lines that failed in a way that may pass are submitted again so many times.
MAX_ROUNDS = 3
#: Seconds between two looks at the batches.
POLL_SECONDS = 30.0
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
    reply_without_request: ChatReply | None = None,
) -> Generator[tuple[_Item, ChatReply], None, None]:
    """Yield ``(item, reply)``: what is kept at once, the rest when its batch has ended.

    ``item_requests`` is read lazily; prompts go straight to a file on disk and only items and keys
    stay in memory. An item whose request is None gets ``reply_without_request``. Raises
    `FactauditError` where the server refuses a batch as a whole, and `BatchWaitInterrupt` after a
    signal.
    """
    with ExitStack() as stack:
        prompts = stack.enter_context(tempfile.TemporaryFile(prefix="factaudit-batch-"))
        batches = _Batches(client, stack, prompts)
        for item, request in item_requests:
            key = None if request is None else client.request_key(request)
            reply = reply_without_request if key is None else batches.store.get(key)
            if key in batches.lines:
                batches.lines[key].items.append(item)
            elif reply is not None:
                yield item, reply
            elif key is not None and request is not None:
                batches.add(item, key, request)
        for number in range(MAX_ROUNDS):
            missing = batches.list_missing()
            if number and missing:
                _log.warning(
                    "%d lines of the last batches failed: submitting them again", len(missing)
                )
            for line in missing:
                batches.place(line)
            batches.submit()
            batches.wait()
        batches.list_missing()
        for line in batches.lines.values():
            reply = line.reply or ChatReply(
                "error", error=f"gave up after {MAX_ROUNDS} batches: {line.failure}"
            )
            for item in line.items:
                yield item, reply
                reply = replace(reply, cached=reply.status in KEPT_STATUSES)  # of an equal request


@dataclass(slots=True)
class _Line:
    """A request: for which items, where its line stands in the file of prompts, and what came of
    it."""

    items: list[Any]
    send: Send
    start: int
    size: int
    reply: ChatReply | None = None
    failure: str = "no line came back for it"


class _Batches:
    """The batches that hold lines of one run."""

    def __init__(self, client: LLMClient, stack: ExitStack, prompts: IO[bytes]) -> None:
        assert client.cache is not None, "the Batch API needs the cache"
        self.client, self.store = client, client.cache
        self.lines: dict[bytes | None, _Line] = {}
        self._stack = stack
        self._prompts = prompts
        self._digest, self._part, self._part_bytes = "", list[_Line](), 0  # the next batch
        self._awaited: set[str] = set()
        self._own: set[str] = set()

    @cached_property
    def api(self) -> OpenAI:
        """The server; where all is kept it needs no key."""
        return self._stack.enter_context(closing(self.client.make_sync_client()))

    def add(self, item: Any, key: bytes, request: ChatRequest) -> None:
        """Write a request down, to be placed."""
        text = _encode_line(key, self.client.request_body(request))
        send = self.client.make_send(key, request, BATCH_DISCOUNT)
        self.lines[key] = _Line([item], send, self._prompts.seek(0, 2), len(text))
        self._prompts.write(text)

    def place(self, line: _Line) -> None:
        """Make a request a line of the next batch, unless it stands in one already that is not
        collected: of a run that was killed, or of another one."""
        if (digest := self.store.find_batch_of(line.send.key)) is not None:
            self._awaited.add(digest)
            return
        if len(self._part) >= MAX_BATCH_LINES or self._part_bytes + line.size > MAX_BATCH_BYTES:
            self.submit()
        if not self._part:
            self._digest = uuid.uuid4().hex
        line.send = replace(line.send, batch=self._digest)
        state = self.client.budget.begin(self.store, line.send)
        if state == "send":
            self._part.append(line)
            self._part_bytes += line.size
        else:
            line.reply = (
                state if isinstance(state, ChatReply) else self.client.make_over_limit_reply()
            )

    def submit(self) -> None:
        """Send what was added since the last time as one batch."""
        import openai

        if not self._part:
            return
        digest, part = self._digest, self._part
        self._part, self._part_bytes = [], 0
        self._awaited.add(digest)
        self._own.add(digest)
        with tempfile.TemporaryFile(prefix="factaudit-batch-") as lines:
            for line in part:
                # What the model refuses may be known since it was written.
                body = self.client.refused_params.adapt_body(self._read_body(line))
                lines.write(_encode_line(line.send.key, body))
            lines.seek(0)
            try:
                uploaded = self.api.files.create(file=("factaudit.jsonl", lines), purpose="batch")
                batch_id = self._submit_file(uploaded.id, digest)
            except openai.APIStatusError as error:
                self.store.drop_batch(digest, NOT_BILLED)
                answer = error.response
                self.client.parse_http_answer(answer.status_code, answer.headers, answer.text)
                raise FactauditError(
                    f"{self.client.server_address} refuses the batch: HTTP {answer.status_code}"
                ) from error
        self.store.name_batch(digest, batch_id)

    def _submit_file(self, file_id: str, digest: str) -> str:
        import openai

        try:
            # Not repeated by the SDK: a repeated POST could submit twice.
            batch = self.api.with_options(max_retries=0).batches.create(
                input_file_id=file_id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={_DIGEST_KEY: digest},
            )
        except (openai.APIConnectionError, openai.InternalServerError) as error:
            if (found := self._find_submitted(digest)) is None:
                raise FactauditError(
                    f"{self.client.server_address}: the batch was not submitted: {error}"
                ) from error
            return found
        return batch.id

    def _read_body(self, line: _Line) -> dict[str, Any]:
        self._prompts.seek(line.start)
        return json.loads(self._prompts.read(line.size))["body"]

    def wait(self) -> None:
        """Wait until every batch with lines of this run has ended, collecting each as it does."""
        with progress_bar("batches", "request") as bar:
            while self._awaited:
                counted, bar.total = 0, 0
                for digest in sorted(self._awaited):
                    batch = self._retrieve(digest)
                    if batch is not None and (counts := batch.request_counts):
                        counted += counts.completed + counts.failed
                        bar.total += counts.total
                    if batch is not None and batch.status in _ENDED_STATUSES:
                        self._collect(batch, digest)
                bar.update(max(0, counted - bar.n))
                until = time.monotonic() + POLL_SECONDS
                while self._awaited and (left := until - time.monotonic()) > 0:
                    if is_stopping():
                        raise BatchWaitInterrupt
                    time.sleep(min(left, 0.5))

    def _retrieve(self, digest: str) -> Any:
        """The server's record of a batch. None where there is none: yet, because another process is
        about to submit it; or any more, and then it is no longer awaited."""
        import openai

        noted = self.store.find_batch_id(digest)
        if noted is None:  # another process has collected it
            self._awaited.discard(digest)
            return None
        batch_id, has_submitter_ended = noted
        if batch_id is None:
            if not has_submitter_ended:
                return None
            # Killed between the note and the server's answer: the server knows whether it was
            # submitted.
            if (batch_id := self._find_submitted(digest)) is None:
                self._drop(digest, NOT_BILLED)
                return None
            self.store.name_batch(digest, batch_id)
        try:
            return self.api.batches.retrieve(batch_id)
        except openai.NotFoundError:
            server = self.client.server_address
            _log.warning(
                "batch %s is unknown to %s: its lines are submitted again", batch_id, server
            )
            self._drop(digest, DROPPED)
            return None

    def _find_submitted(self, digest: str) -> str | None:
        """The id of the batch that carries a digest; the newest come first."""
        every = self.api.batches.list(limit=100)
        return next(
            (batch.id for batch in every if (batch.metadata or {}).get(_DIGEST_KEY) == digest), None
        )

    def _drop(self, digest: str, status: str) -> None:
        self.store.drop_batch(digest, status)
        self._awaited.discard(digest)

    def _collect(self, batch: Any, digest: str) -> None:
        results = [name for name in (batch.output_file_id, batch.error_file_id) if name]
        if batch.status in ("failed", "cancelled") and not results:
            told = (
                "; ".join(str(error.message) for error in batch.errors.data or ())
                if batch.errors
                else ""
            )
            self._drop(digest, NOT_BILLED)
            message = (
                f"{self.client.server_address}: batch {batch.id} {batch.status}:"
                f" {told or 'no reason given'}"
            )
            if digest in self._own:
                raise FactauditError(message)
            _log.warning("%s: another run submitted it, its lines are submitted again", message)
            return
        least_tokens = self.store.list_batch_lines(digest)
        for name in results:
            # A line ends in a newline and nothing else: a reply may hold any of Unicode's other
            # line ends.
            for text in self.api.files.content(name).content.split(b"\n"):
                if text.strip():
                    self._collect_line(text, digest, least_tokens)
        # Of a line that nothing came back for nobody knows what it cost.
        self._drop(digest, DROPPED)

    def _collect_line(self, text: bytes, digest: str, least_tokens: Mapping[bytes, int]) -> None:
        record = parse_json_file_text(text)
        key, response, error = (
            bytes.fromhex(record["custom_id"]),
            record.get("response"),
            record.get("error") or {},
        )
        line = self.lines.get(key)
        answer: ChatReply | ServerAttemptFailure = ServerAttemptFailure(
            str(error.get("message") or "no response")
        )
        if response:
            status, body = int(response["status_code"]), response["body"]
            said = body if isinstance(body, str) else json.dumps(body)
            answer = self.client.parse_http_answer(
                status, {}, said, sent_params=self._read_body(line) if line else ()
            )
        if isinstance(answer, ChatReply):
            answer = fail_cut_prompt(answer, least_tokens.get(key, 0))
        else:
            self.client.refused_params.add(answer.refused_params)
        send = replace(line.send if line else Send(key), batch=digest)
        is_ours = self.client.settle(send, answer, BATCH_DISCOUNT)
        if line is not None and isinstance(answer, ServerAttemptFailure):
            line.failure = answer.reason
        elif line is not None and line.reply is None and isinstance(answer, ChatReply):
            is_kept = answer.status in KEPT_STATUSES
            line.reply = replace(
                answer, cached=is_kept and not is_ours
            )  # another run has paid for it

    def list_missing(self) -> list[_Line]:
        """Those without a reply; another process may have collected some."""
        missing = [line for line in self.lines.values() if line.reply is None]
        for line, reply in zip(
            missing, self.store.get_many([line.send.key for line in missing]), strict=True
        ):
            line.reply = reply
        return [line for line in missing if line.reply is None]


def _encode_line(key: bytes, body: Mapping[str, Any]) -> bytes:
    """One line of an input file."""
    record = {"custom_id": key.hex(), "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(record).encode() + b"\n"
