"""How does plain code run coroutines? To their end, many at once, with the clients open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from factaudit.garbage_collection import collect_garbage_rarely
from factaudit.llm.chat_types import ChatModelProtocol
from factaudit.llm.stop_signals import drain_calls_on_signal, is_stopping

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where a loop is running already (a notebook). Errors come out as they are.

    SIGINT and SIGTERM cancel it; what its clients have sent is awaited for a while (`factaudit.llm.stop_signals`).
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run = _run_coroutine_until_signal
    else:

        def run(main: Coroutine[Any, Any, T]) -> T:  # type: ignore[misc]
            with ThreadPoolExecutor(1) as pool:
                return pool.submit(asyncio.run, main).result()

    try:
        return run(coroutine)
    except BaseExceptionGroup as group:
        raise _find_first_coroutine_exception(group) from None


def _run_coroutine_until_signal(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(coroutine)

        async def main() -> T:
            return await task

        with collect_garbage_rarely(), drain_calls_on_signal(lambda: loop.call_soon_threadsafe(task.cancel)):
            try:
                return runner.run(main())
            except asyncio.CancelledError:
                if not is_stopping():
                    raise
    raise AssertionError("drain_calls_on_signal raises SignalInterrupt")


async def run_coroutines_concurrently(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run at the same time; the first error cancels the rest (`asyncio.gather` would leave them running)."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one) for one in coroutines]
    return [task.result() for task in tasks]


@asynccontextmanager
async def open_llm_clients_for_block(*llms: ChatModelProtocol | None) -> AsyncIterator[None]:
    """Open the clients that are to be opened, each once, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        for llm in {id(one): one for one in llms}.values():
            if isinstance(llm, AbstractAsyncContextManager):
                await stack.enter_async_context(llm)
        yield


def _find_first_coroutine_exception(exception_group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = exception_group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
