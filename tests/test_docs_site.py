"""The pages of docs/: tutorials run, the reference is what the code declares, the site loads nothing from elsewhere."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest
from llm_server import FaultServer, Plan

import factaudit
from factaudit.cli import main, reference

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", (ROOT / "docs/tutorials.md").read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize(("title", "text"), TUTORIALS, ids=[title for title, _ in TUTORIALS])
def test_a_tutorial_runs_as_it_stands(title, text, tmp_path, monkeypatch, capsys):
    for name in ("data", "factaudit"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    assert code, title
    exec(compile(code, f"docs/tutorials.md: {title}", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) > 2


def test_there_are_four():
    assert len(TUTORIALS) == 4


def test_the_commands_of_the_faq_work(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "FACTSCORE_DB_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azures")
    monkeypatch.setenv("FACTAUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    claims = [{"claim_id": f"c{n}", "dataset": "d", "claim": f"It is {n}.", "doc": "It is 3."} for n in range(8)]
    people = [{"claim_id": f"c{n}", "label": n % 2} for n in range(8)]
    rows: dict[str, list[dict]] = {
        "claims.jsonl": claims,
        "pages.jsonl": [{"title": "Rain", "text": "Rain is water. It falls."}],
        "responses.jsonl": [{"topic": "Rain", "output": "Rain is water.", "facts": ["Rain is water."]}],
        "answers.csv": [
            {"sentence": f"It is {n}.", "context": "It is 3.", "human_grade": n % 5 + 1, "judge": n / 20}
            for n in range(20)
        ],
        "ann.csv": [one | {"annotator": "ann"} for one in people],
        "ben.csv": [one | {"annotator": "ben"} for one in people],
    }
    for name, table in rows.items():
        frame = pd.DataFrame(table)
        frame.to_csv(name, index=False) if name.endswith("csv") else frame.to_json(name, orient="records", lines=True)
    Path("experiment.yaml").write_text("claims: claims.jsonl\nevaluators: [llm: {model: gpt-4o-mini}]\n")
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "docs/faq.md").read_text("utf-8"), re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if "minicheck" not in line]
    assert len(commands) > 14
    with FaultServer(plan=lambda body, attempt: Plan(text="Yes")) as server:
        for command in commands:
            words = shlex.split(re.sub(r"https?://[^ ,]*/v1", server.url, command))
            assert words[0] == "factaudit"
            with pytest.raises(SystemExit) as stop:
                main(words[1:])
            told = capsys.readouterr()
            assert stop.value.code == 0, f"{command}\n{told.err}"
        assert server.seen
    assert (tmp_path / "runs/graded/report.html").is_file()


def test_the_reference_is_what_the_declarations_say():
    assert (ROOT / "docs/reference.md").read_text(encoding="utf-8") == reference.page(), (
        "run: python -m factaudit.cli.reference docs/reference.md"
    )


def test_every_page_is_in_the_navigation_and_every_link_leads_somewhere():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)) == pages
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / page).read_text(encoding="utf-8")):
            assert link.startswith("http") or (ROOT / "docs" / link).exists(), f"{page}: {link}"


def test_the_page_on_python_has_all_that_the_package_gives():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.M)
    assert {name.rpartition(".")[2] for name in shown} >= set(factaudit.__all__) - {"__version__"}
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(import_module(module), attribute)), name


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("material") and find_spec("mkdocstrings")),
    reason="needs the [docs] extra (mkdocs-material, mkdocstrings)",
)
def test_the_site_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(ROOT / "mkdocs.yml"), "-d", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.glob("*.html"))
    assert len(pages) > 9
    assert "Audit evaluators on claims: every audit by default" in (tmp_path / "api.html").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//', text), page.name
