"""Replies are bought once: one SQLite file that threads, processes and runs share. Cache, lease and
ledger are one.

`begin` says in one transaction what is to be done about a request: here is the reply; send it;
wait, because somebody asks it now; or do not, because the money is used up. What it lets go stands
in the table ``sends`` at the most that it can cost. `finish` keeps the reply, counts what it cost
and takes the send away, in another transaction. So nothing is asked twice, no limit is passed, and
what was answered survives a kill. A send whose reply never came (a timeout, a dropped connection, a
killed process) may have been charged for all the same: it counts at the most that it can cost.

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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json, to_json

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest

_SCHEMA_VERSION = 6
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY, server TEXT NOT NULL, model TEXT NOT NULL, revision TEXT NOT NULL,
  created INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  reply TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS sends (
  key BLOB NOT NULL, batch TEXT NOT NULL, run TEXT NOT NULL, caller TEXT NOT NULL,
  owner TEXT NOT NULL, until REAL NOT NULL, most REAL, prompt_tokens INTEGER NOT NULL,
  least_tokens INTEGER NOT NULL,
  PRIMARY KEY (key, batch)
);
CREATE INDEX IF NOT EXISTS sends_run ON sends (run);
CREATE INDEX IF NOT EXISTS sends_batch ON sends (batch);
CREATE TABLE IF NOT EXISTS spent (
  run TEXT NOT NULL, caller TEXT NOT NULL, status TEXT NOT NULL, served TEXT NOT NULL,
  calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
  cost REAL NOT NULL, unpriced INTEGER NOT NULL,
  PRIMARY KEY (run, caller, status, served)
);
CREATE TABLE IF NOT EXISTS batches (digest TEXT PRIMARY KEY, batch_id TEXT, owner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS refused_params (
  server TEXT NOT NULL, model TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (server, model, name)
);
"""
_COUNT_CALL = """
INSERT INTO spent VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET calls = calls + 1,
  prompt_tokens = prompt_tokens + excluded.prompt_tokens, cost = cost + excluded.cost,
  completion_tokens = completion_tokens + excluded.completion_tokens,
  unpriced = unpriced + excluded.unpriced
"""
_SUMMARISE_CALLERS = """
WITH calls AS (
  SELECT * FROM spent WHERE run = ?1 UNION ALL
  SELECT run, caller, 'killed', '', 1, prompt_tokens, 0, COALESCE(most, 0.0), most IS NULL
  FROM sends WHERE run = ?1
), told AS (SELECT *, status IN ('dropped', 'killed') AS possible FROM calls)
SELECT caller, SUM(calls * (status != 'not billed')), SUM(prompt_tokens), SUM(completion_tokens),
  CASE WHEN SUM(unpriced) THEN NULL ELSE SUM(cost) END, SUM(calls * possible), SUM(cost * possible),
  COALESCE(JSON_GROUP_ARRAY(served) FILTER (WHERE served != ''), '[]') FROM told GROUP BY caller
"""
_KEYS_PER_QUERY = 500
#: Only what is an answer is kept; an error or a prompt that was never sent is asked again.
KEPT_STATUSES = ("ok", "refused")
#: How a send ends other than with a reply. Malformed: with an answer that is none, which was paid
#: for. Not billed: the server said that it did not do the work, or was never reached. Dropped, or
#: killed with its process: unknown.
MALFORMED, NOT_BILLED, DROPPED, KILLED = "malformed", "not billed", "dropped", "killed"
#: What these cost is not known: they count at the most that they can cost.
_COUNTED_AT_MOST = (MALFORMED, DROPPED, KILLED)
#: Of a caller that has sent nothing.
EMPTY_CALLER_ROW: dict[str, Any] = {
    **dict.fromkeys(("calls", "prompt_tokens", "completion_tokens"), 0),
    "cost": 0.0,
    "possible_calls": 0,
    "possible_cost": 0.0,
    "served": (),
}
#: Seconds for which a send of another machine is believed to be under way; of this one's processes
#: it is known.
_FOREIGN_SEND_SECONDS = 900.0
#: How often it is looked which processes have ended, where money is held up.
_SECONDS_BETWEEN_LOOKS = 1.0
_NO_STORE = (
    "this file is not a cache of replies of this version; nothing was changed. Give another"
    " cache=PATH"
)
_HEADER_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)

#: The sends that this process has under way: file and key.
_under_way: set[tuple[str, bytes]] = set()


def default_cache_path() -> Path:
    """``$FACTAUDIT_CACHE``, else ``.cache/factaudit/llm.sqlite`` under the working directory."""
    return Path(os.environ.get("FACTAUDIT_CACHE") or ".cache/factaudit/llm.sqlite")


def hash_request(model: str, request: ChatRequest, revision: str = "", server: str = "") -> bytes:
    """The 32 bytes under which a reply is kept."""
    header = _HEADER_ENCODER.encode([model, revision, dict(request.params), server])
    hashed = hashlib.sha256(header.encode("utf-8", "surrogatepass"))
    for message in request.messages:
        for name in sorted(message):
            data = message[name].encode("utf-8", "surrogatepass")
            hashed.update(b"%s\x00%d\x00" % (name.encode(), len(data)))
            hashed.update(data)
        hashed.update(b"\x01")
    return hashed.digest()


@dataclass(frozen=True, slots=True)
class Send:
    """A request that is to be sent, for whom, and the most that it can cost (US dollars; None: no
    price is known).

    prompt_tokens: about so many; least_tokens: at least so many, whatever the tokenizer. batch: the
    digest of the batch that it is a line of.
    """

    key: bytes
    run: str = ""
    caller: str = ""
    most_cost: float | None = None
    prompt_tokens: int = 0
    least_tokens: int = 0
    batch: str = ""


class ReplyStore:
    """Replies, what is being asked, and what was spent; without a path in memory. Safe in several
    threads.

    Raises `FactauditError` where the file is no store of this version, is damaged, or cannot be
    made.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        #: Two of one name are one file.
        self.name = f"memory {id(self)}" if path is None else str(Path(path).absolute())
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._look_at = 0.0
        with self._connect():
            pass

    def get(self, key: bytes) -> ChatReply | None:
        """The reply under one key, marked as cached, or None."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[ChatReply | None]:
        """The replies under many keys, None where there is none."""
        found: dict[bytes, ChatReply] = {}
        with self._connect() as connection:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                part = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                sql = f"SELECT key, created, reply FROM replies WHERE key IN ({marks})"
                found |= {
                    one: _parse_reply(created, text)
                    for one, created, text in connection.execute(sql, part)
                }
        return [found.get(key) for key in keys]

    def begin(
        self, send: Send, max_cost: float | None = None, keep: bool = True
    ) -> ChatReply | Literal["send", "wait", "full", "over"]:
        """The reply, or who sends: we (``send``), somebody else (``wait``), nobody for that money.

        ``full``: the limit could be passed beside what is under way; ``over``: it could whatever
        becomes of that.
        max_cost: of the run, US dollars. keep: False of a file that is no cache: replies are not
        looked for.
        """
        with self._write() as connection:
            if keep and (reply := self.get(send.key)) is not None:
                return reply
            sql = "SELECT owner, until FROM sends WHERE key = ? AND batch = ?"
            row = connection.execute(sql, (send.key, send.batch)).fetchone()
            if row is not None:
                if not self._is_abandoned(send.key, *row):
                    return "wait"
                self._settle(connection, send.key, send.batch, KILLED)
            if max_cost is not None:
                most = send.most_cost or 0.0
                if self._sum_spent(connection, send.run) + most > max_cost:
                    return "over"
                if self.spent(send.run) + most > max_cost:
                    if time.monotonic() > self._look_at:
                        self._look_at = time.monotonic() + _SECONDS_BETWEEN_LOOKS
                        self.settle_ended_processes()  # nothing more will come of those
                    return "full"
            values = (send.key, send.batch, send.run, send.caller, _identify_process())
            more = (
                time.time() + _FOREIGN_SEND_SECONDS,
                send.most_cost,
                send.prompt_tokens,
                send.least_tokens,
            )
            connection.execute(
                "INSERT INTO sends VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*values, *more)
            )
            if send.batch:
                sql = "INSERT OR IGNORE INTO batches VALUES (?, NULL, ?)"
                connection.execute(sql, (send.batch, _identify_process()))
            else:
                _under_way.add((self.name, send.key))
            return "send"

    def finish(
        self,
        key: bytes,
        status: str,
        tokens: tuple[int, int] = (0, 0),
        cost: float | None = 0.0,
        *,
        reply: ChatReply | None = None,
        origin: tuple[str, str, str] | None = None,
        batch: str = "",
    ) -> tuple[str, str] | None:
        """Write down how a send ended, and let others ask where no reply came. Returns the run and
        the caller that have paid; None where it was no send (any more).

        tokens: of prompt and reply. A send that came to nothing, and may have been billed, counts
        at what `begin` was
        told. reply, origin: what is to be kept, with its server, model and revision. The first
        reply to a key stays.
        """
        try:
            with self._write() as connection:
                if reply is not None and origin is not None:
                    counts = (reply.prompt_tokens, reply.completion_tokens)
                    row = (key, *origin, int(time.time()), *counts, _dump_reply(reply))
                    connection.execute(
                        "INSERT OR IGNORE INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                    )
                served = "" if reply is None else name_serving_model(reply) or ""
                return self._settle(connection, key, batch, status, tokens, cost, served)
        finally:
            _under_way.discard((self.name, key))

    def settle_ended_processes(self) -> None:
        """Settle what processes that have ended left open: batches, which a later run collects,
        apart."""
        with self._write() as connection:
            for key, owner, until in connection.execute(
                "SELECT key, owner, until FROM sends WHERE batch = ''"
            ).fetchall():
                if self._is_abandoned(key, owner, until):
                    self._settle(connection, key, "", KILLED)

    def spent(self, run: str = "") -> float:
        """US dollars that a run has spent, or may have, with what is under way at the most that it
        can cost."""
        with self._connect() as connection:
            sql = "SELECT COALESCE(SUM(most), 0.0) FROM sends WHERE run = ?"
            (most,) = connection.execute(sql, (run,)).fetchone()
            return float(most) + self._sum_spent(connection, run)

    def summarise_callers(self, run: str = "") -> dict[str, dict[str, Any]]:
        """By caller: ``calls`` (that were, or may have been, billed), ``prompt_tokens``,
        ``completion_tokens``, ``cost`` (None where one has no price), of these ``possible_calls``
        and ``possible_cost``, and the models that ``served``."""
        with self._connect() as connection:
            rows = connection.execute(_SUMMARISE_CALLERS, (run,)).fetchall()
        return {
            caller: dict(zip(EMPTY_CALLER_ROW, (*values, tuple(json.loads(served))), strict=True))
            for caller, *values, served in rows
        }

    # Batches that are about to be submitted, or were and are not collected yet: their state must
    # survive a kill as the replies do. `begin` notes one with its first line. A send's row says
    # which batch it is a line of: runs that share a file wait for one another's batches only where
    # these hold lines of theirs.

    def name_batch(self, digest: str, batch_id: str) -> None:
        """Note the server's id of a batch."""
        with self._write() as connection:
            connection.execute(
                "UPDATE batches SET batch_id = ? WHERE digest = ?", (batch_id, digest)
            )

    def drop_batch(self, digest: str, status: str) -> None:
        """Forget a batch; its lines without a result end with this status."""
        with self._write() as connection:
            for key in self.list_batch_lines(digest):
                self._settle(connection, key, digest, status)
            connection.execute("DELETE FROM batches WHERE digest = ?", (digest,))

    def find_batch_of(self, key: bytes) -> str | None:
        """The digest of a batch that holds the line of this key and is not collected yet."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT batch FROM sends WHERE key = ? AND batch != ''", (key,)
            ).fetchone()
        return None if row is None else row[0]

    def find_batch_id(self, digest: str) -> tuple[str | None, bool] | None:
        """The server's id of a batch (None: it is not submitted yet) and whether who submits it has
        ended; None of a batch that somebody has collected."""
        with self._connect() as connection:
            sql = "SELECT batch_id, owner FROM batches WHERE digest = ?"
            row = connection.execute(sql, (digest,)).fetchone()
        return (
            None
            if row is None
            else (row[0], row[1] == _identify_process() or bool(_has_process_ended(row[1])))
        )

    def list_batch_lines(self, digest: str) -> dict[bytes, int]:
        """By key of a batch's lines without a result: the least number of tokens that the prompt
        has."""
        with self._connect() as connection:
            return dict(
                connection.execute("SELECT key, least_tokens FROM sends WHERE batch = ?", (digest,))
            )

    # Parameters that models refuse: one refusal is enough for all runs.

    def add_refused_param(self, server: str, model: str, name: str) -> None:
        """Remember that a model of a server does not take a parameter."""
        with self._write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO refused_params VALUES (?, ?, ?)", (server, model, name)
            )

    def list_refused_params(self, server: str, model: str) -> list[str]:
        """The parameters that a model of a server does not take."""
        sql = "SELECT name FROM refused_params WHERE server = ? AND model = ?"
        with self._connect() as connection:
            return [name for (name,) in connection.execute(sql, (server, model))]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self.path is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> ReplyStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settle(
        self,
        connection: sqlite3.Connection,
        key: bytes,
        batch: str,
        status: str,
        tokens: tuple[int, int] = (0, 0),
        cost: float | None = 0.0,
        served: str = "",
    ) -> tuple[str, str] | None:
        sql = (
            "DELETE FROM sends WHERE key = ? AND batch = ? RETURNING run, caller, prompt_tokens,"
            " most"
        )
        if (row := connection.execute(sql, (key, batch)).fetchone()) is None:
            return None
        run, caller, asked_tokens, most = row
        if status in _COUNTED_AT_MOST:
            tokens, cost = (asked_tokens, 0), most
        connection.execute(
            _COUNT_CALL, (run, caller, status, served, *tokens, cost or 0.0, cost is None)
        )
        return run, caller

    @staticmethod
    def _sum_spent(connection: sqlite3.Connection, run: str) -> float:
        return float(
            connection.execute(
                "SELECT COALESCE(SUM(cost), 0.0) FROM spent WHERE run = ?", (run,)
            ).fetchone()[0]
        )

    def _is_abandoned(self, key: bytes, owner: str, until: float) -> bool:
        if owner == _identify_process():
            return (self.name, key) not in _under_way
        ended = _has_process_ended(owner)
        return until < time.time() if ended is None else ended

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, or a part of the one that is under way."""
        with self._connect() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """The connection, this thread's alone; what SQLite reports is a `FactauditError` that says
        what to do."""
        with self._lock:
            try:
                self._connection = self._connection or _open_file(self.path)
                yield self._connection
            except sqlite3.DatabaseError as error:
                said = f"cache {self.path}: {error}"
                if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                    said = f"cache {self.path}: {_NO_STORE}"
                elif error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT:
                    said += (
                        ". The file is damaged: move it away, and save what can be read with"
                        f" `sqlite3 DAMAGED .recover | sqlite3 {self.path}`, or start with another"
                        " cache=PATH"
                    )
                raise FactauditError(said) from error


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
    connection.execute("BEGIN")  # one state of the file, which another process may be making now
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    connection.execute("COMMIT")
    if (tables or version) and (version != _SCHEMA_VERSION or "replies" not in tables):
        connection.close()
        raise FactauditError(f"cache {path}: {_NO_STORE}")
    # Of two processes that make the file at once SQLite lets one fail rather than wait.
    for attempt in range(100):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or attempt == 99:
                raise
            time.sleep(0.02)
    # In WAL mode, NORMAL loses nothing when the process dies; only a power cut may lose the last
    # replies.
    connection.execute("PRAGMA synchronous = NORMAL")
    if not tables:
        connection.executescript(
            f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT;"
        )
    return connection


def name_serving_model(reply: ChatReply) -> str | None:
    """Which model a reply is from, as the server says."""
    return f"{reply.model} ({reply.fingerprint})" if reply.fingerprint else reply.model


def summarise_reply_store(path: str | Path) -> dict[str, Any]:
    """What a file holds: ``{"path", "bytes", "replies", "open_batches", "models": [row]}``.

    A row is ``{"model", "revision", "server", "replies", "prompt_tokens", "completion_tokens",
    "oldest", "newest"}``: the last two are ISO dates. Raises `FactauditError` without a file.
    """
    path = Path(path)
    if not path.is_file():
        raise FactauditError(f"cache {path}: there is no such file")
    names = (
        "model",
        "revision",
        "server",
        "replies",
        "prompt_tokens",
        "completion_tokens",
        "oldest",
        "newest",
    )
    with ReplyStore(path) as store, store._connect() as connection:
        rows = connection.execute(
            "SELECT model, revision, server, COUNT(*), SUM(prompt_tokens), SUM(completion_tokens),"
            " date(MIN(created), 'unixepoch'), date(MAX(created), 'unixepoch')"
            " FROM replies GROUP BY model, revision, server ORDER BY model, revision, server"
        ).fetchall()
        (batches,) = connection.execute("SELECT COUNT(*) FROM batches").fetchone()
    parts = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return {
        "path": str(path),
        "bytes": sum(part.stat().st_size for part in parts if part.exists()),
        "replies": sum(row[3] for row in rows),
        "open_batches": batches,
        "models": [dict(zip(names, row, strict=True)) for row in rows],
    }


def _dump_reply(reply: ChatReply) -> str:
    kept = {name: value for name, value in vars(reply).items() if name not in ("cached", "created")}
    if reply.tokens is not None:
        kept["tokens"] = [(token.text, token.logprob, token.alternatives) for token in reply.tokens]
    return to_json(kept).decode()


def _parse_reply(created: int, text: str) -> ChatReply:
    kept = from_json(text)
    if kept["tokens"] is not None:
        kept["tokens"] = tuple(ChatReplyToken(*token) for token in kept["tokens"])
    return ChatReply(**kept, cached=True, created=created)


# Which process has a send under way, and is it still running?
# -------------------------------------------------------


def _identify_process() -> str:
    """A name of this process that no other one has, on this machine or another, now or later."""
    return _name_process(os.getpid())


@cache
def _name_process(pid: int) -> str:
    return f"{socket.gethostname().replace(':', '_')}:{pid}:{_read_process_start(pid)}"


def _has_process_ended(owner: str) -> bool | None:
    """Whether the process of this name has ended; None of another machine's: nobody knows."""
    host, pid, started = owner.split(":")
    if host != _identify_process().split(":")[0]:
        return None
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's
        return False
    # Another process may have been given the number since.
    return _read_process_start(int(pid)) != started


def _read_process_start(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
