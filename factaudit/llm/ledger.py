"""What was sent, and what did it cost? Written down before each send, and settled by whatever came.

A send whose reply never came (a timeout, a dropped connection, a process that was killed) may have been charged for all
the same. It is counted at the most that it can have cost: what the ledger tells is never less than what was billed.
Several processes may share one ledger; a limit holds over all of them.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from factaudit.errors import FactauditError
from factaudit.llm.process_identity import has_process_ended, identify_this_process
from factaudit.llm.sqlite_transactions import hold_sqlite_transaction

_T = TypeVar("_T")

#: How a send ended, other than with a reply (``ok``, ``refused``) or an answer that is none (``malformed``). Possibly
#: billed: nobody knows. Not billed: the server said that it did not do the work, or was never reached.
POSSIBLY_BILLED = ("timed out", "dropped", "killed")
NOT_BILLED = "not billed"

_SCHEMA = """
CREATE TABLE IF NOT EXISTS open (
  send INTEGER PRIMARY KEY AUTOINCREMENT, account TEXT NOT NULL, key BLOB, owner TEXT NOT NULL, sent REAL NOT NULL,
  most REAL, prompt_tokens INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS open_key ON open(key);
CREATE TABLE IF NOT EXISTS settled (
  account TEXT NOT NULL, status TEXT NOT NULL, sends INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (account, status)
);
CREATE TABLE IF NOT EXISTS served (account TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (account, name));
"""
_ADD_SETTLED_SQL = """
INSERT INTO settled VALUES (?, ?, 1, ?, ?, ?, ?) ON CONFLICT(account, status) DO UPDATE SET sends = sends + 1,
  prompt_tokens = prompt_tokens + excluded.prompt_tokens, cost = cost + excluded.cost,
  completion_tokens = completion_tokens + excluded.completion_tokens, unpriced = unpriced + excluded.unpriced
"""


class CallLedger:
    """The sends of one run folder or, without a path, of this object alone. Safe to use from several threads.

    Costs are US dollars, None where no price is known.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.RLock()
        self._owner = identify_this_process()
        self._connection: sqlite3.Connection | None = None

    def open_send(
        self,
        account: str,
        prompt_tokens: int,
        most_cost: float | None,
        max_cost: float | None = None,
        key: bytes | None = None,
    ) -> int | None:
        """Write down a send that may cost ``most_cost``; its number, or None where the limit could then be passed."""
        with self._locked_connection() as connection, hold_sqlite_transaction(connection):
            if max_cost is not None and self._sum_spent_dollars(connection) + (most_cost or 0.0) > max_cost:
                return None
            row = (account, key, self._owner, time.time(), most_cost, prompt_tokens)
            sql = "INSERT INTO open (account, key, owner, sent, most, prompt_tokens) VALUES (?,?,?,?,?,?)"
            return connection.execute(sql, row).lastrowid

    def settle_send(
        self,
        send_number: int,
        status: str,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cost: float | None = 0.0,
    ) -> None:
        """Write down how a send ended. A possibly billed one is counted at what `open` was told, whatever is given."""
        with self._locked_connection() as connection, hold_sqlite_transaction(connection):
            sql = "DELETE FROM open WHERE send = ? RETURNING account, prompt_tokens, most"
            if (row := connection.execute(sql, (send_number,)).fetchone()) is not None:
                if status in POSSIBLY_BILLED:
                    prompt_tokens, completion_tokens, cost = row[1], 0, row[2]
                counts = (prompt_tokens, completion_tokens, cost or 0.0, int(cost is None))
                connection.execute(_ADD_SETTLED_SQL, (row[0], status, *counts))

    def run_in_transaction(self, writes: Sequence[Callable[[], _T]]) -> list[_T]:
        """What each of these gives that use the ledger; all that they write is one transaction."""
        with self._locked_connection() as connection, hold_sqlite_transaction(connection):
            return [work() for work in writes]

    def record_serving_model(self, account: str, model_name: str) -> None:
        """Write down that a model, as the server names it, has answered."""
        with self._locked_connection() as connection:
            connection.execute("INSERT OR IGNORE INTO served VALUES (?, ?)", (account, model_name))

    def list_serving_models(self, account: str) -> list[str]:
        """The models that have answered, sorted: those of replies that a killed process had, too."""
        with self._locked_connection() as connection:
            rows = connection.execute("SELECT name FROM served WHERE account = ? ORDER BY name", (account,))
            return [name for (name,) in rows]

    def find_open_send(self, key: bytes) -> int | None:
        """The number of an open send of this key: of a batch that another run submitted."""
        with self._locked_connection() as connection:
            row = connection.execute("SELECT send FROM open WHERE key = ? ORDER BY send", (key,)).fetchone()
            return None if row is None else row[0]

    def settle_ended_processes(self) -> None:
        """Settle what processes that have ended left open: batches, which a later run collects, apart."""
        with self._locked_connection() as connection:
            rows = connection.execute("SELECT send, owner FROM open WHERE key IS NULL").fetchall()
            gone = {owner: has_process_ended(owner) for owner in {owner for _, owner in rows}}
            for send, owner in rows:
                if gone[owner]:
                    self.settle_send(send, "killed")

    def sum_spent_dollars(self, with_open_sends: bool = True) -> float:
        """What was, or may have been, spent so far; with those that are under way, at the most that they can cost."""
        with self._locked_connection() as connection:
            return self._sum_spent_dollars(connection, with_open_sends)

    def summarise_accounts(self) -> dict[str, dict[str, Any]]:
        """By account: ``calls`` (sends that were, or may have been, billed), ``prompt_tokens``, ``completion_tokens``,
        ``cost`` (None where a send has no price), and of these ``possible_calls`` and ``possible_cost``."""
        with self._locked_connection() as connection:
            rows = connection.execute("SELECT * FROM settled").fetchall()
            rows += connection.execute(
                "SELECT account, 'killed', COUNT(*), SUM(prompt_tokens), 0, COALESCE(SUM(most), 0.0),"
                " SUM(most IS NULL) FROM open GROUP BY account"
            ).fetchall()
        accounts: dict[str, dict[str, Any]] = {}
        for account, status, sends, prompt_tokens, completion_tokens, cost, unpriced in rows:
            row = accounts.setdefault(account, make_empty_account_row())
            if status == NOT_BILLED:
                continue
            row["calls"] += sends
            row["prompt_tokens"] += prompt_tokens
            row["completion_tokens"] += completion_tokens
            row["cost"] = None if row["cost"] is None or unpriced else row["cost"] + cost
            if status in POSSIBLY_BILLED:
                row["possible_calls"] += sends
                row["possible_cost"] += cost
        return accounts

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    @staticmethod
    def _sum_spent_dollars(connection: sqlite3.Connection, with_open_sends: bool = True) -> float:
        (spent,) = connection.execute("SELECT COALESCE(SUM(cost), 0.0) FROM settled").fetchone()
        if with_open_sends:
            spent += connection.execute("SELECT COALESCE(SUM(most), 0.0) FROM open").fetchone()[0]
        return float(spent)

    @contextmanager
    def _locked_connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._open_connection()
            except sqlite3.DatabaseError as error:  # a full disk, or somebody else's file
                raise FactauditError(f"ledger {self.path}: cannot be used ({error})") from error

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                if self.path is not None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                connection = sqlite3.connect(
                    self.path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
                )
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}COMMIT;")
            except OSError as error:
                raise FactauditError(f"ledger {self.path}: cannot be used ({error})") from error
            self._connection = connection
        return self._connection


def make_empty_account_row() -> dict[str, Any]:
    """The row of an account that has sent nothing."""
    counts = dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), 0)
    return {**counts, "cost": 0.0, "possible_calls": 0, "possible_cost": 0.0}
