"""The engines' verbs on the command line: the commands of the README on the people that ship, and
wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


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


def test_a_knowledge_source_is_built_told_and_looked_up(call, people, tmp_path):
    file = tmp_path / "people.db"
    code, out, _ = call(
        "knowledge", people / "pages.jsonl", "--out", file, "--passage-tokens", "100"
    )
    assert (code, out) == (0, f"{file}: 14 pages in 28 passages (white space)\n")
    code, out, _ = call("inspect", file)
    assert code == 0
    assert "n_pages: 14" in out
    assert "passage_tokens: 100" in out
