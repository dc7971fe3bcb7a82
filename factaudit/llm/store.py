"""Replies are bought once: one SQLite file that threads, processes and runs share. It is cache,
lease and ledger at once.

`ReplyStore.begin` says in one transaction what to do about a request: here is the reply; send it;
wait, because somebody else is asking it now or the money may not suffice; or do not send it,
because the money is used up. A request that may be sent stands in the table ``sends`` at the most
that it can cost. `ReplyStore.finish` keeps the reply, counts its cost and removes the send, in one
transaction. So nothing is asked twice, no limit is passed, and a kill loses no answer. A send whose
reply never came (a timeout, a dropped connection, a killed process) may have been billed all the
same, so it counts at the most that it can cost.

The key is the SHA-256 of everything that can change a reply: the server, the model, every sampling
parameter, the messages, and a revision that the user sets. Errors are never kept, and neither are
API keys.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatRequest

_SCHEMA_VERSION = 9
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY, created INTEGER NOT NULL, reply TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sends (
  key BLOB NOT NULL, batch TEXT NOT NULL, run TEXT NOT NULL, caller TEXT NOT NULL,
  owner TEXT NOT NULL, until REAL NOT NULL, most REAL, prompt_tokens INTEGER NOT NULL,
  PRIMARY KEY (key, batch)
);
CREATE INDEX IF NOT EXISTS sends_run ON sends (run);
CREATE INDEX IF NOT EXISTS sends_batch ON sends (batch);
CREATE TABLE IF NOT EXISTS spent (
  run TEXT NOT NULL, caller TEXT NOT NULL, status TEXT NOT NULL,
  calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  cost REAL NOT NULL, unpriced INTEGER NOT NULL, PRIMARY KEY (run, caller, status)
);
CREATE TABLE IF NOT EXISTS batches (digest TEXT PRIMARY KEY, batch_id TEXT, owner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS refused_params (
  server TEXT NOT NULL, model TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (server, model, name)
);
"""
_COUNT_CALL = """
INSERT INTO spent VALUES (?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + 1,
  prompt_tokens = prompt_tokens + excluded.prompt_tokens, cost = cost + excluded.cost,
  completion_tokens = completion_tokens + excluded.completion_tokens,
  unpriced = unpriced + excluded.unpriced
"""
_SUM_SPENT = "SELECT COALESCE(SUM(cost), 0.0) FROM spent WHERE run = ?"
_SUM_SPENT_AND_UNDER_WAY = """
SELECT COALESCE(SUM(dollars), 0.0) FROM (
  SELECT cost AS dollars FROM spent WHERE run = ?1 UNION ALL SELECT most FROM sends WHERE run = ?1
)
"""
_SUMMARISE_CALLERS = """
WITH calls AS (
  SELECT * FROM spent WHERE run = ?1 UNION ALL
  SELECT run, caller, 'killed', 1, prompt_tokens, 0, COALESCE(most, 0.0), most IS NULL
    FROM sends WHERE run = ?1
), told AS (SELECT *, status IN ('dropped', 'killed') AS possible FROM calls)
SELECT caller, SUM(calls * (status != 'not billed')), SUM(prompt_tokens), SUM(completion_tokens),
  CASE WHEN SUM(unpriced) THEN NULL ELSE SUM(cost) END, SUM(calls * possible), SUM(cost * possible)
  FROM told GROUP BY caller
"""
#: Only an answer is kept. An error, or a prompt that was never sent, is asked again.
KEPT_STATUSES = ("ok", "refused")
#: How a send ends without a reply. Malformed: the answer was billed, but is no chat completion. Not
#: billed: the server said that it did not do the work, or it was never reached. Dropped, or killed
#: with its process: nobody knows whether it was billed.
MALFORMED, NOT_BILLED, DROPPED, KILLED = "malformed", "not billed", "dropped", "killed"
#: Nobody knows what these cost, so each counts at the most that it can cost.
_COUNTED_AT_MOST = (MALFORMED, DROPPED, KILLED)
#: The row of a caller that has sent nothing.
EMPTY_CALLER_ROW: dict[str, Any] = {
    **dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), 0),
    "cost": 0.0,
    "possible_calls": 0,
    "possible_cost": 0.0,
}
_NO_STORE = (
    "this file is not a cache of replies of this version; nothing was changed. Give another"
    " cache=PATH"
)
_KEY_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_REPLY_ADAPTER = TypeAdapter(ChatReply)


def hash_request(model: str, request: ChatRequest, revision: str = "", server: str = "") -> bytes:
    """The 32 bytes under which a reply is kept."""
    parts = [server, model, revision, dict(request.params), list(map(dict, request.messages))]
    return hashlib.sha256(_KEY_ENCODER.encode(parts).encode()).digest()


@dataclass(frozen=True, slots=True)
class Send:
    """A request that is to be sent, for whom, and the most that it can cost (US dollars; None: no
    price is known).

    prompt_tokens: about so many. batch: the digest of the batch that it is a line of. seconds: for
    how long it can be under way.
    """

    key: bytes
    run: str = ""
    caller: str = ""
    most_cost: float | None = None
    prompt_tokens: int = 0
    batch: str = ""
    seconds: float = 900.0


class ReplyStore:
    """Replies, what is being asked now, and what was spent; without a path, in memory. Safe in
    several threads.

    is_cache: whether it keeps replies; else it only counts what they cost.

    Raises `FactauditError` where the file is no store of this version, is damaged, or cannot be
    made.
    """

    def __init__(self, path: str | Path | None = None, is_cache: bool = True) -> None:
        self.path = None if path is None else Path(path)
        self.is_cache = is_cache
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        with self._connect():
            pass

    def get(self, key: bytes) -> ChatReply | None:
        """The reply under a key, marked as cached; None where there is none."""
        rows = self._run("SELECT created, reply FROM replies WHERE key = ?", key)
        if not rows:
            return None
        ((created, reply),) = rows
        return replace(_REPLY_ADAPTER.validate_json(reply), cached=True, created=created)

    def begin(
        self, send: Send, max_cost: float | None = None
    ) -> ChatReply | Literal["send", "wait", "over"]:
        """The reply, or who sends the request: the caller (``send``); perhaps the caller, later
        (``wait``: somebody else is asking it, or what is under way may cost the rest of the money);
        nobody for that money (``over``).

        max_cost: of the run, US dollars.
        """
        with self._transaction():
            if (reply := self.get(send.key)) is not None:
                return reply
            sql = "SELECT owner, until FROM sends WHERE key = ? AND batch = ?"
            for owner, until in self._run(sql, send.key, send.batch):
                if not _is_abandoned(owner, until):
                    return "wait"
                self._settle(send.key, send.batch, KILLED)
            most = send.most_cost or 0.0
            if max_cost is not None and self.spent(send.run) + most > max_cost:
                self.settle_abandoned_sends()
                ((spent,),) = self._run(_SUM_SPENT, send.run)
                return "over" if spent + most > max_cost else "wait"
            owner, until = _identify_process(), time.time() + send.seconds
            row = (send.key, send.batch, send.run, send.caller, owner, until)
            sql = "INSERT INTO sends VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            self._run(sql, *row, send.most_cost, send.prompt_tokens)
            if send.batch:
                self._run("INSERT OR IGNORE INTO batches VALUES (?, NULL, ?)", send.batch, owner)
            return "send"

    def finish(
        self,
        key: bytes,
        status: str,
        tokens: tuple[int, int] = (0, 0),
        cost: float | None = 0.0,
        reply: ChatReply | None = None,
        batch: str = "",
    ) -> None:
        """Write down how a send ended, and let others ask where no reply came.

        tokens: of prompt and reply. reply: what is to be kept; the first reply to a key stays.
        """
        with self._transaction():
            if reply is not None and self.is_cache:
                text = _REPLY_ADAPTER.dump_json(reply, exclude={"cached", "created"}).decode()
                sql = "INSERT OR IGNORE INTO replies VALUES (?, ?, ?)"
                self._run(sql, key, int(time.time()), text)
            self._settle(key, batch, status, tokens, cost)

    def settle_abandoned_sends(self) -> None:
        """Settle what processes that have ended left open. Batches are apart: a later run collects
        them."""
        with self._transaction():
            for key, owner, until in self._run(
                "SELECT key, owner, until FROM sends WHERE batch = ''"
            ):
                if _is_abandoned(owner, until):
                    self._settle(key, "", KILLED)

    def spent(self, run: str = "") -> float:
        """US dollars that a run has, or may have, spent, with what is under way at the most that it
        can cost."""
        ((dollars,),) = self._run(_SUM_SPENT_AND_UNDER_WAY, run)
        return float(dollars)

    def summarise_callers(self, run: str = "") -> dict[str, dict[str, Any]]:
        """By caller: ``calls`` (that were, or may have been, billed), ``prompt_tokens``,
        ``completion_tokens``, ``cost`` (None where one has no price), and of these
        ``possible_calls`` and ``possible_cost``."""
        return {
            caller: dict(zip(EMPTY_CALLER_ROW, values, strict=True))
            for caller, *values in self._run(_SUMMARISE_CALLERS, run)
        }

    # Batches that are about to be submitted, or that were submitted and are not collected yet. Like
    # the replies, they must survive a kill. `begin` notes a batch with its first line. A send's row
    # says which batch it is a line of, so runs that share a file wait only for batches that hold
    # lines of theirs.

    def name_batch(self, digest: str, batch_id: str) -> None:
        """Note the server's id of a batch."""
        self._run("UPDATE batches SET batch_id = ? WHERE digest = ?", batch_id, digest)

    def drop_batch(self, digest: str, status: str) -> None:
        """Forget a batch; its lines without a result end with this status."""
        with self._transaction():
            for key in self.list_batch_lines(digest):
                self._settle(key, digest, status)
            self._run("DELETE FROM batches WHERE digest = ?", digest)

    def find_batch_of(self, key: bytes) -> str | None:
        """The digest of a batch that holds the line of this key and is not collected yet."""
        sql = "SELECT MAX(batch) FROM sends WHERE key = ? AND batch != ''"
        ((digest,),) = self._run(sql, key)
        return digest

    def find_batch_id(self, digest: str) -> tuple[str | None, bool] | None:
        """The server's id of a batch (None: it is not submitted yet), and whether the process that
        submits it has ended, or is this one; None of a batch that somebody has collected."""
        rows = self._run("SELECT batch_id, owner FROM batches WHERE digest = ?", digest)
        for batch_id, owner in rows:
            return batch_id, owner == _identify_process() or _has_process_ended(owner)
        return None

    def list_batch_lines(self, digest: str) -> list[bytes]:
        """The keys of a batch's lines without a result."""
        return [key for (key,) in self._run("SELECT key FROM sends WHERE batch = ?", digest)]

    # Parameters that models refuse: one refusal is enough for all runs.

    def add_refused_param(self, server: str, model: str, name: str) -> None:
        """Remember that a model of a server does not take a parameter."""
        self._run("INSERT OR IGNORE INTO refused_params VALUES (?, ?, ?)", server, model, name)

    def list_refused_params(self, server: str, model: str) -> list[str]:
        """The parameters that a model of a server does not take."""
        sql = "SELECT name FROM refused_params WHERE server = ? AND model = ?"
        return [name for (name,) in self._run(sql, server, model)]

    def count_rows(self, table: str) -> int:
        """The number of rows of a table."""
        ((n_rows,),) = self._run(f"SELECT COUNT(*) FROM {table}")
        return int(n_rows)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    def _settle(
        self,
        key: bytes,
        batch: str,
        status: str,
        tokens: tuple[int, int] = (0, 0),
        cost: float | None = 0.0,
    ) -> None:
        """Turn a send into a count of what it has cost."""
        sql = "DELETE FROM sends WHERE key = ? AND batch = ?"
        sql += " RETURNING run, caller, prompt_tokens, most"
        for run, caller, prompt_tokens, most in self._run(sql, key, batch):
            if status in _COUNTED_AT_MOST:
                tokens, cost = (prompt_tokens, 0), most
            self._run(_COUNT_CALL, run, caller, status, *tokens, cost or 0.0, cost is None)

    def _run(self, sql: str, *values: Any) -> list[Any]:
        """The rows of a statement. It stands alone, or is part of the transaction that is under
        way."""
        with self._connect() as connection:
            return connection.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """One transaction, or a part of the one that is under way."""
        with self._connect() as connection:
            if connection.in_transaction:
                yield
                return
            connection.execute("BEGIN IMMEDIATE")
            with connection:  # commits, or rolls back
                yield

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """The connection, this thread's alone. What SQLite reports becomes a `FactauditError` that
        says what to do."""
        with self._lock:
            try:
                self._connection = self._connection or _open_file(self.path)
                yield self._connection
            except sqlite3.DatabaseError as error:
                said = str(error)
                if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                    said = _NO_STORE
                elif error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:
                    said += (
                        ". The file is damaged: move it away, and save what can be read with"
                        f" `sqlite3 DAMAGED .recover | sqlite3 {self.path}`, or start with another"
                        " cache=PATH"
                    )
                raise FactauditError(f"cache {self.path}: {said}") from error


def _open_file(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FactauditError(
                f"cache {path}: its folder cannot be created: {error.strerror}"
            ) from error
    connection = sqlite3.connect(
        path or ":memory:", timeout=60, isolation_level=None, check_same_thread=False
    )
    # One state of the file, which another process may be making now.
    connection.execute("BEGIN")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    connection.execute("COMMIT")
    if version != _SCHEMA_VERSION and (version or n_tables):
        connection.close()
        raise FactauditError(f"cache {path}: {_NO_STORE}")
    # Of two processes that make the file at once SQLite lets one fail rather than wait.
    for _ in range(100):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = WAL")
            break
        time.sleep(0.02)
    # In WAL mode, NORMAL loses nothing when the process dies; only a power cut may lose the last
    # replies.
    connection.execute("PRAGMA synchronous = NORMAL")
    if not n_tables:
        connection.executescript(
            f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT;"
        )
    return connection


def name_serving_model(reply: ChatReply) -> str | None:
    """Which model a reply is from, as the server says."""
    return f"{reply.model} ({reply.fingerprint})" if reply.fingerprint else reply.model


def summarise_reply_store(path: str | Path) -> dict[str, Any]:
    """What a file holds: ``{"path", "bytes", "replies", "open_batches"}``.

    Raises `FactauditError` without a file.
    """
    path = Path(path)
    if not path.is_file():
        raise FactauditError(f"cache {path}: there is no such file")
    store = ReplyStore(path)
    n_replies, n_batches = store.count_rows("replies"), store.count_rows("batches")
    store.close()
    size = path.stat().st_size
    return {"path": str(path), "bytes": size, "replies": n_replies, "open_batches": n_batches}


# Which process has a send under way, and is it still running? ---------------------------------


@cache
def _name_process(pid: int) -> str:
    return f"{socket.gethostname().replace(':', '_')}:{pid}:{uuid.uuid4().hex}"


def _identify_process() -> str:
    """A name of this process that no other one has, on this machine or another, now or later."""
    return _name_process(os.getpid())


def _has_process_ended(owner: str) -> bool:
    """Whether it is known that the process of this name has ended; of another machine's nobody
    knows."""
    own = _identify_process()
    host, pid, _ = owner.split(":")
    if owner == own or host != own.split(":")[0]:
        return False
    try:
        os.kill(int(pid), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return int(pid) == os.getpid()  # this process's number was another one's before


def _is_abandoned(owner: str, until: float) -> bool:
    """Whether nobody settles a send any more: its process has ended, or its time is over."""
    return until < time.time() or _has_process_ended(owner)
