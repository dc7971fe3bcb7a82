"""How are requests sent through OpenAI's Batch API? At half the price, within a day: another way to
fill the store.

Limits and shapes as documented at developers.openai.com/api/reference/resources/batches: a file
holds at most 50,000 requests and 200 MB; each line has a ``custom_id`` (here the store's key);
results come in any order, in a file of outputs and a file of errors. A batch is noted in the store,
and its lines are begun there, before it is submitted, under a digest that is also put into the
batch's metadata. So a run that was killed at any point finds its batches again and submits none of
them twice. Runs that share a store wait only for batches that hold lines of theirs. A line that
failed is submitted again with the next batch, but not if somebody cancelled its batch.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import BATCH_DISCOUNT
from factaudit.llm.reply import fail_cut_prompt
from factaudit.llm.server_errors import PermanentServerError, ServerAttemptFailure
from factaudit.llm.store import DROPPED, KEPT_STATUSES, NOT_BILLED, Send

if TYPE_CHECKING:
    from openai import OpenAI

    from factaudit.llm.client import LLMClient

#: Documented limits of one input file; the size with a margin.
MAX_BATCH_LINES = 50_000
MAX_BATCH_BYTES = 190_000_000
#: A line is submitted at most so many times in a run.
MAX_ROUNDS = 3
#: Seconds between two looks at the batches.
POLL_SECONDS = 30.0
#: Where the digest stands in a batch's metadata.
_DIGEST_KEY = "factaudit"
_ENDED_STATUSES = ("completed", "failed", "expired", "cancelled")

_Item = TypeVar("_Item")


def ask_through_batch_api(
    client: LLMClient, item_requests: Iterable[tuple[_Item, ChatRequest]]
) -> Generator[tuple[_Item, ChatReply], None, None]:
    """Yield ``(item, reply)``: what is kept at once, the rest when its batch has ended.

    Raises `FactauditError` where the server cannot be reached, or refuses to take a batch. Whoever
    leaves (by a signal, say) leaves the batches as they are, and the next run collects them.
    """
    import openai

    requests: dict[bytes, ChatRequest] = {}
    items: dict[bytes, list[_Item]] = {}
    for item, request in item_requests:
        key = client.request_key(request)
        if (reply := client.store.get(key)) is not None:
            yield item, reply
        else:
            requests[key] = request
            items.setdefault(key, []).append(item)
    batches = _Batches(client, requests)
    try:
        for _ in range(MAX_ROUNDS):
            batches.submit()
            batches.wait()
    except openai.OpenAIError as failure:
        where, said = client.server.address, client.server.redact(str(failure))
        raise FactauditError(
            f"{where}: {said} (the same command goes on with the batches that it has submitted)"
        ) from failure
    finally:
        batches.close()
    for key, its in items.items():
        # Another process may have collected it.
        reply = batches.replies.get(key) or client.store.get(key) or _fail("no line came back")
        for item in its:
            yield item, reply
            # The next item is of an equal request.
            reply = replace(reply, cached=reply.status in KEPT_STATUSES)


def _fail(reason: str) -> ChatReply:
    return ChatReply("error", error=f"gave up after {MAX_ROUNDS} batches: {reason}")


class _Batches:
    """The batches that hold lines of one run: ``requests`` by the store's keys. ``replies``: what
    came of them."""

    def __init__(self, client: LLMClient, requests: Mapping[bytes, ChatRequest]) -> None:
        self._client, self._store = client, client.store
        self._requests = requests
        self._awaited: set[str] = set()
        self.replies: dict[bytes, ChatReply] = {}
        #: Lines that are not submitted again.
        self._settled: set[bytes] = set()

    @cached_property
    def _api(self) -> OpenAI:
        """The server; where all is kept it needs no key."""
        return self._client.server.make_sync_client()

    def close(self) -> None:
        """Close the connections."""
        if "_api" in vars(self):
            self._api.close()

    def submit(self) -> None:
        """Submit the lines without a reply, unless they stand in a batch already that is not
        collected: of a run that was killed, or of another one."""
        digest, part, size = uuid.uuid4().hex, list[bytes](), 0
        for key, request in self._requests.items():
            if key in self._settled:
                continue
            if (known := self._store.find_batch_of(key)) is not None:
                self._awaited.add(known)
                continue
            record = {"custom_id": key.hex(), "method": "POST", "url": "/v1/chat/completions"}
            body = self._client.request_body(request)
            text = json.dumps({**record, "body": body}).encode() + b"\n"
            if len(part) == MAX_BATCH_LINES or size + len(text) > MAX_BATCH_BYTES:
                self._upload(digest, part)
                digest, part, size = uuid.uuid4().hex, [], 0
            send = self._client.make_send(key, request, BATCH_DISCOUNT)
            state = self._client.budget.begin(self._store, replace(send, batch=digest))
            if state == "send":
                part.append(text)
                size += len(text)
            else:
                over = self._client.make_over_limit_reply()
                self.replies[key] = state if isinstance(state, ChatReply) else over
                self._settled.add(key)
        self._upload(digest, part)

    def _upload(self, digest: str, part: list[bytes]) -> None:
        """Submit lines as one batch."""
        import openai

        if not part:
            return
        self._awaited.add(digest)
        try:
            file = ("factaudit.jsonl", b"".join(part))
            uploaded = self._api.files.create(file=file, purpose="batch")
            # Not repeated by the SDK: a repeated POST could submit twice.
            batch = self._api.with_options(max_retries=0).batches.create(
                input_file_id=uploaded.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={_DIGEST_KEY: digest},
            )
        except (openai.APIConnectionError, openai.InternalServerError):
            # It may have been submitted all the same. Where the server does not know it yet, the
            # next run asks again, and submits it if it is still unknown then.
            batch = self._find_submitted(digest)
            if batch is None:
                raise
        except openai.APIStatusError as error:
            self._store.drop_batch(digest, NOT_BILLED)
            answer = error.response
            self._client.parse_http_answer(answer.status_code, answer.headers, answer.text)
            raise
        self._store.name_batch(digest, batch.id)

    def wait(self) -> None:
        """Wait until every batch with lines of this run has ended, collecting each as it does."""
        while self._awaited:
            for digest in sorted(self._awaited):
                batch = self._retrieve(digest)
                if batch is not None and batch.status in _ENDED_STATUSES:
                    self._collect(batch, digest)
            if self._awaited:
                time.sleep(POLL_SECONDS)

    def _retrieve(self, digest: str) -> Any:
        """The server's record of a batch. None where there is none: yet, because another process is
        about to submit it; or any more, and then it is no longer awaited."""
        import openai

        noted = self._store.find_batch_id(digest)
        if noted is None:  # another process has collected it
            self._awaited.discard(digest)
            return None
        batch_id, has_submitter_ended = noted
        if batch_id is not None:
            try:
                return self._api.batches.retrieve(batch_id)
            except openai.NotFoundError:
                self._drop(digest, DROPPED, f"batch {batch_id} is unknown to its server")
        elif has_submitter_ended:
            # Killed between the note and the server's answer: the server knows.
            if (batch := self._find_submitted(digest)) is not None:
                self._store.name_batch(digest, batch.id)
                return batch
            self._drop(digest, NOT_BILLED, "its batch was not submitted")
            self.submit()
        return None

    def _find_submitted(self, digest: str) -> Any:
        """The batch that carries a digest; the newest come first."""
        for batch in self._api.batches.list(limit=100):
            if (batch.metadata or {}).get(_DIGEST_KEY) == digest:
                return batch
        return None

    def _drop(self, digest: str, status: str, failure: str) -> None:
        """Forget a batch. Its lines without a result have failed for this reason."""
        for key in self._requests.keys() & self._store.list_batch_lines(digest):
            self.replies[key] = _fail(failure)
        self._store.drop_batch(digest, status)
        self._awaited.discard(digest)

    def _collect(self, batch: Any, digest: str) -> None:
        results = [name for name in (batch.output_file_id, batch.error_file_id) if name]
        for name in results:
            # A line ends in a newline and nothing else: a reply may hold any of Unicode's other
            # line ends.
            for text in filter(None, self._api.files.content(name).content.split(b"\n")):
                self._collect_line(json.loads(text), digest)
        said = "; ".join(error.message for error in (batch.errors and batch.errors.data) or ())
        # Nobody knows what a line costs for which nothing came back.
        is_free = batch.status in ("failed", "cancelled") and not results
        failure = f"batch {batch.id} {batch.status}: {said or 'no line came back for it'}"
        if batch.status == "cancelled":  # somebody wants it to stop
            self._settled |= self._requests.keys() & self._store.list_batch_lines(digest)
        self._drop(digest, NOT_BILLED if is_free else DROPPED, failure)

    def _collect_line(self, record: dict[str, Any], digest: str) -> None:
        key, response = bytes.fromhex(record["custom_id"]), record.get("response")
        request = self._requests.get(key)
        answer: ChatReply | ServerAttemptFailure = ServerAttemptFailure(str(record.get("error")))
        if response is not None:
            status, body = response["status_code"], response["body"]
            text = body if isinstance(body, str) else json.dumps(body)
            sent = self._client.request_body(request) if request else ()
            try:
                answer = self._client.parse_http_answer(status, {}, text, sent_params=sent)
            except PermanentServerError as error:
                answer = ServerAttemptFailure(str(error))
        if isinstance(answer, ServerAttemptFailure):
            self._client.refused_params.add(answer.refused_params)
            reply = _fail(answer.reason)
        else:
            reply = answer = fail_cut_prompt(answer, request.messages if request else ())
            self._settled.add(key)
        self._client.settle(Send(key, batch=digest), answer, BATCH_DISCOUNT)
        self.replies[key] = reply
