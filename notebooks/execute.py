"""Execute the notebooks: `python notebooks/execute.py` checks that they run, `--write` also keeps their outputs.

They run in a temporary copy of the project's experiments, data and notebooks, so that what is in `runs` neither helps
nor is touched. Two executions of one state of the project give the same bytes: seeds are the experiments' own, and
timings and versions are left out of what is written.

Where MF's published outputs are at hand (in $FACTAUDIT_SHARED_DATA, or ../shared/data beside the project),
03_dfactscore.ipynb shows figures of them; write it where they are.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parent.parent
#: Seconds that one cell may take.
TIMEOUT = 300


def execute(notebooks: Sequence[Path], folder: Path) -> Iterator[tuple[Path, nbformat.NotebookNode]]:
    """Execute notebooks of the project in a copy under ``folder``; yields each with its outputs, normalised.

    Raises `nbclient.exceptions.CellExecutionError` where a cell fails.
    """
    for part in ("data", "experiments", "notebooks", "factaudit/start/demo"):
        shutil.copytree(ROOT / part, folder / part)
    # From the copy, the folder beside the project is elsewhere.
    environment = {"FACTAUDIT_SHARED_DATA": str(ROOT.parent / "shared" / "data"), **os.environ}
    for path in notebooks:
        notebook = nbformat.read(path, as_version=4)
        where = {"metadata": {"path": str(folder / "notebooks")}}
        client = NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=where, record_timing=False)
        client.extra_arguments = ["--log-level=ERROR"]  # the kernel warns of its transport
        client.execute(env=environment)
        normalise(notebook)
        yield path, notebook


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Take out what changes though nothing changed: the machine's metadata and the pieces a stream came in."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in ("tags",) if key in cell.metadata})
        outputs: list[nbformat.NotebookNode] = []
        for output in cell.get("outputs", ()):
            last = outputs[-1] if outputs else None
            if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
                last.text += output.text
            else:
                outputs.append(output)
        if cell.cell_type == "code":
            cell.outputs = outputs


def main() -> int:
    """The command line; 1 where a cell fails."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="by default all in this folder")
    parser.add_argument("--write", action="store_true", help="write the outputs into the notebooks")
    arguments = parser.parse_args()
    notebooks = arguments.notebooks or sorted((ROOT / "notebooks").glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        try:
            for path, notebook in execute(notebooks, Path(folder)):
                if arguments.write:
                    nbformat.write(notebook, path)
                print(f"{path.name}: {time.monotonic() - started:.0f} s{', written' if arguments.write else ''}")
                started = time.monotonic()
        except CellExecutionError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
