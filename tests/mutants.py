"""Change one thing of the package at random, and see whether the tests notice: `python tests/mutants.py 100 [SEED]`.

A mutant has one comparison, operator, constant, condition or return changed in one module. It is tried in a copy of the
package, by those fast tests that import the module, or, where none does, those whose text has the module's name. Not
part of CI: a hundred take half an hour. A mutant that survives is printed as a line of a patch; some change nothing
that can be seen (a message's words, a bound that is never reached).
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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: At most so many test files a mutant; those that import the module and little else come first.
MAX_TEST_FILES = 4
TIMEOUT_SECONDS = 600
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}


def change_node(node: ast.AST) -> ast.AST | None:
    """The node with one thing changed; None where nothing of it can be."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in _COMPARISONS:
        new.ops[0] = _COMPARISONS[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp) and type(new.op) in _OPERATORS:
        new.op = _OPERATORS[type(new.op)]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value = new.value + 1
    elif isinstance(new, ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), new.test)
    elif isinstance(new, ast.Return) and new.value is not None:
        new.value = ast.Constant(None)
    else:
        return None
    return new


def list_mutable_nodes(tree: ast.Module) -> list[ast.AST]:
    """Expressions and returns within functions: not annotations, defaults, messages or docstrings."""
    found: list[ast.AST] = []

    def visit(node: ast.AST, is_inside: bool) -> None:
        if isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert):
            return
        if is_inside and change_node(node) is not None:
            found.append(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "args") and isinstance(node, ast.FunctionDef):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    visit(child, is_inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))

    visit(tree, False)
    return found


def make_mutant(source: str, draw: random.Random) -> tuple[str, str] | None:
    """The source with one change, and the change as lines of a patch."""
    tree = ast.parse(source)
    nodes = list_mutable_nodes(tree)
    if not nodes:
        return None
    node = draw.choice(nodes)
    new = change_node(node)
    assert new is not None
    assert isinstance(node, ast.expr | ast.stmt)
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    before = lines[first].encode()[: node.col_offset].decode()
    after = lines[last].encode()[node.end_col_offset :].decode()
    text = ast.unparse(ast.fix_missing_locations(new))
    text = text if isinstance(node, ast.stmt) else f"({text})"
    changed = "".join(lines[:first]) + before + text + after + "".join(lines[last + 1 :])
    was = " ".join(part.strip() for part in lines[first : last + 1])
    return changed, f"{node.lineno}: - {was}\n      + {(before + text + after).strip()}"


def find_test_files(module_path: Path) -> list[str]:
    """The test files that import a module; where none does, those that have its name, or run commands."""
    dotted = ".".join(module_path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    tests = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    package, _, name = dotted.rpartition(".")
    pattern = re.compile(rf"\b{re.escape(dotted)}\b|from {re.escape(package)} import [^\n]*\b{name}\b")
    # A folder of tests is of the room that is called alike.
    of_room = [path for path in tests if path.parent.name == module_path.parent.name]
    importing = [path for path, text in tests.items() if path in of_room or pattern.search(text)]
    if not importing:
        importing = [path for path, text in tests.items() if re.search(rf"\b{name}\b", text)]
    if not importing:
        importing = [
            path for path in tests if path.stem in ("test_cli", "test_results", "test_report", "test_experiment")
        ]
    # Its own tests come first, then those of little else.
    own = {f"test_{name}", f"test_{name}s", f"test_{module_path.parent.name}_{name}", f"test_{module_path.parent.name}"}
    importing.sort(key=lambda path: (path.stem not in own, tests[path].count("from factaudit"), path.name))
    chosen = importing[:MAX_TEST_FILES]
    return [str(path.relative_to(ROOT)) for path in [*chosen, *(path for path in of_room if path not in chosen)]]


def is_noticed(copied_root: Path, module_path: Path, changed: str) -> bool:
    """Whether the tests fail with the change in the copy."""
    target = copied_root / module_path.relative_to(ROOT)
    original = target.read_text(encoding="utf-8")
    target.write_text(changed, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copied_root), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", "-m", "not slow"]
    try:
        done = subprocess.run(
            [*command, *find_test_files(module_path)],
            cwd=copied_root,
            env=environment,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        target.write_text(original, encoding="utf-8")


def main(n_mutants: int, seed: int = 0) -> None:
    """Try so many mutants, and say which survive."""
    draw = random.Random(seed)
    modules = sorted((ROOT / "factaudit").rglob("*.py"))
    sizes = [len(list_mutable_nodes(ast.parse(path.read_text(encoding="utf-8")))) for path in modules]
    with tempfile.TemporaryDirectory() as folder:
        copied_root = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".git", ".venv", "runs", "*_cache", "__pycache__")
        shutil.copytree(ROOT, copied_root, ignore=ignored, symlinks=True)
        noticed = tried = 0
        while tried < n_mutants:
            (module,) = draw.choices(modules, sizes)
            mutant = make_mutant(module.read_text(encoding="utf-8"), draw)
            if mutant is None:
                continue
            tried += 1
            changed, patch = mutant
            if is_noticed(copied_root, module, changed):
                noticed += 1
            else:
                print(f"survives: {module.relative_to(ROOT)}:{patch}", flush=True)
            print(f"{noticed} of {tried} noticed", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
