"""The Batch API behind the engines: with ``batch=true`` they say what they say without, at half the price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import run_command
from llm_server import FaultServer, Plan
from scripted_llm import find_facts_to_group

from factaudit.llm import batch_api

PAGES = {
    "Ann Lee (painter)": "Ann Lee was a painter. She was born in Leith in 1901. She painted harbours.",
    "Ann Lee (diver)": "Ann Lee is a diver. She was born in Perth in 1980. She dived in Oslo.",
}
OUTPUTS = ("Ann Lee was a painter. She painted harbours. She dived in Oslo.", "Ann Lee is a diver.", "She dived.")
TOPICS = {"score": ("Ann Lee (painter)", "Ann Lee (diver)", "Nobody"), "score --dfactscore": ("Ann Lee",) * 3}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setitem(batch_api.ask_through_batch_api.__kwdefaults__, "poll_seconds", 0.01)


def answer(body: dict[str, Any], attempt: int = 0) -> Plan:
    prompt = body["messages"][-1]["content"]
    if "True or False?" in prompt:
        fact = prompt.rsplit("Input: ", 1)[1].split(" True or False?")[0]
        return Plan(text=str(fact in prompt.split("\n\nInput: ")[0]))
    if (facts := find_facts_to_group(prompt)) is not None:
        return Plan(text=facts)
    return Plan(text="- " + prompt.rstrip("\n").rsplit("\n", 1)[-1].split("independent facts: ")[1])


def files(folder: Path, command: str) -> list[str]:
    """The command, its files and its options but for the model and the folder."""
    responses, pages = folder / "responses.jsonl", folder / "pages.jsonl"
    rows = zip(TOPICS[command], OUTPUTS, strict=True)
    responses.write_text("".join(json.dumps({"topic": topic, "output": output}) + "\n" for topic, output in rows))
    pages.write_text("".join(json.dumps({"title": name, "text": text}) + "\n" for name, text in PAGES.items()))
    return [*command.split(), str(responses), "--knowledge", str(pages), "--set", "replicates=0", "--set", "gamma=0"]


def llm(server: FaultServer, cache: Path, **more: Any) -> str:
    given = {"base_url": server.url, "cache": cache, "prices": cache.parent / "prices.csv", **more}
    (cache.parent / "prices.csv").write_text("model,input,output\nm,1000,1000\n")
    return "m:" + ",".join(f"{key}={value}" for key, value in given.items())


@pytest.mark.parametrize(("command", "batches"), [("score", 2), ("score --dfactscore", 3)])
@pytest.mark.slow
def test_in_batches_an_engine_says_the_same_at_half_the_price(tmp_path: Path, command: str, batches: int) -> None:
    given = files(tmp_path, command)
    with FaultServer(plan=answer) as server:
        assert run_command(*given, "--llm", llm(server, tmp_path / "a.sqlite"), "--out", str(tmp_path / "alone")) == 0
        assert not server.batches
    with FaultServer(plan=answer) as server:
        batched = llm(server, tmp_path / "b.sqlite", batch=True)
        assert run_command(*given, "--llm", batched, "--out", tmp_path / "batched") == 0
        # One round for each stage: all of its calls are under way at once.
        assert len(server.batches) == batches
        assert not server.bodies, "nothing is asked one by one"
        assert set(server.paid.values()) == {1}
    for name in ("claims.parquet", "verdicts.parquet", "responses.jsonl"):
        assert (tmp_path / "alone" / name).read_bytes() == (tmp_path / "batched" / name).read_bytes()
    told = [json.loads((tmp_path / run / "summary.json").read_text()) for run in ("alone", "batched")]
    assert told[1]["cost"] == pytest.approx(told[0]["cost"] / 2)
    assert told[0]["cost"] > 0
