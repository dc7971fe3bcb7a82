"""The engines' verbs on the command line: the commands of the README on the people that ship, and
wrong usage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Call
from llm_server import FaultServer, Plan


@pytest.fixture(scope="module")
def people(root: Path) -> Path:
    return root / "data/people"


@pytest.fixture(scope="module")
def responses(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four biographies as FActScore reads them, with their facts; the line ends are Windows'."""
    lines = (people / "biographies.jsonl").read_text(encoding="utf-8").splitlines()[:4]
    path = tmp_path_factory.mktemp("responses") / "bios.jsonl"
    rows = [
        {
            "topic": row["candidates"][0],
            "output": row["output"],
            "facts": [fact["text"] for fact in row["facts"]],
        }
        for row in map(json.loads, lines)
    ]
    path.write_bytes("".join(json.dumps(row) + "\r\n" for row in rows).encode())
    return path


def test_a_knowledge_source_is_built_told_and_looked_up(
    call: Call, people: Path, tmp_path: Path
) -> None:
    file = tmp_path / "people.db"
    code, out, _ = call(
        "knowledge", people / "pages.jsonl", "--out", file, "--passage-tokens", "100"
    )
    assert (code, out) == (0, f"{file}: 14 pages in 28 passages (white space)\n")
    code, out, _ = call("inspect", file)
    assert code == 0
    assert "n_pages: 14" in out
    assert "passage_tokens: 100" in out


def test_score_reads_conversations_turn_by_turn(call: Call, people: Path, tmp_path: Path) -> None:
    def plan(body: dict[str, Any], attempt: int) -> Plan:
        asked = body["messages"][-1]["content"]
        if asked.endswith("Title:"):
            return Plan(text="Elena Varga (cellist)")
        return Plan(text="- She was a cellist." if asked.startswith("Please breakdown") else "True")

    talk = [
        {"role": "user", "content": "Elena Varga?"},
        {"role": "assistant", "content": "Elena was a cellist."},
    ]
    talks = tmp_path / "talks.jsonl"
    told = [
        {"messages": talk},
        {"messages": [*talk, {"role": "assistant", "content": "Welcome!"}], "topic": "Nobody"},
    ]
    talks.write_text("".join(json.dumps(one) + "\n" for one in told))
    with FaultServer(plan=plan) as server:
        llm = f"m:base_url={server.url},cache={tmp_path / 'cache.db'}"
        arguments = [
            "--conversation",
            "--knowledge",
            people / "pages.jsonl",
            "--llm",
            llm,
            "--set",
            "gamma=0",
        ]
        arguments += ["--set", "decontextualize=true"]
        code, out, _ = call("factscore", talks, *arguments, "--out", tmp_path / "run")
    assert code == 0
    asked = [body["messages"][-1]["content"] for body in server.bodies]
    assert ["decontextualize" in one for one in asked if one.startswith("Please")] == [True]
    assert "talks.jsonl: 1 turn of fewer than 4 words left out" in out
    rows = [
        json.loads(line) for line in (tmp_path / "run/responses.jsonl").read_text().splitlines()
    ]
    scores = [(row["topic"], row["score"]) for row in rows]
    assert scores == [("Elena Varga (cellist)", 1.0), ("Nobody", None)]
