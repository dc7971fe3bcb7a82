"""How do many calls write into one file at the same time? In one transaction, and so in one commit."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class SqliteTransactionStore(Protocol):
    """The cache and the ledger."""

    def run_in_transaction(self, writes: Sequence[Callable[[], T]]) -> list[T]:
        """What each gives; all that they write is one transaction, and where one fails nothing is written."""
        ...


@contextmanager
def hold_sqlite_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """What is written inside is one transaction, or part of the one that is under way."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


class SqliteTransactionQueue:
    """Writes into one file by those who wait in one event loop: all of a turn of the loop are one transaction.

    Each goes on when what it has written is on disk. Who is cancelled meanwhile is given what came of the write all
    the same, and is told where it waits next: nothing is written that nobody knows of.
    """

    def __init__(self, store: SqliteTransactionStore) -> None:
        self._file = store
        self._waiting: list[tuple[Callable[[], Any], _SqliteWriteFuture[Any]]] = []

    async def __call__(self, write: Callable[[], T]) -> T:
        """Call ``write``, which writes into the file, in this turn's transaction, and return what it gives."""
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._write_pending)
        written: _SqliteWriteFuture[T] = _SqliteWriteFuture(loop=loop)
        self._waiting.append((write, written))
        try:
            return await written
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return written.result()

    def _write_pending(self) -> None:
        waiting, self._waiting = self._waiting, []
        try:
            results = self._file.run_in_transaction([work for work, _ in waiting])
        except Exception as error:
            for _, written in waiting:
                written.set_exception(error)
        else:
            for (_, written), result in zip(waiting, results, strict=True):
                written.set_result(result)


class _SqliteWriteFuture(asyncio.Future[T], Generic[T]):
    """Is waited for to its end."""

    def cancel(self, msg: Any = None) -> bool:
        return False
