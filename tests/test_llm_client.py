"""The client against a real server that misbehaves."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import math
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from llm_server import LASTING, TRANSIENT, FaultServer, Plan, ask

from factaudit.errors import FactauditError, UsageError
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.client import MALFORMED_RETRIES, LLMClient
from factaudit.llm.cost import LLMCostBudget, LLMModelPrice
from factaudit.llm.reply import count_least_prompt_tokens, fail_cut_prompt
from factaudit.llm.server_errors import ServerAttemptFailure

KEY = "sk-secret-0123456789"


def request(text: str = "hello", **params: Any) -> ChatRequest:
    return ChatRequest(({"role": "user", "content": text},), params)


def first_then(fault: str, times: int = 1, **kwargs: Any) -> Callable[[dict[str, Any], int], Plan]:
    return lambda body, attempt: Plan(fault, **kwargs) if attempt < times else Plan()


@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_may_pass_is_asked_again(fault: str) -> None:
    with FaultServer(plan=first_then(fault)) as server:
        (reply,) = ask(server, request(), timeout=0.5 if fault == "hang" else 5.0)
        assert (reply.status, reply.text) == ("ok", "Yes")
        assert list(server.seen.values()) == [2]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ("refusal", "refused"),
        ("content-filter", "refused"),
        ("content-filter-400", "refused"),
        ("context-length", "skipped"),
    ],
)
def test_what_is_an_answer_is_not_asked_again(fault: str, status: str) -> None:
    assert fault in LASTING
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        (reply,) = ask(server, request())
        assert reply.status == status
        assert list(server.seen.values()) == [1]


@pytest.mark.parametrize("fault", ["unauthorized", "no-model", "bad-parameter", "quota"])
def test_what_would_befall_every_request_is_raised_at_once(fault: str) -> None:
    with FaultServer(plan=lambda body, attempt: Plan(fault)) as server:
        with pytest.raises(FactauditError):
            ask(server, request())
        assert list(server.seen.values()) == [1]


@pytest.mark.parametrize("fault", ["429", "500", "reset", "close"])
def test_giving_up_is_an_error_for_that_request_only(fault: str) -> None:
    def plan(body: dict[str, Any], attempt: int) -> Plan:
        return Plan(fault) if body["messages"][0]["content"] == "bad" else Plan()

    with FaultServer(plan=plan) as server:
        bad, good = ask(server, request("bad"), request("good"), max_retries=3)
        assert bad.status == "error"
        assert "4 attempts" in (bad.error or "")
        assert good.status == "ok"
        assert sorted(server.seen.values()) == [1, 4]


def test_a_reply_that_is_no_completion_is_not_paid_for_many_times() -> None:
    with FaultServer(plan=lambda body, attempt: Plan("wrong-shape")) as server:
        (reply,) = ask(server, request(), max_retries=20)
        assert reply.status == "error"
        assert list(server.seen.values()) == [1 + MALFORMED_RETRIES]


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next thing that is due: minutes pass at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None) -> Any:
            self.now += timeout or 0.0
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self.now


def times_sent(answers: Callable[[int], ChatReply | ServerAttemptFailure], count: int, **options: Any) -> list[float]:
    """At what second of virtual time each request is sent; ``answers`` has the answer to the n-th of all."""
    sent: list[float] = []

    class Scripted(LLMClient):
        async def _post_body(self, body: dict[str, Any]) -> ChatReply | ServerAttemptFailure:
            sent.append(asyncio.get_running_loop().time())
            return answers(len(sent) - 1)

    async def run() -> None:
        # An account of its own: others' limits and pauses hold for all processes.
        async with Scripted("m", base_url=f"http://{uuid.uuid4().hex}/v1", seed=0, **options) as client:
            # 3 + 3 + 2 tokens of prompt ("number 0"), 5 of reply: 13 each.
            asked = [client.ask(request(f"number {i}", max_tokens=5)) for i in range(count)]
            assert {reply.status for reply in await asyncio.gather(*asked)} == {"ok"}

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
    return sent


@pytest.mark.parametrize("limit", [{"requests_per_minute": 30}, {"tokens_per_minute": 30 * 13}])
def test_limits_space_the_requests(limit: dict[str, float]) -> None:
    assert times_sent(lambda n: ChatReply("ok", "Yes"), 8, **limit) == pytest.approx([2.0 * i for i in range(8)])


def test_retry_after_is_kept_and_holds_for_all_requests() -> None:
    sent = times_sent(
        lambda n: ChatReply("ok") if n else ServerAttemptFailure("HTTP 429", retry_after=20.0), 6, concurrency=1
    )
    assert sent[0] == 0.0
    assert min(sent[1:]) >= 20.0
    assert len(sent) == 7


def test_a_pause_charges_no_request_twice() -> None:
    sent = times_sent(
        lambda n: ChatReply("ok") if n else ServerAttemptFailure("HTTP 429", retry_after=30.0),
        5,
        concurrency=5,
        requests_per_minute=6,
    )
    # Four had their turns at 10 to 40 seconds when the pause began; the repeated one takes the next.
    assert sent == pytest.approx([0.0, 40.0, 50.0, 60.0, 70.0, 80.0])


def test_all_that_ask_with_one_key_keep_one_limit() -> None:
    url = f"http://{uuid.uuid4().hex}/v1"
    sent: list[float] = []

    class Scripted(LLMClient):
        async def _post_body(self, body: dict[str, Any]) -> ChatReply | ServerAttemptFailure:
            sent.append(asyncio.get_running_loop().time())
            return ChatReply("ok", "Yes")

    async def run() -> None:
        limit = {"base_url": url, "requests_per_minute": 60, "api_key": "k"}
        async with Scripted("judge", **limit) as judge, Scripted("decomposer", **limit) as decomposer:
            await asyncio.gather(*(one.ask(request(str(n))) for one in (judge, decomposer) for n in range(2)))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(run())
    assert sent == pytest.approx([0.0, 1.0, 2.0, 3.0], abs=0.2)
    # Another process goes on where this one is.
    program = (
        "import sys, time; from factaudit.llm.rate_limits import *;"
        "now = time.time(); account = hash_account(sys.argv[1], 'k');"
        "print(open_pace_store().reserve_turn(account, now, 1.0, 0.0)[0] - now)"
    )
    started = time.time()
    told = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True).stdout
    assert float(told) + time.time() - started > 1.0


REFUSALS: list[tuple[str, tuple[str, ...]]] = [
    ('{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this model. Use'
     ' \'max_completion_tokens\' instead.", "param": "max_tokens", "code": "unsupported_parameter"}}', ("max_tokens",)),
    ('{"error": {"message": "Unsupported value: \'temperature\' does not support 0 with this model. Only the default'
     ' (1) value is supported.", "param": "temperature", "code": "unsupported_value"}}', ("temperature",)),
    ('{"error": {"message": "This model does not support logprobs", "code": null}}', ("logprobs", "top_logprobs")),
    ('{"error": {"message": "`temperature` is deprecated for this model."}}', ("temperature",)),
    ('{"error": {"message": "Unrecognized request argument supplied: top_logprobs"}}', ("top_logprobs",)),
    ('{"error": "Invalid JSON payload received. Unknown name \\"logprobs\\": Cannot find field."}',
     ("logprobs", "top_logprobs")),
    ('{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}', ("seed",)),
    ('{"message": "property \'stop\' is unsupported"}', ("stop",)),
    ('{"error": {"message": "top_logprobs must be at most 5", "param": null}}', ("top_logprobs",)),
    ("response_format.json_schema is not supported by this model", ("response_format",)),
    ('{"error": {"message": "logprobs: Extra inputs are not permitted"}}', ("logprobs", "top_logprobs")),
]  # fmt: skip


@pytest.mark.parametrize(("said", "refused"), REFUSALS)
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_a_model_refuses_is_left_out_and_remembered(
    said: str, refused: tuple[str, ...], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = {"max_tokens": 9, "temperature": 0.0, "logprobs": True, "top_logprobs": 20, "seed": 1, "stop": ["x"]}
    params["response_format"] = {"type": "json_object"}
    with FaultServer() as server:
        respond = server.respond

        def refuse(plan: Plan, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
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


@pytest.mark.parametrize(("text", "n_tokens", "is_whole"), READ_PROMPTS)
def test_a_prompt_that_the_server_cut_has_failed(text: str, n_tokens: int | None, is_whole: bool) -> None:
    client = LLMClient("m", base_url="http://x")
    answer = {"choices": [{"message": {"content": "Yes"}}], "usage": {"prompt_tokens": n_tokens}}
    reply = client.parse_http_answer(200, {}, json.dumps(answer))
    assert isinstance(reply, ChatReply)
    reply = fail_cut_prompt(reply, count_least_prompt_tokens(request(text)))
    assert reply.status == ("ok" if is_whole else "error")
    assert is_whole or "the server cut the prompt: it read 2,050 tokens" in (reply.error or "")


def test_the_client_fails_a_reply_to_a_prompt_that_was_cut() -> None:
    with FaultServer() as server:
        answer = {"choices": [{"message": {"content": "Yes"}}], "usage": {"prompt_tokens": 2050}}
        server.respond = lambda plan, body: (200, {}, json.dumps(answer).encode())  # type: ignore[method-assign]
        assert [reply.status for reply in ask(server, request("a ferry. " * 5000), request("short"))] == ["error", "ok"]


def test_backoff_grows_to_its_cap() -> None:
    sent = times_sent(
        lambda n: ChatReply("ok") if n == 6 else ServerAttemptFailure("HTTP 500"), 1, backoff=1.0, max_backoff=8.0
    )
    waited = [after - before for before, after in pairwise(sent)]
    for wait, most in zip(waited, (1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= wait <= most


def test_concurrency_is_bounded_and_reached() -> None:
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.02)) as server:
        replies = ask(server, *(request(str(i)) for i in range(60)), concurrency=7)
        assert {reply.status for reply in replies} == {"ok"}
        assert server.most_in_flight == 7


def test_equal_requests_are_sent_once() -> None:
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.05)) as server:
        replies = ask(server, *[request()] * 5, request("other"))
        assert [reply.status for reply in replies] == ["ok"] * 6
        assert sorted(server.seen.values()) == [1, 1]
        assert sum(reply.cached for reply in replies) == 4


def test_cached_replies_need_no_key_and_no_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    path = tmp_path / "cache.sqlite"
    with FaultServer(plan=lambda body, attempt: Plan(p_yes=0.75)) as server:
        (bought,) = ask(server, request(logprobs=True), cache=path, server_name="here")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    async def again() -> tuple[ChatReply, LLMClient]:
        async with LLMClient("m", cache=path, server_name="here") as client:
            return await client.ask(request(logprobs=True)), client

    cached, client = asyncio.run(again())
    assert cached.cached
    assert not bought.cached
    assert (cached.text, cached.tokens, cached.finish_reason) == (bought.text, bought.tokens, bought.finish_reason)
    assert (client.usage.calls, client.usage.cached_calls) == (0, 1)
    with pytest.raises(FactauditError, match="OPENAI_API_KEY"):
        asyncio.run(LLMClient("m").ask(request()))


def test_no_server_at_the_address_is_said_once() -> None:
    with FaultServer() as server:
        url = server.url
    with pytest.raises(FactauditError, match="no server answers at http"):
        asyncio.run(LLMClient("m", base_url=url, backoff=0.001).ask(request()))


def test_the_key_is_sent_and_stands_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "cache.sqlite"

    def plan(body: dict[str, Any], attempt: int) -> Plan:
        return Plan("unauthorized") if body["messages"][0]["content"] == "bad" else Plan()

    with FaultServer(plan=plan) as server:
        server.respond = lambda plan, body, inner=server.respond: (  # type: ignore[method-assign]
            (401, {}, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode())
            if plan.fault == "unauthorized"
            else inner(plan, body)
        )
        (reply,) = ask(server, request(), api_key_env="MY_KEY", cache=path)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        with pytest.raises(FactauditError) as error:
            ask(server, request("bad"), api_key_env="MY_KEY", cache=path)
        shown = f"{error.value} {reply} {caplog.text}"
    assert KEY not in shown
    assert "no key was sent" not in shown
    for file in tmp_path.iterdir():
        assert KEY.encode() not in file.read_bytes()


def test_a_password_in_the_address_is_sent_and_stands_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with FaultServer(plan=lambda body, attempt: Plan("unauthorized" if attempt else None)) as server:
        address = server.url.replace("://", "://me:hush%3Ahush@")
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        (reply,) = ask(server, request(), base_url=None, cache=tmp_path / "c.sqlite")
        assert reply.status == "ok"
        assert server.headers[0]["authorization"] == "Basic " + base64.b64encode(b"me:hush:hush").decode()
        with pytest.raises(FactauditError) as error:
            ask(server, request(), base_url=None)
        client = LLMClient("m")
        shown = f"{error.value} {client.signature} {reply} {caplog.text} {client.server_address()}"
        assert "hush" not in shown
        assert client.server_address() == server.url
    for file in tmp_path.iterdir():
        assert b"hush" not in file.read_bytes()
    # Settings stand in the run folder: an address among them has no password at all.
    with pytest.raises(UsageError, match="OPENAI_BASE_URL") as refused:
        LLMClient("m", base_url=address)
    assert "hush" not in str(refused.value)


def test_calls_go_through_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert ask(proxy, request(), base_url="http://models.invalid/v1")[0].status == "ok"
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        assert ask(proxy, request())[0].status == "ok"  # where no proxy is wanted none is asked


def test_an_address_without_v1_is_pointed_out() -> None:
    client = LLMClient("m", base_url="http://host:8000/")
    with pytest.raises(FactauditError, match=r"404.*ends in /v1"):
        client.parse_http_answer(404, {}, '{"detail":"Not Found"}')


def test_a_403_after_other_replies_is_that_requests_own() -> None:
    client = LLMClient("m", base_url="http://x/v1")
    with pytest.raises(FactauditError, match="403"):
        client.parse_http_answer(403, {}, "Forbidden")
    client.usage.count_paid_call()
    blocked = client.parse_http_answer(403, {}, "Forbidden")
    assert isinstance(blocked, ChatReply)
    assert blocked.status == "error"


def test_the_signature_holds_what_changes_a_reply_and_not_where_it_comes_from() -> None:
    one = LLMClient("m", base_url="http://a/v1", concurrency=1, revision="r", params={"temperature": 0})
    two = LLMClient("m", base_url="http://b/v1", concurrency=9, revision="r", params={"temperature": 0})
    assert one.signature == two.signature == "llm|model:m|revision:r|temperature:0"
    assert one.request_key(request()) != two.request_key(request())
    moved = [LLMClient("m", base_url=f"http://{host}/v1", server_name="ours") for host in "ab"]
    assert moved[0].request_key(request()) == moved[1].request_key(request())
    assert moved[0].signature == 'llm|model:m|revision:""|server:ours'
    assert one.request_key(request()) != LLMClient("m", base_url="http://a/v1", revision="r").request_key(request())


def test_the_money_limit_is_never_passed_and_the_rest_is_skipped(tmp_path: Path) -> None:
    prices = {"m": LLMModelPrice(input=1000.0, output=1000.0)}  # a tenth of a cent per token

    def run(limit: float | None) -> tuple[list[ChatReply], LLMCostBudget, int]:
        budget = LLMCostBudget(limit, prices)
        requests = [request(f"number {i:03}", max_tokens=1) for i in range(40)]
        with FaultServer(plan=lambda body, attempt: Plan(delay=0.002)) as server:
            replies = ask(server, *requests, budget=budget, cache=tmp_path / "c.sqlite", concurrency=8, server_name="s")
            return replies, budget, sum(server.paid.values())

    replies, budget, calls = run(0.1)
    skipped = [reply for reply in replies if reply.status == "skipped"]
    assert 0 < budget.spent <= 0.1
    assert budget.is_exhausted
    assert len(skipped) == 40 - calls
    assert 0 < calls < 40
    assert "max_cost" in (skipped[0].error or "")
    # Most of the limit is used: one more call's upper bound (3 + 3 + 10 bytes, 1 token) would not have fitted.
    assert budget.spent + 0.017 > 0.1
    # With more money the run goes on from there.
    replies, _, more = run(10.0)
    assert {reply.status for reply in replies} == {"ok"}
    assert calls + more == 40


def test_a_client_can_be_opened_again_in_another_event_loop() -> None:
    with FaultServer(plan=lambda body, attempt: Plan(delay=0.005)) as server:
        client = LLMClient("m", base_url=server.url, concurrency=1)

        async def run(name: str) -> list[ChatReply]:
            async with client:
                return await asyncio.gather(*(client.ask(request(f"{name} {i}")) for i in range(4)))

        for name in "ab":
            assert [reply.status for reply in asyncio.run(run(name))] == ["ok"] * 4


def test_a_limit_needs_a_price_and_a_bound_on_replies() -> None:
    with FaultServer() as server:
        with pytest.raises(UsageError, match="price of 'm'"):
            ask(server, request(max_tokens=1), budget=LLMCostBudget(1.0, {}))
        with pytest.raises(UsageError, match="max_tokens"):
            ask(server, request(), budget=LLMCostBudget(1.0, {"m": LLMModelPrice(1, 1)}))


def test_an_answer_without_end_is_not_read_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factaudit.llm.server.MAX_BODY_BYTES", 1 << 20)
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        try:
            while sent < 256 << 20:
                writer.write(b" " * 65536)
                await writer.drain()
                sent += 65536
        except ConnectionError:
            pass
        writer.close()

    async def run() -> ChatReply:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with server, LLMClient("m", base_url=url, max_retries=0) as client:
            return await client.ask(request())

    reply = asyncio.run(run())
    assert reply.status == "error"
    assert "an answer of more than 1 MB" in (reply.error or "")
    assert sent < 64 << 20  # the operating system's buffers take some


def test_usage_is_counted_and_a_reply_without_counts_is_estimated() -> None:
    with FaultServer(plan=lambda body, attempt: Plan(usage=False)) as server:

        async def run() -> LLMClient:
            async with LLMClient(
                "m", base_url=server.url, budget=LLMCostBudget(None, {"m": LLMModelPrice(1e6, 2e6)})
            ) as client:
                await client.ask(request("12345678"))
                return client

        used = asyncio.run(run()).budget.summarise_callers()[""]
    assert (used["calls"], used["prompt_tokens"]) == (1, 3 + 3 + 2)
    assert used["cost"] == pytest.approx(8.0 + 2.0)  # and one of the reply


@pytest.mark.parametrize(
    ("body", "status"),
    [
        # llama.cpp, vLLM, OpenAI and Azure, as they word it.
        (
            {"error": {"code": 400, "message": "request (9 tokens) exceeds the available context size (2 tokens)"}},
            "skipped",
        ),
        ({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}, "skipped"),
        (
            {"error": {"message": "Input tokens exceed the configured limit", "code": "context_length_exceeded"}},
            "skipped",
        ),
        ({"error": {"code": "content_filter", "message": "triggering Azure OpenAI's content management"}}, "refused"),
        ({"error": "messages must alternate"}, "error"),
        ({"detail": [{"loc": ["body"], "msg": "field required"}]}, "error"),
        ("<html>nginx</html>", "error"),
    ],
)
def test_errors_in_the_shapes_of_several_servers(body: Any, status: str) -> None:
    reply = LLMClient("m", base_url="http://x").parse_http_answer(
        400, {}, body if isinstance(body, str) else json.dumps(body)
    )
    assert isinstance(reply, ChatReply)
    assert reply.status == status


@pytest.mark.parametrize(
    "logprobs", [None, [], {"content": None}, {"content": [{"token": "Yes", "logprob": None}]}, "x"]
)
def test_log_probabilities_in_the_wrong_shape_do_not_lose_the_reply(logprobs: Any) -> None:
    choice = {"message": {"content": "Yes"}, "finish_reason": "stop", "logprobs": logprobs}
    reply = LLMClient("m", base_url="http://x").parse_http_answer(200, {}, json.dumps({"choices": [choice]}))
    assert isinstance(reply, ChatReply)
    assert (reply.status, reply.text) == ("ok", "Yes")
    assert not reply.tokens


def test_tokens_that_read_the_same_are_added_and_half_a_character_does_no_harm(tmp_path: Path) -> None:
    top = [{"token": "a", "logprob": math.log(0.5)}, {"token": "a", "logprob": math.log(0.25)}]
    far = [{"token": "b", "logprob": -9999.0}, {"token": "b", "logprob": -9999.0}]
    content = [{"token": "a\ud83d", "logprob": -0.1, "top_logprobs": top + far}]
    body = {"choices": [{"message": {"content": "a\ud83d"}, "logprobs": {"content": content}}]}
    client = LLMClient("m", base_url="http://x", cache=tmp_path / "c.sqlite")
    reply = client.parse_http_answer(200, {}, json.dumps(body))
    assert isinstance(reply, ChatReply)
    assert reply.tokens is not None
    assert reply.text == "a?"
    assert math.exp(reply.tokens[0].alternatives["a"]) == pytest.approx(0.75)
    assert reply.tokens[0].alternatives["b"] < -9000
    assert client.cache is not None
    client.cache.finish(b"k", "ok", reply=reply, origin=("s", "m", ""))
    kept = client.cache.get(b"k")
    assert kept is not None
    assert kept.tokens == reply.tokens
