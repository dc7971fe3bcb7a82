"""How are requests sent through OpenAI's Batch API? At half the price, within a day.

Limits and shapes as documented at developers.openai.com/api/reference/resources/batches: a file holds at most 50,000
requests and 200 MB; each line has a ``custom_id`` (here the cache's key); results come in any order, in a file of
outputs and a file of errors. Before a batch is submitted it is noted in the cache with the keys of its lines, under a
digest that is also put into the batch's metadata; so a run that was killed at any point finds its batches again and
submits none of them twice. Runs that share a cache wait only for batches that hold lines of theirs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.files import parse_json_file_text
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import BATCH_DISCOUNT, count_prompt_tokens
from factaudit.llm.ledger import NOT_BILLED
from factaudit.llm.prompt_cuts import count_least_prompt_tokens, fail_cut_prompt
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
#: What evaluators and engines ask for.
_BODY_PARAMS = {
    *("temperature", "max_tokens", "max_completion_tokens", "logprobs", "top_logprobs", "seed", "stop", "top_p"),
    "response_format",
}
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
                yield item, cached
            elif (digest := run.cache.find_open_batch(key)) is not None:
                # Submitted already: by a run that was killed, or by another one.
                run.awaited.add(digest)
                run.submitted_keys.add(key)
                run.note_line(key, request)
                waiting[key] = [item]
                lines.write(run.make_input_line(key, request))
            else:
                run.note_line(key, request)
                reply = run.reserve_cost(key)
                if reply is not None:
                    yield item, reply
                    continue
                waiting[key] = [item]
                lines.write(run.make_input_line(key, request))
        for round_number in range(MAX_ROUNDS + bool(run.awaited)):
            missing = run.list_missing_keys(waiting)
            if not round_number:
                missing = [key for key in missing if key not in run.submitted_keys]
            # A line that failed, or was in a batch of others that failed, has nothing reserved any more.
            todo = [key for key in missing if key in run.open_sends or run.open_send(key)]
            if not todo and not run.awaited:
                break
            if round_number and todo:
                _log.warning("%d lines of the last batches failed: submitting them again", len(todo))
            if todo:
                run.submit_batches(lines, set(todo), max_lines, max_bytes)
            run.wait_for_batches()
        for key, items in waiting.items():
            reply = run.final_replies.get(key) or client.cache.get(key)
            if reply is None and key not in run.open_sends and key not in run.failure_reasons:
                reply = client.make_over_limit_reply()
            reply = reply or ChatReply("error", error=run.format_failure(key))
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
    least_tokens: dict[bytes, int] = field(default_factory=dict)  # of the prompt, whatever the tokenizer
    awaited: set[str] = field(default_factory=set)  # digests of the batches that hold lines of this run
    submitted_keys: set[bytes] = field(default_factory=set)  # lines that stand in such a batch from the beginning
    own: set[str] = field(default_factory=set)  # those of them that this run has submitted

    def list_missing_keys(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those without an answer; another process, or another client here, may have collected some."""
        left = [key for key in keys if key not in self.final_replies and key not in self.collected_keys]
        return [key for key, reply in zip(left, self.cache.get_many(left), strict=True) if reply is None]

    def note_line(self, key: bytes, request: ChatRequest) -> None:
        """Note what a line may cost, and how long its prompt is."""
        most = self.client.budget.most_cost(self.client.model_price(), request)
        self.cost_bounds[key] = count_prompt_tokens(request), None if most is None else BATCH_DISCOUNT * most
        self.least_tokens[key] = count_least_prompt_tokens(request)

    def reserve_cost(self, key: bytes) -> ChatReply | None:
        """Write into the ledger what a line may cost; the reply that says so where the limit would be passed."""
        return None if self.open_send(key) else self.client.make_over_limit_reply()

    def open_send(self, key: bytes) -> bool:
        """Write a line into the ledger; False where the limit does not allow it."""
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
        return _encode_line(record)

    def format_failure(self, key: bytes) -> str:
        return f"gave up after {MAX_ROUNDS} batches: {self.failure_reasons.get(key, 'no line came back for it')}"

    def submit_batches(self, lines: IO[bytes], keys: set[bytes], max_lines: int, max_bytes: int) -> None:
        """Put the lines of ``keys`` into as many batches as the limits ask for."""
        with closing(self.client.make_sync_client()) as api:
            lines.seek(0)
            more: bytes | None = next(lines, None)
            while more is not None:
                lines_of_part: list[bytes] = []
                count, size, digest = 0, 0, hashlib.sha256()
                with tempfile.TemporaryFile(prefix="factaudit-batch-") as part:
                    while more is not None and count < max_lines and (count == 0 or size + len(more) <= max_bytes):
                        key = _parse_line_key(more)
                        if key in keys:
                            line = self._drop_refused_params(more)
                            part.write(line)
                            digest.update(key)
                            lines_of_part.append(key)
                            count, size = count + 1, size + len(line)
                        more = next(lines, None)
                    if count:
                        part.seek(0)
                        # The time makes a second batch with the same lines another batch.
                        digest.update(str(time.time_ns()).encode())
                        self._create_batch(api, part, digest.hexdigest(), lines_of_part)

    def _drop_refused_params(self, line: bytes) -> bytes:
        """A line without what the model has refused since it was written."""
        if not self.client.refused_params.names:
            return line
        record = json.loads(line)
        record["body"] = self.client.refused_params.adapt_body(record["body"])
        return _encode_line(record)

    def _create_batch(self, api: OpenAI, input_file: IO[bytes], digest: str, keys: Sequence[bytes]) -> None:
        import openai

        self.cache.add_batch(digest, [(key, self.least_tokens[key]) for key in keys])
        self.awaited.add(digest)
        self.own.add(digest)
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
        """Wait until every batch with lines of this run has ended, collecting each as it does."""
        from tqdm import tqdm

        with (
            closing(self.client.make_sync_client()) as api,
            tqdm(desc="batches", unit="request", disable=None if self.show_progress else True) as bar,
        ):
            lines = ProgressLines("batches", "requests", shown=self.show_progress)
            done = 0
            while True:
                counted, total = 0, 0
                for digest in sorted(self.awaited):
                    batch = self._retrieve_batch(api, digest)
                    if batch is None:
                        continue
                    counts = batch.request_counts
                    counted += counts.completed + counts.failed if counts else 0
                    total += counts.total if counts else 0
                    if batch.status in _ENDED_STATUSES:
                        self._collect_batch(api, batch, digest)
                bar.total = max(bar.total or 0, done + total)
                bar.n = max(bar.n, done + counted)
                bar.refresh()
                lines.show(bar.n, bar.total)
                if not self.awaited:
                    return
                self._sleep_until_poll()

    def _retrieve_batch(self, api: OpenAI, digest: str) -> Any:
        """The server's record of a batch. None where there is none: yet, because another process is about to submit it;
        or any more, and then it is no longer awaited."""
        import openai

        noted = self.cache.find_batch_id(digest)
        if noted is None:  # another process has collected it
            self.awaited.discard(digest)
            return None
        batch_id, has_submitter_ended = noted
        if batch_id is None:
            if not has_submitter_ended:
                return None
            # Killed between the note and the server's answer: the server knows whether it was submitted.
            batch_id = _find_batch_id(api, digest)
            if batch_id is None:
                self._drop_batch(digest)
                return None
            self.cache.name_batch(digest, batch_id)
        try:
            return api.batches.retrieve(batch_id)
        except openai.NotFoundError:
            server = self.client.server_address()
            _log.warning("batch %s is unknown to %s: its lines are submitted again", batch_id, server)
            self._drop_batch(digest)
            return None

    def _drop_batch(self, digest: str) -> None:
        self.cache.drop_batch(digest)
        self.awaited.discard(digest)

    def _sleep_until_poll(self) -> None:
        until = time.monotonic() + self.poll_seconds
        while (left := until - time.monotonic()) > 0:
            if self.is_stopped():
                raise BatchWaitInterrupt
            time.sleep(min(left, 0.5))

    def _collect_batch(self, api: OpenAI, batch: Any, digest: str) -> None:
        if batch.status in ("failed", "cancelled") and not (batch.output_file_id or batch.error_file_id):
            told = "; ".join(str(error.message) for error in (batch.errors.data or ())) if batch.errors else ""
            self._drop_batch(digest)
            message = f"{self.client.server_address()}: batch {batch.id} {batch.status}: {told or 'no reason given'}"
            if digest in self.own:
                raise FactauditError(message)
            _log.warning("%s: another run submitted it, its lines are submitted again", message)
            return
        least_tokens = self.cache.find_batch_line_tokens(digest)
        for name in filter(None, (batch.output_file_id, batch.error_file_id)):
            with api.files.with_streaming_response.content(name) as response:
                for line in _split_batch_result_lines(response.iter_bytes()):
                    if line.strip():
                        self._collect_result_line(line, least_tokens)
        self._drop_batch(digest)

    def _collect_result_line(self, line: bytes, least_tokens: Mapping[bytes, int]) -> None:
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
        answer = self.client.parse_http_answer(
            status,
            {},
            body if isinstance(body, str) else json.dumps(body),
            sent_params=_BODY_PARAMS | set(self.client.settings.params),
        )
        if isinstance(answer, ChatReply):
            answer = fail_cut_prompt(answer, least_tokens.get(key, 0))
        ledger = self.client.budget.ledger
        send = self.open_sends.pop(key, None) or ledger.find_open_send(key)
        if isinstance(answer, ChatReply) and answer.status in KEPT_STATUSES:
            # Without an open send it is another run's, which has paid for it.
            if send is None and key in self.cost_bounds and key not in self.collected_keys:
                self.client.usage.count_cached_calls()
            self.client.keep_paid_reply(key, send, answer, BATCH_DISCOUNT)
            self.collected_keys.add(key)
        elif send is not None:
            # An answer that is none was paid for, up to what it can have cost.
            was_answered = status == 200
            ledger.settle_send(send, "dropped" if was_answered else NOT_BILLED)
        if isinstance(answer, ServerAttemptFailure):
            self.client.refused_params.add(answer.refused_params)
            self.failure_reasons[key] = answer.reason
        elif answer.status not in KEPT_STATUSES:
            self.final_replies[key] = answer


def _encode_line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


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
