"""The Batch API: limits, results in any order, failed lines, and a kill at any point."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer, Plan, _error, fingerprint
from scripted_llm import (
    ChatReply,
    ChatRequest,
    Killed,
    LLMClient,
    LLMCostBudget,
    ReplyStore,
    Send,
    ask_all,
)

from factaudit import Claim, FactauditError
from factaudit.evaluators import llm_judges
from factaudit.llm import batch_api


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_api, "POLL_SECONDS", 0.001)


def number_of(body: dict[str, Any]) -> int:
    return int(body["messages"][-1]["content"].split()[-1])


def answer(body: dict[str, Any], attempt: int = 0) -> Plan:
    return Plan(text="Yes" if number_of(body) % 3 else "No")


def pairs(count: int) -> Iterator[tuple[int, ChatRequest]]:
    for i in range(count):
        yield i, ChatRequest(({"role": "user", "content": f"number {i}"},), {"max_tokens": 1})


def client_of(server: FaultServer, folder: Path, budget: LLMCostBudget | None = None) -> LLMClient:
    return LLMClient(
        "m",
        base_url=server.url,
        cache=folder / "cache.sqlite",
        budget=budget,
        batch=True,
        prices={"input": 1e6, "output": 1e6},
    )


def ask(
    client: LLMClient, requests: Iterable[tuple[Any, ChatRequest]]
) -> list[tuple[Any, ChatReply]]:
    return list(ask_all(client, requests))


def run(server: FaultServer, folder: Path, count: int = 20) -> dict[int, ChatReply]:
    found = ask(client_of(server, folder), pairs(count))
    assert len(found) == count
    return dict(found)


def check(replies: dict[int, ChatReply]) -> None:
    assert {i: (r.status, r.text) for i, r in replies.items()} == {
        i: ("ok", "Yes" if i % 3 else "No") for i in range(len(replies))
    }


def test_lines_are_chunked_and_results_taken_in_any_order(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_api, "MAX_BATCH_LINES", 7)
    with FaultServer(plan=answer, batch_polls=3) as server:
        check(run(server, tmp_path))
        assert len(server.batches) == 3
        lines = [json.loads(line) for line in server.files["file-1"].splitlines()]
        assert len(lines) == 7
        keys = {client_of(server, tmp_path).request_key(request).hex() for _, request in pairs(7)}
        assert {line["custom_id"] for line in lines} == keys
        assert lines[0]["url"] == "/v1/chat/completions"
        # A second run submits nothing.
        check(run(server, tmp_path))
        assert len(server.batches) == 3
        assert set(server.paid.values()) == {1}


def test_a_file_stays_below_the_limit_of_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_api, "MAX_BATCH_BYTES", 1000)
    with FaultServer(plan=answer) as server:
        check(run(server, tmp_path))
        assert len(server.batches) > 1
        inputs = [server.files[b["input_file_id"]] for b in server.batches.values()]
        assert max(map(len, inputs)) <= 1000
        assert sum(data.count(b"\n") for data in inputs) == 20


def test_lines_that_failed_are_submitted_again_and_answers_are_not(tmp_path):
    once = {1: "500", 2: "expired", 3: "429", 4: "empty-choices"}
    always = {5: "lost", 6: "context-length", 7: "refusal"}

    def plan(body, attempt):
        number = number_of(body)
        fault = always.get(number) or (once.get(number) if attempt == 0 else None)
        return Plan(fault) if fault else answer(body)

    with FaultServer(plan=plan) as server:
        replies = run(server, tmp_path)
        statuses = [replies[n].status for n in range(9)]
        assert statuses == [*["ok"] * 5, "error", "skipped", "refused", "ok"]
        assert str(replies[5].error).startswith("gave up after")
        assert len(server.batches) == batch_api.MAX_ROUNDS
        assert [data.count(b"\n") for data in inputs(server)] == [20, len(once) + 1, 1]


def inputs(server: FaultServer) -> list[bytes]:
    return [server.files[b["input_file_id"]] for b in server.batches.values()]


def test_equal_requests_are_one_line(tmp_path):
    with FaultServer(plan=lambda body, attempt: Plan()) as server:
        request = ChatRequest(({"role": "user", "content": "same 1"},))
        client = client_of(server, tmp_path)
        replies = ask(client, [(i, request) for i in range(4)])
        assert [(item, reply.status) for item, reply in replies] == [(i, "ok") for i in range(4)]
        assert server.files["file-1"].count(b"\n") == 1
        assert client.usage.cached_calls == 3


def kill_at(point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import openai

    def die(*_: Any, **__: Any) -> Any:
        raise Killed

    def after(times: int, inner: Callable[..., Any]) -> Callable[..., Any]:
        calls = Counter[str]()

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            calls["n"] += 1
            return die() if calls["n"] > times else inner(*args, **kwargs)

        return wrapped

    match point:
        case "before the upload":
            monkeypatch.setattr(openai.resources.Files, "create", die)
        case "after the upload":
            monkeypatch.setattr(openai.resources.Batches, "create", die)
        case "after the submission":
            monkeypatch.setattr(ReplyStore, "name_batch", die)
        case "between two submissions":
            monkeypatch.setattr(
                openai.resources.Batches, "create", after(1, openai.resources.Batches.create)
            )
        case "while polling":
            monkeypatch.setattr(batch_api.time, "sleep", die)
        case "while collecting":
            monkeypatch.setattr(LLMClient, "settle", after(3, LLMClient.settle))
        case "after collecting":
            monkeypatch.setattr(ReplyStore, "drop_batch", die)


@pytest.mark.parametrize(
    "point",
    [
        "before the upload",
        "after the upload",
        "after the submission",
        "between two submissions",
        "while polling",
        "while collecting",
        "after collecting",
    ],
)
def test_a_kill_at_any_point_submits_nothing_twice(tmp_path, monkeypatch, point):
    monkeypatch.setattr(batch_api, "MAX_BATCH_LINES", 10)
    with FaultServer(plan=answer, batch_polls=2) as server:
        with monkeypatch.context() as patch:
            kill_at(point, patch)
            with pytest.raises(Killed):
                run(server, tmp_path)
        check(run(server, tmp_path))
        assert len(server.batches) == 2
        assert set(server.paid.values()) == {1}
        assert len(server.paid) == 20
        assert sum(data.count(b"\n") for data in inputs(server)) == 20


def test_a_submission_whose_answer_was_lost_is_found_again(tmp_path):
    with FaultServer(plan=answer) as server:
        server.hook = lambda call: Plan("close") if call == "POST /v1/batches" else None
        check(run(server, tmp_path))
        assert len(server.batches) == 1


def test_a_batch_that_fails_as_a_whole_is_said_and_can_be_tried_again(tmp_path, monkeypatch):
    with FaultServer(plan=answer) as server:

        def fail(record):
            record["status"] = "failed"
            record["errors"] = {
                "object": "list",
                "data": [{"code": "invalid", "message": "token limit exceeded"}],
            }

        with monkeypatch.context() as patch:
            patch.setattr(server, "_complete", fail)
            failed = run(server, tmp_path)
            assert {one.status for one in failed.values()} == {"error"}
            assert "failed: token limit exceeded" in str(failed[0].error)
            assert len(server.batches) == batch_api.MAX_ROUNDS
        check(run(server, tmp_path))

        with monkeypatch.context() as patch:
            patch.setattr(server, "_complete", lambda record: record.update(status="cancelled"))
            n_before = len(server.batches)
            stopped = run(server, tmp_path, count=22)
            assert [stopped[n].status for n in (19, 20, 21)] == ["ok", "error", "error"]
            assert len(server.batches) == n_before + 1
        check(run(server, tmp_path, count=22))

        def refuse(method, path, data):
            return _error(401, "Incorrect API key provided", "invalid_api_key")

        monkeypatch.setattr(server, "endpoint", refuse)
        with pytest.raises(FactauditError, match="401"):
            run(server, tmp_path, count=30)


def test_a_run_waits_for_no_batch_of_others_and_does_not_fail_on_theirs(tmp_path, monkeypatch):
    with FaultServer(plan=answer, batch_polls=10**9) as server:
        with monkeypatch.context() as patch:
            kill_at("while polling", patch)
            with pytest.raises(Killed):
                run(server, tmp_path)  # never ends
        server.batch_polls = 1
        other = [
            (n, ChatRequest(({"role": "user", "content": f"number {n}"},), {"max_tokens": 1}))
            for n in (91, 92)
        ]
        client = client_of(server, tmp_path)
        assert [reply.text for _, reply in ask(client, other)] == ["Yes", "Yes"]
        # Where lines are wanted that stand in it, it is waited for; once it has failed they are
        # submitted again.
        first, *_ = server.batches.values()
        first["status"] = "failed"
        first["errors"] = {
            "object": "list",
            "data": [{"code": "invalid", "message": "token limit exceeded"}],
        }
        check(run(server, tmp_path))
        assert len(server.batches) == 3
        assert set(server.paid.values()) == {1}


def test_a_batch_leaves_out_what_the_model_refuses_and_fails_prompts_that_were_cut(
    tmp_path, monkeypatch
):
    with FaultServer() as server:
        respond = server.respond

        def cut(plan, body):
            if "max_tokens" in body:
                return _error(400, "Unsupported parameter: 'max_tokens'", "unsupported_parameter")
            status, headers, data = respond(plan, body)
            return (
                status,
                headers,
                json.dumps(json.loads(data) | {"usage": {"prompt_tokens": 2050}}).encode(),
            )

        monkeypatch.setattr(server, "respond", cut)
        texts = {"short": "number 1", "long": "number 1 " * 5000}
        asked = [
            (name, ChatRequest(({"role": "user", "content": text},), {"max_tokens": 1}))
            for name, text in texts.items()
        ]
        client = client_of(server, tmp_path)
        found = dict(ask(client, asked))
        assert (found["short"].status, found["long"].status) == ("ok", "error")
        assert "the server cut the prompt" in (found["long"].error or "")
        assert len(server.batches) == 2


def test_the_money_limit_holds_at_half_the_price(tmp_path):
    with FaultServer(plan=answer) as server:
        # "number N" is at most 9 bytes: 3 + 3 + 9 tokens and 1 of reply, at most; half of a dollar
        # each.
        budget = LLMCostBudget(80.0)
        client = client_of(server, tmp_path, budget)
        replies = dict(ask(client, pairs(20)))
        statuses = Counter(reply.status for reply in replies.values())
        assert statuses == {"ok": 10, "skipped": 10}
        # The server counts len // 4 = 2 tokens of prompt and 1 of reply.
        assert budget.summarise_callers()[""]["cost"] == pytest.approx(10 * 0.5 * 3)
        assert budget.spent == pytest.approx(15.0)
        assert client.store.begin(Send(b"x", budget.run, most_cost=65.0), 80.0) == "send", (
            "what was reserved and not spent is given back"
        )


def test_an_evaluator_in_batch_mode_says_what_it_says_without(tmp_path):
    claims = [Claim(f"c{i}", f"claim {i}", f"doc {i}" if i else None) for i in range(12)]

    def plan(body, attempt):
        return Plan(p_yes=int(fingerprint(body)[:4], 16) / 0x10000)

    with FaultServer(plan=plan) as server:
        options = {"model": "m", "base_url": server.url}
        alone = llm_judges.LLMJudge(**options, cache=str(tmp_path / "a.sqlite"))
        batched = llm_judges.LLMJudge(**options, cache=str(tmp_path / "b.sqlite"), batch=True)
        assert alone.signature == batched.signature
        one = {verdict.claim_id: verdict for verdict in alone.judge(claims)}
        two = {verdict.claim_id: verdict for verdict in batched.judge(claims)}
        assert one == two
        assert one["c0"].status == "skipped"
        assert len(server.batches) == 1
