"""How fast may requests go out? So many a minute for an account, and not before the server allows them again.

An account is a server with a key. All clients of all processes keep one pace for it: the times at which the next
request may go out stand in a small SQLite file for the user, in the system's temporary folder. Nothing in it is worth
keeping, and neither keys nor addresses are written there.
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

from factaudit.llm.stop_signals import is_stopping, sleep_until_signal

_SCHEMA = """
CREATE TABLE IF NOT EXISTS accounts (
  account TEXT PRIMARY KEY, next_request REAL NOT NULL, next_token REAL NOT NULL, paused_until REAL NOT NULL,
  paused_seconds REAL NOT NULL
)
"""
_MAKE_ACCOUNT = "INSERT OR IGNORE INTO accounts VALUES (?, 0, 0, 0, 0)"


class PaceStore:
    """When an account's next request may go out. Times are Unix seconds.

    A pause that a server asks for moves everything behind it: what has waited for its turn keeps its place, its
    distance to the others, and what it was counted for.
    """

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path or ":memory:", timeout=30, isolation_level=None, check_same_thread=False
        )
        for _ in range(100):  # two processes that make the file at once: SQLite does not wait for this one
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError:
                time.sleep(0.02)
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(_SCHEMA)

    def reserve_turn(
        self, account: str, now: float, request_seconds: float, token_seconds: float
    ) -> tuple[float, float]:
        """When a request may go out that is ready now, and how long the account has been paused in all until now.

        request_seconds, token_seconds: how long it takes of the account's time, 0 without a limit.
        """
        if request_seconds == token_seconds == 0:
            paused_until, paused = self.read_pause(account)
            return max(now, paused_until), paused
        sql = (
            "UPDATE accounts SET next_request = CASE WHEN ?2 THEN MAX(?4, paused_until, next_request,"
            " CASE WHEN ?3 THEN next_token ELSE 0 END) + ?2 ELSE next_request END,"
            " next_token = CASE WHEN ?3 THEN MAX(?4, paused_until, next_token,"
            " CASE WHEN ?2 THEN next_request ELSE 0 END) + ?3 ELSE next_token END"
            " WHERE account = ?1 RETURNING next_request, next_token, paused_seconds"
        )
        with self._lock:
            self._connection.execute(_MAKE_ACCOUNT, (account,))
            row = self._connection.execute(sql, (account, request_seconds, token_seconds, now)).fetchall()[0]
        next_request, next_token, paused = row
        return next_request - request_seconds if request_seconds else next_token - token_seconds, paused

    def read_pause(self, account: str) -> tuple[float, float]:
        """Until when the account is paused, and how long it has been in all."""
        with self._lock:
            sql = "SELECT paused_until, paused_seconds FROM accounts WHERE account = ?"
            return self._connection.execute(sql, (account,)).fetchone() or (0.0, 0.0)

    def pause(self, account: str, now: float, seconds: float) -> None:
        """Let nothing go out for so long from now on."""
        added = "MAX(0, ?2 - MAX(?3, paused_until))"
        with self._lock:
            self._connection.execute(_MAKE_ACCOUNT, (account,))
            self._connection.execute(
                f"UPDATE accounts SET next_request = next_request + {added}, next_token = next_token + {added},"
                f" paused_seconds = paused_seconds + {added}, paused_until = MAX(paused_until, ?2) WHERE account = ?1",
                (account, now + seconds, now),
            )


@cache
def open_pace_store() -> PaceStore:
    """The store of this user; of this process alone where the temporary folder cannot be written."""
    folder = Path(tempfile.gettempdir()) / f"factaudit-{getpass.getuser()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return PaceStore(folder / "pace.sqlite")
    except (OSError, KeyError, sqlite3.Error):
        return PaceStore(None)


def hash_account(server: str, key: str) -> str:
    """The name of an account in the store, from which neither can be read."""
    return hashlib.sha256(f"{server}\n{key}".encode()).hexdigest()


class AccountPace:
    """The limits that one client keeps for an account, beside all others that ask it.

    Attempts are repeated after an exponential backoff with jitter, between ``backoff`` and ``max_backoff`` seconds.
    """

    def __init__(
        self,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        backoff: float,
        max_backoff: float,
        seed: int | None,
    ) -> None:
        self._request_seconds = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._token_seconds = 60.0 / tokens_per_minute if tokens_per_minute else 0.0
        self._backoff, self._max_backoff = backoff, max_backoff
        self._random = random.Random(seed)
        self._clock_offsets: dict[asyncio.AbstractEventLoop, float] = {}

    def _now(self) -> float:
        """Unix seconds by the event loop's clock, which nobody sets."""
        loop = asyncio.get_running_loop()
        if loop not in self._clock_offsets:
            self._clock_offsets = {loop: time.time() - loop.time()}  # a client is in one loop at a time
        return self._clock_offsets[loop] + loop.time()

    async def wait_before_request(self, account: str, tokens: int) -> None:
        """Wait until a request of so many tokens may be sent. It is counted once, whatever pauses begin meanwhile."""
        store = open_pace_store()
        turn, paused = store.reserve_turn(account, self._now(), self._request_seconds, tokens * self._token_seconds)
        while not is_stopping():
            due = turn + store.read_pause(account)[1] - paused
            if (left := due - self._now()) <= 0:
                return
            await sleep_until_signal(left)

    async def wait_after_failure(self, account: str, attempt: int, retry_after: float | None) -> None:
        """Wait after a failed attempt (counted from 0), ``retry_after`` seconds where the server says so."""
        delay = min(self._max_backoff, self._backoff * 2**attempt) * self._random.uniform(0.5, 1.0)
        if retry_after is not None:
            # Every request to this account must wait, not only the one that was told so.
            open_pace_store().pause(account, self._now(), retry_after)
            delay = retry_after + delay * 0.1
        await sleep_until_signal(delay)
