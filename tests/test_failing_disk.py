"""A disk that fails at any write of any verb: a message, inputs and earlier outputs whole, and the same command again
goes on."""

from __future__ import annotations

import builtins
import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hostile_folder import WRITING_COMMANDS, read_contents
from test_generated_hostility import call_quietly, copied

from factaudit.files import TEMPORARY_PREFIX

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)


@contextmanager
def failing_write(number: int, code: int) -> Iterator[list[str]]:
    """Let one write fail: a file that is opened to be written, a folder made, a file put in another's place.

    Gives all writes that were tried, by their paths.
    """
    tried: list[str] = []

    def check(path: Any) -> None:
        tried.append(str(path))
        if len(tried) == number + 1:
            raise OSError(code, os.strerror(code), str(path))

    def wrap(function: Callable[..., Any], place: int) -> Callable[..., Any]:
        def write(*arguments: Any, **options: Any) -> Any:
            check(arguments[place])
            return function(*arguments, **options)

        return write

    def open_file(path: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if set(mode) & set("wax+") and isinstance(path, str | Path) and str(path) != os.devnull:
            check(path)
        return open_before(path, mode, *arguments, **options)

    open_before = io.open
    with pytest.MonkeyPatch.context() as patch:
        for module in (builtins, io):
            patch.setattr(module, "open", open_file)
        patch.setattr(os, "replace", wrap(os.replace, 1))
        patch.setattr(os, "mkdir", wrap(os.mkdir, 0))
        yield tried


def outputs_of(folder: Path) -> dict[str, bytes]:
    """What a command leaves but for its own notes."""
    return {
        name: data for name, data in read_contents(folder).items() if ".work" not in name and not name.endswith("lock")
    }


def check_failed_command(command: str, folder: Path, before: dict[str, bytes], code: int, said: str) -> None:
    """What holds after a write failed."""
    failed = 2 if command.startswith("diff") else 1  # of diff, 1 says that its gate does not hold
    assert code in (0, failed), said
    assert "is a bug in factaudit" not in said, said
    assert "Traceback" not in said, said
    assert code == 0 or said.strip(), "a failure that says nothing"
    after = read_contents(folder)
    assert not [name for name in after if Path(name).name.startswith(TEMPORARY_PREFIX)]
    owned = ("runs/", "cache.db", ".judged", "judged.jsonl", "wiki.db", ".cache")
    assert not [name for name, data in before.items() if after.get(name) != data and not name.startswith(owned)]
    if code:
        code, said = call_quietly(*command.split())
        assert code == 0, f"the same command does not go on: {said}"


@pytest.mark.slow
@pytest.mark.parametrize("command", WRITING_COMMANDS, ids=lambda command: command.replace(" ", "_")[:50])
def test_after_a_failed_write_the_same_command_goes_on(command: str, inputs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    with copied(inputs, folder, ()), failing_write(-1, 0) as tried:
        assert call_quietly(*command.split())[0] == 0
        sound = outputs_of(folder)
    for number, error in zip(sorted({0, len(tried) // 2, len(tried) - 1} - {-1}), ERRORS, strict=False):
        with copied(inputs, folder, ()):
            before = read_contents(folder)
            with failing_write(number, error):
                code, said = call_quietly(*command.split())
            check_failed_command(command, folder, before, code, said)
            assert outputs_of(folder).keys() == sound.keys(), tried[number]
