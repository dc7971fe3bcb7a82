"""The pages of docs/: tutorials, commands and notebooks run, links lead somewhere, the site loads
nothing from afar. The examples of docstrings run.

A model is the scripted server of tests/llm_server.py. ``python tests/doc_pages.py --write`` writes
shown output anew.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import list_verbs
from doc_pages import APPROVED_PAGES, NOT_RUN, PAGES, describe_difference, list_commands, run_page

import factaudit
from factaudit import Evaluator
from factaudit.cli import cli
from factaudit.evaluators import registry

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = [
    page
    for page in sorted((ROOT / "docs/tutorials").glob("*.md"))
    if "```python" in page.read_text("utf-8")
]
#: Pages that `make docs` writes.
GENERATED = {
    f"reference/{name}.md": f"{script}.py"
    for name, script in {"audits": "audits", "data": "data", "commands": "reference"}.items()
}
LINKING_PAGES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "data/**/*.md",
        "experiments/*.md",
        "factaudit/**/*.md",
        "tests/**/*.md",
    )
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_as_it_stands(page, tmp_path, monkeypatch, capsys):
    for name in ("data", "factaudit"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL))
    exec(compile(code, page.name, "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) > 2


def test_every_page_is_in_the_navigation():
    pages = {
        path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")
    } | {*GENERATED}
    assert (
        set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)) == pages
    )


def find_broken_links(page: Path) -> list[str]:
    """The links of a page to a file that is not there; building the site looks for headings,
    too."""
    broken = []
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name = link.partition("#")[0]
        if name.endswith(tuple(GENERATED)) or Path(name).name in {
            Path(one).name for one in GENERATED
        }:
            continue
        if not (page.parent / name).resolve().exists():
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file(page):
    assert find_broken_links(page) == []


def test_the_page_on_python_has_all_that_the_package_gives():
    shown = re.findall(
        r"^::: ([\w.]+)$", (ROOT / "docs/reference/python.md").read_text("utf-8"), re.M
    )
    assert {name.rpartition(".")[2] for name in shown} >= set(factaudit.__all__) - {"__version__"}
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(import_module(module), attribute)), name


#: Modules with examples in their docstrings.
EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "factaudit").rglob("*.py")
    if ">>> " in path.read_text("utf-8")
)


@pytest.mark.parametrize("module", EXAMPLES)
def test_the_examples_of_a_module_run(module):
    assert doctest.testmod(import_module(module)).failed == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (find_spec("material") and find_spec("mkdocstrings")):
        pytest.skip("needs the [docs] extra (mkdocs-material, mkdocstrings)")
    tmp_path = tmp_path_factory.mktemp("site")
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for name, script in GENERATED.items():
        subprocess.run(
            [sys.executable, str(docs / "generate" / script), str(docs / name)],
            check=True,
            cwd=ROOT,
        )
    config = (ROOT / "mkdocs.yml").read_text("utf-8").replace("docs_dir: docs", f"docs_dir: {docs}")
    (tmp_path / "mkdocs.yml").write_text(
        config.replace("hooks: [docs/hooks.py]", f"hooks: [{docs / 'hooks.py'}]")
    )
    for name in (
        "experiments",
        "notebooks",
        "data",
        "factaudit",
        "tests",
        *(path.name for path in ROOT.glob("*.md")),
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--quiet",
        "-f",
        str(tmp_path / "mkdocs.yml"),
    ]
    done = subprocess.run(
        [*command, "-d", str(tmp_path / "site")], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    return tmp_path / "site"


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 9
    assert "TPR" in (site / "reference" / "audits.html").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//', text
        ), page.name


# Notebooks
# ------------------------------------------------------------

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    monkeypatch.syspath_prepend(ROOT / "notebooks")
    from execute import execute

    [(_, done)] = execute([path], tmp_path / "copy")
    assert all(cell.get("execution_count") for cell in done.cells if cell.cell_type == "code")


# Commands of the pages
# ------------------------------------------------------------

COMMANDS = list_verbs(cli)
RUN_PAGES = [
    page
    for page in PAGES
    if any(not any(part in one.line for part in NOT_RUN) for one in list_commands(page))
]


def check_command_is_understood(line: str) -> None:
    """Each option is there, and takes what is given to it."""
    words = shlex.split(line, comments=True)[1:]
    path = next((path for path in COMMANDS if tuple(words[: len(path)]) == path), None)
    if path is None:
        pytest.fail(f"no such command: {line}")
    COMMANDS[path].make_context("factaudit", words[len(path) :])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_understood(page):
    for command in list_commands(page):
        check_command_is_understood(command.line)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_within_the_text_of_a_page_are_understood(page):
    """``factaudit VERB`` alone names a verb; with more words it is a command as one would type
    it."""
    text = re.sub(r"^```.*?^```|^### .*?$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for line in re.findall(r"`(factaudit [^`]+)`", text):
        words = line.split()[1:]
        if words[0].startswith("-"):
            continue
        assert any(
            tuple(words[: len(path)]) == path or (words[0],) == path[:1] for path in COMMANDS
        ), line
        if "--" in line and "..." not in line and "…" not in line:
            check_command_is_understood(re.sub(r"\s+", " ", line))


@pytest.mark.parametrize(
    "page",
    # The README's commands are what a newcomer types first; those of the other pages take a minute
    # together.
    [
        page if page.name == "README.md" else pytest.param(page, marks=pytest.mark.slow)
        for page in RUN_PAGES
    ],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_commands_of_a_page_work_as_they_stand_and_print_what_it_shows(page, tmp_path):
    for command, code, told in run_page(page, tmp_path):
        assert code == 0, f"{command.line}\n{told}"
        difference = describe_difference(command, told)
        assert not difference, (
            f"{command.line}\n{difference}\nrun: python tests/doc_pages.py --write {page.name}"
        )


@pytest.mark.parametrize("page", APPROVED_PAGES, ids=lambda path: path.stem)
def test_the_outputs_are_those_that_were_approved(page, tmp_path):
    for command, _, told in run_page(page, tmp_path):
        difference = describe_difference(command, told)
        assert not difference, f"{command.line}\n{difference}\nrun: make approve"


# The README
# ------------------------------------------------------------


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def block(readme: str, holds: str) -> str:
    (found,) = [
        code
        for code in re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
        if holds in code
    ]
    return found


def test_the_function_and_the_class_of_ones_own_run_as_shown_and_agree(root, tmp_path, monkeypatch):
    page = (root / "docs" / "guides" / "evaluators-and-models.md").read_text(encoding="utf-8")
    code = block(page, "class Numbers") + block(page, "def numbers")
    (tmp_path / "my_metric.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert isinstance(registry.make_evaluator("my_metric:Numbers"), Evaluator)
        claims = factaudit.read_claims(root / "data" / "minibench" / "claims.jsonl.gz")
        verdicts = factaudit.judge(claims, ["my_metric:Numbers", "always-yes"])
        assert "my_metric:numbers" in page
        of_function = factaudit.judge(claims, ["my_metric:numbers"])
    finally:
        sys.modules.pop("my_metric", None)
    (rates,) = [
        row
        for row in factaudit.compare(claims, verdicts, audits=["rates"], replicates=0).audits[
            "rates"
        ]
        if row["evaluator"] == "my_metric:Numbers" and row["dataset"] == "__macro__"
    ]
    assert list(of_function["score"]) == list(
        verdicts.loc[verdicts["evaluator"] == "my_metric:Numbers", "score"]
    )
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
    best = max(
        (row for row in found["rates"] if row["dataset"] == "__macro__"),
        key=lambda row: row["bacc"],
    )
    rates = [
        row
        for row in found["quantification"]
        if row["evaluator"] == best["evaluator"] and row["level"] == "claim"
    ]
    worst = max(rates, key=lambda row: abs(row["bias"]))
    assert (worst["dataset"], worst["system"]) == ("RAGTruth-Summary", "mistral-7B-instruct")
    text = " ".join(readme.split())
    assert f"misses {100 * (1 - best['tnr']):.0f} % of the errors" in text
    assert f"an error rate of {100 * worst['predicted_error_rate']:.0f} % for one model" in text
    assert f"human annotators find {100 * worst['labelled_error_rate']:.0f} %" in text
