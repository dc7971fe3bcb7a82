"""The client against a real server that misbehaves, sends elsewhere, or is not the one that a key
is for."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import run_command
from llm_server import TRANSIENT, FaultServer, Plan, ask, completion
from report_results import read_report_text
from scripted_llm import ChatReply, ChatRequest, LLMClient, LLMCostBudget, ReplyStore, Send, ask_all

from factaudit import FactauditError, UsageError
from factaudit.llm.reply import parse_chat_completion
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.store import MALFORMED

KEY = "sk-secret-0123456789"


def request(text: str = "hello", **params: Any) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), params)


def answer_with(
    server: FaultServer, body: str | bytes, status: int = 200, headers: Any = None
) -> None:
    data = body if isinstance(body, bytes) else body.encode()
    server.respond = lambda plan, asked: (status, headers or {}, data)


# What comes of a request
# ------------------------------------------------------------

#: A fault of the first attempts, or of all of them (None), the reply's status, and how often it was
#: asked.
OUTCOMES = [
    *((fault, 1, "ok", 2) for fault in TRANSIENT),
    ("refusal", None, "refused", 1),
    ("content-filter", None, "refused", 1),
    ("content-filter-400", None, "refused", 1),
    ("context-length", None, "skipped", 1),
    *((fault, None, "error", 4) for fault in ("429", "500", "reset", "close")),
    ("wrong-shape", None, "error", 4),
]


@pytest.mark.parametrize(("fault", "times", "status", "asked"), OUTCOMES)
def test_what_comes_of_a_request(fault, times, status, asked):
    def plan(body, attempt):
        is_bad = body["messages"][0]["content"] == "bad" and (times is None or attempt < times)
        return Plan(fault if is_bad else None)

    with FaultServer(plan=plan) as server:
        bad, good = ask(
            server,
            request("bad"),
            request("good"),
            max_retries=3,
            timeout=0.5 if fault == "hang" else 5,
        )
        assert (bad.status, good.status) == (status, "ok")
        assert sorted(server.seen.values()) == sorted([1, asked])
        assert asked != 4 or "gave up after 4 attempts" in (bad.error or "")


@pytest.mark.parametrize("fault", ["unauthorized", "no-model", "bad-parameter", "quota"])
def test_what_would_befall_every_request_is_raised_at_once(fault):
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        with pytest.raises(FactauditError, match="model 'm'"):
            ask(server, request())
        assert list(server.seen.values()) == [1]


def test_a_403_after_other_replies_is_that_requests_own():
    with FaultServer() as server:
        client = LLMClient("m", base_url=server.url, concurrency=1)
        refuse = server.respond
        answer_with(server, "Forbidden", 403)
        with pytest.raises(FactauditError, match="403"):
            list(ask_all(client, [(0, request())]))
        server.respond = refuse
        assert next(ask_all(client, [(0, request())]))[1].status == "ok"
        answer_with(server, "Forbidden", 403)
        assert next(ask_all(client, [(0, request())]))[1].status == "error"


#: Errors as llama.cpp, vLLM, OpenAI, Azure, FastAPI and nginx word them, with the status and what
#: becomes of it.
ERRORS = [
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (9 tokens) exceeds the available context size",
            }
        },
        "skipped",
        "9",
    ),
    (
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens."},
        "skipped",
        "4096",
    ),
    (
        400,
        {"error": {"message": "Input tokens exceed", "code": "context_length_exceeded"}},
        "skipped",
        "Input tokens",
    ),
    (429, {"error": {"message": "Request too large for m"}}, "skipped", "too large"),
    (
        400,
        {"error": {"code": "content_filter", "message": "Azure OpenAI's content management"}},
        "refused",
        "",
    ),
    (400, {"error": "messages must alternate"}, "error", "HTTP 400: messages must alternate"),
    (
        400,
        {"detail": [{"loc": ["body"], "msg": "field required"}]},
        "error",
        "HTTP 400: field required",
    ),
    (400, "<html>nginx</html>", "error", "<html>nginx</html>"),
    (500, "[" * 100_000, "error", f"HTTP 500: {'[' * 300}"),
]


@pytest.mark.parametrize(("code", "body", "status", "said"), ERRORS, ids=range(len(ERRORS)))
def test_errors_in_the_shapes_of_several_servers(code, body, status, said):
    with FaultServer() as server:
        answer_with(server, body if isinstance(body, str) else json.dumps(body), code)
        (reply,) = ask(server, request(), max_retries=0)
    assert reply.status == status
    assert said in f"{reply.error} {reply.text}"


# What a reply is
# ------------------------------------------------------------


def token(logprob: str, top: str = "-0.1") -> str:
    item = (
        f'{{"token": "Yes", "logprob": {logprob}, "top_logprobs": [{{"token": "No", "logprob":'
        f" {top}}}]}}"
    )
    return (
        f'{{"choices": [{{"message": {{"content": "Yes"}}, "logprobs": {{"content": [{item}]}}}}]}}'
    )


NO_REPLIES = [
    *(token(value) for value in ("1e5", "0.5", "1e999", "-1e999", "NaN", "-Infinity")),
    *(token("-0.1", top) for top in ("3", "NaN")),
    *(
        '{"choices": [{"message": {"content": "Yes"}}], "usage": {"prompt_tokens":'
        f" {value}}}}}"
        for value in ("-1", "NaN", "1e999", "1e30", '"many"')
    ),
    '{"choices": [{"message": {"content": [{"text": 3}]}}]}',
    '{"choices": {"0": 1}}',
    "[]",
    "null",
]


@pytest.mark.parametrize("body", NO_REPLIES)
def test_what_is_no_reply_is_a_failure(body):
    failure = parse_chat_completion(body)
    assert isinstance(failure, ServerAttemptFailure)
    assert failure.status == MALFORMED
    assert "not a chat completion" in failure.reason


def test_what_is_no_reply_is_never_kept(tmp_path):
    with FaultServer() as server:
        honest = server.respond
        answer_with(server, NO_REPLIES[0])
        assert ask(server, request(), cache=tmp_path / "c.sqlite")[0].status == "error"
        server.respond = honest
        assert ask(server, request(), cache=tmp_path / "c.sqlite")[0].status == "ok"


YES = {"message": {"content": "Yes"}}


@pytest.mark.parametrize(
    "more",
    [
        *({"usage": usage} for usage in ({}, {"prompt_tokens": None}, None)),
        {
            "choices": [
                {
                    "message": {
                        "content": [
                            {"type": "thinking", "text": "No"},
                            {"type": "text", "text": "Yes"},
                        ]
                    }
                }
            ]
        },
        *(
            {"choices": [YES | {"logprobs": logprobs}]}
            for logprobs in (None, {}, {"content": None}, {"content": []}, [], {"content": "Yes"})
        ),
        {"model": 3, "system_fingerprint": 4},
        {"choices": [{"message": {"content": "Yes", "refusal": False}}]},
    ],
)
def test_replies_in_the_shapes_of_several_servers(more):
    reply = parse_chat_completion(json.dumps(completion(Plan(), {}) | more))
    assert isinstance(reply, ChatReply)
    assert (reply.status, reply.text) == ("ok", "Yes")
    assert not reply.tokens


def test_of_alternatives_that_read_the_same_the_likelier_one_counts():
    likely = [("Yes", 0.5), ("No", 0.3), ("Yes", 0.1), ("No", 0.05)]
    top = [{"token": token, "logprob": math.log(share)} for token, share in likely]
    content = [{"token": "Yes", "logprob": math.log(0.5), "top_logprobs": top}]
    body = {"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": content}}]}
    reply = parse_chat_completion(json.dumps(body))
    assert isinstance(reply, ChatReply)
    assert reply.tokens is not None
    shares = {token: math.exp(one) for token, one in reply.tokens[0].alternatives.items()}
    assert shares == pytest.approx({"Yes": 0.5, "No": 0.3})


#: A prompt, the tokens that the server says it read, and whether it read the whole of it.
READ_PROMPTS = [
    *(
        (text * 2000, n_tokens, n_tokens != 2050)
        for text in (
            "The ferry runs daily except Monday. ",
            "渡轮每天都有，星期一除外。",
            "เรือข้ามฟากให้บริการทุกวันยกเว้นวันจันทร์",
            "Паром ходит каждый день, кроме понедельника. ",
            "def ferry(day):\n    return day != 'Monday'\n\n",
        )
        for n_tokens in (2050, 0, None, 10, 60_000)
    ),
    ("word\n" * 3000, 3000, True),  # the fewest tokens that a tokenizer makes of words
    (" " * 100_000 + "end", 300, True),
    ("=" * 100_000, 300, True),
    ("a" * 100_000, 300, True),
    ("的" * 8000, 2100, True),
    ("0 " * 3000, 2900, True),
    ('{"a":1,"b":2},' * 3000, 300, True),
    ("Donaudampfschifffahrtsgesellschaft " * 500, 500, True),
]


def test_a_prompt_that_the_server_cut_has_failed():
    texts = [text for text, _, _ in READ_PROMPTS]
    tokens = iter(READ_PROMPTS)

    with FaultServer() as server:

        def respond(plan, body):
            answer = {"choices": [YES], "usage": {"prompt_tokens": next(tokens)[1]}}
            return 200, {}, json.dumps(answer).encode()

        server.respond = respond
        replies = [ask(server, request(text))[0] for text in texts]
    for reply, (text, n_tokens, is_whole) in zip(replies, READ_PROMPTS, strict=True):
        assert reply.status == ("ok" if is_whole else "error"), (text[:40], n_tokens)
        assert is_whole or "the server cut the prompt: it read 2,050 tokens" in (reply.error or "")


def test_an_answer_without_end_is_not_read_into_memory(monkeypatch):
    monkeypatch.setattr("factaudit.llm.server.MAX_BODY_BYTES", 1 << 20)
    with FaultServer() as server:
        answer_with(server, b" " * (4 << 20))
        (reply,) = ask(server, request(), max_retries=0)
    assert reply.status == "error"
    assert "an answer of more than 1 MB" in (reply.error or "")


# Parameters
# ------------------------------------------------------------

REFUSALS = [
    ('{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this'
     ' model. Use \'max_completion_tokens\' instead.", "param": "max_tokens",'
     ' "code": "unsupported_parameter"}}',
     ("max_tokens",)),
    ('{"error": {"message": "Unsupported value: \'temperature\' does not support 0 with this'
     ' model. Only the default (1) value is supported.", "param": "temperature",'
     ' "code": "unsupported_value"}}',
     ("temperature",)),
    ('{"error": {"message": "This model does not support logprobs", "code": null}}',
     ("logprobs", "top_logprobs")),
    ('{"error": {"message": "`temperature` is deprecated for this model."}}', ("temperature",)),
    ('{"error": {"message": "Unrecognized request argument supplied: top_logprobs"}}',
     ("top_logprobs",)),
    ('{"error": "Invalid JSON payload received. Unknown name \\"logprobs\\": Cannot find field."}',
     ("logprobs", "top_logprobs")),
    ('{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}', ("seed",)),
    ('{"message": "property \'stop\' is unsupported"}', ("stop",)),
    ('{"error": {"message": "top_logprobs must be at most 5", "param": null}}', ("top_logprobs",)),
    ("response_format.json_schema is not supported by this model", ("response_format",)),
    ('{"error": {"message": "logprobs: Extra inputs are not permitted"}}',
     ("logprobs", "top_logprobs")),
]  # fmt: skip


@pytest.mark.parametrize(("said", "refused"), REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_a_model_refuses_is_left_out_and_remembered(
    said,
    refused,
    status,
    tmp_path,
    monkeypatch,
):
    params = {
        "max_tokens": 9,
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 20,
        "seed": 1,
        "stop": ["x"],
    }
    params["response_format"] = {"type": "json_object"}
    with FaultServer() as server:
        respond = server.respond

        def refuse(plan, body):
            return (status, {}, said.encode()) if set(refused) & set(body) else respond(plan, body)

        monkeypatch.setattr(server, "respond", refuse)
        first = ask(server, request("one", **params), cache=tmp_path / "c.sqlite")
        again = ask(server, request("two", **params), cache=tmp_path / "c.sqlite")
        assert [reply.status for reply in (*first, *again)] == ["ok", "ok"]
        *_, sent, last = server.bodies
        left = {name for name in params if name not in refused}
        assert set(sent) - {"model", "messages", "max_completion_tokens"} == left
        assert set(last) == set(sent)
        assert ("max_completion_tokens" in sent) == ("max_tokens" in refused)
        assert len(server.bodies) <= 2 + len(refused)


# Pace
# ------------------------------------------------------------


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due: minutes pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select

        def jump(timeout: float | None) -> Any:
            self.now += timeout or 0.0
            return select(0)

        self._selector.select = jump

    def time(self) -> float:
        return self.now


Answer = ChatReply | ServerAttemptFailure


def times_sent(
    answers: Callable[[int], Answer], count: int, *models: str, **options: Any
) -> list[float]:
    """At what second of virtual time each request is sent; ``answers`` has the answer to the n-th
    of all. Each of the models is asked ``count`` times by a client of its own."""
    sent = []

    class Scripted(LLMClient):
        async def _post_and_settle(self, send: Send, body: dict[str, Any]) -> Answer:
            sent.append(asyncio.get_running_loop().time())
            answer = answers(len(sent) - 1)
            self.settle(send, answer)
            return answer

    async def run() -> None:
        # An account of its own: others' limits hold for all processes.
        given = {"base_url": f"http://{uuid.uuid4().hex}/v1", **options}
        clients = [Scripted(model, **given) for model in models or ("m",)]
        # 3 + 3 + 2 tokens of prompt ("number 0"), 5 of reply: 13 each.
        asked = [
            client.ask(request(f"number {i}", max_tokens=5))
            for client in clients
            for i in range(count)
        ]
        assert {reply.status for reply in await asyncio.gather(*asked)} == {"ok"}

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
    return sent


def busy_once(seconds: float) -> Callable[[int], Answer]:
    return lambda n: ChatReply("ok") if n else ServerAttemptFailure("HTTP 429", retry_after=seconds)


@pytest.mark.parametrize("limit", [{"requests_per_minute": 30}, {"tokens_per_minute": 30 * 13}])
def test_limits_space_the_requests(limit):
    assert times_sent(lambda n: ChatReply("ok", "Yes"), 8, **limit) == pytest.approx(
        [2.0 * i for i in range(8)]
    )


def test_retry_after_is_kept_and_holds_for_all_requests():
    sent = times_sent(busy_once(20.0), 6, concurrency=1)
    assert sent[0] == 0.0
    assert min(sent[1:]) >= 20.0
    assert len(sent) == 7


def test_a_pause_charges_no_request_twice():
    # Four had their turns at 10 to 40 seconds when the pause of 30 began; the repeated one takes
    # the next.
    sent = times_sent(busy_once(30.0), 5, concurrency=5, requests_per_minute=6)
    assert sent == pytest.approx([0.0, 30.0, 30.0, 30.0, 40.0, 50.0])


def test_all_that_ask_with_one_key_keep_one_limit(monkeypatch):
    url = f"http://{uuid.uuid4().hex}/v1"
    monkeypatch.setenv("MY_KEY", "k")
    limit = {"base_url": url, "requests_per_minute": 60, "api_key_env": "MY_KEY"}
    sent = times_sent(lambda n: ChatReply("ok", "Yes"), 2, "judge", "decomposer", **limit)
    assert sent == pytest.approx([0.0, 1.0, 2.0, 3.0], abs=0.2)
    # Another process goes on where this one is.
    program = (
        "import sys, time; from factaudit.llm.rate_limits import *; account ="
        " hash_account(sys.argv[1], 'k');print(reserve_turn(account, time.time() -"
        f" {time.time()} + float(sys.argv[2]), 1.0))"
    )
    now = time.time() - time.monotonic()
    told = subprocess.run(
        [sys.executable, "-c", program, url, str(now)], capture_output=True, text=True, check=True
    )
    assert float(told.stdout) - now > 3.5


def test_backoff_grows_to_its_cap():
    failing = ServerAttemptFailure("HTTP 500")
    sent = times_sent(lambda n: ChatReply("ok") if n == 8 else failing, 1, max_retries=9)
    waited = [after - before for before, after in pairwise(sent)]
    for wait, most in zip(waited, (0.5, 1, 2, 4, 8, 16, 30, 30), strict=True):
        assert most / 2 <= wait <= most


# Many requests
# ------------------------------------------------------------


def test_items_come_back_once_within_the_limit_and_from_the_cache_without_a_loop(
    tmp_path,
):
    def replies(numbers):
        return dict(ask_all(client, ((number, request(str(number))) for number in numbers)))

    with FaultServer(
        plan=lambda body, attempt: Plan(text=body["messages"][0]["content"], delay=0.02)
    ) as server:
        client = LLMClient("m", base_url=server.url, cache=tmp_path / "c.sqlite", concurrency=7)
        assert {number: reply.text for number, reply in replies(range(300)).items()} == {
            i: str(i) for i in range(300)
        }
        assert server.most_in_flight == 7
        before = threading.active_count()
        assert all(reply.cached for reply in replies(range(300)).values())
        assert threading.active_count() == before
        mixed = replies(range(200, 400))
        assert [mixed[number].cached for number in range(200, 400)] == [True] * 100 + [False] * 100
        assert set(server.seen.values()) == {1}
        assert list(ask_all(client, [])) == []
        assert client.usage.cached_calls == 400


def test_equal_requests_are_sent_once(tmp_path):
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.05)) as server:
        replies = ask(server, *[request()] * 5, request("other"), cache=tmp_path / "c.sqlite")
        assert [reply.status for reply in replies] == ["ok"] * 6
        assert sorted(server.seen.values()) == [1, 1]
        assert sum(reply.cached for reply in replies) == 4


@pytest.mark.parametrize("fails", [False, True])
def test_whoever_leaves_sends_nothing_more_and_keeps_what_is_under_way(
    fails, tmp_path, monkeypatch
):
    """What was sent is paid for; what takes too long is given up, and counts."""
    monkeypatch.setattr("factaudit.llm.client.GRACE_SECONDS", 1.0)
    delays = {"0": 0.0, "1": 0.3, "2": 0.3, "3": 60.0}

    def plan(body, attempt):
        name = body["messages"][0]["content"]
        return Plan("unauthorized" if fails and name == "0" else None, delay=delays.get(name, 0.0))

    path, budget = tmp_path / "c.sqlite", LLMCostBudget(None, run="r")
    with FaultServer(plan=plan) as server:
        client = LLMClient("m", base_url=server.url, cache=path, concurrency=4, budget=budget)
        replies = ask_all(client, ((n, request(str(n))) for n in range(9)))
        with pytest.raises(FactauditError) if fails else nullcontext():
            assert next(replies)[0] == 0
            replies.close()
        names = {body["messages"][0]["content"] for body in server.bodies}
        assert {"0", "1", "2", "3"} <= names
        assert len(names) < 9
        kept = {n for n in range(9) if client.find_cached_reply(request(str(n))) is not None}
        assert {1, 2} <= kept == {int(name) for name in names} - {3} - ({0} if fails else set())
        told = ReplyStore(path).summarise_callers("r")[""]
        assert (told["calls"], told["possible_calls"]) == (len(kept) + 1, 1)


# Servers and keys
# ------------------------------------------------------------


def test_cached_replies_need_no_key_and_no_server(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    options = {"cache": tmp_path / "cache.sqlite", "server_name": "here"}
    with FaultServer(plan=lambda body, attempt: Plan(p_yes=0.75)) as server:
        (bought,) = ask(server, request(logprobs=True), **options)
    (cached,) = ask("http://localhost:9", request(logprobs=True), **options, base_url=None)
    assert (cached.cached, bought.cached) == (True, False)
    assert (cached.text, cached.tokens, cached.finish_reason) == (
        bought.text,
        bought.tokens,
        bought.finish_reason,
    )
    with pytest.raises(FactauditError, match="OPENAI_API_KEY"):
        ask("", request(), base_url=None)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/v1", None, "no server answers at http"),
        ("", 404, "404.*ends in /v1"),
        ("/v1", 401, "no key was sent"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(path, status, said):
    with FaultServer() as server:
        url = server.url.removesuffix("/v1") + path
        if status is not None:
            answer_with(server, '{"detail":"Not Found"}', status)
            with pytest.raises(FactauditError, match=said):
                ask(url, request())
            return
    with pytest.raises(FactauditError, match=said):
        ask(url, request())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_prompt_is_sent_on_to_another_server(status):
    with FaultServer() as elsewhere, FaultServer() as server:
        answer_with(server, "", status, {"Location": f"{elsewhere.url}/chat/completions?key={KEY}"})
        with pytest.raises(
            FactauditError, match=f"redirects to {elsewhere.url}, and prompts are not"
        ) as error:
            ask(server, request())
        assert not elsewhere.seen
        assert KEY not in str(error.value)


def test_calls_go_through_the_proxy_of_the_environment(monkeypatch):
    with FaultServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert ask("http://models.invalid/v1", request())[0].status == "ok"
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        assert ask(proxy, request())[0].status == "ok"  # where no proxy is wanted none is asked


def test_openais_key_is_sent_to_no_other_server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with FaultServer() as server:
        # A server on this machine works without a key; it is sent one where the user says so.
        ask(server, request())
        ask(server, request(), api_key_env="OPENAI_API_KEY")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(server, request(), base_url=None)
        sent = [headers["authorization"] for headers in server.headers]
        assert sent == ["Bearer none", f"Bearer {KEY}", f"Bearer {KEY}"]
    with pytest.raises(
        FactauditError, match="OPENAI_API_KEY is the key of another server"
    ) as error:
        ask("http://models.example/v1", request())
    assert KEY not in str(error.value)


def test_a_secret_is_sent_and_stands_nowhere_else(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    options = {"api_key_env": "MY_KEY", "cache": tmp_path / "c.sqlite"}
    monkeypatch.setenv("MY_KEY", KEY)
    with FaultServer() as server:
        (reply,) = ask(server, request(), **options)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        answer_with(
            server, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}), 401
        )
        with pytest.raises(FactauditError) as error:
            ask(server, request("bad"), **options)
        client = LLMClient("m", base_url=server.url, **options)
    shown = f"{error.value} {reply} {caplog.text} {client.signature} {client.server.address}"
    assert "no key was sent" not in shown
    assert KEY not in shown
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_an_address_with_a_password_is_refused_and_not_repeated(
    monkeypatch,
):
    address = "http://me:hush@host/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    for options in ({}, {"base_url": address}, {"base_url": "http://host/v1?key=hush"}):
        with pytest.raises(UsageError, match="without password or query") as refused:
            LLMClient("m", **options)
        assert "hush" not in str(refused.value)


def test_two_servers_with_one_models_name_do_not_give_each_others_replies(tmp_path):
    path = tmp_path / "cache.sqlite"
    with (
        FaultServer(plan=lambda body, attempt: Plan(text="one")) as one,
        FaultServer(plan=lambda body, attempt: Plan(text="two")) as two,
    ):
        texts = [ask(server, request(), cache=path)[0].text for server in (one, two, one, two)]
        assert texts == ["one", "two", "one", "two"]
        assert [sum(server.seen.values()) for server in (one, two)] == [1, 1]
        # However the address is written it is the same server, and a name that both have makes them
        # one.
        assert ask(f"{one.url}/".replace("http", "HTTP"), request(), cache=path)[0].cached
        named = [
            ask(server, request(), cache=path, server_name="ours")[0].text for server in (one, two)
        ]
        assert named == ["one", "one"]


def test_the_signature_holds_what_changes_a_reply_and_not_where_it_comes_from():
    one = LLMClient(
        "m", base_url="http://a/v1", concurrency=1, revision="r", params={"temperature": 0}
    )
    two = LLMClient(
        "m", base_url="http://b/v1", concurrency=9, revision="r", params={"temperature": 0}
    )
    assert one.signature == two.signature == "llm|model:m|revision:r|temperature:0"
    assert one.request_key(request()) != two.request_key(request())
    assert one.request_key(request()) != LLMClient(
        "m", base_url="http://a/v1", revision="r"
    ).request_key(request())
    moved = [LLMClient("m", base_url=f"http://{host}/v1", server_name="ours") for host in "ab"]
    assert moved[0].request_key(request()) == moved[1].request_key(request())
    assert moved[0].signature == 'llm|model:m|revision:""|server:ours'


def test_who_answered_is_kept(tmp_path):
    plan = Plan(model="m-1", fingerprint="fp_1")
    cache = {"cache": tmp_path / "c.sqlite", "server_name": "s"}
    with FaultServer(plan=lambda body, attempt: plan) as server:
        (reply,) = ask(server, request("m"), **cache)
    assert (reply.model, reply.fingerprint) == ("m-1", "fp_1")
    # From the cache, too.
    client = LLMClient("m", base_url="http://unused/v1", **cache)
    assert dict(ask_all(client, [(0, request("m"))])) == {
        0: ChatReply("ok", "Yes", "stop", None, 7, 1, cached=True, model="m-1", fingerprint="fp_1")
    }
    assert client.usage.served == {"m-1 (fp_1)"}


def test_a_run_says_how_many_replies_came_from_the_cache_and_from_when(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    claims = "".join(
        json.dumps({"dataset": "d", "claim": f"c{n}", "doc": "x", "label": 1}) + "\n"
        for n in range(3)
    )
    Path("claims.jsonl").write_text(claims)
    with FaultServer() as server:
        spec = f"llm:model=m,cache=cache.sqlite,base_url={server.url}"
        Path("e.yaml").write_text(f"claims: claims.jsonl\nreplicates: 0\nevaluators: ['{spec}']\n")
        assert run_command("judge", "claims.jsonl", "--evaluator", spec, "--out", "first.csv") == 0
        assert "from the cache" not in capsys.readouterr().out
        with sqlite3.connect("cache.sqlite") as connection:
            connection.execute("UPDATE replies SET created = 1704153600 WHERE rowid < 3")
        connection.close()
        assert run_command("run", "e.yaml", "--dry-run") == 0
        assert "0 calls (3 more are cached, or the same as others)" in capsys.readouterr().out
        assert run_command("run", "e.yaml", "--out", "run") == 0
        assert len(server.bodies) == 3
    today = datetime.now(UTC).date().isoformat()
    assert (
        f"replies   3 from the cache (kept from 2024-01-02 to {today})" in capsys.readouterr().out
    )
    (row,) = json.loads(Path("run/results.json").read_text())["calls"]
    assert (row["cached_from"], row["cached_until"]) == ("2024-01-02", today)
    assert "3 answered from the cache (kept from 2024-01-02" in read_report_text(Path("run"))
