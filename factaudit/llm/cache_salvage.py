"""What can be read of a damaged cache: rows are taken one by one, around the pages that are gone.

SQLite finds a row by its number through the pages above it, so a bad page costs the rows on it and no others. A file
that is cut short is read up to its end, and one that lost its first bytes is given those of a new cache.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

#: The first bytes of every SQLite file, and the first of a cache's own words in it.
_SQLITE_MAGIC = b"SQLite format 3\0"
_CACHE_MARKER = b"CREATE TABLE replies"
_HEADER_BYTES = 100
#: Rows read at a time; where that fails, half as many.
_ROWS_PER_READ = 4096


def is_reply_cache_file(path: Path) -> bool:
    """Whether a file is a cache, damaged or not, or nothing yet: an empty file, or a database without any table."""
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if not head or _CACHE_MARKER in head:
        return True
    if not head.startswith(_SQLITE_MAGIC):
        return False
    # Made a moment ago by another process, all of it may be in the write-ahead log yet.
    connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True, timeout=60)
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()
    return not names or "replies" in names


def salvage_reply_cache(damaged_path: Path, new_cache: sqlite3.Connection) -> int:
    """Copy the rows that can be read of a damaged cache's replies and batches; the number of replies.

    ``new_cache`` is a new cache with its tables. The damaged file is read, never written.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.sqlite"
        for suffix in ("", "-wal"):
            part = damaged_path.with_name(damaged_path.name + suffix)
            if part.exists():
                shutil.copy(part, copy.with_name(copy.name + suffix))
        _mend_salvaged_cache_header(copy, new_cache)
        connection = sqlite3.connect(copy)
        try:
            connection.execute("PRAGMA writable_schema = ON")  # a file that is cut short is read all the same
            taken = _copy_readable_cache_rows(connection, new_cache, "replies")
            _copy_readable_cache_rows(connection, new_cache, "batches")
        except sqlite3.DatabaseError:  # not even the list of tables
            return 0
        finally:
            connection.close()
    return taken


def _mend_salvaged_cache_header(copy_path: Path, new_cache: sqlite3.Connection) -> None:
    """Give a file without its first bytes those of a new cache; `_CACHE_MARKER` said that it was one."""
    content = copy_path.read_bytes()
    if content.startswith(_SQLITE_MAGIC):
        return
    (size,) = new_cache.execute("PRAGMA page_size").fetchone()
    (version,) = new_cache.execute("PRAGMA user_version").fetchone()
    header = bytearray(_HEADER_BYTES)
    header[:16] = _SQLITE_MAGIC
    header[16:18] = size.to_bytes(2, "big")
    header[18:24] = bytes([2, 2, 0, 64, 32, 32])  # read and written through a log; fixed shares of a page
    header[28:32] = (len(content) // size).to_bytes(4, "big")
    header[47] = 4  # the schema's format
    header[59] = 1  # UTF-8
    header[60:64] = version.to_bytes(4, "big")
    copy_path.write_bytes(bytes(header) + content[_HEADER_BYTES:])


def _copy_readable_cache_rows(damaged_cache: sqlite3.Connection, new_cache: sqlite3.Connection, table: str) -> int:
    there = [row[1] for row in damaged_cache.execute(f"PRAGMA table_info({table})")]
    names = ", ".join(name for (_, name, *_) in new_cache.execute(f"PRAGMA table_info({table})") if name in there)
    if not names:
        return 0
    marks = ",".join("?" * (names.count(",") + 1))
    taken = 0
    new_cache.execute("BEGIN")
    for row in _read_cache_rows_around_damage(damaged_cache, f"SELECT {names} FROM {table}"):
        try:
            taken += new_cache.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", row).rowcount
        except (sqlite3.IntegrityError, sqlite3.DataError):
            continue  # a row whose values are damaged
    new_cache.execute("COMMIT")
    return taken


def _read_cache_rows_around_damage(damaged_cache: sqlite3.Connection, select_sql: str) -> Iterator[tuple[object, ...]]:
    """The rows that can be read, in the order of their numbers; halves what fails until single rows are left out."""
    (pages,) = damaged_cache.execute("PRAGMA page_count").fetchone()
    (size,) = damaged_cache.execute("PRAGMA page_size").fetchone()
    try:
        (last,) = damaged_cache.execute(f"SELECT MAX(rowid) FROM {select_sql.rpartition(' ')[2]}").fetchone()
    except sqlite3.DatabaseError:
        last = pages * size // 64  # no row is smaller
    waiting = [(start, start + _ROWS_PER_READ) for start in range(0, (last or 0) + 1, _ROWS_PER_READ)][::-1]
    while waiting:
        start, end = waiting.pop()
        try:
            rows = damaged_cache.execute(f"{select_sql} WHERE rowid >= ? AND rowid < ?", (start, end)).fetchall()
        except sqlite3.DatabaseError:
            if end - start > 1:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
        else:
            yield from rows
