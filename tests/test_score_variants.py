"""`factaudit factscore --vary`: one setting another, what it shares, and what the audits say of
it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from llm_server import FaultServer, Plan

from factaudit import InputError, Results, compare, read_claims, read_verdicts
from factaudit import run as run_experiment
from factaudit.experiment.run import read_experiment

TOPICS = (
    "Ada Fenn",
    "Tobin Reyce",
    "Maren Holt",
    "Iver Quill",
    "Nell Adair",
    "Oskar Venn",
    "Pia Lund",
    "Rufus Gale",
)
TRADES = ("miller", "painter", "glazier", "printer", "weaver", "cooper", "surgeon", "organist")
TOWNS = ("Emberlow", "Port Candle", "Harrow", "Tidewell", "Oxmoor", "Ludlow", "Fernby", "Stoke")
#: How many of the four sentences of each system are wrong.
SYSTEMS = {"careful": 0, "middling": 1, "careless": 3}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """24 texts: three systems on eight people."""
    rows = []
    for at, (topic, trade, town) in enumerate(zip(TOPICS, TRADES, TOWNS, strict=True)):
        for system, n_wrong in SYSTEMS.items():
            said = [
                f"{topic} was a {trade} and had {at + 2} children",
                f"{topic} lived in {town} for {10 + at} years",
                (
                    f"In 19{10 + at} the town of {town} gave {topic} a medal, which was kept in the"
                    " church"
                ),
                f"{topic} wrote a book on the trade of a {trade}",
            ]
            wrong = {(at + number) % 4 for number in range(n_wrong)}
            output = " ".join(
                f"{one}{' wrongly' if number in wrong else ''}." for number, one in enumerate(said)
            )
            rows.append({"topic": topic, "output": output, "system": system})
    return write_lines(tmp_path / "texts.jsonl", rows)


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    rows = []
    for topic, trade, town in zip(TOPICS, TRADES, TOWNS, strict=True):
        parts = [
            f"{topic} was a {trade} of {town}, known for work in the {n}th year of the guild."
            for n in range(1, 60)
        ]
        rows.append({"title": topic, "text": " ".join(parts)})
    return write_lines(tmp_path / "pages.jsonl", rows)


def answer(body: dict[str, Any], attempt: int) -> str:
    """Two facts a sentence; the model "fine" makes three, in words of its own. What is wrong is
    False; a prompt with few passages gets a reply without a verdict now and then."""
    prompt = body["messages"][-1]["content"]
    if prompt.endswith("\n"):
        sentence = prompt.rstrip("\n").rpartition("\n")[2].partition(": ")[2].rstrip(".")
        fine = [f"It holds that {sentence}."] if body["model"] == "fine" else []
        shown = "- It is told" if "A demonstration of ours" in prompt else "-"
        return "\n".join(
            [f"{shown} {sentence}.", f"{shown} {sentence} indeed.", *(f"- {one}" for one in fine)]
        )
    fact = prompt.rpartition("Input: ")[2]
    if "medal" in fact and prompt.count("Title:") < 2 and "Title:" in prompt:
        return "Hard to say"
    return "False" if "wrongly" in fact or ("Title:" not in prompt and "book" in fact) else "True"


@pytest.fixture
def demos(tmp_path: Path) -> Path:
    path = tmp_path / "ours.json"
    path.write_text(
        json.dumps({"A demonstration of ours sang.": ["A demonstration of ours sang."]}),
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_variants_ask_what_they_share_once(texts, pages, demos, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FaultServer(plan=lambda body, attempt: Plan(text=answer(body, attempt))) as server:
        fine = {"model": "fine", "base_url": server.url, "cache": str(tmp_path / "llm.sqlite")}
        yaml = tmp_path / "vary.json"  # JSON is YAML
        block = {
            "responses": str(texts),
            "knowledge": str(pages),
            "llm": fine | {"model": "coarse"},
            "variants": {
                "k": [1, 3, 5],
                "retrieval": ["all"],
                "decomposer": [fine],
                "demos": [demos.name],
                "parser": ["original"],
                "gamma": [0],
                "verifier": ["no-context", "unigram"],
            },
        }
        yaml.write_text(json.dumps({"factscore": block, "replicates": 200}), encoding="utf-8")
        results = run_experiment(yaml, tmp_path / "run")
        asked = sum(row["calls"] for row in results.calls)
        again = run_experiment(yaml, tmp_path / "run")
        paid = set(server.paid.values())
        assert asked == len(server.paid)
    assert paid == {1}
    assert again.rows("sensitivity") == results.rows("sensitivity")
    assert set(results.about["variants"]) == {
        *("k=1", "k=3", "retrieval=all", "decomposer=fine", "demos=ours.json"),
        *("parser=original", "gamma=0", "verifier=no-context", "verifier=unigram"),
    }
    check_figures(results)


@pytest.mark.slow
def test_what_is_varied_on_the_command_line_is_said_and_kept_below_max_cost(
    texts, pages, tmp_path, monkeypatch, call
):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FaultServer(plan=lambda body, attempt: Plan(text=answer(body, attempt))) as server:
        llm = f"coarse:base_url={server.url},cache={tmp_path / 'llm.sqlite'}"
        llm += ",prices.input=1,prices.output=4"
        line = [
            "factscore",
            str(texts),
            "--knowledge",
            str(pages),
            "--llm",
            llm,
        ]
        line += ["--vary", "k=1,5", "--vary", "verifier=no-context,unigram"]
        code, screen, _ = call(*line, "--out", tmp_path / "run")
        assert code == 0, screen
        before = sum(server.paid.values())
        call(*line, "--vary", "k=2", "--max-cost", "0.001", "--out", tmp_path / "limited")
        assert sum(server.paid.values()) - before < 10, "the limit holds for variants, too"
    (row,) = re.findall(r"^verifier=no-context .*$", screen, re.MULTILINE)
    assert re.fullmatch(r"verifier=no-context +[\d.]+ \([\d.]+–[\d.]+\) +−[\d.]+ \(.*\)", row), row
    claims = read_claims(tmp_path / "run/variant_claims.parquet")
    assert set(claims["variant"]) == {"base", "k=1", "verifier=no-context", "verifier=unigram"}
    # Anybody's tables with a column `variant` are read the same.
    verdicts = read_verdicts(tmp_path / "run/variant_verdicts.parquet", claims=claims)
    theirs = compare(claims, verdicts, audits=["sensitivity"]).rows("sensitivity")
    assert (
        theirs == json.loads((tmp_path / "run/results.json").read_text())["audits"]["sensitivity"]
    )


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        ({"kk": [1]}, "'kk' cannot be varied (did you mean 'k'?)"),
        ({"responses": ["x"]}, "'responses' cannot be varied"),
        ({"k": [0]}, "variants: k: expected greater than or equal to 1, found 0"),
        ({"k": [5]}, "all values are those of the base"),
        ({"parser": ["lenient"]}, "variants: parser"),
    ],
)
def test_what_cannot_be_varied_is_said(variants, said, texts, tmp_path):
    yaml = tmp_path / "vary.json"
    yaml.write_text(
        json.dumps({"factscore": {"responses": str(texts), "variants": variants}}), encoding="utf-8"
    )
    with pytest.raises(InputError, match=re.escape(said)):
        read_experiment(yaml)


def check_figures(results: Results) -> None:
    scores = {(row["variant"], row["system"]): row for row in results.rows("sensitivity")}
    base = scores["base", "careless"]
    assert base["score"] == pytest.approx(0.25 * 2.718281828 ** (1 - 10 / 8))
    # Without the penalty: a quarter of the sentences is right.
    assert scores["gamma=0", "careless"]["score"] == pytest.approx(0.25)
    assert scores["gamma=0", "careful"]["change"] == pytest.approx(1 - 2.718281828 ** (1 - 10 / 8))
    # One passage: replies without a verdict are unscored, and count as unsupported; the bounds know
    # it.
    assert scores["k=1", "careful"]["n_unscored"] == 8
    assert scores["k=1", "careful"]["change"] < scores["k=1", "careful"]["change_max"]
    recall = {row["variant"]: row["recall"] for row in results.rows("retrieval")}
    assert recall["base"] == 1
    every = {row["variant"] for row in results.rows("sensitivity")}
    assert set(recall) == every - {"retrieval=all", "demos=ours.json"}  # whose facts are all others
    found = {
        row["evidence"]["variant"] for row in results.finding_rows if row["id"] == "moved_score"
    }
    assert found
