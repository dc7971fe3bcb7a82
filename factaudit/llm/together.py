"""Coroutines from plain code: run to their end, many at once, with the clients open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from factaudit.llm.types import LLM

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook). Errors come out as they are."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run = asyncio.run
    else:

        def run(main: Coroutine[Any, Any, T]) -> T:  # type: ignore[misc]
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, main).result()

    try:
        return run(work)
    except BaseExceptionGroup as group:
        raise _first(group) from None


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
