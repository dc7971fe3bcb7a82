"""Replies are bought once: one SQLite file that several processes may use at the same time.

The key is the SHA-256 of everything that can change a reply: the server, the model, every sampling parameter, the
messages, and a revision that the user sets. The value is the whole reply. Errors are never kept, and neither are keys.
Replies that an earlier version kept are found without their server, which it did not keep.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from pydantic_core import from_json, to_json

from factaudit.errors import FactauditError
from factaudit.files import replace_file_atomically
from factaudit.llm.cache_salvage import is_reply_cache_file, salvage_reply_cache
from factaudit.llm.cache_schema import (
    READ_ONLY_UPGRADES,
    SCHEMA_VERSION,
    create_cache_tables,
    migrate_reply_cache_tables,
)
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest, check_chat_logprobs
from factaudit.llm.process_identity import has_process_ended, identify_this_process
from factaudit.llm.sqlite_transactions import hold_sqlite_transaction

_REPLY_COLUMNS = (
    "key, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint, created"
)
#: Seconds for which another machine's lease is believed; of one that ended here the process is known to be gone.
_LEASE_SECONDS = 900.0
#: Only what is an answer is kept; an error or a prompt that was never sent is asked again.
KEPT_STATUSES = ("ok", "refused")
_KEYS_PER_QUERY = 500
_HEADER_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str)
_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_T = TypeVar("_T")
_log = logging.getLogger("factaudit.llm")


def default_cache_path() -> Path:
    """``$FACTAUDIT_CACHE``, else ``.cache/factaudit/llm.sqlite`` under the working directory."""
    return Path(os.environ.get("FACTAUDIT_CACHE") or ".cache/factaudit/llm.sqlite")


def hash_cached_request(model: str, request: ChatRequest, revision: str = "", server: str = "") -> bytes:
    """The 32 bytes under which a reply is kept; without a server, those under which earlier versions kept it."""
    header = _HEADER_ENCODER.encode([model, revision, dict(request.params), *([server] if server else [])])
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
                for row in rows:
                    found[row[0]] = _parse_cached_reply(row)
            if not self.read_only and (unusable := [key for key, reply in found.items() if reply is None]):
                _move_unusable_replies_out_of_cache(connection, unusable)
                _log.warning("cache %s: %d replies cannot be used and are set aside", self.path, len(unusable))
            return found

        found = self._run_guarded(read)
        return [found.get(key) for key in keys]

    def find_replies(
        self, model: str, requests: Sequence[ChatRequest], revision: str = "", server: str = ""
    ) -> list[ChatReply | None]:
        """The replies of one server to many requests; where it has none, those whose server is not known."""
        replies = self.get_many([hash_cached_request(model, request, revision, server) for request in requests])
        missing = [place for place, reply in enumerate(replies) if reply is None]
        if server and missing and self._has_unknown_servers():
            older = self.get_many([hash_cached_request(model, requests[place], revision) for place in missing])
            for place, reply in zip(missing, older, strict=True):
                replies[place] = None if reply is None else replace(reply, is_server_known=False)
        return replies

    def _has_unknown_servers(self) -> bool:
        sql = "SELECT EXISTS (SELECT 1 FROM replies WHERE server IS NULL)"
        return bool(self._run_guarded(lambda connection: connection.execute(sql).fetchone()[0]))

    def put(self, key: bytes, model: str, revision: str, reply: ChatReply, server: str | None = None) -> bool:
        """Keep a reply where its status is ok or refused; True where it is new. The first reply to a key stays.

        server: as it stands in the key; None where that is not known.
        """
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

    # Batches that were submitted and not yet collected: their state must survive a kill as the replies do.

    def add_batch(self, digest: str, server: str, model: str) -> None:
        """Note, before it is submitted, that a batch of this digest is about to be."""
        row = (digest, server, model, None, int(time.time()))
        self._run_guarded(lambda c: c.execute("INSERT OR REPLACE INTO batches VALUES (?,?,?,?,?)", row))

    def name_batch(self, digest: str, batch_id: str) -> None:
        """Note the server's id of a batch."""
        self._run_guarded(lambda c: c.execute("UPDATE batches SET batch_id = ? WHERE digest = ?", (batch_id, digest)))

    def drop_batch(self, digest: str) -> None:
        """Forget a batch: its results are in the cache, or it will never have any."""
        self._run_guarded(lambda c: c.execute("DELETE FROM batches WHERE digest = ?", (digest,)))

    def list_open_batches(self, server: str, model: str) -> dict[str, str | None]:
        """Digest to id (None where the submission was cut off) of what was submitted to ``server`` for ``model``."""
        sql = "SELECT digest, batch_id FROM batches WHERE server = ? AND model = ? ORDER BY created, digest"
        return self._run_guarded(lambda c: dict(c.execute(sql, (server, model)).fetchall()))

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
        """Run ``work(connection)``; where the file proves damaged, mend it and raise `FactauditError` that says so."""
        with self._lock:
            try:
                return query(self._open_connection())
            except sqlite3.DatabaseError as error:
                if getattr(error, "sqlite_errorcode", None) not in _DAMAGE_CODES:
                    raise FactauditError(f"cache {self.path}: {error}") from error
                if self.read_only:
                    raise FactauditError(f"cache {self.path}: damaged ({error}); a run mends it") from error
                self._mend_file(error)
                return query(self._open_connection())

    def _open_connection(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = self._connect_file()
            self._inode = self.path.stat().st_ino
            self._connection = connection
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in range(SCHEMA_VERSION + 1):
                self.close()
                raise FactauditError(f"cache {self.path}: made by another version ({version}); give another path")
            if self.read_only:
                if version < SCHEMA_VERSION:
                    connection.executescript(READ_ONLY_UPGRADES[version])
                return connection
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode, NORMAL loses nothing when the process dies; only a power cut may lose the last replies.
            connection.execute("PRAGMA synchronous = NORMAL")
            if version == 0:
                create_cache_tables(connection)
            elif version < SCHEMA_VERSION:
                migrate_reply_cache_tables(connection)
        return self._connection

    def _connect_file(self) -> sqlite3.Connection:
        if self.path.exists() and not (self.path.is_file() and is_reply_cache_file(self.path)):
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

    def _mend_file(self, error: sqlite3.DatabaseError) -> None:
        """Set the file aside and begin a new one of what can be read; where another process has, use that."""
        self.close()
        if self.path.exists() and self.path.stat().st_ino == self._inode:
            aside = self.path.with_name(f"{self.path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
            for part in _list_database_files(self.path):
                part.rename(aside.with_name(aside.name + part.name.removeprefix(self.path.name)))
            saved = salvage_reply_cache(aside, self._open_connection())
            raise FactauditError(
                f"cache {self.path}: damaged ({error}). It is set aside as {aside.name}, and {saved:,} replies that "
                "could be read are in a new one. Run the same command again to ask for what was lost, too"
            ) from error


def summarise_reply_cache(path: str | Path) -> dict[str, Any]:
    """What a cache holds: ``{"path", "bytes", "replies", "open_batches", "models": [row]}``.

    A row is ``{"model", "revision", "server", "replies", "prompt_tokens", "completion_tokens", "oldest", "newest"}``:
    the server is None where it is not known, the last two are ISO dates. Raises `FactauditError` without a file.
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


def export_cached_replies(path: str | Path, out: str | Path) -> int:
    """Write every reply as one line of JSONL (atomically); the number of lines."""
    with (
        _open_existing_cache(path) as cache,
        replace_file_atomically(out) as temporary,
        temporary.open("w", encoding="utf-8") as file,
    ):
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in _iterate_cached_replies(cache))
        return sum(1 for line in lines if file.write(line))


def prune_cached_replies(path: str | Path, *, older_than: float | None = None, model: str | None = None) -> int:
    """Remove replies older than so many days and, or, of one model; with neither, all. The number removed."""
    conditions, values = ["1"], []
    if older_than is not None:
        conditions.append("created < ?")
        values.append(time.time() - older_than * 86400)
    if model is not None:
        conditions.append("model = ?")
        values.append(model)  # type: ignore[arg-type]
    with _open_existing_cache(path, read_only=False) as cache:
        sql = f"DELETE FROM replies WHERE {' AND '.join(conditions)}"
        removed = cache._run_guarded(lambda c: c.execute(sql, values).rowcount)
        cache._run_guarded(lambda c: c.execute("VACUUM"))
        return removed


def _list_database_files(path: Path) -> list[Path]:
    """The files of a database that exist: its own, and in WAL mode two more."""
    parts = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm")]
    return [part for part in parts if part.exists()]


def _open_existing_cache(path: str | Path, read_only: bool = True) -> ReplyCache:
    if not Path(path).is_file():
        raise FactauditError(f"cache {path}: there is no such file")
    return ReplyCache(path, read_only=read_only)


def _iterate_cached_replies(cache: ReplyCache) -> Iterator[dict[str, Any]]:
    cursor = cache._run_guarded(
        lambda c: c.execute(
            "SELECT hex(key), model, revision, created, status, text, finish_reason, tokens, prompt_tokens,"
            " completion_tokens, served, fingerprint, server FROM replies ORDER BY created, key"
        )
    )
    names = [item[0] for item in cursor.description]
    for row in cursor:
        record = dict(zip(names, row, strict=True))
        record["key"] = record.pop("hex(key)").lower()
        record["tokens"] = None if record["tokens"] is None else json.loads(record["tokens"])
        yield record


def _move_unusable_replies_out_of_cache(connection: sqlite3.Connection, keys: Sequence[bytes]) -> None:
    with hold_sqlite_transaction(connection):
        connection.execute("CREATE TABLE IF NOT EXISTS unusable AS SELECT * FROM replies WHERE 0")
        names = ", ".join(row[1] for row in connection.execute("PRAGMA table_info(unusable)"))
        for key in keys:
            connection.execute(f"INSERT INTO unusable SELECT {names} FROM replies WHERE key = ?", (key,))
            connection.execute("DELETE FROM replies WHERE key = ?", (key,))


def _parse_cached_reply(row: tuple[Any, ...]) -> ChatReply | None:
    """The reply in a row; None where it is damaged, or no reply: earlier versions kept what nobody had checked."""
    _, status, text, finish_reason, tokens, prompt_tokens, completion_tokens, served, fingerprint, created = row
    try:
        parsed = None if tokens is None else tuple(ChatReplyToken(*token) for token in from_json(tokens))
        check_chat_logprobs(parsed or ())
    except (ValueError, TypeError, AttributeError):
        return None
    counts = (prompt_tokens, completion_tokens)
    if (
        status not in KEPT_STATUSES
        or not isinstance(text, str)
        or not all(isinstance(n, int) and n >= 0 for n in counts)
    ):
        return None
    return ChatReply(
        *(status, text, finish_reason, parsed, *counts),
        cached=True,
        model=served,
        fingerprint=fingerprint,
        created=created if isinstance(created, int) else None,
    )


def _dump_reply_tokens(tokens: Sequence[ChatReplyToken]) -> str:
    rows = [[token.text, token.logprob, dict(token.alternatives)] for token in tokens]
    return to_json(rows).decode()
