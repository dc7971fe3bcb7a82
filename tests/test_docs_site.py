"""The pages of docs/: tutorials run, the reference is what the code declares, the site loads nothing from elsewhere."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from import_map import draw_import_map

import factaudit
from factaudit.cli import cli, reference

ROOT = Path(__file__).resolve().parents[1]
TUTORIALS = re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", (ROOT / "docs/tutorials.md").read_text("utf-8"), re.M | re.S)
LINKING_PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "data/**/*.md", "experiments/*.md", "factaudit/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)


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


def test_the_reference_is_what_the_declarations_say():
    assert (ROOT / "docs/reference.md").read_text(encoding="utf-8") == reference.render_command_reference_page(), (
        "run: python -m factaudit.cli.reference docs/reference.md"
    )


def test_the_reference_has_every_option_with_its_choices_default_and_meaning():
    page = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    sections = dict(
        re.findall(
            r"^### `factaudit ((?:[a-z]+|--[a-z-]+)(?: (?:[a-z]+|--[a-z-]+))*)(?: [^`]*)?`\n(.*?)(?=^##|\Z)",
            page,
            re.M | re.S,
        )
    )
    n_options = 0
    for path, command in reference.list_subcommands_and_flag_forms(cli, ""):
        rows = {
            row[0]: row[1:]
            for line in re.findall(r"^\| `--.+$", sections[path], re.M)
            if len(row := [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]) == 4
        }
        for option in command.params:
            if not isinstance(option, click.Option) or option.name == "answer_format" or option.hidden:
                continue
            n_options += 1
            value, default, meaning = rows.pop(f"`{', '.join((*option.opts, *option.secondary_opts))}`")
            assert len(meaning) > 5, f"{path} {option.name}: no help"
            if isinstance(option.type, click.Choice):
                assert all(f"`{choice}`" in value for choice in option.type.choices)
            if option.required:
                assert default == "required"
            elif not option.is_flag and isinstance(option.default, str | int | float | Path):
                assert default == str(option.default), f"{path} {option.name}"
            assert ("may be repeated" in value) == option.multiple
        assert not rows, path
    assert n_options > 100


def list_environment_names() -> set[str]:
    """What looks like the name of a variable, in the modules of the package that use the environment."""
    names = set()
    for path in (ROOT / "factaudit").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "os.environ" in text:
            strings = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
            names |= {one for one in strings if isinstance(one, str) and re.fullmatch(r"[A-Z]+(_[A-Z]+)+", one)}
    return names


def test_the_reference_has_every_environment_variable_and_no_other():
    page = (ROOT / "docs/reference.md").read_text(encoding="utf-8").partition("## Environment variables")[2]
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", page, re.M))
    assert set(rows) == list_environment_names()
    assert all(len(meaning) > 20 for meaning in rows.values())


def list_leaf_commands(group, *path):
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from list_leaf_commands(command, *path, name)
        else:
            yield " ".join((*path, name)), command


def test_the_figure_of_the_rooms_is_drawn_from_the_imports():
    assert (ROOT / "docs/architecture.svg").read_text(encoding="utf-8") == draw_import_map(), (
        "run: python tests/import_map.py docs/architecture.svg"
    )


def test_the_home_page_says_in_how_many_simulated_cases_intervals_hold():
    table = (ROOT / "tests/validity/coverage.md").read_text("utf-8")
    held = [float(cell) for cell in re.findall(r"(?<=\|)[ *]+(\d+\.\d)[ *]+(?=\|)", table)]
    fewer, more = sum(share < 93 for share in held), sum(share > 98 for share in held)
    cases = f"{len(held) - fewer - more} of {len(held)} simulated cases, in more in {more}, in fewer\nin {fewer}:"
    assert cases in (ROOT / "docs/index.md").read_text("utf-8")


def test_every_page_is_in_the_navigation():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert set(re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.M)) == pages


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
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in list_anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    assert find_broken_links(page) == []


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "b.md").write_text("# One `two`: three\n\n::: factaudit.LLM\n", encoding="utf-8")
    page = tmp_path / "a.md"
    good = "[x](b.md) [x](b.md#one-two-three) [x](b.md#factaudit.LLM) [x](https://a.b/#c) [x](#title)"
    page.write_text(f"# Title\n\n{good} [x](c.md) [x](b.md#two) [x](#other)\n", encoding="utf-8")
    assert find_broken_links(page) == ["c.md", "b.md#two", "#other"]


def test_the_page_on_python_has_all_that_the_package_gives():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.M)
    assert {name.rpartition(".")[2] for name in shown} >= set(factaudit.__all__) - {"__version__"}
    for name in shown:
        module, _, attribute = name.rpartition(".")
        assert inspect.getdoc(getattr(import_module(module), attribute)), name


def test_the_page_on_python_has_what_its_functions_return():
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.M)
    found = [getattr(import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in shown]
    returned = {str(one.__annotations__.get("return")) for one in found if inspect.isfunction(one)}
    classes = {name for name in returned if re.fullmatch(r"[A-Z]\w+", name)} - {"None", "Path"}
    assert len(classes) >= 3
    assert classes <= {name.rpartition(".")[2] for name in shown}


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
