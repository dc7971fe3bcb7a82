"""The notebooks: they run on what ships, and what is committed is what they give."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the [dev] extra")
pytest.importorskip("nbclient", reason="needs the [dev] extra")
pytest.importorskip("ipykernel", reason="needs the [dev] extra")

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
#: Cells of published outputs, which are not part of the project: they say so where those are absent.
PUBLISHED = "published"


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_execute", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each notebook, executed now."""
    module = _load(FOLDER / "execute.py")
    found = module.execute([FOLDER / name for name in NAMES], tmp_path_factory.mktemp("notebooks") / "copy")
    try:
        return {path.name: notebook for path, notebook in found}
    except module.CellExecutionError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def committed(name: str) -> Any:
    return nbformat.read(FOLDER / name, as_version=4)


def _code(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _said(cell: Any) -> list[str]:
    """What a cell shows, but for pictures: those depend on matplotlib's version."""
    shown = []
    for output in cell.outputs:
        if output.output_type == "stream":
            shown.append(output.text)
        elif "image/png" not in output.data:
            shown += [text for kind, text in sorted(output.data.items()) if kind.startswith("text/")]
    return shown


def test_there_are_notebooks() -> None:
    assert {"01_compare_evaluators.ipynb", "02_verify_with_caution.ipynb", "03_dfactscore.ipynb"} <= set(NAMES)


def test_is_committed_executed(name: str, committed: Any) -> None:
    nbformat.validate(committed)
    cells = _code(committed)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), "executed in order"
    for cell in cells:
        assert cell.outputs, f"{cell.id} shows nothing"
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.text


def test_committed_file_is_small_and_of_no_machine(name: str, committed: Any) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.encode()) < 1_000_000
    pictures = 0
    for cell in _code(committed):
        for output in cell.outputs:
            picture = output.get("data", {}).get("image/png")
            if picture is not None:
                pictures += 1
                assert len(base64.b64decode(picture)) < 100_000, f"the picture of {cell.id}"
            shown = " ".join(str(value) for kind, value in output.get("data", {}).items() if kind != "image/png")
            assert not re.search(r"/(home|root|tmp|work|Users)/", shown + output.get("text", "")), cell.id
    assert pictures >= 2
    assert set(committed.metadata) == {"kernelspec", "language_info"}
    assert all(set(cell.metadata) <= {"tags"} for cell in committed.cells)


def test_holds_no_logic(name: str, committed: Any) -> None:
    for cell in _code(committed):
        source = "\n".join(line for line in cell.source.splitlines() if not line.startswith("%"))
        for node in ast.walk(ast.parse(source)):
            forbidden = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda | ast.While | ast.Try
            assert not isinstance(node, forbidden), f"{cell.id}: {ast.unparse(node)}"


@pytest.mark.slow
def test_runs(name: str, executed: dict[str, Any]) -> None:
    for cell in _code(executed[name]):
        assert cell.outputs, f"{cell.id} shows nothing"
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.text


@pytest.mark.slow
def test_gives_what_is_committed(name: str, committed: Any, executed: dict[str, Any]) -> None:
    absent = any("are not here" in text for cell in _code(executed[name]) for text in _said(cell))
    for old, new in zip(committed.cells, executed[name].cells, strict=True):
        assert (old.id, old.cell_type, old.source) == (new.id, new.cell_type, new.source)
        if old.cell_type != "code" or (absent and PUBLISHED in old.metadata.get("tags", ())):
            continue
        assert _said(new) == _said(old), f"{old.id} has changed: python notebooks/execute.py --write notebooks/{name}"
        assert [set(output.get("data", ())) for output in new.outputs] == [
            set(output.get("data", ())) for output in old.outputs
        ]


@pytest.mark.parametrize("notebook", ["02_verify_with_caution.ipynb", "03_dfactscore.ipynb"])
def test_published_cells_say_so_without_the_files(
    notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need the imports of the first cell, and nothing that it computes."""
    monkeypatch.setenv("FACTAUDIT_SHARED_DATA", str(tmp_path / "nowhere"))
    monkeypatch.chdir(FOLDER)
    cells = _code(nbformat.read(FOLDER / notebook, as_version=4))
    first = ast.parse("".join(line for line in cells[0].source.splitlines(True) if not line.startswith("%")))
    names: dict[str, Any] = {}
    exec(compile(ast.Module([node for node in first.body if _is_import(node)], []), "imports", "exec"), names)
    published = [cell for cell in cells if PUBLISHED in cell.metadata.get("tags", ())]
    assert published
    for cell in published:
        *before, last = ast.parse(cell.source).body
        assert isinstance(last, ast.Expr)
        exec(compile(ast.Module(before, []), cell.id, "exec"), names)
        assert "The published outputs are not here" in eval(compile(ast.Expression(last.value), cell.id, "eval"), names)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def test_write_is_the_notebook_format_as_it_stands(name: str, committed: Any) -> None:
    """Reading and writing changes no byte: a second `--write` gives a diff only where an output differs."""
    again = nbformat.writes(committed, version=nbformat.NO_CONVERT)
    assert json.loads(again) == json.loads((FOLDER / name).read_text(encoding="utf-8"))
    assert again.rstrip("\n") == (FOLDER / name).read_text(encoding="utf-8").rstrip("\n")
