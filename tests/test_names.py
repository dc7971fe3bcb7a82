"""Names explain themselves: few module-level names of one word, none that says only how something is, no namesakes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "factaudit"
#: Module-level functions of five lines and more whose name is one word; sacrebleu has 4 %, scikit-learn 18.
MOST_OF_ONE_WORD = 0.05
#: Participles, adjectives, adverbs and pronouns: no name alone, nor with only others of them. What is held, said, low?
NOT_ALONE = """
about added adjusted again all alone also apart asked audited away banked based before beside best better both bounded
built by called checked chosen clustered coded compared computed counted crossed decided declared drawn dropped each
elsewhere empty every filled first fitted five found free from further given good grouped half held here high inside
into joined judged kept known labelled last least left like listed loaded long low made many matched merged more most
moved named nine none of one only other others out outside own paired parsed past plain printed ranked raw read real
resolved said same scored seen shared short shown so some sorted stated stored such sure surely taken together told
too tried twice unread used usual wanted warned weighted well which whole with within without written wrong
"""
NO_NAMES = frozenset(NOT_ALONE.split())
#: Names that a protocol, an entry point or Python itself asks for in several files.
PROTOCOL_NAMES: frozenset[str] = frozenset({"__getattr__", "__dir__", "main"})

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(package: Path) -> Iterator[tuple[str, Definition]]:
    """Each module-level function and class with the path of its file inside the package."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, Definition):
                yield path.relative_to(package).as_posix(), node


def words_of(name: str) -> list[str]:
    """The words of ``snake_case`` or ``CamelCase``."""
    spaced = "".join(f"_{letter}" if letter.isupper() else letter for letter in name)
    return [word for word in spaced.lower().split("_") if word]


def share_of_one_word(package: Path) -> float:
    names = [
        node.name
        for _, node in definitions(package)
        if not isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno >= 4
    ]
    return sum("_" not in name.strip("_") for name in names) / len(names)


def names_without_a_noun(package: Path) -> list[str]:
    return [f"{path}: {node.name}" for path, node in definitions(package) if set(words_of(node.name)) <= NO_NAMES]


def namesakes(package: Path) -> dict[str, list[str]]:
    """Functions and classes of one name in several files."""
    files = defaultdict(list)
    for path, node in definitions(package):
        if node.name not in PROTOCOL_NAMES:
            files[node.name].append(path)
    return {name: paths for name, paths in files.items() if len(paths) > 1}


def test_few_functions_are_called_by_one_word():
    assert share_of_one_word(PACKAGE) <= MOST_OF_ONE_WORD


def test_no_name_says_only_how_something_is():
    assert names_without_a_noun(PACKAGE) == []
    files = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    # One file keeps the former name of a public module.
    bad = [path for path in files if set(words_of(Path(path).stem)) <= NO_NAMES and "__" not in path]
    assert bad == ["evaluators/own.py"]


def test_no_two_files_define_one_name():
    assert namesakes(PACKAGE) == {}


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("def held(x): ...", "held"),
        ("class _ToldApart: ...", "_ToldApart"),
        ("def hold_lock(x): ...", None),
        ("class StoredVerdicts: ...", None),
    ],
)
def test_what_is_no_name_is_seen(tmp_path, source, seen):
    (tmp_path / "one.py").write_text(source)
    assert names_without_a_noun(tmp_path) == ([f"one.py: {seen}"] if seen else [])
    (tmp_path / "two.py").write_text(source)
    assert [*namesakes(tmp_path).values()] == [["one.py", "two.py"]]
