"""Commands that are killed at random moments and started again end as if nobody had; `bench_kills.py` has a hundred.

30 % of the requests fail at first, and the server keeps books of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kills import COMMANDS, CONCURRENCY, Starter, starter, trial


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with starter(tmp_path_factory.mktemp("kills") / "output.txt") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_and_resumed_it_ends_as_if_undisturbed(command: str, start: Starter, tmp_path: Path) -> None:
    told = trial(command, 2, tmp_path, start, seed=1)
    assert told.kills == 2
    assert told.different == [], "byte by byte as without kills"
    assert (told.lost, told.left) == (0, 0)
    # What was under way when it was killed may be paid for again; batches never are.
    assert told.twice <= (0 if command == "batch" else CONCURRENCY * told.kills)
    assert told.billed > 0
    assert told.told is None or told.billed <= told.told
