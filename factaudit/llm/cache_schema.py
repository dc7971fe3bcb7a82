"""The tables of the cache of replies, and how those of earlier versions become them."""

from __future__ import annotations

import sqlite3
from itertools import chain

SCHEMA_VERSION = 3
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replies (
  key BLOB PRIMARY KEY, model TEXT NOT NULL, revision TEXT NOT NULL, created INTEGER NOT NULL,
  status TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, tokens TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, served TEXT, fingerprint TEXT, server TEXT
);
CREATE INDEX IF NOT EXISTS replies_of_unknown_servers ON replies(key) WHERE server IS NULL;
CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE IF NOT EXISTS batches (
  digest TEXT PRIMARY KEY, server TEXT NOT NULL, model TEXT NOT NULL, batch_id TEXT, created INTEGER NOT NULL
);
"""
#: By version, what makes the next one of it. Since 2: which model a reply is from, and who is asking for one now. Since
#: 3: the server.
_MIGRATIONS = {
    1: (
        "ALTER TABLE replies ADD COLUMN served TEXT",
        "ALTER TABLE replies ADD COLUMN fingerprint TEXT",
        "CREATE TABLE IF NOT EXISTS leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL)",
    ),
    2: (
        "ALTER TABLE replies ADD COLUMN server TEXT",
        "CREATE INDEX IF NOT EXISTS replies_of_unknown_servers ON replies(key) WHERE server IS NULL",
    ),
}
#: What an earlier version's file looks like to a reader that may not write: a new one's tables, for it alone.
READ_ONLY_UPGRADES = (
    _SCHEMA.replace("CREATE TABLE", "CREATE TEMP TABLE").replace("CREATE INDEX IF NOT EXISTS ", "CREATE INDEX temp."),
    "CREATE TEMP VIEW replies AS SELECT *, NULL AS served, NULL AS fingerprint, NULL AS server FROM main.replies;",
    "CREATE TEMP VIEW replies AS SELECT *, NULL AS server FROM main.replies;",
)


def create_cache_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of a new cache."""
    connection.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {SCHEMA_VERSION};COMMIT;")


def migrate_reply_cache_tables(connection: sqlite3.Connection) -> None:
    """Give the tables of an earlier version what they lack; nothing where another process has done it meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for statement in chain.from_iterable(_MIGRATIONS[older] for older in range(version, SCHEMA_VERSION)):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
