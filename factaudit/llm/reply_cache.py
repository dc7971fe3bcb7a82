"""Was this reply already bought? One SQLite file that several processes can use at the same time.

The key is the SHA-256 of everything that can change a reply: the server, the model, every sampling parameter, the
messages, and a revision that the user sets. The value is the whole reply. Errors are never kept, and neither are keys.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic_core import from_json, to_json

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.process_identity import has_process_ended, identify_this_process
from factaudit.llm.sqlite_transactions import hold_sqlite_transaction

_SCHEMA_VERSION = 4
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY, model TEXT NOT NULL, revision TEXT NOT NULL, created INTEGER NOT NULL,
  status TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, tokens TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, served TEXT, fingerprint TEXT,
  server TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS refused_params (
  server TEXT NOT NULL, model TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (server, model, name)
);
CREATE TABLE IF NOT EXISTS batches (digest TEXT PRIMARY KEY, batch_id TEXT, owner TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batch_lines (
  key BLOB NOT NULL, digest TEXT NOT NULL, least_tokens INTEGER NOT NULL, PRIMARY KEY (key, digest)
);
"""
_REPLY_COLUMNS = (
    "key, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint, created"
)
#: Seconds for which another machine's lease is believed; of one that ended here the process is known to be gone.
_LEASE_SECONDS = 900.0
#: Only what is an answer is kept; an error or a prompt that was never sent is asked again.
KEPT_STATUSES = ("ok", "refused")
_KEYS_PER_QUERY = 500
_HEADER_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)

_T = TypeVar("_T")


def default_cache_path() -> Path:
    """``$FACTAUDIT_CACHE``, else ``.cache/factaudit/llm.sqlite`` under the working directory."""
    return Path(os.environ.get("FACTAUDIT_CACHE") or ".cache/factaudit/llm.sqlite")


def hash_cached_request(model: str, request: ChatRequest, revision: str = "", server: str = "") -> bytes:
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


class ReplyCache:
    """Replies by key. A write is its own transaction, or part of `together`: what was answered survives a kill.

    Safe to use from several threads and processes. Raises `FactauditError` where the file is no cache, is damaged,
    cannot be made, or is of another version. ``read_only``: nothing is written.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        # Two clients of one process are two, as those of two processes are.
        self._owner = f"{identify_this_process()}/{secrets.token_hex(4)}"
        self._run_guarded(lambda connection: None)

    def get(self, key: bytes) -> ChatReply | None:
        """The reply under one key, marked as cached, or None."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[ChatReply | None]:
        """The replies under many keys, None where there is none; a few hundred to a query."""

        def read(connection: sqlite3.Connection) -> dict[bytes, ChatReply | None]:
            found: dict[bytes, ChatReply | None] = {}
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                part = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(part))
                rows = connection.execute(f"SELECT {_REPLY_COLUMNS} FROM replies WHERE key IN ({marks})", part)
                found |= {row[0]: _parse_cached_reply(row) for row in rows}
            return found

        found = self._run_guarded(read)
        return [found.get(key) for key in keys]

    def put(self, key: bytes, model: str, revision: str, reply: ChatReply, server: str = "") -> bool:
        """Keep a reply where its status is ok or refused; True where it is new. The first reply to a key stays."""
        if reply.status not in KEPT_STATUSES:
            return False
        tokens = None if reply.tokens is None else _dump_reply_tokens(reply.tokens)
        answer = (reply.status, reply.text, reply.finish_reason, tokens, reply.prompt_tokens, reply.completion_tokens)
        row = (key, model, revision, int(time.time()), *answer, reply.model, reply.fingerprint, server)
        sql = f"INSERT INTO replies VALUES ({','.join('?' * len(row))}) ON CONFLICT(key) DO NOTHING"

        def write(connection: sqlite3.Connection) -> bool:
            with hold_sqlite_transaction(connection):
                new = connection.execute(sql, row).rowcount == 1
                connection.execute("DELETE FROM leases WHERE key = ?", (key,))
            return new

        return self._run_guarded(write)

    def run_in_transaction(self, writes: Sequence[Callable[[], _T]]) -> list[_T]:
        """What each of these gives that use the cache; all that they write is one transaction."""

        def write(connection: sqlite3.Connection) -> list[_T]:
            with hold_sqlite_transaction(connection):
                return [work() for work in writes]

        return self._run_guarded(write)

    # Who is asking for what now, so that two processes do not pay for the same reply.

    def take_lease(self, key: bytes) -> bool:
        """Whether this cache may ask for a reply: nobody has, and nobody else is about to.

        A claim ends by `put` or `release`; one whose process has ended counts for nothing.
        """

        def write(connection: sqlite3.Connection) -> bool:
            now = time.time()
            sql = (
                "INSERT INTO leases SELECT ?, ?, ? WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?)"
                " ON CONFLICT(key) DO UPDATE SET owner = excluded.owner, until = excluded.until"
                " WHERE owner = excluded.owner OR until < ?"
            )
            if connection.execute(sql, (key, self._owner, now + _LEASE_SECONDS, key, now)).rowcount == 1:
                return True
            row = connection.execute("SELECT owner FROM leases WHERE key = ?", (key,)).fetchone()
            if row is not None and has_process_ended(row[0]):
                connection.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, row[0]))
            return False

        return self._run_guarded(write)

    def release_lease(self, key: bytes) -> None:
        """Give up a claim: no reply has come."""
        sql = "DELETE FROM leases WHERE key = ? AND owner = ?"
        self._run_guarded(lambda connection: connection.execute(sql, (key, self._owner)))

    # Batches that were submitted and not yet collected: their state must survive a kill as the replies do. A line's key
    # tells whose it is: runs that share a cache wait for one another's batches only where these hold lines of theirs.

    def add_batch(self, digest: str, lines: Sequence[tuple[bytes, int]]) -> None:
        """Note, before it is submitted, that a batch of this digest is about to be, with its lines' keys and the least
        number of tokens that each prompt has."""

        def write(connection: sqlite3.Connection) -> None:
            with hold_sqlite_transaction(connection):
                owner = identify_this_process()
                connection.execute("INSERT OR REPLACE INTO batches VALUES (?, NULL, ?)", (digest, owner))
                rows = [(key, digest, least_tokens) for key, least_tokens in lines]
                connection.executemany("INSERT OR REPLACE INTO batch_lines VALUES (?, ?, ?)", rows)

        self._run_guarded(write)

    def name_batch(self, digest: str, batch_id: str) -> None:
        """Note the server's id of a batch."""
        self._run_guarded(lambda c: c.execute("UPDATE batches SET batch_id = ? WHERE digest = ?", (batch_id, digest)))

    def drop_batch(self, digest: str) -> None:
        """Forget a batch: its results are in the cache, or it will never have any."""

        def write(connection: sqlite3.Connection) -> None:
            with hold_sqlite_transaction(connection):
                connection.execute("DELETE FROM batches WHERE digest = ?", (digest,))
                connection.execute("DELETE FROM batch_lines WHERE digest = ?", (digest,))

        self._run_guarded(write)

    def find_open_batch(self, key: bytes) -> str | None:
        """The digest of a batch that holds the line of this key and is not collected yet."""
        sql = "SELECT digest FROM batch_lines WHERE key = ?"
        row = self._run_guarded(lambda c: c.execute(sql, (key,)).fetchone())
        return None if row is None else row[0]

    def find_batch_id(self, digest: str) -> tuple[str | None, bool] | None:
        """The server's id of a batch (None: it is not submitted yet) and whether who submits it has ended; None of a
        batch that somebody has collected."""
        sql = "SELECT batch_id, owner FROM batches WHERE digest = ?"
        row = self._run_guarded(lambda c: c.execute(sql, (digest,)).fetchone())
        return None if row is None else (row[0], row[1] == identify_this_process() or has_process_ended(row[1]))

    def find_batch_line_tokens(self, digest: str) -> dict[bytes, int]:
        """By key of a batch's lines: the least number of tokens that the prompt has."""
        sql = "SELECT key, least_tokens FROM batch_lines WHERE digest = ?"
        return self._run_guarded(lambda c: dict(c.execute(sql, (digest,)).fetchall()))

    # Parameters that models refuse: one refusal is enough for all runs.

    def add_refused_param(self, server: str, model: str, name: str) -> None:
        """Remember that a model of a server does not take a parameter."""
        row = (server, model, name)
        self._run_guarded(lambda c: c.execute("INSERT OR IGNORE INTO refused_params VALUES (?,?,?)", row))

    def list_refused_params(self, server: str, model: str) -> list[str]:
        """The parameters that a model of a server does not take."""
        sql = "SELECT name FROM refused_params WHERE server = ? AND model = ?"
        return self._run_guarded(lambda c: [name for (name,) in c.execute(sql, (server, model))])

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> ReplyCache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_guarded(self, query: Callable[[sqlite3.Connection], Any]) -> Any:
        """``query(connection)``; what SQLite reports is a `FactauditError` that says what to do."""
        with self._lock:
            try:
                return query(self._open_connection())
            except sqlite3.DatabaseError as error:
                said = f"cache {self.path}: {error}"
                if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                    said += (
                        f". The file is damaged: move it away, and save what can be read with"
                        f" `sqlite3 DAMAGED .recover | sqlite3 {self.path}`, or start with another cache=PATH"
                    )
                raise FactauditError(said) from error

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._connect_file()
            connection.execute("BEGIN")  # one state of the file, which another process may be making now
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            connection.execute("COMMIT")
            is_cache = "replies" in tables
            if tables and not is_cache:
                connection.close()
                raise FactauditError(f"cache {self.path}: this file is not a cache of replies; nothing was changed")
            if version != _SCHEMA_VERSION and (is_cache or version):
                connection.close()
                raise FactauditError(f"cache {self.path}: made by another version ({version}); give another path")
            if self.read_only and not is_cache:  # an empty file stays empty
                connection.close()
                connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
                connection.executescript(_SCHEMA)
            if not self.read_only:
                _set_write_ahead_log(connection)
            if not self.read_only and not is_cache:
                connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT;")
            self._connection = connection
        return self._connection

    def _connect_file(self) -> sqlite3.Connection:
        if self.path.exists() and not _may_be_database(self.path):
            raise FactauditError(f"cache {self.path}: this file is not a cache of replies; nothing was changed")
        if self.read_only:
            # Without a log beside it nobody is writing to it, and it can be read without making one.
            mode = "mode=ro" if self.path.with_name(f"{self.path.name}-wal").exists() else "immutable=1"
            address = f"file:{quote(str(self.path.absolute()))}?{mode}"
            return sqlite3.connect(address, uri=True, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FactauditError(f"cache {self.path}: its folder cannot be created: {error.strerror}") from error
        return sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)


def _may_be_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(16)
    return not head or head == b"SQLite format 3\0"


def _set_write_ahead_log(connection: sqlite3.Connection) -> None:
    # Of two processes that make the file at once SQLite lets one fail rather than wait.
    for attempt in range(100):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or attempt == 99:
                raise
            time.sleep(0.02)
    # In WAL mode, NORMAL loses nothing when the process dies; only a power cut may lose the last replies.
    connection.execute("PRAGMA synchronous = NORMAL")


def summarise_reply_cache(path: str | Path) -> dict[str, Any]:
    """What a cache holds: ``{"path", "bytes", "replies", "open_batches", "models": [row]}``.

    A row is ``{"model", "revision", "server", "replies", "prompt_tokens", "completion_tokens", "oldest", "newest"}``:
    the last two are ISO dates. Raises `FactauditError` without a file.
    """
    with _open_existing_cache(path) as cache:
        rows = cache._run_guarded(
            lambda c: c.execute(
                "SELECT model, revision, server, COUNT(*), SUM(prompt_tokens), SUM(completion_tokens),"
                " date(MIN(created), 'unixepoch'), date(MAX(created), 'unixepoch')"
                " FROM replies GROUP BY model, revision, server ORDER BY model, revision, server"
            ).fetchall()
        )
        (batches,) = cache._run_guarded(lambda c: c.execute("SELECT COUNT(*) FROM batches").fetchone())
        names = ("model", "revision", "server", "replies", "prompt_tokens", "completion_tokens", "oldest", "newest")
        return {
            "path": str(cache.path),
            "bytes": sum(part.stat().st_size for part in _list_database_files(cache.path)),
            "replies": sum(row[3] for row in rows),
            "open_batches": batches,
            "models": [dict(zip(names, row, strict=True)) for row in rows],
        }


def _list_database_files(path: Path) -> list[Path]:
    """The files of a database that exist: its own, and in WAL mode two more."""
    parts = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return [part for part in parts if part.exists()]


def _open_existing_cache(path: str | Path, read_only: bool = True) -> ReplyCache:
    if not Path(path).is_file():
        raise FactauditError(f"cache {path}: there is no such file")
    return ReplyCache(path, read_only=read_only)


def _parse_cached_reply(row: tuple[Any, ...]) -> ChatReply:
    _, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint, created = row
    parsed = None if tokens is None else tuple(ChatReplyToken(*token) for token in from_json(tokens))
    return ChatReply(
        *(status, text, finish_reason, parsed, prompt_tokens, completion_tokens),
        cached=True,
        model=served,
        fingerprint=fingerprint,
        created=created,
    )


def _dump_reply_tokens(tokens: Sequence[ChatReplyToken]) -> str:
    rows = [[token.text, token.logprob, dict(token.alternatives)] for token in tokens]
    return to_json(rows).decode()
