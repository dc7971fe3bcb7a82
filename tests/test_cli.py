"""The command line: every verb, its help, its exit code and what it says when something is
wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import list_verbs

from factaudit.cli import cli


@pytest.fixture
def claims(tmp_path) -> Path:
    path = tmp_path / "claims.jsonl"
    rows = [
        {
            "claim_id": f"c{i}",
            "dataset": "D",
            "system": "ab"[i % 2],
            "response_id": f"r{i // 2}",
            "label": int(i % 3 > 0),
        }
        | {
            "claim": f"The river has {i} bridges.",
            "doc": f"The river has {i if i % 3 else i + 1} bridges and a ford.",
        }
        for i in range(24)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_command_has_help_with_an_example(call):
    for words in list_verbs(cli):
        code, out, _ = call(*words, "--help")
        assert code == 0
        example = re.sub(r"\s+", " ", out.partition("Example:\n")[2])
        assert example.startswith(f" factaudit {' '.join(words)}"), words


def test_what_judging_costs_is_said_before_and_nothing_is_written(call, claims, tmp_path):
    line = [
        "judge",
        claims,
        "--evaluator",
        "llm:model=gpt-4o-mini,cache=none",
        "--out",
        tmp_path / "v.parquet",
    ]
    _, out, _ = call(*line, "--dry-run")
    assert "24 calls" in out
    assert call(*line, "--dry-run", "--repeats", "2")[1].count("24 calls") == 2
    assert not (tmp_path / "v.parquet").exists()


def test_what_scoring_costs_is_said_as_far_as_it_is_known(call, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"topic": "Rain", "output": "Rain is water. It falls."}\n', encoding="utf-8")
    line = [
        "factscore",
        path,
        "--llm",
        "gpt-4o-mini:cache=none",
        "--out",
        tmp_path / "run",
        "--dry-run",
    ]
    code, out, err = call(*line)
    assert code == 0, err
    assert "decompose: at most 2 calls; the cost is not known before the facts are" in out
    assert "verify: the cost is not known before the facts are; max_cost limits it" in out
    assert "total: unknown" in out
    assert "decompose: at most 4 calls" in call(*line, "--vary", "k=3")[1]
    assert "group: at most 1 call;" in call("dfactscore", *line[1:])[1]
    path.write_text(
        '{"topic": "Rain", "output": "Rain is water.", "facts": ["Rain is water."]}\n',
        encoding="utf-8",
    )
    code, out, err = call(*line)
    assert "decompose" not in out
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore:Glyph")
def test_what_a_terminal_would_obey_is_shown_and_not_sent(call, claims, tmp_path):
    rows = claims.read_text(encoding="utf-8").replace('"D"', '"D\\u001b]0;owned\\u0007"')
    verdicts = tmp_path / "v\x1b[31m.jsonl"
    verdicts.write_text(
        '{"claim_id": "c1", "evaluator": "e\\u009b2J\\u202e", "score": 1}\n', encoding="utf-8"
    )
    claims.write_text(rows, encoding="utf-8")
    shown = [
        call("inspect", verdicts),
        call("audit", claims, verdicts, "--out", tmp_path / "o", "--replicates", "0"),
    ]
    shown += [call("inspect", tmp_path / "absent\x1b[2J.csv")]
    text = "".join(out + err for _, out, err in shown)
    assert [code for code, _, _ in shown] == [0, 0, 1]
    assert "v\\x1b[31m.jsonl" in text
    assert "e\\x9b2J\\u202e" in text
    assert not set(text) & {"\x1b", "\x07", "\x9b", "\u202e"}


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_no_key_is_shown_or_written(call, claims, tmp_path, monkeypatch, debug):
    key, word = "sk-verysecretverysecret", "secretword"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{word}@127.0.0.1:9/v1?key={word}")
    monkeypatch.setenv("FACTAUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    judge = "llm: {model: m, max_retries: 0, timeout: 2}"
    experiment = tmp_path / "e.yaml"
    experiment.write_text(f"claims: {claims}\nevaluators: [{judge}]\nreplicates: 0\n")
    calls = [
        ("run", experiment, "--out", tmp_path / "run"),
        (
            "judge",
            claims,
            "--evaluator",
            "llm:model=m,max_retries=0,timeout=2",
            "--out",
            tmp_path / "v.csv",
        ),
        ("inspect", f"http://user:{word}@host/claims.csv?api_key={word}"),
        ("inspect", f"{key}.csv"),
        (
            "judge",
            claims,
            "--evaluator",
            f"llm:model=m,base_url=https://u:{word}@h/?key={word}",
            "--out",
            "v.csv",
        ),
        (
            "run",
            experiment,
            "--set",
            f"evaluators=[llm: {{model: m, params: {{api_key: {word}}}}}]",
        ),
        ("run", experiment, "--set", f"evaluators=[llm: {{model: m, api_key: {key}}}]"),
    ]
    for arguments in calls:
        code, out, err = call(*debug, *arguments)
        assert code in (1, 2)
        assert ("Traceback" in err) == bool(debug), err
        assert word not in out + err, arguments
        assert key not in out + err, arguments
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert not {each for each in (word, key) if each.encode() in path.read_bytes()}, path


def test_an_interrupt_says_how_to_go_on(call, claims, monkeypatch):
    def interrupt(**options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.commands["inspect"], "callback", interrupt)
    code, _, err = call("inspect", claims)
    assert (code, "run the same command again to continue" in err) == (130, True)


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m factaudit list evaluators | head -1"
    shown = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert shown.stdout.startswith("rouge2")
    assert shown.stderr == ""
