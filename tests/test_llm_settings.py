"""What may be said of a language model: one object for engines, evaluators and the command line."""

from __future__ import annotations

from typing import Any

import pytest
from llm_server import FaultServer, ask
from scripted_llm import LLMJudge, ScriptedLLM

from factaudit import LLM, Claim, UsageError
from factaudit.engines import decompose, verifier


def test_a_model_is_named_on_one_line():
    found = LLM.from_value(
        "gpt-4o-mini:base_url=http://localhost:1/v1,concurrency=64,params.seed=7,params.stop=null"
    )
    assert (found.model, found.base_url, found.concurrency) == (
        "gpt-4o-mini",
        "http://localhost:1/v1",
        64,
    )
    assert found.params == {"seed": 7, "stop": None}
    assert LLM.from_value(found) is found
    assert LLM.from_value("llama3.1:8b").model == "llama3.1:8b"  # as Ollama names them
    ollama = LLM.from_value("llama3.1:8b:base_url=http://localhost:11434/v1")
    assert (ollama.model, ollama.base_url) == ("llama3.1:8b", "http://localhost:11434/v1")
    assert LLM.from_value({"model": 4, "params": {"a": 1}, "params.b": "[x, y]"}).params == {
        "a": 1,
        "b": ["x", "y"],
    }
    for text, message in (
        ("gpt-4o-mini:timeout=9,concurrency", "expected NAME"),
        ("gpt-4o-mini,concurrency=3", "expected NAME"),
        ("gpt-4o-mini:=3", "expected NAME"),
        ("gpt-4o-mini:concurency=3", "llm has no option 'concurency' .did you mean 'concurrency'"),
        ("gpt-4o-mini:temperature=1", "a parameter of the request is params.temperature"),
        ("gpt-4o-mini:n=3", "to ask a judge several times, give repeats=N"),
        ("gpt-4o-mini:concurrency=many", "llm, option concurrency: .*found 'many'"),
        ("gpt-4o-mini:concurrency=0", "concurrency: expected more than 0"),
        ("gpt-4o-mini:base_url=ftp://x", "base_url: expected"),
        ("gpt-4o-mini:params.x=[", "params.x: the value is not YAML"),
    ):
        with pytest.raises(UsageError, match=message):
            LLM.from_value(text)


SECRETS = [
    {"api_key": "abc"},
    {"OPENAI_API_KEY": "abc"},
    {"extra_headers": {"Authorization": "Bearer abc"}},
    {"headers": [{"x-api-key": "abc"}]},
    {"user": "sk-abcdefghijklmnopqrstuvwx"},
    {"metadata": {"note": "Bearer abcdefghijklm"}},
]


@pytest.mark.parametrize("params", SECRETS, ids=str)
def test_secrets_are_refused_among_the_parameters_and_not_repeated(params):
    for make in (
        lambda: LLM(model="m", params=params),
        lambda: LLMJudge(model="m", params=params),
    ):
        with pytest.raises(UsageError, match="api_key_env") as told:
            make()
        assert "abc" not in str(told.value)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "n"])
def test_parameters_that_would_change_what_comes_back_are_refused(name):
    with pytest.raises(UsageError, match=f"params: '{name}'"):
        LLM(model="m", params={name: 2})


def test_ordinary_parameters_are_not_taken_for_secrets():
    params = {
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "logit_bias": {"5": 1},
        "top_k": 3,
        "user": "me",
    }
    assert LLM(model="m", params=params).params == params


def sent_by(model: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    """What decomposing, verifying and judging each send, without the messages."""
    prompt = decompose.DecompositionPrompt.load()
    verify = verifier.FactVerifier(ScriptedLLM(str), with_passages=False)
    requests = [prompt.make_request("One."), verify.make_request(Claim("a", "Two?", None))]
    with FaultServer() as server:
        for request in requests:
            ask(server, request, model=model, params=params)
        list(
            LLMJudge(model=model, base_url=server.url, params=params, cache="none").judge(
                [Claim("a", "b", "c")]
            )
        )
        return [
            {k: v for k, v in body.items() if k not in ("messages", "model")}
            for body in server.bodies
        ]


def test_every_caller_can_set_any_parameter():
    before = sent_by("m", {})
    assert [body["max_tokens"] for body in before] == [800, 50, 8]
    assert all(body["temperature"] == 0.0 for body in before)
    params = {
        "max_completion_tokens": 2000,
        "reasoning_effort": "low",
        "temperature": None,
        "seed": 3,
    }
    for body, old in zip(sent_by("m", params), before, strict=True):
        kept = {
            key: value for key, value in old.items() if key not in ("max_tokens", "temperature")
        }
        assert body == {**kept, "max_completion_tokens": 2000, "reasoning_effort": "low", "seed": 3}


def test_the_price_stands_beside_the_model():
    named = LLM.from_value("mine:prices.input=1,prices.output=2.5")
    for settings in (named, LLM(model="mine", prices={"input": 1.0, "output": 2.5})):
        price = settings.price()
        assert price is not None
        assert price.cost(2e6, 1e6) == 4.5
    assert LLM(model="mine").price() is None
    for wrong in ({"input": 1.0}, {"input": -1.0, "output": 1.0}):
        with pytest.raises(UsageError, match="prices: expected"):
            LLM(model="mine", prices=wrong)
