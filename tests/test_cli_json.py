"""`--format json` of every verb: one document on standard output, and what is for people beside it.

The commands are those of `hostile_folder`, the first of each verb, and a few that it lacks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hostile_folder import COMMANDS

from factaudit import read_claims
from factaudit.cli import cli
from factaudit.cli.output import make_json_value

CASES = {
    "perturb": "perturb claims.jsonl --out pairs.parquet",
    "view": "view runs/a --no-open",
    "list": "list audits",
}
CASES = {command.split()[0]: command for command, _ in reversed(COMMANDS)} | CASES


def test_every_verb_is_tried_here():
    assert set(CASES) == set(cli.commands)


@pytest.fixture(scope="module")
def folder(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(inputs, tmp_path_factory.mktemp("json") / "copy")


@pytest.mark.parametrize("verb", CASES)
def test_a_verb_gives_one_document_and_says_the_rest_beside_it(verb, folder, monkeypatch, call):
    monkeypatch.chdir(folder)
    command = CASES[verb].replace("--out out", f"--out {verb}-out")
    code, out, err = call(*command.split(), "--format", "json")
    assert code == 0, err
    found = json.loads(out, parse_constant=pytest.fail)
    schema = "factaudit.export.report/1" if verb == "export" else f"factaudit.{verb}/1"
    assert found["schema"] == schema
    assert len(found) > 1
    assert err.strip()  # what is for people is still said, beside
    if verb == "perturb":
        assert found["n_claims"] + found["n_variants"] == len(read_claims(folder / found["out"]))
    if verb == "run":
        rows = json.loads((folder / found["results"]).read_text("utf-8"))["audits"]["rates"]
        assert found["audits"] == {"rates": len(rows)}
        assert {one["may"] for one in found["decisions"]} <= {"yes", "no", "cannot tell"}


def test_a_failure_leaves_standard_output_empty_or_with_the_outcome(folder, monkeypatch, call):
    monkeypatch.chdir(folder)
    code, out, err = call("export", "report", "runs/none", "--format", "json")
    assert (code, out, "not a run folder" in err) == (1, "", True)
    failing = ["diff", "runs/a", "runs/a", "--fail-on", "flips>=0", "--format", "json"]
    code, out, err = call(*failing)
    assert code == 1
    assert len(json.loads(out)["verdict"]["failing"]) == 2
    assert "of predictions changed (95 % CI" in err


def test_undefined_figures_are_null_and_keys_are_left_out():
    found = make_json_value(
        {"a": float("nan"), "b": [Path("x"), (1, None)], "c": "https://u:secretword@h/"}
    )
    assert found == {"a": None, "b": ["x", [1, None]], "c": "https://***@h/"}
