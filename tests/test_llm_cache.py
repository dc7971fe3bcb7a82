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
from factaudit.llm import reply_cache as store
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.reply_cache import (
    ReplyCache,
    export_cached_replies,
    hash_cached_request,
    prune_cached_replies,
    summarise_reply_cache,
)

REPLY = ChatReply(
    "ok", "Yes – 是", "stop", (ChatReplyToken("Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}),), 12, 3
)


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_reply_comes_back_whole(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        assert cache.put(key(1), "m", "", REPLY)
        assert not cache.put(key(1), "m", "", ChatReply("ok", "another"))
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        found = cache.get(key(1))
        assert found is not None
        assert found.cached
        assert (found.text, found.tokens, found.finish_reason) == (REPLY.text, REPLY.tokens, "stop")
        assert (found.prompt_tokens, found.completion_tokens) == (12, 3)
        assert cache.get(key(2)) is None


def test_many_at_a_time_in_the_order_asked(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        for i in range(0, 1500, 2):
            cache.put(key(i), "m", "", ChatReply("ok", str(i)))
        found = cache.get_many([key(i) for i in range(1500)])
        assert [None if reply is None else reply.text for reply in found] == [
            str(i) if i % 2 == 0 else None for i in range(1500)
        ]


@pytest.mark.parametrize("status", ["error", "skipped", "unparsed"])
def test_only_answers_are_kept(tmp_path: Path, status: str) -> None:
    with ReplyCache(tmp_path / "c.sqlite") as cache:
        assert not cache.put(key(1), "m", "", ChatReply(status, error="x"))
        assert cache.get(key(1)) is None
        assert cache.put(key(2), "m", "", ChatReply("refused", "no"))
        refused = cache.get(key(2))
        assert refused is not None
        assert refused.status == "refused"


def test_the_key_hangs_on_everything_that_changes_a_reply() -> None:
    def make(model: str = "m", revision: str = "", messages: tuple[tuple[str, str], ...] = (("user", "hi"),), **params):  # type: ignore[no-untyped-def]
        texts = tuple({"role": role, "content": content} for role, content in messages)
        return hash_cached_request(model, ChatRequest(texts, params), revision)

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
    with ReplyCache(path) as cache:
        for i in range(2000):
            cache.put(key(i), "m", "", ChatReply("ok", f"{i} " + "x" * 200))
        for name in "abc":
            cache.add_batch(name, "server", "m")
        cache._run_guarded(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
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
    with ReplyCache(path) as cache:
        found = {i for i, reply in enumerate(cache.get_many([key(i) for i in range(2000)])) if reply is not None}
        assert found >= set(range(2000)) - lost - {i + 1 for i in lost} - {i - 1 for i in lost}
        assert all(reply.text.startswith(f"{i} x") for i in found if (reply := cache.get(key(i))) is not None)
        if damage == "no first bytes":
            assert found == set(range(2000))
            assert cache.list_open_batches("server", "m") == dict.fromkeys("abc")
        assert cache.put(key(9000), "m", "", REPLY)


def use(path: Path) -> None:
    with ReplyCache(path) as cache:
        cache.get_many([key(i) for i in range(2000)])
        cache._run_guarded(lambda c: c.execute("SELECT SUM(length(text)) FROM replies").fetchall())


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
    for call in (
        ReplyCache,
        summarise_reply_cache,
        prune_cached_replies,
        lambda path: export_cached_replies(path, tmp_path / "out.jsonl"),
    ):
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
        assert summarise_reply_cache(path)["replies"] == 2000
        assert export_cached_replies(path, tmp_path / "out" / "replies.jsonl") == 2000
    else:
        for call in (
            lambda: use_read_only(path),
            lambda: export_cached_replies(path, tmp_path / "out" / "replies.jsonl"),
        ):
            with pytest.raises(FactauditError, match=r"damaged .*; a run mends it"):
                call()
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.name != "out"] == ["c.sqlite"]


def use_read_only(path: Path) -> None:
    with ReplyCache(path, read_only=True) as cache:
        cache._run_guarded(lambda c: c.execute("SELECT SUM(length(text)) FROM replies").fetchall())


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
    assert summarise_reply_cache(path)["replies"] == 1
    assert export_cached_replies(path, tmp_path / "out.jsonl") == 1
    assert path.read_bytes() == before
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    assert summarise_reply_cache(empty)["replies"] == 0
    assert empty.stat().st_size == 0


def test_another_version_is_an_error_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(FactauditError, match="another version"):
        ReplyCache(path)


WRITER = """
import sys
from factaudit.llm.reply_cache import ReplyCache
from factaudit.llm.chat_types import ChatReply
with ReplyCache(sys.argv[1]) as cache:
    for i in range(int(sys.argv[2]), int(sys.argv[2]) + 200):
        cache.put(i.to_bytes(32, "big"), "m", "", ChatReply("ok", str(i)))
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first)]) for first in (0, 100, 200)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    with ReplyCache(path) as cache:
        assert [r and r.text for r in cache.get_many([key(i) for i in range(400)])] == [str(i) for i in range(400)]


def test_several_threads_share_one_cache(tmp_path: Path) -> None:
    with ReplyCache(tmp_path / "c.sqlite") as cache:

        def work(first: int) -> None:
            for i in range(first, first + 100):
                cache.put(key(i), "m", "", ChatReply("ok", str(i)))
                assert cache.get(key(i)) is not None

        threads = [threading.Thread(target=work, args=(n * 100,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(cache.get_many([key(i) for i in range(400)]))


def test_info_export_and_prune(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyCache(path) as cache:
        cache.put(key(1), "a", "", REPLY)
        cache.put(key(2), "a", "r", REPLY)
        cache.put(key(3), "b", "", REPLY)
        cache._run_guarded(lambda c: c.execute("UPDATE replies SET created = 0 WHERE key = ?", (key(3),)))
    info = store.summarise_reply_cache(path)
    assert info["replies"] == 3
    assert [(row["model"], row["revision"], row["replies"]) for row in info["models"]] == [
        ("a", "", 1),
        ("a", "r", 1),
        ("b", "", 1),
    ]
    assert info["models"][2]["oldest"] == "1970-01-01"
    assert store.export_cached_replies(path, tmp_path / "out.jsonl") == 3
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[1]["tokens"] == [["Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}]]
    assert rows[0]["key"] == key(3).hex()
    assert store.prune_cached_replies(path, older_than=30) == 1
    assert store.prune_cached_replies(path, model="a") == 2
    assert store.summarise_reply_cache(path)["replies"] == 0
    with pytest.raises(FactauditError, match="no such file"):
        store.summarise_reply_cache(tmp_path / "none")


VERSION_2 = """
CREATE TABLE replies (
  key BLOB PRIMARY KEY, model TEXT NOT NULL, revision TEXT NOT NULL, created INTEGER NOT NULL,
  status TEXT NOT NULL, text TEXT NOT NULL, finish_reason TEXT, tokens TEXT,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, served TEXT, fingerprint TEXT
);
CREATE TABLE leases (key BLOB PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL);
CREATE TABLE batches (
  digest TEXT PRIMARY KEY, server TEXT NOT NULL, model TEXT NOT NULL, batch_id TEXT, created INTEGER NOT NULL
);
CREATE TABLE unusable AS SELECT * FROM replies WHERE 0;
PRAGMA user_version = 2;
"""
REQUEST = ChatRequest(({"role": "user", "content": "hi"},), {"max_tokens": 1})


def make_version_2(path: Path, tokens: str | None = None) -> Path:
    """A cache of the version before servers were kept, with one reply to `REQUEST`, of 2 January 2024."""
    with sqlite3.connect(path) as old:
        old.executescript(VERSION_2)
        row = (hash_cached_request("m", REQUEST), "m", "", 1704153600, "ok", "old", "stop", tokens, 3, 1, "m-1", None)
        old.execute(f"INSERT INTO replies VALUES ({','.join('?' * len(row))})", row)
    old.close()
    return path


def test_the_key_hangs_on_the_server() -> None:
    keys = [hash_cached_request("m", REQUEST, "", server) for server in ("", "http://a/v1", "http://b/v1")]
    assert len(set(keys)) == 3
    assert keys[0] == hash_cached_request("m", REQUEST), "what earlier versions kept is found under its key"


def test_an_earlier_versions_reply_is_any_servers_until_the_server_has_its_own(tmp_path: Path) -> None:
    path = make_version_2(tmp_path / "c.sqlite")
    with ReplyCache(path) as cache:
        (found,) = cache.find_replies("m", [REQUEST], server="http://a/v1")
        assert found is not None
        assert (found.text, found.is_server_known, found.created) == ("old", False, 1704153600)
        cache.put(hash_cached_request("m", REQUEST, "", "http://a/v1"), "m", "", ChatReply("ok", "new"), "http://a/v1")
        replies = [cache.find_replies("m", [REQUEST], server=f"http://{host}/v1")[0] for host in "ab"]
        assert [(reply.text, reply.is_server_known) for reply in replies if reply] == [("new", True), ("old", False)]
        assert cache.find_replies("other", [REQUEST], server="http://a/v1") == [None]
    rows = summarise_reply_cache(path)["models"]
    assert [(row["server"], row["replies"]) for row in rows] == [(None, 1), ("http://a/v1", 1)]
    export_cached_replies(path, tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["server"] for line in lines] == [None, "http://a/v1"]


def test_a_cache_of_the_version_before_is_looked_into_without_being_changed(tmp_path: Path) -> None:
    path = make_version_2(tmp_path / "c.sqlite")
    before = path.read_bytes()
    with ReplyCache(path, read_only=True) as cache:
        (found,) = cache.find_replies("m", [REQUEST], server="http://a/v1")
        assert found is not None
        assert not found.is_server_known
    assert summarise_reply_cache(path)["models"][0]["server"] is None
    assert path.read_bytes() == before


def test_what_cannot_be_used_is_set_aside_beside_what_an_earlier_version_had_set_aside(tmp_path: Path) -> None:
    path = make_version_2(tmp_path / "c.sqlite", tokens="half")
    with ReplyCache(path) as cache:
        assert cache.find_replies("m", [REQUEST], server="http://a/v1") == [None]
        assert cache._run_guarded(lambda c: c.execute("SELECT text, tokens FROM unusable").fetchall()) == [
            ("old", "half")
        ]
