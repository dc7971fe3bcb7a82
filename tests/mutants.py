"""Change one thing of the package at random, and see whether the tests notice:
`python tests/mutants.py 100 [SEED]`.

A mutant has one comparison, operator, constant, condition or return changed in one module. It is
tried in a copy of the package, by those fast tests that name the module or its folder. Not part of
CI: a hundred take half an hour. A mutant that survives is printed as a line of a patch; some change
nothing that can be seen (a message's words, a bound that is never reached).
"""

from __future__ import annotations

import ast
import copy
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
#: At most so many test files a mutant; those come first that name little else of the package.
MAX_TEST_FILES = 4
TIMEOUT_SECONDS = 600
_COMPARISONS = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.In, ast.NotIn),
    (ast.Is, ast.IsNot),
]
_OPERATORS = [
    (ast.Add, ast.Sub),
    (ast.Mult, ast.Div),
    (ast.FloorDiv, ast.Mult),
    (ast.BitAnd, ast.BitOr),
]
_INSTEAD = {
    kind: other
    for one, two in [*_COMPARISONS, *_OPERATORS]
    for kind, other in ((two, one), (one, two))
}


def change_node(node: ast.AST) -> ast.AST | None:
    """The node with one thing changed; None where nothing of it can be."""
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[first, *_]) if type(first) in _INSTEAD:
            new.ops[0] = _INSTEAD[type(first)]()
        case ast.BinOp(op=operator) if type(operator) in _INSTEAD:
            new.op = _INSTEAD[type(operator)]()
        case ast.BoolOp(op=operator):
            new.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value) | float(value)):
            new.value = value + 1
        case ast.IfExp(test=test):
            new.test = ast.UnaryOp(ast.Not(), test)
        case ast.Return(value=ast.AST()):
            new.value = ast.Constant(None)
        case _:
            return None
    return new


def list_mutable_nodes(node: ast.AST, is_inside: bool = False) -> Iterator[ast.AST]:
    """Expressions and returns within functions: not annotations, defaults, messages or
    docstrings."""
    if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
        return
    if is_inside and change_node(node) is not None:
        yield node
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in node.body if is_function else ast.iter_child_nodes(node):
        yield from list_mutable_nodes(child, is_inside or is_function)


def make_mutant(source: str, draw: random.Random) -> tuple[str, str] | None:
    """The source with one change, and the change as lines of a patch."""
    nodes = list(list_mutable_nodes(ast.parse(source)))
    if not nodes:
        return None
    node = draw.choice(nodes)
    new = change_node(node)
    assert new is not None
    assert isinstance(node, ast.expr | ast.stmt)
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or node.lineno) - 1])) + (node.end_col_offset or 0)
    text = ast.unparse(ast.fix_missing_locations(new))
    text = text if isinstance(node, ast.stmt) else f"({text})"
    data = source.encode()
    changed = (data[:start] + text.encode() + data[end:]).decode()
    return changed, f"{node.lineno}: - {' '.join(data[start:end].decode().split())}\n      + {text}"


def find_test_files(module: Path) -> list[str]:
    """The test files that name a module, those of its own name first; where none does, those that
    run commands."""
    tests = {
        path: path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }
    name, room = module.stem, module.parent.name
    own = {f"test_{name}", f"test_{name}s", f"test_{room}_{name}", f"test_{room}"}
    naming = [
        path for path, text in tests.items() if path.stem in own or re.search(rf"\b{name}\b", text)
    ]
    naming.sort(
        key=lambda path: (path.stem not in own, tests[path].count("from factaudit"), path.name)
    )
    chosen = naming or [
        ROOT / f"tests/test_{name}.py" for name in ("cli", "python_api", "report", "experiment")
    ]
    return [str(path.relative_to(ROOT)) for path in chosen[:MAX_TEST_FILES]]


def is_noticed(copied_root: Path, module: Path, changed: str) -> bool:
    """Whether the tests fail with the change in the copy."""
    target = copied_root / module.relative_to(ROOT)
    original = target.read_text(encoding="utf-8")
    target.write_text(changed, encoding="utf-8")
    environment = os.environ | {
        "PYTHONPATH": str(copied_root),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-q",
        "-x",
        "-m",
        "not slow",
    ]
    try:
        files = find_test_files(module)
        done = subprocess.run(
            [*command, *files],
            cwd=copied_root,
            env=environment,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
        # Neither passed nor failed, nor broken on import: nothing was tried.
        if done.returncode > 2:
            raise RuntimeError(done.stdout.decode())
        return done.returncode > 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_text(original, encoding="utf-8")


def main(n_mutants: int, seed: int = 0) -> None:
    """Try so many mutants, and say which survive."""
    draw = random.Random(seed)
    sources = {
        path: path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "factaudit").rglob("*.py"))
    }
    sizes = [len(list(list_mutable_nodes(ast.parse(source)))) for source in sources.values()]
    with tempfile.TemporaryDirectory() as folder:
        copied_root = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "runs", "*_cache", "__pycache__")
        shutil.copytree(ROOT, copied_root, ignore=ignored, symlinks=True)
        noticed = 0
        for tried, module in enumerate(draw.choices(list(sources), sizes, k=n_mutants), 1):
            mutant = make_mutant(sources[module], draw)
            assert mutant is not None
            if is_noticed(copied_root, module, mutant[0]):
                noticed += 1
            else:
                print(f"survives: {module.relative_to(ROOT)}:{mutant[1]}", flush=True)
            print(f"{noticed} of {tried} noticed", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
