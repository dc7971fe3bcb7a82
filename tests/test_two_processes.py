"""Two processes that run one command into one place: both end, what is there is whole, and nobody says it is a bug."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_folder import WRITING_COMMANDS
from kills import Starter, contents, starter
from test_generated_hostility import copied

from factaudit.files import TEMPORARY_PREFIX

#: What a process may say that came second: each names the place, or what is there by now.
SECOND = ("another run is writing to this folder", "is there already", "exists already")


#: Those that keep more than one file: a run folder, a journal, a database.
SHARED = [
    command
    for command in WRITING_COMMANDS
    if command.startswith(("run", "judge claims.jsonl --evaluator rouge2", "score responses", "estimate", "knowledge"))
]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with starter(tmp_path_factory.mktemp("two") / "output.txt") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("command", SHARED, ids=lambda command: command.replace(" ", "_")[:50])
def test_two_processes_with_one_output_leave_what_one_leaves(
    command: str, inputs: Path, tmp_path: Path, start: Starter
) -> None:
    folder = tmp_path / "copy"
    left = []
    for n_processes in (1, 2):
        with copied(inputs, folder, ()):
            start.output.write_text("")
            for _ in range(n_processes):
                start.start(command.split(), folder=folder)
            codes = [start.wait() for _ in range(n_processes)]
            said = start.output.read_text()
            assert 0 in codes, said
            assert "is a bug in factaudit" not in said, said
            assert "Traceback" not in said, said
            assert set(codes) == {0} or any(words in said for words in SECOND), said
            assert not [path for path in folder.rglob(f"{TEMPORARY_PREFIX}*") if path.is_file()]
            left.append({name: data for name, data in contents(folder).items() if "/.work/" not in name})
    assert left[1].keys() == left[0].keys()
    # A cache's file counts how often it was written to, the ledger of a sealed test says when.
    ours = ("cache.db", "ledger.jsonl")
    assert [name for name in left[0] if left[1][name] != left[0][name] and not name.endswith(ours)] == []
