"""How are many requests put to a language model? All at once, within its limits; replies come as
they are there.

This is how judges and engines ask, and the only way from plain code to the event loop. That runs in
one thread of the process for all that ask, so that this works inside a notebook's loop, too, and a
client's connections stay in the loop that they were opened in. With the Batch API (``llm.batch``)
what is asked together becomes one batch, so who asks in stages asks all of a stage together.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, nullcontext, suppress
from functools import cache
from itertools import islice
from typing import TypeVar

from factaudit.llm.batch_api import ask_through_batch_api
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.garbage_collection import collect_garbage_rarely
from factaudit.llm.stop_signals import drain_calls_on_signal, grace_seconds_left, is_stopping

Item = TypeVar("Item")

#: How many items are looked up in the cache at a time.
_ITEMS_PER_LOOKUP = 256
#: Seconds after which a wait for results looks whether a signal has come.
_SIGNAL_POLL_SECONDS = 0.25
#: Seconds for a client to close its connections.
_CLOSING_SECONDS = 10.0


def ask_all(
    llm: LLMClient,
    item_requests: Iterable[tuple[Item, ChatRequest | None]],
    *,
    reply_without_request: ChatReply | None = None,
) -> Iterator[tuple[Item, ChatReply]]:
    """Yield ``(item, reply)`` in the order of completion; ``item_requests`` is read lazily, in the
    caller's thread.

    What the cache has is answered at once and costs nothing. An item whose request is None gets
    ``reply_without_request``. What goes wrong with one request is its reply's status; raises
    `FactauditError` only for what would befall all of them. Leaving the iteration ends what is
    under way at once. After SIGINT or SIGTERM nothing more is sent, what is under way is awaited
    for `stop_signals.GRACE_SECONDS` seconds and yielded, and `SignalInterrupt` is raised.
    """
    ask = ask_through_batch_api if llm.settings.batch else _ask_one_by_one
    with (
        llm.cache or nullcontext(),
        closing(ask(llm, item_requests, reply_without_request)) as replies,
    ):
        for item, reply in replies:
            llm.note_reply(reply)
            yield item, reply


def _ask_one_by_one(
    llm: LLMClient,
    item_requests: Iterable[tuple[Item, ChatRequest | None]],
    reply_without_request: ChatReply | None,
) -> Generator[tuple[Item, ChatReply], None, None]:
    loop = _start_event_loop(os.getpid())
    under_way: dict[Future[ChatReply], Item] = {}
    done: queue.SimpleQueue[Future[ChatReply]] = queue.SimpleQueue()

    def send(item: Item, request: ChatRequest) -> None:
        future = asyncio.run_coroutine_threadsafe(llm.ask(request), loop)
        under_way[future] = item
        future.add_done_callback(done.put)

    def take() -> Iterator[tuple[Item, ChatReply]]:
        """Wait for a reply, for a moment, and give all that have come."""
        with suppress(queue.Empty):
            future = done.get(timeout=_SIGNAL_POLL_SECONDS)
            while True:
                yield under_way.pop(future), future.result()
                future = done.get_nowait()

    with collect_garbage_rarely(), drain_calls_on_signal():
        try:
            for item, request, kept in _look_up_replies(llm, item_requests):
                reply = reply_without_request if request is None else kept
                if reply is not None:
                    yield item, reply
                    continue
                # Twice as many as may be sent at a time: those that wait to be retried hold no
                # place.
                while len(under_way) >= 2 * llm.concurrency and not is_stopping():
                    yield from take()
                if is_stopping():
                    break
                if request is not None:
                    send(item, request)
            while under_way and not is_stopping():
                yield from take()
            while under_way and grace_seconds_left():
                yield from take()
        finally:
            for future in under_way:
                future.cancel()
            closing_client = asyncio.run_coroutine_threadsafe(_close(llm), loop)
            with suppress(TimeoutError):
                closing_client.result(timeout=_CLOSING_SECONDS + grace_seconds_left())


def _look_up_replies(
    llm: LLMClient, item_requests: Iterable[tuple[Item, ChatRequest | None]]
) -> Iterator[tuple[Item, ChatRequest | None, ChatReply | None]]:
    """Each item with its request and the reply that the cache has, many looked up at a time."""
    source = iter(item_requests)
    while pairs := list(islice(source, _ITEMS_PER_LOOKUP)):
        kept = iter(
            llm.find_cached_replies([request for _, request in pairs if request is not None])
        )
        for item, request in pairs:
            yield item, request, None if request is None else next(kept)


async def _close(client: LLMClient) -> None:
    """Let those end that were cancelled, and close the client's connections."""
    await asyncio.sleep(0)
    await client.close()


@cache
def _start_event_loop(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process, which a fork does not inherit."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="factaudit-llm", daemon=True).start()
    return loop
