"""Change one thing of the package at random, and see whether the tests notice:
`python tests/mutants.py 100 [SEED]`.

A mutant has one comparison, operator, constant, condition or return changed in one module. It is
tried in a copy of the package, by those fast tests that name the module or its folder. Not part of
CI: a hundred take half an hour. A mutant that survives is printed; some change nothing that can be
seen (a bound that is never reached).
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: At most so many test files a mutant; those come first that bear the module's name.
MAX_TEST_FILES = 6
TIMEOUT_SECONDS = 600
PYTEST = [sys.executable, *["-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", "-m"], "not slow"]
#: What stands in the place of a comparison or an operator, and the other way round.
_PAIRS = (
    "Lt LtE, Gt GtE, Eq NotEq, In NotIn, Is IsNot, Add Sub, Mult Div, FloorDiv Mod, And Or,"
    " BitAnd BitOr"
)
_OTHER = {
    getattr(ast, name): getattr(ast, other)
    for pair in _PAIRS.split(", ")
    for name, other in (pair.split(), pair.split()[::-1])
}


def change_node(node: ast.AST) -> bool:
    """Change one thing of the node in its place; False where nothing of it can be changed."""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _OTHER:
            node.ops[0] = _OTHER[type(operator)]()
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in _OTHER:
            node.op = _OTHER[type(operator)]()
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value) | float(value)):
            node.value = value + 1
        case ast.IfExp(test=test):
            node.test = ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.AST()):
            node.value = ast.Constant(None)
        case _:
            return False
    return True


def list_nodes_of_functions(node: ast.AST, is_inside: bool = False) -> Iterator[ast.AST]:
    """What functions do: not their annotations, defaults, messages or docstrings."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        return
    if is_inside:
        yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in node.body if is_function else ast.iter_child_nodes(node):
        yield from list_nodes_of_functions(child, is_inside or is_function)


def make_mutant(source: str, draw: random.Random) -> tuple[str, str]:
    """The source with one change, and where and what it is."""
    tree = ast.parse(source)
    nodes = list(list_nodes_of_functions(tree))
    for node in draw.sample(nodes, len(nodes)):
        before = ast.unparse(node)
        if change_node(node):
            return ast.unparse(tree), f"{node.lineno}: {before}  ->  {ast.unparse(node)}"
    return source, "nothing to change"


def find_test_files(module: Path) -> list[str]:
    """The test files that name a module or, where none does, its folder."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    for name in (module.stem, module.parent.name):
        naming = [path for path in tests if re.search(rf"\b{name}\b", path.read_text("utf-8"))]
        if naming:
            break
    naming.sort(key=lambda path: name not in path.stem)
    return [str(path.relative_to(ROOT)) for path in naming[:MAX_TEST_FILES]]


def is_noticed(folder: Path, tests: list[str]) -> bool:
    """Whether the tests fail in the copy."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*PYTEST, *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return True
    # Neither passed nor failed, nor broken on import: nothing was tried.
    if done.returncode > 2:
        raise RuntimeError(done.stdout.decode())
    return done.returncode > 0


def main(n_mutants: int, seed: int = 0) -> None:
    """Try so many mutants, and say which survive."""
    draw = random.Random(seed)
    modules = {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "factaudit").rglob("*.py"))
    }
    sizes = [len(list(list_nodes_of_functions(ast.parse(text)))) for text in modules.values()]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "runs", "*_cache", "__pycache__")
        shutil.copytree(ROOT, folder, ignore=ignored, symlinks=True)
        noticed = 0
        for tried, module in enumerate(draw.choices(list(modules), sizes, k=n_mutants), 1):
            changed, words = make_mutant(modules[module], draw)
            (folder / module).write_text(changed, encoding="utf-8")
            if is_noticed(folder, find_test_files(module)):
                noticed += 1
            else:
                print(f"survives: {module}:{words}", flush=True)
            (folder / module).write_text(modules[module], encoding="utf-8")
            print(f"{noticed} of {tried} noticed", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
