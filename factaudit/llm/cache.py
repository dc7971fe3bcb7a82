"""Replies are bought once: one SQLite file that several processes may use at the same time.

The key is the SHA-256 of everything that can change a reply: the model, every sampling parameter, the messages, and a
revision that the user sets. The value is the whole reply. Errors are never kept, and neither are keys or addresses.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic_core import from_json, to_json

from factaudit.errors import FactauditError
from factaudit.files import atomic
from factaudit.llm.owner import is_gone, this_process
from factaudit.llm.salvage import is_cache, salvage
from factaudit.llm.types import Reply, Request, Token
from factaudit.llm.writes import transaction

_SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY, model TEXT NOT NULL, revision TEXT NOT NULL, created INTEGER NOT NULL,
  status TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, tokens TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, served TEXT, fingerprint TEXT
);
CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
  digest TEXT PRIMARY KEY, server TEXT NOT NULL, model TEXT NOT NULL, batch_id TEXT, created INTEGER NOT NULL
);
"""
#: Since version 2: which model a reply is from, and who is asking for one now.
_FROM_1 = """
ALTER TABLE replies ADD COLUMN served TEXT;
ALTER TABLE replies ADD COLUMN fingerprint TEXT;
CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
"""
#: What an earlier version's file looks like to a reader that may not write: a new one's tables, for it alone.
_AS_NOW = (
    _SCHEMA.replace("CREATE TABLE", "CREATE TEMP TABLE"),
    "CREATE TEMP VIEW replies AS SELECT *, NULL AS served, NULL AS fingerprint FROM main.replies;",
)
_COLUMNS = "key, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint"
#: Seconds for which another machine's lease is believed; of one that ended here the process is known to be gone.
_LEASE = 900.0
#: Only what is an answer is kept; an error or a prompt that was never sent is asked again.
KEPT = ("ok", "refused")
_SELECT_SIZE = 500
_HEADER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_T = TypeVar("_T")


def default_path() -> Path:
    """``$FACTAUDIT_CACHE``, else ``.cache/factaudit/llm.sqlite`` under the working directory."""
    return Path(os.environ.get("FACTAUDIT_CACHE") or ".cache/factaudit/llm.sqlite")


def request_key(model: str, request: Request, revision: str = "") -> bytes:
    """The 32 bytes under which a reply is kept."""
    header = _HEADER.encode([model, revision, dict(request.params)])
    hashed = hashlib.sha256(header.encode("utf-8", "surrogatepass"))
    for message in request.messages:
        for name in sorted(message):
            data = message[name].encode("utf-8", "surrogatepass")
            hashed.update(b"%s\x00%d\x00" % (name.encode(), len(data)))
            hashed.update(data)
        hashed.update(b"\x01")
    return hashed.digest()


class Cache:
    """Replies by key. A write is its own transaction, or part of `together`: what was answered survives a kill.

    A damaged file is renamed to ``NAME.damaged-TIME``, and what can be read of it is put into a new one; that is a
    `FactauditError`, since what is lost would be paid for again: who uses the cache once more agrees to it. Safe to use
    from several threads and processes. Raises `FactauditError` where the file is no cache, cannot be made, or is of
    another version. ``read_only``: nothing is written, not even to mend.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        # Two clients of one process are two, as those of two processes are.
        self._owner = f"{this_process()}/{secrets.token_hex(4)}"
        self._guarded(lambda connection: None)

    def get(self, key: bytes) -> Reply | None:
        """The reply under one key, marked as cached, or None."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[Reply | None]:
        """The replies under many keys, None where there is none; a few hundred to a query."""

        def read(connection: sqlite3.Connection) -> dict[bytes, Reply | None]:
            found: dict[bytes, Reply | None] = {}
            for start in range(0, len(keys), _SELECT_SIZE):
                part = keys[start : start + _SELECT_SIZE]
                marks = ",".join("?" * len(part))
                rows = connection.execute(f"SELECT {_COLUMNS} FROM replies WHERE key IN ({marks})", part)
                for row in rows:
                    found[row[0]] = _reply(row)
            return found

        found = self._guarded(read)
        return [found.get(key) for key in keys]

    def put(self, key: bytes, model: str, revision: str, reply: Reply) -> bool:
        """Keep a reply where its status is ok or refused; True where it is new. The first reply to a key stays."""
        if reply.status not in KEPT:
            return False
        tokens = None if reply.tokens is None else _dump(reply.tokens)
        row = (
            key,
            model,
            revision,
            int(time.time()),
            reply.status,
            reply.text,
            reply.finish_reason,
            tokens,
            reply.prompt_tokens,
            reply.completion_tokens,
            reply.model,
            reply.fingerprint,
        )
        sql = f"INSERT INTO replies VALUES ({','.join('?' * len(row))}) ON CONFLICT(key) DO NOTHING"

        def write(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                new = connection.execute(sql, row).rowcount == 1
                connection.execute("DELETE FROM leases WHERE key = ?", (key,))
            return new

        return self._guarded(write)

    def together(self, works: Sequence[Callable[[], _T]]) -> list[_T]:
        """What each of these gives that use the cache; all that they write is one transaction."""

        def write(connection: sqlite3.Connection) -> list[_T]:
            with transaction(connection):
                return [work() for work in works]

        return self._guarded(write)

    # Who is asking for what now, so that two processes do not pay for the same reply.

    def claim(self, key: bytes) -> bool:
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
            if connection.execute(sql, (key, self._owner, now + _LEASE, key, now)).rowcount == 1:
                return True
            row = connection.execute("SELECT owner FROM leases WHERE key = ?", (key,)).fetchone()
            if row is not None and is_gone(row[0]):
                connection.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, row[0]))
            return False

        return self._guarded(write)

    def release(self, key: bytes) -> None:
        """Give up a claim: no reply has come."""
        sql = "DELETE FROM leases WHERE key = ? AND owner = ?"
        self._guarded(lambda connection: connection.execute(sql, (key, self._owner)))

    # Batches that were submitted and not yet collected: their state must survive a kill as the replies do.

    def add_batch(self, digest: str, server: str, model: str) -> None:
        """Note, before it is submitted, that a batch of this digest is about to be."""
        row = (digest, server, model, None, int(time.time()))
        self._guarded(lambda c: c.execute("INSERT OR REPLACE INTO batches VALUES (?,?,?,?,?)", row))

    def name_batch(self, digest: str, batch_id: str) -> None:
        """Note the server's id of a batch."""
        self._guarded(lambda c: c.execute("UPDATE batches SET batch_id = ? WHERE digest = ?", (batch_id, digest)))

    def drop_batch(self, digest: str) -> None:
        """Forget a batch: its results are in the cache, or it will never have any."""
        self._guarded(lambda c: c.execute("DELETE FROM batches WHERE digest = ?", (digest,)))

    def open_batches(self, server: str, model: str) -> dict[str, str | None]:
        """Digest to id (None where the submission was cut off) of what was submitted to ``server`` for ``model``."""
        sql = "SELECT digest, batch_id FROM batches WHERE server = ? AND model = ? ORDER BY created, digest"
        return self._guarded(lambda c: dict(c.execute(sql, (server, model)).fetchall()))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _guarded(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """Run ``work(connection)``; where the file proves damaged, mend it and raise `FactauditError` that says so."""
        with self._lock:
            try:
                return work(self._open())
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", None) not in _DAMAGE:
                    raise FactauditError(f"cache {self.path}: {error}") from error
                if self.read_only:
                    raise FactauditError(f"cache {self.path}: damaged ({error}); a run mends it") from error
                self._mend(error)
                return work(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._connect()
            self._inode = self.path.stat().st_ino
            self._connection = connection
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, 1, _SCHEMA_VERSION):
                self.close()
                raise FactauditError(f"cache {self.path}: made by another version ({version}); give another path")
            if self.read_only:
                if version < _SCHEMA_VERSION:
                    connection.executescript(_AS_NOW[version])
                return connection
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode, NORMAL loses nothing when the process dies; only a power cut may lose the last replies.
            connection.execute("PRAGMA synchronous = NORMAL")
            if version == 0:
                connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_SCHEMA_VERSION};COMMIT;")
            elif version == 1:
                self._migrate(connection)
        return self._connection

    def _connect(self) -> sqlite3.Connection:
        if self.path.exists() and not (self.path.is_file() and is_cache(self.path)):
            raise FactauditError(f"cache {self.path}: this is no cache of replies, and is left as it is")
        if self.read_only:
            # Without a log beside it nobody is writing to it, and it can be read without making one.
            mode = "mode=ro" if self.path.with_name(f"{self.path.name}-wal").exists() else "immutable=1"
            address = f"file:{quote(str(self.path.absolute()))}?{mode}"
            return sqlite3.connect(address, uri=True, timeout=60, isolation_level=None, check_same_thread=False)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FactauditError(f"cache {self.path}: cannot make its folder: {error.strerror}") from error
        return sqlite3.connect(self.path, timeout=60, isolation_level=None, check_same_thread=False)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have done it while this one waited.
            if connection.execute("PRAGMA user_version").fetchone() == (1,):
                for statement in filter(str.strip, _FROM_1.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
        finally:
            connection.execute("COMMIT")

    def _mend(self, error: sqlite3.DatabaseError) -> None:
        """Set the file aside and begin a new one of what can be read; where another process has, use that."""
        self.close()
        if self.path.exists() and self.path.stat().st_ino == self._inode:
            aside = self.path.with_name(f"{self.path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
            for part in _parts(self.path):
                part.rename(aside.with_name(aside.name + part.name.removeprefix(self.path.name)))
            saved = salvage(aside, self._open())
            raise FactauditError(
                f"cache {self.path}: damaged ({error}). It is set aside as {aside.name}, and {saved:,} replies that "
                "could be read are in a new one. Run the same command again to ask for what was lost, too"
            ) from error


def info(path: str | Path) -> dict[str, Any]:
    """What a cache holds: ``{"path", "bytes", "replies", "open_batches", "models": [row]}``.

    A row is ``{"model", "revision", "replies", "prompt_tokens", "completion_tokens", "oldest", "newest"}``, the last
    two as ISO dates. Raises `FactauditError` where there is no such file.
    """
    with _existing(path) as cache:
        rows = cache._guarded(
            lambda c: c.execute(
                "SELECT model, revision, COUNT(*), SUM(prompt_tokens), SUM(completion_tokens),"
                " date(MIN(created), 'unixepoch'), date(MAX(created), 'unixepoch')"
                " FROM replies GROUP BY model, revision ORDER BY model, revision"
            ).fetchall()
        )
        (batches,) = cache._guarded(lambda c: c.execute("SELECT COUNT(*) FROM batches").fetchone())
        names = ("model", "revision", "replies", "prompt_tokens", "completion_tokens", "oldest", "newest")
        return {
            "path": str(cache.path),
            "bytes": sum(part.stat().st_size for part in _parts(cache.path)),
            "replies": sum(row[2] for row in rows),
            "open_batches": batches,
            "models": [dict(zip(names, row, strict=True)) for row in rows],
        }


def export(path: str | Path, out: str | Path) -> int:
    """Write every reply as one line of JSONL (atomically); the number of lines."""
    with _existing(path) as cache, atomic(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        count = 0
        for row in _rows(cache):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
        return count


def prune(path: str | Path, *, older_than: float | None = None, model: str | None = None) -> int:
    """Remove replies older than so many days and, or, of one model; with neither, all. The number removed."""
    conditions, values = ["1"], []
    if older_than is not None:
        conditions.append("created < ?")
        values.append(time.time() - older_than * 86400)
    if model is not None:
        conditions.append("model = ?")
        values.append(model)  # type: ignore[arg-type]
    with _existing(path, read_only=False) as cache:
        sql = f"DELETE FROM replies WHERE {' AND '.join(conditions)}"
        removed = cache._guarded(lambda c: c.execute(sql, values).rowcount)
        cache._guarded(lambda c: c.execute("VACUUM"))
        return removed


def _parts(path: Path) -> list[Path]:
    """The files of a database that exist: its own, and in WAL mode two more."""
    parts = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return [part for part in parts if part.exists()]


def _existing(path: str | Path, read_only: bool = True) -> Cache:
    if not Path(path).is_file():
        raise FactauditError(f"cache {path}: there is no such file")
    return Cache(path, read_only=read_only)


def _rows(cache: Cache) -> Iterator[dict[str, Any]]:
    cursor = cache._guarded(
        lambda c: c.execute(
            "SELECT hex(key), model, revision, created, status, text, finish_reason, tokens, prompt_tokens,"
            " completion_tokens, served, fingerprint FROM replies ORDER BY created, key"
        )
    )
    for row in cursor:
        record = dict(zip((item[0] for item in cursor.description), row, strict=True))
        record["key"] = record.pop("hex(key)").lower()
        record["tokens"] = None if record["tokens"] is None else json.loads(record["tokens"])
        yield record


def _reply(row: tuple[Any, ...]) -> Reply | None:
    _, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint = row
    try:
        parsed = None if tokens is None else tuple(Token(*token) for token in from_json(tokens))
    except (ValueError, TypeError):
        return None  # a row that cannot be read is as good as none
    counts = (prompt_tokens, completion_tokens)
    return Reply(status, text, finish_reason, parsed, *counts, cached=True, model=served, fingerprint=fingerprint)


def _dump(tokens: Sequence[Token]) -> str:
    rows = [[token.text, token.logprob, dict(token.top)] for token in tokens]
    return to_json(rows).decode()
