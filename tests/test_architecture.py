"""The house's plan: imports run one way, audits draw nothing and ask nobody, and no file outgrows its concept.

The imports are read from the source, those inside functions and under TYPE_CHECKING as well.
"""

from __future__ import annotations

import ast
import functools
import importlib
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "factaudit"
#: The rooms (folders, or modules that stand alone) from the bottom up; a room imports those on lower floors only.
FLOORS = (
    {"version", "errors"},
    {"stats", "files"},
    {"garbage_collection", "python_errors", "signature", "spec_string", "text", "blas_threads", "yaml_file"},
    {"publications"},
    {"yaml_paths"},
    {"tables"},
    {"arrays"},
    {"llm", "knowledge", "datasets", "audit", "perturb"},
    {"input_tables"},
    {"python_input"},
    {"report", "comparison_tables"},
    {"results"},
    {"evaluators"},
    {"run_folder"},
    {"run_reuse", "experiment_inputs", "run_matching", "run_gate", "run_claims"},
    {"run_system_orders", "run_finding_changes"},
    {"engines", "estimate", "run_diff", "run_drift", "export", "sql"},
    {"experiment", "run_diff_markdown", "run_versions"},
    {"start"},
    {"cli"},
    {"__main__"},
)
#: What an audit may not have to do with: drawing, asking models, and what makes rows.
NOT_IN_AUDITS = {"matplotlib", "seaborn", "plotly", "openai", "torch", "transformers"}
MAX_LINES = 400


def sources(package: Path) -> Iterator[tuple[str, ast.Module]]:
    """Each file of a package: its path inside, and its syntax tree."""
    for path in sorted(package.rglob("*.py")):
        yield path.relative_to(package).as_posix(), parse_source(path.read_text(encoding="utf-8"))


@functools.cache
def parse_source(text: str) -> ast.Module:
    return ast.parse(text)


def imported(tree: ast.Module) -> Iterator[str]:
    """What a file imports, as dotted names (``from a import b`` is ``a.b``)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{name.name}" for name in node.names)


def room(path: str) -> str:
    return path.split("/")[0].removesuffix(".py")


def floor(name: str) -> int:
    return next((number for number, rooms in enumerate(FLOORS) if name in rooms), -1)


def climbs(package: Path) -> list[str]:
    """Imports from the same floor or a higher one, or from the package itself."""
    found = []
    for path, tree in sources(package):
        here = room(path)
        if path == "__init__.py":  # the front door
            continue
        if floor(here) < 0:
            found.append(f"{path}: the room {here!r} stands on no floor of this test's plan")
        for name in imported(tree):
            top, _, inner = name.partition(".")
            there = inner.partition(".")[0]
            if top != package.name or there == here:
                continue
            if not there or not ((package / there).is_dir() or (package / f"{there}.py").is_file()):
                found.append(f"{path} imports {name}: the package itself")
            elif floor(there) >= floor(here):
                found.append(f"{path} imports {name}: {there} is not below {here}")
    return found


def test_imports_run_one_way():
    assert climbs(PACKAGE) == []


def test_statistics_arrays_and_declarations_know_their_place():
    """`stats` reads nothing of ours but errors, `arrays` no audit, and `audit.core` only declares."""
    known = {
        "stats": {"stats", "errors"},
        "arrays": {"arrays", "stats", "errors", "tables", "text", "signature"},
    }
    for path, tree in sources(PACKAGE):
        ours = {name.split(".")[1] for name in imported(tree) if name.startswith("factaudit.")}
        assert ours <= known.get(room(path), ours), path
    assert len(list((PACKAGE / "audit" / "core").glob("*.py"))) <= 14


def circle(package: Path) -> list[str]:
    """Files that import each other in a circle, late and for types alone included; empty where there is none."""
    files = {f"{package.name}.{path.removesuffix('.py').replace('/', '.')}": tree for path, tree in sources(package)}
    files = {name.removesuffix(".__init__"): tree for name, tree in files.items() if name != f"{package.name}.__init__"}

    def file_of(name: str) -> str | None:
        return name if name in files else next((a for a in [name.rpartition(".")[0]] if a in files), None)

    graph = {name: {file_of(one) for one in imported(tree)} - {None, name} for name, tree in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other(tmp_path):
    assert circle(PACKAGE) == []
    package = tmp_path / "factaudit"
    (package / "llm").mkdir(parents=True)
    (package / "llm" / "a.py").write_text("from factaudit.llm.b import x")
    (package / "llm" / "b.py").write_text("def late():\n    from factaudit.llm import a")
    assert set(circle(package)) == {"factaudit.llm.a", "factaudit.llm.b"}


def test_an_import_that_climbs_is_seen(tmp_path):
    package = tmp_path / "factaudit"
    files = {
        "__init__.py": "from factaudit.tables import read",
        "version.py": "",
        "cellar.py": "",
        "tables/__init__.py": "def late():\n    import factaudit.audit.rates",
        "audit/rates.py": "from factaudit import __version__\nfrom factaudit.version import __version__",
        "llm/client.py": "from factaudit import tables, knowledge",
        "knowledge/docdb.py": "import factaudit",
    }
    for name, text in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    assert climbs(package) == [
        "audit/rates.py imports factaudit.__version__: the package itself",
        "cellar.py: the room 'cellar' stands on no floor of this test's plan",
        "knowledge/docdb.py imports factaudit: the package itself",
        "llm/client.py imports factaudit.knowledge: knowledge is not below llm",
        "tables/__init__.py imports factaudit.audit.rates: audit is not below tables",
    ]


def test_audits_draw_nothing_and_ask_nobody():
    for path, tree in sources(PACKAGE):
        if room(path) == "audit":
            assert not {name.split(".")[0] for name in imported(tree)} & NOT_IN_AUDITS, path
    loaded = "import sys; from factaudit.audit import load_all_audits; load_all_audits(); "
    loaded += "print(*{name.split('.')[0] for name in sys.modules})"
    names = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert "scipy" in names
    assert not set(names) & NOT_IN_AUDITS


def test_no_file_outgrows_its_concept():
    """A longer file says in its docstring why it is above 400 lines."""
    for path, tree in sources(PACKAGE):
        lines = len((PACKAGE / path).read_text(encoding="utf-8").splitlines())
        if lines > MAX_LINES:
            assert f"{MAX_LINES} lines" in (ast.get_docstring(tree) or ""), f"{path} has {lines} lines"


def test_every_file_says_what_it_holds():
    for path, tree in sources(PACKAGE):
        assert not tree.body or ast.get_docstring(tree), f"{path} has no docstring"


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("factaudit.audit.core.declare", "Audit"),
        ("factaudit.evaluators.own", "FromFunction"),
        ("factaudit.estimate.run", "estimate_rates"),
    ],
)
def test_a_former_public_module_still_imports_and_warns(old, name):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match="is now"):
        module = importlib.import_module(old)
    assert getattr(module, name)
