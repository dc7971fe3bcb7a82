"""Coroutines from plain code: run to their end, many at once, with the clients open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from factaudit.collector import seldom_collected
from factaudit.llm.stopping import drained, stopping
from factaudit.llm.types import LLM

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook). Errors come out as they are.

    SIGINT and SIGTERM cancel it; what its clients have sent is awaited for a while (`factaudit.llm.stopping`).
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run = _run
    else:

        def run(main: Coroutine[Any, Any, T]) -> T:  # type: ignore[misc]
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, main).result()

    try:
        return run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(work)

        async def main() -> T:
            return await task

        with seldom_collected(), drained(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return runner.run(main())
            except asyncio.CancelledError:
                if not stopping():
                    raise
    raise AssertionError("drained raises Interrupted")


async def gather(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run at the same time; the first error cancels the rest (`asyncio.gather` would leave them running)."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in work]
    return [task.result() for task in tasks]


@asynccontextmanager
async def sessions(*llms: LLM | None) -> AsyncIterator[None]:
    """Open the clients that are to be opened, each once, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        for llm in {id(one): one for one in llms}.values():
            if isinstance(llm, AbstractAsyncContextManager):
                await stack.enter_async_context(llm)
        yield


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
