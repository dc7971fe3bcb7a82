"""The pages of docs/: tutorials run, links lead somewhere, the site builds and loads nothing from elsewhere."""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_estimate_page import Page, browser_test

import factaudit

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = [page for page in sorted((ROOT / "docs/tutorials").glob("*.md")) if "```python" in page.read_text("utf-8")]
#: Pages that `make docs` writes.
GENERATED = {"reference/audits.md", "reference/data.md", "reference/commands.md"}
LINKING_PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "data/**/*.md", "experiments/*.md", "factaudit/**/*.md", "tests/**/*.md")
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
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")} | GENERATED
    assert set(re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)) == pages


def list_anchors(page: Path) -> set[str]:
    """What a link may name in a page: headings, as GitHub and mkdocs make anchors of them, and objects of api.md."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    anchors: set[str] = set(re.findall(r"^::: ([\w.]+)$", text, re.M))
    for heading in re.findall(r"^#+ (.+?)\s*$", text, re.M):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
        slug = re.sub(r"[^\w\s-]", "", plain).strip().lower().replace(" ", "-")
        anchors.add(slug if slug not in anchors else f"{slug}-1")
    return anchors


def find_broken_links(page: Path) -> list[str]:
    """The links of a page to a file or a heading that is not there."""
    broken = []
    text = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        if name.endswith(tuple(GENERATED)) or Path(name).name in {Path(one).name for one in GENERATED}:
            continue
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in list_anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    assert find_broken_links(page) == []


def test_the_page_on_python_has_all_that_the_package_gives():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference/python.md").read_text("utf-8"), re.M)
    assert {name.rpartition(".")[2] for name in shown} >= set(factaudit.__all__) - {"__version__"}
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(import_module(module), attribute)), name


def test_the_page_on_python_has_what_its_functions_return():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference/python.md").read_text("utf-8"), re.M)
    found = [getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in shown]
    returned = {str(one.__annotations__.get("return")) for one in found if inspect.isfunction(one)}
    classes = {name for name in returned if re.fullmatch(r"[A-Z]\w+", name)} - {"None", "Path"}
    assert len(classes) >= 3
    assert classes <= {name.rpartition(".")[2] for name in shown}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (find_spec("material") and find_spec("mkdocstrings")):
        pytest.skip("needs the [docs] extra (mkdocs-material, mkdocstrings)")
    tmp_path = tmp_path_factory.mktemp("site")
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs)
    for name in sorted(GENERATED):
        script = (
            docs
            / "generate"
            / {"commands.md": "reference.py"}.get(Path(name).name, Path(name).name.replace(".md", ".py"))
        )
        subprocess.run([sys.executable, str(script), str(docs / name)], check=True, cwd=ROOT)
    config = (ROOT / "mkdocs.yml").read_text("utf-8").replace("docs_dir: docs", f"docs_dir: {docs}")
    (tmp_path / "mkdocs.yml").write_text(config.replace("hooks: [docs/hooks.py]", f"hooks: [{docs / 'hooks.py'}]"))
    for name in ("experiments", "notebooks", "data", "factaudit", "tests", *(path.name for path in ROOT.glob("*.md"))):
        (tmp_path / name).symlink_to(ROOT / name)
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "-f", str(tmp_path / "mkdocs.yml")]
    done = subprocess.run([*command, "-d", str(tmp_path / "site")], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "site"


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 9
    assert "TPR" in (site / "reference" / "audits.html").read_text(encoding="utf-8")
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(?:https?:)?//', text), page.name


@browser_test
@pytest.mark.slow
def test_the_site_has_no_fault_of_accessibility(site: Path, tmp_path: Path) -> None:
    axe = pytest.importorskip("axe_selenium_python", reason="needs axe-selenium-python ([dev] extra)")
    driver = Page(tmp_path / "profile", tmp_path).driver
    try:
        for name in ("index", "tutorials/audit-a-judge", "concepts/rankings", "guides/judge-in-ci", "reference/audits"):
            page = site / f"{name}.html"
            driver.get(page.as_uri())
            check = axe.Axe(driver)
            check.inject()
            faults = check.run()["violations"]
            assert [(fault["id"], fault["nodes"][0]["html"]) for fault in faults] == [], page.name
    finally:
        driver.quit()
