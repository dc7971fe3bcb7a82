"""What many calls write at the same time is one transaction, and nobody goes on before it is on disk."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply
from factaudit.llm.ledger import CallLedger
from factaudit.llm.rate_limits import ConcurrencyLimiter
from factaudit.llm.reply_cache import ReplyCache
from factaudit.llm.sqlite_transactions import SqliteTransactionQueue


def rows(path: Path, table: str) -> int:
    """What another connection sees of a table: what is on disk."""
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
    finally:
        connection.close()


def test_a_turns_writes_are_on_disk_before_anybody_goes_on(tmp_path: Path) -> None:
    ledger = CallLedger(tmp_path / "ledger.sqlite")
    seen: list[int] = []
    commits: list[str] = []

    async def one(writes: SqliteTransactionQueue, number: int) -> int | None:
        send = await writes(lambda: ledger.open_send("a", number, None))
        seen.append(rows(tmp_path / "ledger.sqlite", "open"))
        return send

    async def run() -> list[int | None]:
        with ledger._locked_connection() as connection:
            connection.set_trace_callback(commits.append)
        writes = SqliteTransactionQueue(ledger)
        return await asyncio.gather(*(one(writes, number) for number in range(50)))

    sends = asyncio.run(run())
    assert sends == list(range(1, 51))
    assert seen == [50] * 50
    assert commits.count("COMMIT") == 1


def test_where_one_write_fails_all_of_its_turn_are_told_and_nothing_is_written(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "cache.sqlite") as cache:

        def fails() -> None:
            raise FactauditError("the disk is full")

        async def run() -> list[bool | BaseException | None]:
            writes = SqliteTransactionQueue(cache)
            put = writes(lambda: cache.put(b"k", "m", "", ChatReply("ok", "Yes")))
            return await asyncio.gather(put, writes(fails), return_exceptions=True)

        assert [str(error) for error in asyncio.run(run())] == ["the disk is full"] * 2
        assert cache.get(b"k") is None
        assert cache.put(b"k", "m", "", ChatReply("ok", "No")), "the next write is a transaction of its own"
        assert rows(tmp_path / "cache.sqlite", "replies") == 1


def test_who_is_cancelled_while_writing_knows_what_was_written() -> None:
    ledger = CallLedger()
    known: list[int | None] = []

    async def one(writes: SqliteTransactionQueue) -> None:
        known.append(await writes(lambda: ledger.open_send("a", 1, None)))
        await asyncio.sleep(60)
        raise AssertionError("it was cancelled")

    async def run() -> None:
        task = asyncio.ensure_future(one(SqliteTransactionQueue(ledger)))
        await asyncio.sleep(0)  # it waits for the write
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert known == [1]


def test_slots_are_handed_on_in_order_and_past_those_who_have_gone() -> None:
    order: list[int] = []

    async def one(slots: ConcurrencyLimiter, number: int) -> None:
        async with slots:
            order.append(number)
            await asyncio.sleep(0)

    async def run() -> None:
        slots = ConcurrencyLimiter(1)
        tasks = [asyncio.ensure_future(one(slots, number)) for number in range(6)]
        await asyncio.sleep(0)
        tasks[2].cancel()  # while it waits
        await asyncio.sleep(0)
        tasks[1].cancel()  # when it has just been given the slot
        await asyncio.gather(*tasks, return_exceptions=True)
        async with asyncio.timeout(1), slots:
            order.append(6)

    asyncio.run(run())
    assert [number for number in order if number != 1] == [0, 3, 4, 5, 6]
