"""What the README shows works: its code runs, its commands exist, its files are there."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import factaudit
from factaudit.evaluators import registry
from factaudit.evaluators.base import Evaluator


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def block(readme: str, holds: str) -> str:
    (found,) = [code for code in re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL) if holds in code]
    return found


def test_the_function_and_the_class_of_ones_own_run_as_shown_and_agree(root, tmp_path, monkeypatch):
    page = (root / "docs" / "guides" / "evaluators-and-models.md").read_text(encoding="utf-8")
    code = block(page, "class Numbers") + block(page, "def numbers")
    (tmp_path / "my_metric.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        registry,
        "entry_points",
        lambda group: [EntryPoint("numbers", "my_metric:Numbers", group)] if group == registry.ENTRY_POINTS else [],
    )
    try:
        assert isinstance(registry.make_evaluator("numbers"), Evaluator)
        claims = factaudit.read_claims(root / "data" / "minibench" / "claims.jsonl.gz")
        verdicts = factaudit.judge(claims, ["numbers", "always-yes"])
        assert "my_metric:numbers" in page
        of_function = factaudit.judge(claims, ["my_metric:numbers"])
    finally:
        sys.modules.pop("my_metric", None)
    (rates,) = [
        row
        for row in factaudit.compare(claims, verdicts, audits=["rates"], replicates=0).audits["rates"]
        if row["evaluator"] == "numbers" and row["dataset"] == "__macro__"
    ]
    assert list(of_function["score"]) == list(verdicts.loc[verdicts["evaluator"] == "numbers", "score"])
    assert rates["n_unscored"] == 0
    assert 0.5 < rates["bacc"] < 1  # a swapped number is found out, the rest is not


def test_the_python_lines_run_as_shown(readme, root, tmp_path, monkeypatch):
    code = block(readme, "factaudit.compare")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(root / "data")
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "runs" / "qa" / "report.html").stat().st_size > 10_000


def test_its_first_sentence_is_what_the_demo_finds(readme, root):
    """That the best detector misses 44 of 100 errors, and how far off a rate of its is."""
    data = root / "factaudit" / "start" / "demo" / "responses.jsonl.gz"
    converted = factaudit.convert("ragtruth-scores", [data])
    assert len(converted.claims) == 1800
    found = factaudit.compare(
        converted.claims, converted.verdicts, audits=["rates", "quantification"], replicates=0
    ).audits
    best = max((row for row in found["rates"] if row["dataset"] == "__macro__"), key=lambda row: row["bacc"])
    rates = [
        row for row in found["quantification"] if row["evaluator"] == best["evaluator"] and row["level"] == "claim"
    ]
    worst = max(rates, key=lambda row: abs(row["bias"]))
    assert (worst["dataset"], worst["system"]) == ("RAGTruth-Summary", "mistral-7B-instruct")
    text = " ".join(readme.split())
    assert f"misses {100 * (1 - best['tnr']):.0f} % of the errors" in text
    assert f"an error rate of {100 * worst['predicted_error_rate']:.0f} % for one model" in text
    assert f"human annotators find {100 * worst['labelled_error_rate']:.0f} %" in text


def test_every_extra_is_told_of(root):
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    table = (root / "docs/index.md").read_text("utf-8").partition("## Install")[2].partition("## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(extras)
