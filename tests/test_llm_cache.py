"""The cache: what is kept, what is not, and what survives."""

from __future__ import annotations

import json
import logging
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from factaudit.errors import FactauditError
from factaudit.llm import cache as store
from factaudit.llm.cache import Cache, request_key
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


@pytest.mark.parametrize("damage", ["not a database", "torn page"])
def test_a_damaged_file_is_set_aside_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    path = tmp_path / "c.sqlite"
    with Cache(path) as cache:
        for i in range(500):
            cache.put(key(i), "m", "", Reply("ok", "x" * 200))
        cache._guarded(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    data = bytearray(path.read_bytes())
    if damage == "not a database":
        data[:100] = b"\xff" * 100
    else:
        data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING), Cache(path) as cache:
        assert cache.get(key(1)) is None
        assert cache.put(key(1), "m", "", REPLY)
        assert cache.get(key(1)) is not None
    assert "set aside" in caplog.text
    assert len(list(tmp_path.glob("c.sqlite.damaged-*"))) >= 1


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
