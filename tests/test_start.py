"""`demo` ships what it needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile

import pytest

from factaudit.experiment import read_experiment


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
