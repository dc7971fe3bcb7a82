"""How fast may requests go out? So many a minute for an account, and not before the server allows
them again.

An account is a server with a key. All clients of all processes keep one pace for it: the time at
which the next request may go out stands in a small SQLite file for the user, in the system's
temporary folder. Nothing in it is worth keeping, and neither keys nor addresses are written there.
"""

from __future__ import annotations

import asyncio
import getpass
import hashlib
import random
import sqlite3
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

#: Seconds to wait after the first failed attempt, and at most.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
  account TEXT PRIMARY KEY, next REAL NOT NULL DEFAULT 0, paused_until REAL NOT NULL DEFAULT 0,
  paused_seconds REAL NOT NULL DEFAULT 0
)
"""
_RESERVE = """
UPDATE accounts SET next = MAX(?2, paused_until, next) + ?3 WHERE account = ?1
RETURNING next - ?3, paused_seconds
"""
_READ = "SELECT paused_until, paused_seconds FROM accounts WHERE account = ?"
#: What is waiting keeps its place and its distance to the others.
_PAUSE = """
UPDATE accounts SET next = next + added, paused_seconds = paused_seconds + added,
  paused_until = MAX(paused_until, ?2)
FROM (SELECT MAX(0, ?2 - MAX(?3, paused_until)) AS added FROM accounts WHERE account = ?1)
WHERE account = ?1 RETURNING paused_until, paused_seconds
"""


class PaceStore:
    """When an account's next request may go out. Times are Unix seconds."""

    def __init__(self, path: Path | str) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(_SCHEMA)

    def reserve(self, account: str, now: float, seconds: float) -> tuple[float, float]:
        """When a request may go out that is ready now and takes so many seconds of the account's
        time, and how long the account has been paused in all until now."""
        if seconds:
            return self._execute(_RESERVE, account, now, seconds)
        paused_until, paused = self.read_pause(account)
        return max(now, paused_until), paused

    def read_pause(self, account: str) -> tuple[float, float]:
        """Until when the account is paused, and how long it has been in all."""
        return self._execute(_READ, account)

    def pause(self, account: str, now: float, seconds: float) -> None:
        """Let nothing go out for so long from now on."""
        self._execute(_PAUSE, account, now + seconds, now)

    def _execute(self, sql: str, *values: str | float) -> tuple[float, float]:
        with self._lock:
            while (row := self._connection.execute(sql, values).fetchone()) is None:
                insert = "INSERT OR IGNORE INTO accounts (account) VALUES (?)"
                self._connection.execute(insert, values[:1])
            return row


@cache
def open_pace_store() -> PaceStore:
    """The store of this user; of this process alone where the temporary folder cannot be
    written."""
    try:
        folder = Path(tempfile.gettempdir()) / f"factaudit-{getpass.getuser()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        return PaceStore(folder / "pace-2.sqlite")
    except (OSError, KeyError, sqlite3.Error):
        return PaceStore(":memory:")


def hash_account(server: str, key: str) -> str:
    """The name of an account in the store, from which neither can be read."""
    return hashlib.sha256(f"{server}\n{key}".encode()).hexdigest()


class AccountPace:
    """The limits that one client keeps for an account, beside all others that ask it."""

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self._request_seconds = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_seconds = 60.0 / tokens_per_minute if tokens_per_minute else 0.0

    def count_seconds(self, tokens: int) -> float:
        """The account's time that a request of so many tokens takes."""
        return max(self._request_seconds, tokens * self._token_seconds)

    async def wait_before_request(self, account: str, tokens: int) -> None:
        """Wait until a request of so many tokens may be sent. It is counted once, whatever pauses
        begin meanwhile."""
        store = open_pace_store()
        turn, paused = store.reserve(account, _now(), self.count_seconds(tokens))
        while (left := turn + store.read_pause(account)[1] - paused - _now()) > 0:
            await asyncio.sleep(left)

    async def wait_after_failure(
        self, account: str, attempt: int, retry_after: float | None
    ) -> None:
        """Wait after a failed attempt (counted from 0): exponentially longer, with jitter; or
        ``retry_after`` seconds where the server says so."""
        delay = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)
        if retry_after is not None:
            # Every request to this account must wait, not only the one that was told so.
            open_pace_store().pause(account, _now(), retry_after)
            delay = retry_after + delay * 0.1
        await asyncio.sleep(delay)


#: Unix seconds at which monotonic time began: a clock that nobody sets while a process runs.
_CLOCK_START = time.time() - time.monotonic()


def _now() -> float:
    return _CLOCK_START + asyncio.get_running_loop().time()
