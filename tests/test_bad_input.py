"""Bad input to every command: what is wrong is said in one message that names the place, and
nothing is left behind.

A case of golden/bad_input.yaml is a command, its exit code, and what the message says. ``OUT`` is a
folder that does not exist yet, and must not hold what looks finished afterwards.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
import yaml
from conftest import run_command

DEEP = "[" * 100_000
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
CLAIM = {
    "claim_id": "a",
    "dataset": "D",
    "system": "x",
    "claim": "It rains.",
    "doc": "Rain.",
    "label": 1,
}
RESPONSE = {"topic": "Rain", "output": "It rains.", "facts": ["It rains."]}


def lines(*rows: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def cut(text: str) -> bytes:
    whole = gzip.compress(text.encode() * 50)
    return whole[: len(whole) // 2]


GIVEN = yaml.safe_load(
    (Path(__file__).parent / "golden" / "bad_input.yaml").read_text(encoding="utf-8")
)
#: The files that are long, cut off, or no text.
FILES = GIVEN["files"] | {
    "cut.jsonl.gz": cut(lines(CLAIM)),
    "cut.csv.gz": cut("dataset,claim\nD,x\n"),
    "deep.jsonl": DEEP + "\n",
    "deepdoc.jsonl": '{"dataset": "D", "claim": "x", "extra": ' + DEEP + "\n",
    "latin.jsonl": '{"dataset": "D", "claim": "caf\xe9"}\n'.encode("latin-1"),
    "latin.csv": "dataset,claim\nD,caf\xe9\n".encode("latin-1"),
    "nul.csv": b"dataset,claim\nD,a\0b\n",
    "bomb.yaml": BOMB + "claims: *j\n",
    "deep.yaml": "claims: " + "[" * 3000,
    "latin.yaml": "title: caf\xe9\n".encode("latin-1"),
    "control.yaml": b"title: a\x07b\n",
    "cutresponses.jsonl.gz": cut(lines(RESPONSE)),
    "deepdemos.json": DEEP,
    "cutpages.jsonl.gz": cut(lines({"title": "Rain", "text": "It rains."})),
    "deeppages.jsonl": '{"title": "Rain", "text": ' + DEEP + "\n",
}
RUNS = GIVEN["runs"] | {"brackets": DEEP}
#: What stands for the longest parts of many commands.
ABBREVIATIONS = {
    "SCORE": "factscore responses.jsonl --knowledge pages.jsonl --out OUT",
    "BY_OVERLAP": "--knowledge pages.jsonl --verifier rouge2 --out OUT",
    "JUDGE": "judge claims.jsonl --out OUT.csv",
}
#: These commands did their work, and say with the exit code that it came to nothing.
FAILED = (
    "no claim was scored: no document",
    "no verdict has a prediction (1 error)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (made / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, text in RUNS.items():
        (made / "runs" / name).mkdir(parents=True)
        if text:
            (made / "runs" / name / "results.json").write_text(text)
    pd.DataFrame({"dataset": [1.5], "claim": [b"\xff"]}).to_parquet(made / "bytes.parquet")
    with sqlite3.connect(made / "other.sqlite") as other:
        other.execute("CREATE TABLE mine (x)")
        other.execute("INSERT INTO mine VALUES (1)")
    (made / "old.sqlite").write_bytes((made / "other.sqlite").read_bytes()[:4000] + b"\xff" * 4192)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("command", "code", "said"), GIVEN["cases"], ids=[case[0] for case in GIVEN["cases"]]
)
def test_bad_input_is_said_and_changes_nothing(
    folder, tmp_path, monkeypatch, capsys, command, code, said
):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FACTAUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    for name in ("OPENAI_API_KEY", "FACTSCORE_DB_PATH"):
        monkeypatch.delenv(name, raising=False)
    before = contents(folder)
    for short, whole in ABBREVIATIONS.items():
        command = command.replace(short, whole)
    ended = run_command(*command.replace("OUT", str(tmp_path / "out")).split())
    out, err = capsys.readouterr()
    err = err.replace(str(folder.resolve()), "HERE")
    assert (ended, said in err) == (code, True), err
    for never in ("Traceback", "This is a bug", "stopped", "secretword", "verysecret"):
        assert never not in out + err
    assert not set(err) & {chr(number) for number in range(32) if number not in (9, 10)}
    assert len(err) < 4000
    assert contents(folder) == before
    # Left is only what a later, right command goes on from; and, of a run whose every verdict
    # failed, what says so.
    finished = [
        path
        for path in tmp_path.rglob("*")
        if path.suffix in (".parquet", ".html", ".db", ".csv", ".jsonl")
    ]
    assert (
        all(".work" in path.parts or "journal" in path.parent.name for path in finished)
        or said in FAILED
    )
