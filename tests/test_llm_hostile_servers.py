"""Servers that give what is no reply, send elsewhere, or are not the one that a key is for."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openai
import pytest
from conftest import run_command
from llm_server import FaultServer, Plan, completion
from report_results import read_report_text

from factaudit.errors import FactauditError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import LLMClient
from factaudit.llm.server_errors import PermanentServerError, ServerAttemptFailure, parse_server_error_response

REQUEST = ChatRequest(({"role": "user", "content": "hello"},), {"logprobs": True})
KEY = "sk-secret-0123456789"


def ask(url: str | None, **options: Any) -> ChatReply:
    async def run() -> ChatReply:
        async with LLMClient("m", base_url=url, **{"backoff": 0.001, "timeout": 5.0, **options}) as client:
            return await client.ask(REQUEST)

    return asyncio.run(run())


def answer_with(server: FaultServer, text: str | bytes, headers: Any = None, status: int = 200) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    server.respond = lambda plan, body: (status, headers or {}, data)  # type: ignore[method-assign]


def token(logprob: str, top: str = "-0.1") -> str:
    item = f'{{"token": "Yes", "logprob": {logprob}, "top_logprobs": [{{"token": "No", "logprob": {top}}}]}}'
    return f'{{"choices": [{{"message": {{"content": "Yes"}}, "logprobs": {{"content": [{item}]}}}}]}}'


@pytest.mark.parametrize(
    "body",
    [
        *(token(value) for value in ("1e5", "0.5", "1e999", "-1e999", "NaN", "-Infinity")),
        token("-0.1", top="3"),
        token("-0.1", top="NaN"),
        *(
            f'{{"choices": [{{"message": {{"content": "Yes"}}}}], "usage": {{"prompt_tokens": {value}}}}}'
            for value in ("-1", "NaN", "1e999", "1e30", '"many"')
        ),
        '{"choices": [{"message": {"content": [{"text": 3}]}}]}',
        '{"choices": {"0": 1}}',
        "[]",
        "null",
    ],
)
def test_what_is_no_reply_is_that_calls_failure_and_never_kept(body: str, tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with FaultServer() as server:
        honest = server.respond
        answer_with(server, body)
        reply = ask(server.url, cache=path)
        assert reply.status == "error"
        assert "not a chat completion" in str(reply.error)
        server.respond = honest  # type: ignore[method-assign]
        assert ask(server.url, cache=path).status == "ok"


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": None}, None])
def test_a_reply_without_counts_or_with_a_byte_order_mark_is_one(usage: Any) -> None:
    with FaultServer() as server:
        body = completion(Plan(), {}) | {"usage": usage}
        answer_with(server, b"\xef\xbb\xbf" + json.dumps(body).encode())
        assert ask(server.url).text == "Yes"


def test_choices_out_of_order_are_read_by_their_index() -> None:
    with FaultServer() as server:
        choices = [{"index": n, "message": {"content": text}} for n, text in ((1, "No"), (0, "Yes"))]
        answer_with(server, json.dumps({"choices": choices}))
        assert ask(server.url).text == "Yes"


def test_an_errors_body_with_a_byte_order_mark_or_nested_deeply_is_read_or_shown() -> None:
    marked = '\ufeff{"error": {"code": "insufficient_quota", "message": "no credit"}}'
    with pytest.raises(PermanentServerError, match=r"the account has no credit left \(no credit\)"):
        parse_server_error_response(429, {}, marked, has_answered=True)
    deep = parse_server_error_response(500, {}, "[" * 100_000, has_answered=True)
    assert isinstance(deep, ServerAttemptFailure)
    assert deep.reason == f"HTTP 500: {'[' * 300}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_prompt_is_sent_on_to_another_server(status: int) -> None:
    with FaultServer() as elsewhere, FaultServer() as server:
        answer_with(server, "", {"Location": f"{elsewhere.url}/chat/completions?key={KEY}"}, status)
        with pytest.raises(FactauditError, match=f"redirects to {elsewhere.url}, and prompts are not") as error:
            ask(server.url)
        assert not elsewhere.seen
        assert KEY not in str(error.value)


def test_openais_key_is_sent_to_no_other_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with FaultServer() as server:
        # A server on this machine works without a key; it is sent one where the user says so.
        ask(server.url)
        ask(server.url, api_key_env="OPENAI_API_KEY")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(None)
        sent = [headers["authorization"] for headers in server.headers]
        assert sent == ["Bearer none", f"Bearer {KEY}", f"Bearer {KEY}"]
    with pytest.raises(FactauditError, match="OPENAI_API_KEY is the key of another server") as error:
        ask("http://models.example/v1")
    assert KEY not in str(error.value)


def test_a_refusal_without_a_key_says_where_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with (
        FaultServer(plan=lambda body, attempt: Plan("unauthorized")) as server,
        pytest.raises(FactauditError, match="no key was sent: api_key_env"),
    ):
        ask(server.url)


# One model's name on two servers -------------------------------------------------------------------------------------


def test_two_servers_with_one_models_name_do_not_give_each_others_replies(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    with (
        FaultServer(plan=lambda body, attempt: Plan(text="one")) as one,
        FaultServer(plan=lambda body, attempt: Plan(text="two")) as two,
    ):
        assert [ask(server.url, cache=path).text for server in (one, two, one, two)] == ["one", "two", "one", "two"]
        assert [sum(server.seen.values()) for server in (one, two)] == [1, 1]
        # However the address is written it is the same server, and a name that both have makes them one.
        assert ask(f"{one.url}/", cache=path).cached
        assert [ask(server.url, cache=path, server_name="ours").text for server in (one, two)] == ["one", "one"]
        mine = SimpleNamespace(base_url=two.url, chat=openai.AsyncOpenAI(api_key="none", base_url=two.url).chat)
        assert ask(None, cache=path, client=mine).text == "two", "a client's address is its server's"
    assert b"one" in b"".join(part.read_bytes() for part in path.parent.glob(f"{path.name}*"))  # its log, too


def test_a_run_says_how_many_replies_came_from_the_cache_and_from_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    claims = "".join(json.dumps({"dataset": "d", "claim": f"c{n}", "doc": "x", "label": 1}) + "\n" for n in range(3))
    Path("claims.jsonl").write_text(claims)
    with FaultServer() as server:
        spec = f"llm:model=m,cache=cache.sqlite,base_url={server.url}"
        judge = ("judge", "claims.jsonl", "--evaluator", spec, "--out")
        assert run_command(*judge, "first.csv") == 0
        assert "from the cache" not in capsys.readouterr().out
        with sqlite3.connect("cache.sqlite") as connection:
            connection.execute("UPDATE replies SET created = 1704153600 WHERE rowid < 3")
        connection.close()
        assert run_command(*judge, "again.csv") == 0
        today = datetime.now(UTC).date().isoformat()
        said = capsys.readouterr().out
        assert f"replies   3 from the cache (kept from 2024-01-02 to {today})" in said
        assert len(server.bodies) == 3
        Path("e.yaml").write_text(f"claims: claims.jsonl\nreplicates: 0\nevaluators: ['{spec}']\n")
        assert run_command("run", "e.yaml", "--dry-run") == 0
        assert "0 calls (3 more are cached)" in capsys.readouterr().out
        assert run_command("run", "e.yaml", "--out", "run") == 0
        assert f"replies   3 from the cache (kept from 2024-01-02 to {today})" in capsys.readouterr().out
    (row,) = json.loads(Path("run/results.json").read_text())["calls"]
    assert (row["cached_from"], row["cached_until"]) == ("2024-01-02", today)
    assert "3 answered from the cache (kept from 2024-01-02" in read_report_text(Path("run"))
