"""How fast may requests go out? At an account's limits a minute, and later after a failure.

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
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

#: Seconds to wait after the first failed attempt, and at most.
BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 0.5, 30.0
_SCHEMA = "CREATE TABLE IF NOT EXISTS accounts (account TEXT PRIMARY KEY, next REAL NOT NULL)"
_RESERVE = """
INSERT INTO accounts VALUES (?1, ?2 + ?3)
ON CONFLICT DO UPDATE SET next = MAX(?2, next) + ?3 RETURNING next - ?3
"""


@cache
def _open_pace_file() -> sqlite3.Connection:
    """The file of this user; in memory where the temporary folder cannot be written, so that the
    pace is this process's alone."""
    path: Path | str = ":memory:"
    with suppress(OSError, KeyError):
        folder = Path(tempfile.gettempdir()) / f"factaudit-{getpass.getuser()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        path = folder / "pace-3.sqlite"
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(_SCHEMA)
    return connection


def reserve_turn(account: str, now: float, seconds: float) -> float:
    """When a request may go out that is ready now and takes so many seconds of the account's time.
    Times are Unix seconds. All requests of a process go out from one thread."""
    (turn,) = _open_pace_file().execute(_RESERVE, (account, now, seconds)).fetchone()
    return float(turn)


def hash_account(server: str, key: str) -> str:
    """The name of an account in the store, from which neither can be read."""
    return hashlib.sha256(f"{server}\n{key}".encode()).hexdigest()


class AccountPace:
    """The limits that one client keeps for an account, beside all others that ask it."""

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self._request_seconds = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_seconds = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._paused_until = 0.0

    def count_seconds(self, tokens: int) -> float:
        """The account's time that a request of so many tokens takes."""
        return max(self._request_seconds, tokens * self._token_seconds)

    async def wait_before_request(self, account: str, tokens: int) -> None:
        """Wait until a request of so many tokens may be sent."""
        turn = 0.0
        if (seconds := self.count_seconds(tokens)) > 0:
            turn = reserve_turn(account, _now(), seconds)
        while (left := max(turn, self._paused_until) - _now()) > 0:
            await asyncio.sleep(left)

    async def wait_after_failure(self, attempt: int, retry_after: float | None) -> None:
        """Wait after a failed attempt (counted from 0): exponentially longer, with jitter; or
        ``retry_after`` seconds, where the server says so."""
        delay = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)
        if retry_after is not None:
            # Every request of this client waits, not only the one that was told so.
            self._paused_until = max(self._paused_until, _now() + retry_after)
            delay = retry_after + delay * 0.1
        await asyncio.sleep(delay)


#: Unix seconds at which monotonic time began: a clock that nobody sets while a process runs.
_CLOCK_START = time.time() - time.monotonic()


def _now() -> float:
    return _CLOCK_START + asyncio.get_running_loop().time()
