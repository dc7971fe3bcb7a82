"""What README, CONTRIBUTING and the pages of docs/ name is there: modules, functions, classes, methods and files."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: docs/reference.md is made of the declarations, and shows commands on files of the reader's.
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *sorted(path for path in ROOT.glob("docs/*.md") if path.name != "reference.md"),
    *sorted(ROOT.glob("data/*/README.md")),
]
#: Names of entry points, which third parties declare.
GROUPS = {"factaudit.audits", "factaudit.evaluators"}
_DOTTED = re.compile(r"(?<![\w./-])factaudit(?:\.[A-Za-z_]\w*)+(?![\w/*])")
#: In backticks on pages for contributors: ``results.compare``, without the package's name.
_ROOM_DOTTED = re.compile(r"`(\w+(?:\.[A-Za-z_]\w*)+)(?:\([^`]*\))?`")
_SUFFIXES = {"json", "yaml", "yml", "md", "py", "html", "csv", "toml", "svg", "parquet", "jsonl"}
_IMPORTED = re.compile(r"^from (factaudit[\w.]*) import ([\w, ]+)$", re.MULTILINE)
#: Paths of the repository, and of Python files inside the package; after a colon a name in the file.
_PATH = re.compile(
    r"(?<![\w/.:-])((?:[\w-]+/)+[\w-]+\.py|(?:tests|docs|experiments|notebooks|factaudit)/[\w/.-]*\w)(?::(\w[\w.]*))?"
)


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or something in one; of a dataclass a field without a default counts."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        name = ".".join(parts[:size])
        try:
            if find_spec(name) is None:
                continue
        except ModuleNotFoundError:
            continue
        found = import_module(name)
        for part in parts[size:]:
            if part in getattr(found, "__annotations__", {}) and not hasattr(found, part):
                return True
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def missing_names(text: str, with_rooms: bool = True) -> set[str]:
    """The dotted names and paths in a page that are not there."""
    names = set(_DOTTED.findall(text)) | {
        f"{module}.{name.strip()}" for module, names in _IMPORTED.findall(text) for name in names.split(",")
    }
    for name in _ROOM_DOTTED.findall(text) if with_rooms else ():
        head, last = name.partition(".")[0], name.rpartition(".")[2]
        if last not in _SUFFIXES and find_spec(f"factaudit.{head}") is not None:
            names.add(f"factaudit.{name}")
    missing = {name for name in names - GROUPS if not resolves(name)}
    for path, name in _PATH.findall(text):
        if "NAME" in path or "://" in path:
            continue
        file = next((one for one in (ROOT / path, ROOT / "factaudit" / path) if one.exists()), None)
        if file is None:
            missing.add(path)
        elif name and file.is_relative_to(ROOT / "factaudit"):
            module = file.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
            if not resolves(f"{module}.{name}"):
                missing.add(f"{path}:{name}")
    return missing


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_page_names_is_there(page):
    for_contributors = page.name in ("CONTRIBUTING.md", "architecture.md")
    assert missing_names(page.read_text(encoding="utf-8"), for_contributors) == set()


def test_a_stale_name_is_seen():
    text = "`factaudit.results.compere`, `factaudit.results.Results.figure`, factaudit/results.py, audit/rats.py, "
    text += "`results.py:compare`, `audit/rates.py:rate`, tests/test_gone.py, `results.compared`, `experiment.yaml`"
    text += "\nfrom factaudit.results import Result\n"
    stale = {
        "factaudit.results.compere",
        "factaudit.results.compared",
        "factaudit.results.Result",
        "audit/rats.py",
        "audit/rates.py:rate",
    }
    assert missing_names(text) == stale | {"tests/test_gone.py"}
