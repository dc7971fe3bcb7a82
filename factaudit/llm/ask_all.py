"""How are many requests put to a language model? All at once, within its limits; replies come as
they are there.

This is how judges and engines ask, and the only way from plain code to the event loop. That runs in
one thread of the process for all that ask, so that this works inside a notebook's loop, too, and a
client's connections stay in the loop that they were opened in. With the Batch API (``llm.batch``)
what is asked together becomes one batch, so who asks in stages asks all of a stage together.
"""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from functools import cache
from typing import TypeVar

from factaudit.llm.batch_api import ask_through_batch_api
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient

Item = TypeVar("Item")

#: New objects between two looks for garbage: each walks all that there is, which at Python's own
#: threshold takes a fifth of the CPU of 1,000 calls under way.
_GARBAGE_THRESHOLD = 100_000


def ask_all(
    llm: LLMClient, item_requests: Iterable[tuple[Item, ChatRequest]]
) -> Iterator[tuple[Item, ChatReply]]:
    """Yield ``(item, reply)`` in the order of completion; ``item_requests`` is read lazily, in the
    caller's thread.

    What the cache has is answered at once and costs nothing. What goes wrong with one request is
    its reply's status; raises `FactauditError` only for what would befall all of them. Whoever
    leaves the iteration (by an error, a signal, or `close`) sends nothing more; calls under way are
    awaited for ten seconds, and their replies are kept.
    """
    ask = ask_through_batch_api if llm.settings.batch else _ask_one_by_one
    with closing(llm.store), closing(ask(llm, item_requests)) as replies:
        for item, reply in replies:
            llm.usage.count_reply(reply)
            yield item, reply


def _ask_one_by_one(
    llm: LLMClient, item_requests: Iterable[tuple[Item, ChatRequest]]
) -> Generator[tuple[Item, ChatReply], None, None]:
    loop = _start_event_loop(os.getpid())
    under_way: dict[Future[ChatReply], Item] = {}
    done: queue.SimpleQueue[Future[ChatReply]] = queue.SimpleQueue()

    def take() -> Iterator[tuple[Item, ChatReply]]:
        """Wait for a reply, and give all that have come."""
        future = done.get()
        with suppress(queue.Empty):
            while True:
                yield under_way.pop(future), future.result()
                future = done.get_nowait()

    threshold = gc.get_threshold()
    gc.set_threshold(max(threshold[0], _GARBAGE_THRESHOLD) if threshold[0] else 0)
    try:
        for item, request in item_requests:
            if (reply := llm.find_cached_reply(request)) is not None:
                yield item, reply
                continue
            # Twice as many as may be sent at a time: those that wait to be retried hold no place.
            while len(under_way) >= 2 * llm.concurrency:
                yield from take()
            future = asyncio.run_coroutine_threadsafe(llm.ask(request), loop)
            under_way[future] = item
            future.add_done_callback(done.put)
        while under_way:
            yield from take()
    finally:
        gc.set_threshold(*threshold)
        for future in under_way:
            future.cancel()
        asyncio.run_coroutine_threadsafe(_close(llm), loop).result()


async def _close(llm: LLMClient) -> None:
    """Let those end that were cancelled before they were sent, and close the client."""
    await asyncio.sleep(0)
    await llm.close()


@cache
def _start_event_loop(process: int) -> asyncio.AbstractEventLoop:
    """The event loop of a process, which a fork does not inherit."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="factaudit-llm", daemon=True).start()
    return loop
