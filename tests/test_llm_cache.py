"""The cache: what is kept, what is not, and what survives."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from factaudit.errors import FactauditError
from factaudit.llm import store
from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest
from factaudit.llm.store import (
    ReplyStore,
    hash_request,
    summarise_reply_store,
)

REPLY = ChatReply(
    "ok", "Yes – 是", "stop", (ChatReplyToken("Yes", -0.25, {"Yes": -0.25, "No": -1.5, "\ufffd": -9.0}),), 12, 3
)


def put(cache: ReplyStore, key: bytes, reply: ChatReply, model: str = "m", revision: str = "") -> None:
    cache.finish(key, reply.status, reply=reply, origin=("", model, revision))


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_a_reply_comes_back_whole(tmp_path: Path) -> None:
    with ReplyStore(tmp_path / "c.sqlite") as cache:
        put(cache, key(1), REPLY)
        put(cache, key(1), ChatReply("ok", "another"))
    with ReplyStore(tmp_path / "c.sqlite") as cache:
        found = cache.get(key(1))
        assert found is not None
        assert found.cached
        assert (found.text, found.tokens, found.finish_reason) == (REPLY.text, REPLY.tokens, "stop")
        assert (found.prompt_tokens, found.completion_tokens) == (12, 3)
        assert cache.get(key(2)) is None


def test_many_at_a_time_in_the_order_asked(tmp_path: Path) -> None:
    with ReplyStore(tmp_path / "c.sqlite") as cache:
        for i in range(0, 1500, 2):
            put(cache, key(i), ChatReply("ok", str(i)))
        found = cache.get_many([key(i) for i in range(1500)])
        assert [None if reply is None else reply.text for reply in found] == [
            str(i) if i % 2 == 0 else None for i in range(1500)
        ]


def test_the_key_hangs_on_everything_that_changes_a_reply() -> None:
    def make(model: str = "m", revision: str = "", messages: tuple[tuple[str, str], ...] = (("user", "hi"),), **params):  # type: ignore[no-untyped-def]
        texts = tuple({"role": role, "content": content} for role, content in messages)
        return hash_request(model, ChatRequest(texts, params), revision)

    keys = [
        *(hash_request("m", ChatRequest(({"role": "user", "content": "hi"},)), "", server) for server in ("a", "b")),
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


def test_a_damaged_cache_is_left_as_it_is_and_the_way_out_is_told(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyStore(path) as cache:
        for i in range(200):
            put(cache, key(i), ChatReply("ok", "x" * 1000))
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * 40_000 + content[44_096:])
    before = path.read_bytes()
    with (
        pytest.raises(FactauditError, match=r"The file is damaged: move it away.*\.recover"),
        ReplyStore(path) as cache,
    ):
        cache.get_many([key(i) for i in range(200)])
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"My notes.\n", b"\0" * 5000, "other", "version"])
def test_a_file_that_is_no_cache_is_left_as_it_is(tmp_path: Path, content: bytes | str) -> None:
    path = tmp_path / "notes.txt"
    if isinstance(content, str):
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 99" if content == "version" else "CREATE TABLE mine (x)")
        other.close()
    else:
        path.write_bytes(content)
    before = path.read_bytes()
    for call in (
        ReplyStore,
        summarise_reply_store,
    ):
        with pytest.raises(FactauditError, match="not a cache of replies of this version; nothing was changed"):
            call(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_looking_into_a_cache_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyStore(path) as cache:
        put(cache, key(1), REPLY)
    before = path.read_bytes()
    assert summarise_reply_store(path)["replies"] == 1
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]


def test_info_and_prune(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with ReplyStore(path) as cache:
        put(cache, key(1), REPLY, "a")
        put(cache, key(2), REPLY, "a", "r")
        put(cache, key(3), REPLY, "b")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE replies SET created = 0 WHERE key = ?", (key(3),))
    connection.close()
    info = store.summarise_reply_store(path)
    assert info["replies"] == 3
    assert [(row["model"], row["revision"], row["replies"]) for row in info["models"]] == [
        ("a", "", 1),
        ("a", "r", 1),
        ("b", "", 1),
    ]
    assert info["models"][2]["oldest"] == "1970-01-01"
    with pytest.raises(FactauditError, match="no such file"):
        store.summarise_reply_store(tmp_path / "none")
