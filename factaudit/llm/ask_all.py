"""How are many requests put to a language model? All at once, within its limits; replies come as they are there.

This is how judges and engines ask, and the only way from plain code to the event loop. That runs in one thread of the
process for all that ask, so that this works inside a notebook's loop, too, and a client's connections stay in the loop
that they were opened in. With the Batch API (``llm.batch``) what is asked together becomes one batch, so who asks in
stages asks all of a stage together.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, nullcontext, suppress
from functools import cache
from itertools import islice
from typing import TypeVar

from factaudit.llm.batch_api import ask_through_batch_api
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.garbage_collection import collect_garbage_rarely
from factaudit.llm.stop_signals import drain_calls_on_signal, grace_seconds_left, is_stopping

Item = TypeVar("Item")

#: Requests under way to a model that names no limit of its own.
_IN_FLIGHT = 1000
#: How many items are looked up in the cache at a time.
_ITEMS_PER_LOOKUP = 256
#: Seconds after which a wait for results looks whether a signal has come.
_SIGNAL_POLL_SECONDS = 0.25
#: Seconds for a client to close its connections.
_CLOSING_SECONDS = 10.0


def ask_all(
    llm: ChatModelProtocol,
    item_requests: Iterable[tuple[Item, ChatRequest | None]],
    *,
    reply_without_request: ChatReply | None = None,
) -> Iterator[tuple[Item, ChatReply]]:
    """Yield ``(item, reply)`` in the order of completion; ``item_requests`` is read lazily, in the caller's thread.

    What the cache has is answered at once and costs nothing. An item whose request is None gets
    ``reply_without_request``. What goes wrong with one request is its reply's status; raises `FactauditError` only for
    what would befall all of them. Leaving the iteration ends what is under way at once. After SIGINT or SIGTERM nothing
    more is sent, what is under way is awaited for `stop_signals.GRACE_SECONDS` seconds and yielded, and
    `SignalInterrupt` is raised.
    """
    if not isinstance(llm, LLMClient):
        yield from _ask_one_by_one(llm, item_requests, reply_without_request)
        return
    ask = ask_through_batch_api if llm.settings.batch else _ask_one_by_one
    with llm.cache or nullcontext(), closing(ask(llm, item_requests, reply_without_request)) as replies:
        for item, reply in replies:
            llm.note_reply(reply)
            yield item, reply


def _ask_one_by_one(
    llm: ChatModelProtocol,
    item_requests: Iterable[tuple[Item, ChatRequest | None]],
    reply_without_request: ChatReply | None,
) -> Generator[tuple[Item, ChatReply], None, None]:
    client = llm if isinstance(llm, LLMClient) else None
    # Twice as many as may be sent at a time: those that wait to be retried hold no place.
    in_flight = 2 * client.concurrency if client else _IN_FLIGHT
    source, more = iter(item_requests), True
    waiting: deque[tuple[Item, ChatRequest]] = deque()
    under_way: dict[Future[ChatReply], Item] = {}
    done: queue.SimpleQueue[Future[ChatReply]] = queue.SimpleQueue()

    def take() -> Iterator[tuple[Item, ChatReply]]:
        """Wait for a reply, for a moment, and give all that have come."""
        with suppress(queue.Empty):
            future = done.get(timeout=_SIGNAL_POLL_SECONDS)
            while True:
                yield under_way.pop(future), future.result()
                future = done.get_nowait()

    with collect_garbage_rarely(), drain_calls_on_signal():
        try:
            while (more or waiting or under_way) and not is_stopping():
                if more and not waiting:
                    pairs = list(islice(source, _ITEMS_PER_LOOKUP))
                    more = bool(pairs)
                    asked = [request for _, request in pairs if request is not None]
                    kept = iter(client.find_cached_replies(asked) if client else [None] * len(asked))
                    for item, request in pairs:
                        reply = reply_without_request if request is None else next(kept)
                        if reply is not None:
                            yield item, reply
                        elif request is not None:
                            waiting.append((item, request))
                elif waiting and len(under_way) < in_flight:
                    item, request = waiting.popleft()
                    future = asyncio.run_coroutine_threadsafe(llm.ask(request), _start_event_loop(os.getpid()))
                    under_way[future] = item
                    future.add_done_callback(done.put)
                else:
                    yield from take()
            while under_way and grace_seconds_left():
                yield from take()
        finally:
            for future in under_way:
                future.cancel()
            closing_client = asyncio.run_coroutine_threadsafe(_close(client), _start_event_loop(os.getpid()))
            with suppress(TimeoutError):
                closing_client.result(timeout=_CLOSING_SECONDS + grace_seconds_left())


async def _close(client: LLMClient | None) -> None:
    """Let those end that were cancelled, and close the client's connections."""
    await asyncio.sleep(0)
    if client is not None:
        await client.close()


@cache
def _start_event_loop(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process, which a fork does not inherit."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="factaudit-llm", daemon=True).start()
    return loop
