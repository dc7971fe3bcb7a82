"""What is handed out: the wheel holds all that the code reads."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile


def test_the_wheel_holds_all_that_the_code_reads_and_nothing_else(root, tmp_path):
    left_out = shutil.ignore_patterns("__pycache__", "*.py[cod]", ".DS_Store")
    shutil.copytree(root / "factaudit", tmp_path / "factaudit", ignore=left_out)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path)
    wanted = {
        str(path.relative_to(tmp_path))
        for path in (tmp_path / "factaudit").rglob("*")
        if path.is_file()
    }
    code = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == wanted


def test_nothing_is_a_link(root):
    """A checkout on Windows, or a zip of the project, has the name of its target in a link's
    place."""
    for folder in ("data", "docs", "experiments", "factaudit", "notebooks", "tests"):
        assert [path for path in (root / folder).rglob("*") if path.is_symlink()] == []
