"""How does a plain loop get results from the event loop? As they come, with many requests under way."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from itertools import islice
from typing import Generic, TypeVar

from factaudit.garbage_collection import collect_garbage_rarely
from factaudit.llm.stop_signals import drain_calls_on_signal, grace_seconds_left, is_stopping

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
#: How many items are looked up in the cache at a time.
_ITEMS_PER_LOOKUP = 256
#: Seconds after which a wait for results looks whether a signal has come.
_SIGNAL_POLL_SECONDS = 0.25


def stream_from_event_loop(
    ask: Callable[[_Item], Awaitable[_Result]],
    items: Iterable[_Item],
    *,
    in_flight: int,
    answer_at_once: Callable[[Sequence[_Item]], Sequence[_Result | None]] | None = None,
    session: AbstractAsyncContextManager[object] | None = None,
) -> Iterator[tuple[_Item, _Result]]:
    """Yield ``(item, await ask(item))`` in the order of completion, with at most ``in_flight`` under way.

    ``items`` is read lazily and in the caller's thread. ``answer_at_once`` answers at once what needs no waiting (None:
    it does), many items at a time. ``session`` is entered before the first `ask` and left at the end; the event loop
    runs in a thread of its own, so this also works inside a notebook's. An exception from ``ask`` is raised here;
    leaving the iteration by it or by closing cancels what is under way at once. After SIGINT or SIGTERM no item is
    started, what is under way is awaited for `stop_signals.GRACE_SECONDS` seconds and yielded, and `SignalInterrupt` is
    raised.
    """
    with collect_garbage_rarely(), drain_calls_on_signal():
        yield from _stream_event_loop_until_signal(
            ask, items, in_flight=in_flight, answer_at_once=answer_at_once, session=session
        )


def _stream_event_loop_until_signal(
    ask: Callable[[_Item], Awaitable[_Result]],
    items: Iterable[_Item],
    *,
    in_flight: int,
    answer_at_once: Callable[[Sequence[_Item]], Sequence[_Result | None]] | None,
    session: AbstractAsyncContextManager[object] | None,
) -> Iterator[tuple[_Item, _Result]]:
    source = iter(items)
    waiting: deque[_Item] = deque()
    loop: _EventLoopThread[_Item, _Result] | None = None
    under_way, more = 0, True
    try:
        while not is_stopping():
            ready: list[tuple[_Item, _Result]] = []
            if more and not waiting and under_way < in_flight:
                batch = list(islice(source, _ITEMS_PER_LOOKUP if answer_at_once else in_flight - under_way))
                more = bool(batch)
                answers: Sequence[_Result | None] = (
                    answer_at_once(batch) if answer_at_once and batch else [None] * len(batch)
                )
                for item, answer in zip(batch, answers, strict=True):
                    if answer is None:
                        waiting.append(item)
                    else:
                        ready.append((item, answer))
            if start := [waiting.popleft() for _ in range(min(len(waiting), in_flight - under_way))]:
                loop = loop or _EventLoopThread(ask, session)
                loop.start_items(start)
                under_way += len(start)
            if not ready and loop is not None and under_way and (waiting or not more or under_way >= in_flight):
                ready = loop.take_results()
                under_way -= len(ready)
            elif not ready and not more:
                return
            yield from ready
        while loop is not None and under_way and grace_seconds_left():
            ready = loop.take_results()
            under_way -= len(ready)
            yield from ready
    finally:
        if loop is not None:
            loop.stop()


class _EventLoopThread(Generic[_Item, _Result]):
    """An event loop in a thread."""

    def __init__(
        self, ask: Callable[[_Item], Awaitable[_Result]], session: AbstractAsyncContextManager[object] | None
    ) -> None:
        self._ask = ask
        self._session = session
        self._done: queue.SimpleQueue[tuple[_Item | None, _Result | BaseException]] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._ready = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run_event_loop()), name="factaudit-llm", daemon=True
        )
        self._thread.start()
        self._ready.wait()

    async def _run_event_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        self._ready.set()
        try:
            if self._session is None:
                await self._wait_until_stopped()
            else:
                async with self._session:
                    await self._wait_until_stopped()
        except BaseException as error:
            self._done.put((None, error))

    async def _wait_until_stopped(self) -> None:
        await self._stopped.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start_items(self, items: Sequence[_Item]) -> None:
        # The loop is closed where the session could not be opened: `take` raises why.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._create_tasks, items)

    def _create_tasks(self, items: Sequence[_Item]) -> None:
        for item in items:
            task = asyncio.ensure_future(self._ask_item(item))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _ask_item(self, item: _Item) -> None:
        try:
            self._done.put((item, await self._ask(item)))
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._done.put((item, error))

    def take_results(self) -> list[tuple[_Item, _Result]]:
        """Wait for a result and return all that have come, or nothing where a signal has. An exception is raised when
        what came before it is taken."""
        if self._error is None:
            results = []
            try:
                item, result = self._done.get(timeout=_SIGNAL_POLL_SECONDS)
            except queue.Empty:
                return []
            while not isinstance(result, BaseException):
                results.append((item, result))
                try:
                    item, result = self._done.get_nowait()
                except queue.Empty:
                    return results  # type: ignore[return-value]
            self._error = result
            if results:
                return results  # type: ignore[return-value]
        raise self._error

    def stop(self) -> None:
        """Cancel what is under way and end the thread."""
        with suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=10 + grace_seconds_left())
