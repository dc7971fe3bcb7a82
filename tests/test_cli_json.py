"""`--format json` of every verb: one document on standard output, with the keys that the verb
declares, and no more.

A verb without a case here fails the first test.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import run_command
from estimate_data import World, annotated, tables
from llm_server import FaultServer, Plan

from factaudit import write_table
from factaudit.cli import cli
from factaudit.cli.output import make_json_value

#: Verb: what it is called with. The files are made by `folder`; ``runs/a`` and ``sample.parquet``
#: by other verbs.
CASES = {
    "demo": "--out runs/demo",
    "run": "mine.yaml --out runs/b",
    "inspect": "wide.csv",
    "perturb": "plain.jsonl --out pairs.parquet",
    "judge": "claims.parquet --evaluator random:seed=1 --out judged.parquet",
    "audit": "claims.parquet verdicts.parquet --out runs/c --replicates 0",
    "sample": (
        "claims.parquet verdicts.parquet --budget 40 --one-phase --out drawn.parquet --page"
        " label.html"
    ),
    "labels": "ann.csv ben.csv --claims claims.parquet --out merged.csv --page disagree.html",
    "estimate": "claims.parquet verdicts.parquet --level claim --out runs/rates",
    "triage": "claims.parquet verdicts.parquet --max-error 0.3 --target population --out triage",
    "view": "runs/a --no-open",
    "export": "runs/a --to jsonl",
    "diff": "runs/a runs/a --out diff.json",
    "convert": "reveal reveal_eval.csv --out converted.parquet",
    "factscore": (
        "responses.jsonl --knowledge pages.jsonl --verifier rouge2 --set replicates=0 --out runs/s"
    ),
    "dfactscore": (
        "groups.jsonl --knowledge pages.jsonl --verifier rouge2 --grouper given "
        "--set replicates=0 --out runs/d"
    ),
    "knowledge": "pages.jsonl --out built.db",
    "list": "audits",
}


def test_every_verb_is_tried_here():
    assert set(CASES) == set(cli.commands)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the cases read."""
    made = tmp_path_factory.mktemp("json")
    claims, verdicts = tables(World(size=60))
    write_table(claims, made / "claims.parquet")
    write_table(verdicts, made / "verdicts.parquet")
    for name, wrong in (("ann", 0), ("ben", 4)):
        labels = annotated(claims, claims["claim_id"].head(20), name)
        labels.loc[: wrong - 1, "label"] = 1 - labels.loc[: wrong - 1, "label"]
        write_table(labels, made / f"{name}.csv")
    files: dict[str, str | list[dict[str, Any]]] = {
        "mine.yaml": (
            "claims: claims.parquet\nverdicts: verdicts.parquet\naudits: [rates]\nreplicates: 0\n"
        ),
        "asked.yaml": "claims: claims.parquet\nevaluators: [llm: {model: gpt-4o-mini}]\n",
        "wide.csv": (
            "sentence,context,human,gpt4\n"
            + "".join(
                f"It rains {n} days.,Rain fell {n} days.,{n % 2},0.{n}\n" for n in range(1, 9)
            )
        ),
        "pages.jsonl": [{"title": "Rain", "text": "Rain is water. It falls."}],
        "responses.jsonl": [
            {"topic": "Rain", "output": "Rain is water.", "facts": ["Rain is water."]}
        ],
        "groups.jsonl": [
            {
                "name": "Rain",
                "output": "Rain is water.",
                "candidates": ["Rain"],
                "facts": [{"text": "Rain is water.", "group": "Rain"}],
            }
        ],
        "plain.jsonl": [{"dataset": "d", "claim": "The bridge is open now.", "doc": "So it is."}],
        "reveal_eval.csv": (
            "answer_id,answer_model,step_idx,step,evidence,attribution_label\n"
            "a,m,0,Rain is water.,Rain is water.,Fully Attributable\n"
        ),
    }
    for name, content in files.items():
        text = (
            content
            if isinstance(content, str)
            else "".join(json.dumps(row) + "\n" for row in content)
        )
        (made / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        assert run_command("run", "mine.yaml", "--out", "runs/a") == 0
        assert run_command("knowledge", "pages.jsonl", "--out", "wiki.db") == 0
    return made


@pytest.fixture
def model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A language model on loopback, with a cache."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FaultServer(plan=lambda body, attempt: Plan(text="Yes")) as server:
        yield f"llm:model=m,base_url={server.url},cache={folder / 'cache.db'}"


@pytest.fixture
def document(
    folder: Path, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], tuple[dict[str, Any], str]]:
    """Calls a verb as its case says; gives its document and what it said."""
    monkeypatch.chdir(folder)

    def called(name: str) -> tuple[dict[str, Any], str]:
        arguments = shlex.split(CASES[name])
        code = run_command(name, *arguments, "--format", "json")
        told = capsys.readouterr()
        assert code == 0, told.err
        return json.loads(told.out, parse_constant=pytest.fail), told.err

    return called


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "demo" else n for n in CASES]
)
def test_a_verb_gives_one_document_and_says_the_rest_beside_it(name, document):
    found, said = document(name)
    assert found["schema"] == f"factaudit.{name}/1"
    assert len(found) > 1
    assert said.strip()  # what is for people is still said, beside


def test_what_the_figures_are(document, folder):
    ran = document("run")[0]
    rows = json.loads((folder / ran["results"]).read_text(encoding="utf-8"))["audits"]["rates"]
    assert ran["audits"] == {"rates": len(rows)}
    assert {one["may"] for one in ran["decisions"]} <= {"yes", "no", "cannot tell"}
    inspected = document("inspect")[0]
    assert inspected["mapping"]["columns"]["claim"] == "sentence"
    assert [column["name"] for column in inspected["files"][0]["columns"]] == [
        "sentence",
        "context",
        "human",
        "gpt4",
    ]
    (judged,) = document("judge")[0]["evaluators"]
    assert judged["statuses"] == {"ok": judged["n_verdicts"]}
    merged = document("labels")[0]
    assert len(merged["disagreements"]) == merged["labels"]["without"] == 4
    (row,) = merged["agreement"]
    assert row["percent"] == pytest.approx(0.8)


def test_a_failure_leaves_standard_output_empty_or_with_the_outcome(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run_command("export", "runs/none", "--to", "report", "--format", "json") == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "not a run folder" in told.err
    failing = ["diff", "runs/a", "runs/a", "--fail-on", "flips>=0", "--format", "json"]
    assert run_command(*failing) == 1
    told = capsys.readouterr()
    assert len(json.loads(told.out)["verdict"]["failing"]) == 2
    assert "of predictions changed (95 % CI" in told.err


def test_without_it_nothing_changes(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run_command("inspect", "wiki.db") == 0
    assert "n_pages: " in capsys.readouterr().out


def test_undefined_figures_are_null_and_keys_are_left_out():
    found = make_json_value(
        {"a": float("nan"), "b": [Path("x"), (1, None)], "c": "https://u:secretword@h/"}
    )
    assert found == {"a": None, "b": ["x", [1, None]], "c": "https://***@h/"}
