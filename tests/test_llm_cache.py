"""The cache: what is kept, what is not, and what survives."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from factaudit.errors import FactauditError
from factaudit.llm import cache as store
from factaudit.llm.cache import Cache, export, info, prune, request_key
from factaudit.llm.types import Reply, Request, Token

REPLY = Reply("ok", "Yes – 是", "stop", (Token("Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}),), 12, 3)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_reply_comes_back_whole(tmp_path: Path) -> None:
    with Cache(tmp_path / "c.sqlite") as cache:
        assert cache.put(key(1), "m", "", REPLY)
        assert not cache.put(key(1), "m", "", Reply("ok", "another"))
    with Cache(tmp_path / "c.sqlite") as cache:
        found = cache.get(key(1))
        assert found is not None
        assert found.cached
        assert (found.text, found.tokens, found.finish_reason) == (REPLY.text, REPLY.tokens, "stop")
        assert (found.prompt_tokens, found.completion_tokens) == (12, 3)
        assert cache.get(key(2)) is None


def test_many_at_a_time_in_the_order_asked(tmp_path: Path) -> None:
    with Cache(tmp_path / "c.sqlite") as cache:
        for i in range(0, 1500, 2):
            cache.put(key(i), "m", "", Reply("ok", str(i)))
        found = cache.get_many([key(i) for i in range(1500)])
        assert [None if reply is None else reply.text for reply in found] == [
            str(i) if i % 2 == 0 else None for i in range(1500)
        ]


@pytest.mark.parametrize("status", ["error", "skipped", "unparsed"])
def test_only_answers_are_kept(tmp_path: Path, status: str) -> None:
    with Cache(tmp_path / "c.sqlite") as cache:
        assert not cache.put(key(1), "m", "", Reply(status, error="x"))
        assert cache.get(key(1)) is None
        assert cache.put(key(2), "m", "", Reply("refused", "no"))
        refused = cache.get(key(2))
        assert refused is not None
        assert refused.status == "refused"


def test_the_key_hangs_on_everything_that_changes_a_reply() -> None:
    def make(model: str = "m", revision: str = "", messages: tuple[tuple[str, str], ...] = (("user", "hi"),), **params):  # type: ignore[no-untyped-def]
        texts = tuple({"role": role, "content": content} for role, content in messages)
        return request_key(model, Request(texts, params), revision)

    keys = [
        make(),
        make(model="n"),
        make(revision="1"),
        make(messages=(("system", "hi"),)),
        make(messages=(("user", "h"), ("user", "i"))),
        make(messages=(("user", "hi"), ("user", ""))),
        make(temperature=0),
        make(temperature=0.5),
        make(temperature=0, seed=1),
        make(max_tokens=1),
    ]
    assert len(set(keys)) == len(keys)
    assert make(temperature=0, seed=1) == make(seed=1, temperature=0)
    assert make(messages=(("user", "\ud800"),)) != make(messages=(("user", "?"),))


def damaged(path: Path, damage: str) -> set[int]:
    """A cache of 2,000 replies, 3 open batches, and damage; the numbers of the replies that it must cost."""
    with Cache(path) as cache:
        for i in range(2000):
            cache.put(key(i), "m", "", Reply("ok", f"{i} " + "x" * 200))
        for name in "abc":
            cache.add_batch(name, "server", "m")
        cache._guarded(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    data = bytearray(path.read_bytes())
    first, last = 40 * 4096, 44 * 4096
    if damage == "no first bytes":
        data[:100] = b"\xff" * 100
        first = last = 0
    elif damage == "four pages":
        data[first:last] = b"\xff" * (last - first)
    elif damage == "zeros":
        data[first:last] = bytes(last - first)
    elif damage == "cut short":
        first, last = len(data) // 2, len(data)
        del data[first:]
    elif damage == "all but the first page":
        first, last = 4096, len(data)
        data[first:] = b"\xff" * (len(data) - 4096)
    whole = path.read_bytes()[first:last]
    path.write_bytes(data)
    return {i for i in range(2000) if f"{i} xxxx".encode() in whole}


@pytest.mark.parametrize("damage", ["no first bytes", "four pages", "zeros", "cut short", "all but the first page"])
def test_a_damaged_cache_loses_what_stood_on_the_bad_pages_and_says_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "c.sqlite"
    lost = damaged(path, damage)
    assert bool(lost) == (damage != "no first bytes")
    before = path.read_bytes()
    with pytest.raises(FactauditError, match=r"damaged .*set aside as c.sqlite.damaged-.*Run the same command again"):
        use(path)
    (aside,) = tmp_path.glob("c.sqlite.damaged-*[0-9]")
    assert aside.read_bytes() == before, "what was damaged is kept as it was"
    # Using it again agrees to pay for what is lost, and for nothing else. A row may reach into a second page.
    with Cache(path) as cache:
        found = {i for i, reply in enumerate(cache.get_many([key(i) for i in range(2000)])) if reply is not None}
        assert found >= set(range(2000)) - lost - {i + 1 for i in lost} - {i - 1 for i in lost}
        assert all(reply.text.startswith(f"{i} x") for i in found if (reply := cache.get(key(i))) is not None)
        if damage == "no first bytes":
            assert found == set(range(2000))
            assert cache.open_batches("server", "m") == dict.fromkeys("abc")
        assert cache.put(key(9000), "m", "", REPLY)


def use(path: Path) -> None:
    with Cache(path) as cache:
        cache.get_many([key(i) for i in range(2000)])
        cache._guarded(lambda c: c.execute("SELECT SUM(length(text)) FROM replies").fetchall())


@pytest.mark.parametrize("content", [b"My notes.\n", b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 5000, "other"])
def test_a_file_that_is_no_cache_is_left_as_it_is(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "notes.txt"
    if isinstance(content, str):
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE mine (x)")
            other.execute("PRAGMA user_version = 1")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for call in (Cache, info, prune, lambda path: export(path, tmp_path / "out.jsonl")):
        with pytest.raises(FactauditError, match="no cache of replies, and is left as it is"):
            call(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("damage", [None, "four pages"])
def test_looking_into_a_cache_writes_nothing(tmp_path: Path, damage: str | None) -> None:
    path = tmp_path / "c.sqlite"
    damaged(path, damage or "none")
    before = path.read_bytes()
    if damage is None:
        assert info(path)["replies"] == 2000
        assert export(path, tmp_path / "out" / "replies.jsonl") == 2000
    else:
        for call in (lambda: use_read_only(path), lambda: export(path, tmp_path / "out" / "replies.jsonl")):
            with pytest.raises(FactauditError, match=r"damaged .*; a run mends it"):
                call()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.name != "out"] == ["c.sqlite"]


def use_read_only(path: Path) -> None:
    with Cache(path, read_only=True) as cache:
        cache._guarded(lambda c: c.execute("SELECT SUM(length(text)) FROM replies").fetchall())


VERSION_1 = """
CREATE TABLE replies (
  key BLOB PRIMARY KEY, model TEXT NOT NULL, revision TEXT NOT NULL, created INTEGER NOT NULL,
  status TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, tokens TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL
);
CREATE TABLE batches (
  digest TEXT PRIMARY KEY, server TEXT NOT NULL, model TEXT NOT NULL, batch_id TEXT, created INTEGER NOT NULL
);
PRAGMA user_version = 1;
"""


def test_an_old_or_empty_cache_is_read_without_being_changed(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with sqlite3.connect(path) as old:
        old.executescript(VERSION_1)
        old.execute("INSERT INTO replies VALUES (x'00', 'm', '', 0, 'ok', 'yes', 'stop', NULL, 3, 1)")
    old.close()
    before = path.read_bytes()
    assert info(path)["replies"] == 1
    assert export(path, tmp_path / "out.jsonl") == 1
    assert path.read_bytes() == before
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    assert info(empty)["replies"] == 0
    assert empty.stat().st_size == 0


def test_another_version_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(FactauditError, match="another version"):
        Cache(path)


WRITER = """
import sys
from factaudit.llm.cache import Cache
from factaudit.llm.types import Reply
with Cache(sys.argv[1]) as cache:
    for i in range(int(sys.argv[2]), int(sys.argv[2]) + 200):
        cache.put(i.to_bytes(32, "big"), "m", "", Reply("ok", str(i)))
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first)]) for first in (0, 100, 200)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    with Cache(path) as cache:
        assert [r and r.text for r in cache.get_many([key(i) for i in range(400)])] == [str(i) for i in range(400)]


def test_several_threads_share_one_cache(tmp_path: Path) -> None:
    with Cache(tmp_path / "c.sqlite") as cache:

        def work(first: int) -> None:
            for i in range(first, first + 100):
                cache.put(key(i), "m", "", Reply("ok", str(i)))
                assert cache.get(key(i)) is not None

        threads = [threading.Thread(target=work, args=(n * 100,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(cache.get_many([key(i) for i in range(400)]))


def test_info_export_and_prune(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Cache(path) as cache:
        cache.put(key(1), "a", "", REPLY)
        cache.put(key(2), "a", "r", REPLY)
        cache.put(key(3), "b", "", REPLY)
        cache._guarded(lambda c: c.execute("UPDATE replies SET created = 0 WHERE key = ?", (key(3),)))
    info = store.info(path)
    assert info["replies"] == 3
    assert [(row["model"], row["revision"], row["replies"]) for row in info["models"]] == [
        ("a", "", 1),
        ("a", "r", 1),
        ("b", "", 1),
    ]
    assert info["models"][2]["oldest"] == "1970-01-01"
    assert store.export(path, tmp_path / "out.jsonl") == 3
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[1]["tokens"] == [["Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}]]
    assert rows[0]["key"] == key(3).hex()
    assert store.prune(path, older_than=30) == 1
    assert store.prune(path, model="a") == 2
    assert store.info(path)["replies"] == 0
    with pytest.raises(FactauditError, match="no such file"):
        store.info(tmp_path / "none")
