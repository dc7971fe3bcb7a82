"""What the README shows works: its code runs, its commands exist, its files are there."""

from __future__ import annotations

import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import factaudit
from factaudit.cli import cli
from factaudit.evaluators import registry
from factaudit.evaluators.base import Evaluator
from factaudit.experiment import engine_of, load

EXPERIMENTS = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.local] if "base_url: local" in path.read_text("utf-8") else [])
    for path in sorted((Path(__file__).parents[1] / "experiments").glob("*.yaml"))
]


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def block(readme: str, holds: str) -> str:
    (found,) = [code for code in re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL) if holds in code]
    return found


def test_the_function_and_the_class_of_ones_own_run_as_shown_and_agree(readme, root, tmp_path, monkeypatch):
    page = (root / "docs" / "evaluators.md").read_text(encoding="utf-8")
    code = block(page, "class Numbers") + block(readme, "def numbers")
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
        assert "my_metric:numbers" in readme
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
    assert len([line for line in code.splitlines() if line.strip()]) <= 5
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").symlink_to(root / "data")
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "runs" / "mine" / "report.html").stat().st_size > 10_000


def test_commands_and_options_exist(readme):
    code = "\n".join(re.findall(r"^```\w*\n(.*?)^```", readme, flags=re.DOTALL | re.MULTILINE))
    shown = re.findall(r"^factaudit ((?:[a-z]+ ?){1,2})(.*)$", code, flags=re.MULTILINE)
    assert len(shown) > 8
    for words, rest in shown:
        command = cli
        for word in words.split():
            commands = getattr(command, "commands", None)
            if commands is None:
                break
            assert word in commands, f"factaudit {words}"
            command = commands[word]
        options = {option for parameter in command.params for option in parameter.opts}
        for option in re.findall(r"(?<!\S)--[a-z-]+", rest):
            assert option in options, f"factaudit {words} {option}"


def test_linked_files_exist(readme, root):
    for link in re.findall(r"\]\(([^)#]+)\)", readme):
        if not link.startswith("http"):
            assert (root / link).exists(), link


@pytest.mark.parametrize("path", EXPERIMENTS)
def test_experiments_can_be_loaded(path, request):
    needs = "${data}" in path.read_text(encoding="utf-8")
    settings = {"data": str(request.getfixturevalue("shared"))} if needs else None
    engine = engine_of(path)
    load(path, settings) if engine is None else engine.load(path, settings)


def test_it_is_short_and_shows_what_make_audit_prints(readme, root):
    assert len(readme.splitlines()) <= 150
    (shown,) = re.findall(r"```console\n(.*?)```", readme, flags=re.DOTALL)
    data = root / "factaudit" / "start" / "demo" / "responses.jsonl.gz"
    converted = factaudit.convert("ragtruth-scores", [data])
    assert f"claims    {len(converted.claims):>9,} in 2 datasets" in shown
    assert f"verdicts  {len(converted.verdicts):>9,} of 4 evaluators" in shown


def test_the_commands_of_the_docs_exist(root):
    for path in sorted((root / "docs").glob("*.md")):
        for words in re.findall(
            r"^(?:\s*- run: )?factaudit ([a-z]+)", path.read_text(encoding="utf-8"), flags=re.MULTILINE
        ):
            assert words in cli.commands, f"{path.name}: factaudit {words}"
