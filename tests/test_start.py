"""The first hour: `init` writes a YAML that runs, the schema takes what readers take, `demo` ships what it needs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from factaudit.cli import cli
from factaudit.errors import UsageError
from factaudit.experiment import read_experiment, run
from factaudit.start.experiment_schema import make_experiment_schema


@cache
def make_schema_validator() -> jsonschema.Draft202012Validator:
    """The schema of experiments, itself checked once: `jsonschema.validate` checks it at each call."""
    schema = make_experiment_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(one) for one in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    rows = ["sentence;context;model;human;gpt4"]
    rows += [f"claim {n};document {n};m{n % 2};{'supported' if n % 3 else 'refuted'};{n % 5 + 1}" for n in range(40)]
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_init_writes_a_yaml_that_runs_and_that_its_schema_takes(answers):
    out = answers.parent / "mine.yaml"
    told = invoke("init", answers, "--out", out)
    assert "sentence" in told
    written = out.read_text(encoding="utf-8")
    assert "gpt4" in written
    assert "# 40 claims, 40 labelled" in written
    schema = json.loads((answers.parent / "experiment.schema.json").read_text(encoding="utf-8"))
    assert schema == make_schema_validator().schema
    make_schema_validator().validate(yaml.safe_load(written))
    results = run(out, answers.parent / "run", settings={"audits": ["rates"], "replicates": 0})
    (row,) = [row for row in results.audits["rates"] if row["dataset"] != "__macro__"]
    assert (row["evaluator"], row["n"]) == ("gpt4", 40)


def test_init_of_claims_alone_names_evaluators_that_run(tmp_path):
    claims = tmp_path / "claims.jsonl"
    rows = [{"dataset": "d", "claim": f"It is {n}.", "doc": f"It is {n % 7}.", "label": int(n < 7)} for n in range(20)]
    claims.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    out = tmp_path / "mine.yaml"
    invoke("init", claims, "--out", out)
    assert "mapping" not in yaml.safe_load(out.read_text(encoding="utf-8"))
    assert read_experiment(out).evaluators == ["rouge2", "always-yes"]
    with pytest.raises(UsageError, match="there already"):
        invoke("init", claims, "--out", out)


@pytest.mark.slow
def test_init_without_files_writes_a_blank_that_runs_and_whose_comments_are_valid(answers):
    out = answers.parent / "blank.yaml"
    assert "name your files in it" in invoke("init", "--out", out)
    text = out.read_text(encoding="utf-8")
    make_schema_validator().validate(yaml.safe_load(text))
    commented = re.findall(r"^# ([a-z_]+:.*\n(?:#   .*\n)*)", text, re.MULTILINE)
    blocks = [yaml.safe_load(re.sub(r"^# ?", "", block, flags=re.MULTILINE)) for block in commented]
    assert {key for block in blocks for key in block} >= {
        "claims",
        "counts",
        "verdicts",
        "mapping",
        "estimate",
        "audits",
    }
    for block in blocks:
        make_schema_validator().validate({"claims": "claims.jsonl"} | block)
    out.write_text(text.replace("claims: claims.jsonl", f"claims: {answers.name}"), encoding="utf-8")
    results = run(out, answers.parent / "run", settings={"audits": ["rates"], "replicates": 0})
    assert {"rouge2", "always-yes"} <= set(results.evaluators)


def test_init_of_a_table_of_counts(tmp_path):
    counts = tmp_path / "board.csv"
    counts.write_text("dataset,system,evaluator,n,labelled_errors,predicted_errors\nd,a,e,10,2,3\nd,b,e,10,4,3\n")
    invoke("init", counts, "--out", tmp_path / "mine.yaml")
    assert read_experiment(tmp_path / "mine.yaml").counts == str(counts.resolve())


def test_the_schema_takes_every_experiment_that_ships(root):
    assert json.loads(invoke("init", "--schema")) == make_schema_validator().schema
    found = sorted([*(root / "experiments").glob("*.yaml"), *(root / "factaudit/start/demo").glob("*.yaml")])
    assert len(found) > 8
    for path in found:
        make_schema_validator().validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"claims": "a.csv", "evalutors": ["rouge2"]},
        {"claims": "a.csv", "audits": ["rate"]},
        {"claims": "a.csv", "audits": [{"quantification": {"level": ["claim"]}}]},
        {"claims": {"format": "tofu", "source": ["a.csv"]}},
        {"claims": "a.csv", "seed": -1},
        {"factscore": {"responses": "a.jsonl", "gama": 3}},
        {"dfactscore": {"published": ["a"], "k": 3}},
    ],
)
def test_the_schema_refuses_what_the_readers_refuse(wrong):
    with pytest.raises(jsonschema.ValidationError):
        make_schema_validator().validate(wrong)


def test_the_demo_is_the_experiment_of_make_audit(root):
    assert "factaudit demo --out runs/ragtruth" in (root / "Makefile").read_text(encoding="utf-8")
    read_experiment(root / "factaudit" / "start" / "demo" / "ragtruth.yaml")


def test_nothing_is_a_link(root):
    """A checkout on Windows, or a zip of the project, has the name of its target in a link's place."""
    for folder in ("data", "docs", "experiments", "factaudit", "notebooks", "tests"):
        assert [path for path in (root / folder).rglob("*") if path.is_symlink()] == []


@pytest.mark.slow
def test_a_wheel_has_what_the_demo_reads(root, tmp_path):
    source = tmp_path / "source"  # building leaves files behind
    shutil.copytree(root / "factaudit", source / "factaudit", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    done = subprocess.run([*build, str(source)], capture_output=True, text=True)
    if "No module named 'setuptools'" in done.stderr or "Cannot import 'setuptools" in done.stderr:
        pytest.skip("a wheel cannot be built without setuptools here")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    demo = {f"factaudit/start/demo/{path.name}" for path in (root / "factaudit" / "start" / "demo").iterdir()}
    assert len(demo) == 5
    assert demo <= names
