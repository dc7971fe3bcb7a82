"""Execute the notebooks in a temporary copy of the project, so that what is in `runs` neither helps
nor is touched."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
#: Seconds that one cell may take.
TIMEOUT = 300


def execute(
    notebooks: Sequence[Path], folder: Path
) -> Iterator[tuple[Path, nbformat.NotebookNode]]:
    """Yields each notebook with its outputs; raises `nbclient.exceptions.CellExecutionError` where
    a cell fails."""
    for part in ("data", "experiments", "notebooks", "factaudit/start/demo"):
        shutil.copytree(ROOT / part, folder / part)
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        where = {"metadata": {"path": str(folder / "notebooks")}}
        client = NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=where)
        client.extra_arguments = ["--log-level=ERROR"]  # the kernel warns of its transport
        client.execute()
        yield path, notebook


if __name__ == "__main__":
    names = [Path(name).resolve() for name in sys.argv[1:]] or sorted(
        ROOT.glob("notebooks/*.ipynb")
    )
    with tempfile.TemporaryDirectory() as folder:
        for path, _ in execute(names, Path(folder)):
            print(path.name)
