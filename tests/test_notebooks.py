"""The notebooks run from the first cell to the last on what ships."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
sys.path.insert(0, str(FOLDER))
from execute import execute  # noqa: E402

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    [(_, done)] = execute([path], tmp_path / "copy")
    assert all(cell.get("execution_count") for cell in done.cells if cell.cell_type == "code")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_committed_notebook_is_small(path):
    """Pictures are drawn when it runs; the repository keeps the text alone."""
    assert path.stat().st_size < 40_000
