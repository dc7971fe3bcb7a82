"""Calls through a client object of the user's: counted by its hooks, and kept, limited and repeated
as all others."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llm_server
import openai
import pandas as pd
import pytest
import yaml
from conftest import run_command
from llm_server import TRANSIENT, FaultServer, Plan
from scripted_llm import ChatReply, ChatRequest, LLMCostBudget, LLMJudge

import factaudit
from factaudit import LLM, FactauditError, UsageError

KEY = "sk-secret-0123456789"
CLAIMS = pd.DataFrame(
    [
        {"claim_id": f"c{i}", "dataset": "d", "claim": f"number {i}", "doc": "a document"}
        for i in range(6)
    ]
)


def sdk_client(server: FaultServer, kind: Any = openai.AsyncOpenAI, **options: Any) -> Any:
    if kind is openai.AsyncAzureOpenAI:
        root = server.url.removesuffix("/v1")
        return kind(api_key=KEY, azure_endpoint=root, api_version="2024-10-21", **options)
    return kind(api_key=KEY, base_url=server.url, **options)


def count_calls(client: Any) -> list[dict[str, Any]]:
    """The calls of a client's ``create``, as a tracing library patches it."""
    calls = []
    create = client.chat.completions.create

    async def counted(**params: Any) -> Any:
        calls.append(params)
        return await create(**params)

    client.chat.completions.create = counted
    return calls


def ask(client: Any, **options: Any) -> ChatReply:
    (reply,) = llm_server.ask(
        "", ChatRequest(({"role": "user", "content": "hello"},)), client=client, **options
    )
    return reply


@pytest.mark.parametrize("kind", [openai.AsyncOpenAI, openai.AsyncAzureOpenAI])
def test_each_call_goes_through_the_client(kind, tmp_path):
    with FaultServer(plan=lambda body, attempt: Plan(p_yes=0.75)) as server:
        client = sdk_client(server, kind)
        calls = count_calls(client)
        llm = factaudit.LLM(model="m", client=client, cache=str(tmp_path / "cache.sqlite"))
        first, again = (factaudit.judge(CLAIMS, [llm]) for _ in range(2))
        assert first["score"].tolist() == pytest.approx([0.75] * 6)
        assert first.equals(again)
        assert len(calls) == len(server.bodies) == 6, "the second time all comes from the cache"
        assert client.max_retries == 2, "the client's own retries are given back"
        header = "api-key" if kind is openai.AsyncAzureOpenAI else "authorization"
        assert KEY in server.headers[0][header]
    assert KEY.encode() not in (tmp_path / "cache.sqlite").read_bytes()


@pytest.mark.parametrize("fault", TRANSIENT)
def test_what_may_pass_is_asked_again_and_seen_by_the_ledger(fault):
    with FaultServer(plan=lambda body, attempt: Plan(None if attempt else fault)) as server:
        budget = LLMCostBudget()
        client = sdk_client(server)
        calls = count_calls(client)
        reply = ask(client, timeout=0.5 if fault == "hang" else 5.0, budget=budget)
        assert (reply.status, reply.text) == ("ok", "Yes")
        assert len(calls) == sum(server.seen.values()) == 2, "the client does not repeat by itself"
        billed = fault not in ("429", "429-retry-after", "500", "503")
        assert budget.summarise_callers()[""]["calls"] == 1 + billed


@pytest.mark.parametrize("fault", ["unauthorized", "quota", "no-model", "bad-parameter"])
def test_what_would_befall_every_call_ends_the_run(fault):
    with (
        FaultServer(plan=lambda body, attempt: Plan(fault)) as server,
        pytest.raises(FactauditError, match="model 'm'"),
    ):
        ask(sdk_client(server))


def test_no_server_at_the_clients_address_is_said():
    client = openai.AsyncOpenAI(api_key=KEY, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(FactauditError, match=r"no server answers at http://127\.0\.0\.1:9/v1"):
        ask(client)


def test_parameters_that_the_sdk_does_not_know_are_sent_all_the_same():
    with FaultServer() as server:
        ask(sdk_client(server), params={"top_k": 5, "seed": 1})
        assert (server.bodies[0]["top_k"], server.bodies[0]["seed"]) == (5, 1)


class Wrapper:
    """A client that is no SDK's, and gives plain data."""

    def __init__(self, create: Any) -> None:
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=create))


def test_a_client_of_ones_own_will_do():
    answer = {"choices": [{"message": {"content": "Yes"}, "finish_reason": "stop"}], "model": "m"}

    async def create(**params):
        return answer

    assert ask(Wrapper(create)).text == "Yes"
    # A plain function that hands the coroutine on is asynchronous, too.
    assert ask(Wrapper(lambda **params: create(**params))).text == "Yes"


def test_what_a_client_of_ones_own_raises_is_that_calls_failure():
    async def create(**params):
        raise RuntimeError(f"gateway down, Bearer {KEY}")

    reply = ask(Wrapper(create), max_retries=1)
    assert reply.status == "error"
    assert "gateway down" in str(reply.error)
    assert KEY not in str(reply.error)


@pytest.mark.parametrize(
    ("client", "said"),
    [
        (openai.OpenAI(api_key=KEY), "asynchronous, found one of class OpenAI"),
        (
            openai.AzureOpenAI(api_key=KEY, azure_endpoint="http://x", api_version="1"),
            "asynchronous, found one of class AzureOpenAI",
        ),
        (Wrapper(lambda **params: {}), "is not asynchronous"),
        (Wrapper(lambda model: {}), "unexpected keyword"),
        (3, "'int' object is not callable"),
        (object(), "'object' object is not callable"),
        (
            openai.AsyncOpenAI,
            "client: expected an AsyncOpenAI, or a function that makes one: OpenAIError",
        ),
        (lambda: 3, "found one of class int"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        ("no_such_module:make", "cannot import 'no_such_module'"),
        ("json:make", "'json' has no 'make'"),
        ("json:loads", "a function that makes one: TypeError"),
        ("json", "expected MODULE:NAME"),
        ("../json:f", "expected MODULE:NAME"),
    ],
)
def test_what_is_no_client_is_said(client, said, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError) as error:
        ask(client)
    assert said in str(error.value)
    assert KEY not in str(error.value)


@pytest.mark.parametrize("other", [{"base_url": "http://localhost/v1"}, {"batch": True}])
def test_a_client_goes_with_no_other_way_to_a_server(other):
    with pytest.raises(UsageError, match=r"client: .* cannot be combined with it"):
        LLM(model="m", client="mine:make", **other)


MODULE = """
import openai
calls = []
async def count(request):
    calls.append(request)
def make_client():
    http = openai.DefaultAsyncHttpxClient(event_hooks={{"request": [count]}})
    return openai.AsyncOpenAI(api_key={key!r}, base_url={url!r}, http_client=http)
"""


def test_a_yaml_names_the_function_that_makes_the_client(tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    CLAIMS.assign(label=1).to_json("claims.jsonl", orient="records", lines=True)
    settings = {"model": "m", "client": "counting_client:make_client", "cache": "cache.sqlite"}
    Path("e.yaml").write_text(
        yaml.safe_dump({"claims": "claims.jsonl", "evaluators": [{"llm": settings}]})
    )
    with FaultServer() as server, caplog.at_level(logging.DEBUG, "factaudit"):
        Path("counting_client.py").write_text(MODULE.format(key=KEY, url=server.url))
        assert run_command("run", "e.yaml", "--out", "run") == 0
        import counting_client

        assert len(counting_client.calls) == len(server.bodies) == 6
        assert run_command("run", "e.yaml", "--out", "run") == 0, (
            "the cache that the run has made is no source of it"
        )
    assert KEY not in caplog.text
    for path in (*Path("run").rglob("*"), Path("cache.sqlite")):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path
    assert "counting_client:make_client" in Path("run/experiment.yaml").read_text()


def test_signatures_do_not_know_the_client():
    assert LLMJudge(model="m", client="mine:make").signature == LLMJudge(model="m").signature
    assert KEY not in repr(LLM(model="m", client=openai.AsyncOpenAI(api_key=KEY)))
