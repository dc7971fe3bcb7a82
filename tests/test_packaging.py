"""What is handed out: the source distribution holds its tests and what they read, the wheel all
that the code reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

#: Of a checkout, what a distribution is made of, and nothing that running things leaves behind.
PARTS = ("factaudit", "tests", "data", "docs", "experiments", "notebooks", ".ci", ".github")
LEFT = ("__pycache__", ".ipynb_checkpoints", "*.py[cod]", ".DS_Store")


@pytest.fixture(scope="module")
def tree(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project without what is not its own."""
    made = tmp_path_factory.mktemp("package") / "tree"
    for name in PARTS:
        if (root / name).is_dir():
            shutil.copytree(root / name, made / name, ignore=shutil.ignore_patterns(*LEFT))
    for path in root.iterdir():
        if path.is_file() and not path.name.startswith("."):
            shutil.copy(path, made)
    return made


def built(tree: Path, kind: str) -> Path:
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}('dist'))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
    return tree / "dist" / shown.stdout.splitlines()[-1]


def files(tree: Path, *folders: str) -> set[str]:
    return {
        str(path.relative_to(tree))
        for folder in folders
        for path in (tree / folder).rglob("*")
        if path.is_file()
        and not any(
            path.match(pattern) or part == pattern for pattern in LEFT for part in path.parts
        )
    }


def test_the_source_distribution_holds_its_tests_and_what_they_read(tree: Path) -> None:
    wanted = files(tree, *(name for name in PARTS if not name.startswith("."))) | {
        "Makefile",
        "README.md",
    }
    with tarfile.open(built(tree, "sdist")) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert wanted <= held, sorted(wanted - held)[:20]
    assert len([name for name in held if name.startswith("tests/")]) > 70
    assert not [name for name in held if "__pycache__" in name]


def test_the_wheel_holds_all_that_the_code_reads_and_nothing_else(tree: Path) -> None:
    with zipfile.ZipFile(built(tree, "wheel")) as archive:
        held = {
            name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")
        }
    assert held == files(tree, "factaudit")


def test_nothing_is_a_link(root):
    """A checkout on Windows, or a zip of the project, has the name of its target in a link's
    place."""
    for folder in ("data", "docs", "experiments", "factaudit", "notebooks", "tests"):
        assert [path for path in (root / folder).rglob("*") if path.is_symlink()] == []
