"""Commands that are killed at random moments and started again end as if nobody had.

30 % of the requests fail at first, and the server keeps books of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kills import (
    COMMANDS,
    CONCURRENCY,
    Books,
    Starter,
    arguments,
    contents,
    prepare,
    starter,
    trial,
    undisturbed,
)
from llm_server import FaultServer


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with starter(tmp_path_factory.mktemp("kills") / "output.txt") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_killed_and_resumed_it_ends_as_if_undisturbed(
    command: str, start: Starter, tmp_path: Path
) -> None:
    told = trial(command, 2, tmp_path, start, seed=1)
    assert told.kills == 2
    assert told.different == [], "byte by byte as without kills"
    assert (told.lost, told.left) == (0, 0)
    # What was under way when it was killed may be paid for again; batches never are.
    assert told.twice <= (0 if command == "batch" else CONCURRENCY * told.kills)
    assert told.billed > 0
    assert told.told is None or told.billed <= told.told


@pytest.mark.slow
def test_on_a_full_disk_a_run_stops_and_goes_on_when_there_is_room(
    start: Starter, tmp_path: Path
) -> None:
    prepare(tmp_path)
    whole, _ = undisturbed("run", tmp_path, tmp_path / "whole", start)
    life = tmp_path / "life"
    (life / "out").mkdir(parents=True)
    books = Books(1)
    with FaultServer(plan=books.plan, keep=False) as server:
        given = arguments("run", tmp_path, life, server.url)
        for limit in (
            2_000,
            20_000,
            60_000,
        ):  # the cache cannot be made; the journal, a table cannot be written
            start.output.write_text("")
            start.start(given, limit)
            assert start.wait() == 1, limit
            said = start.output.read_text()
            assert str(life) in said, said
            assert not any(word in said for word in ("Traceback", "This is a bug", "damaged"))
        start.start(given)
        assert start.wait() == 0, start.output.read_text()
    assert contents(life / "out") == whole
    assert not list(life.glob("*.damaged-*"))
