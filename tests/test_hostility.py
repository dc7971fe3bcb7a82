"""Hostility by the hundred: inputs that were valid until something was changed in them, a disk that
fails at any write, and two processes with one output.

Each example ends in success or in a message of ours: never in a traceback, a hang, or a changed
input.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import random
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from conftest import run_command
from hostile_folder import COMMANDS, WRITING_COMMANDS, read_contents
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kills import Starter, contents, starter

#: Seconds after which a command counts as hung, on a machine that many share.
HANG_SECONDS = 120
SLOW = settings(max_examples=16, suppress_health_check=list(HealthCheck), print_blob=False)
#: These compute and draw all that there is, where their input is still one.
COSTLY = settings(SLOW, max_examples=6)
COSTLY_VERBS = ("audit", "estimate", "run e.yaml --out", "triage")


class Hang(BaseException):
    """A command that does not end; no `Exception`, so that no command catches it."""


def _raise_hang(*_: object) -> None:
    raise Hang


def call_quietly(*arguments: str) -> tuple[int, str]:
    """A command's exit code and what it said on standard error."""
    said = io.StringIO()
    before = signal.signal(signal.SIGALRM, _raise_hang)
    signal.alarm(HANG_SECONDS)
    try:
        with redirect_stderr(said), redirect_stdout(io.StringIO()):
            code = run_command(*arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return code, said.getvalue()


# What may be changed in a file
# ------------------------------------------------------------

ODD_VALUES = (
    *(
        "null",
        "true",
        "-1",
        "1e999",
        "NaN",
        "-0",
        "1" + "0" * 400,
        "0.5",
        '""',
        '" "',
        '"\\u0000"',
        '"\\ud800"',
        "[]",
    ),
    *(
        "{}",
        "[[]]",
        '{"": 1}',
        '"=cmd()"',
        '"__macro__"',
        '"../x"',
        '"\\u202e"',
        "[" * 3000,
        '"' + "x" * 200_000 + '"',
    ),
    *(
        "[" * 200 + "]" * 200,
        '"2024-13-45"',
        "1.7976931348623157e308",
        '["a", 1, null]',
        '"published:x"',
        "'",
    ),
)
ODD_CELLS = (
    "",
    " ",
    "=1+1",
    "\x00",
    '"',
    "1e999",
    "nan",
    "x" * 200_000,
    "\u202e",
    "\ufeff",
    "-",
    "007",
    "9" * 400,
)


def change_text(data: bytes, draw: random.Random) -> bytes:
    """Put an odd value in the place of a JSON value or a cell; or give an object a key twice."""
    text = data.decode("utf-8", "surrogateescape")
    marks = [at for at, letter in enumerate(text) if letter in ',:[\n"']
    if not marks:
        return data
    start = draw.choice(marks) + 1
    end = next((at for at in range(start, len(text)) if text[at] in ",}]\n"), len(text))
    kind = draw.randrange(4)
    if kind == 0:
        piece = draw.choice(ODD_VALUES)
    elif kind == 1:
        piece = draw.choice(ODD_CELLS)
    elif kind == 2:
        piece = f"{text[start:end]},{text[start:end]}"
    else:
        piece = ""
    return (text[:start] + piece + text[end:]).encode("utf-8", "surrogateescape")


def change_bytes(data: bytes, draw: random.Random) -> bytes:
    """Cut, flip, insert or repeat bytes, as disks and editors do."""
    at, to = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
    kind = draw.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + draw.randbytes(draw.choice((1, 8, 300))) + data[at:]
    if kind == 3:
        return data[:to] + data[at:]
    return data[:at] + data[to:]


def change_encoding(data: bytes, draw: random.Random) -> bytes:
    """Another encoding, other line ends, a byte order mark, or a mixture of two encodings."""
    text = data.decode("utf-8", "replace")
    return draw.choice(
        (
            text.encode("utf-16"),
            text.encode("utf-16-le"),
            b"\xef\xbb\xbf" + data,
            data.replace(b"\n", b"\r\n"),
            data.replace(b"\n", b"\r"),
            data + "caf\xe9".encode("latin-1") + b"\n",
            b"",
            b"\n\n",
            data * 3,
            data.replace(b"\n", b"\n\n\n"),
        )
    )


CHANGES = (change_text, change_text, change_text, change_bytes, change_bytes, change_encoding)


def change_file(path: Path, draw: random.Random) -> bytes:
    """Change a file in one to three ways, or put something else in its place; what it holds
    then."""
    data = path.read_bytes()
    if draw.random() < 0.03:
        path.unlink()
        draw.choice((path.mkdir, lambda: path.symlink_to(path.name), lambda: None))()
        return b""
    for _ in range(draw.choice((1, 1, 2, 3))):
        data = draw.choice(CHANGES)(data, draw)
    path.write_bytes(data)
    return data


@contextmanager
def copied(inputs: Path, folder: Path, reads: tuple[str, ...]) -> Iterator[list[Path]]:
    """A copy of the inputs as the working directory, and the files of it that a command reads."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(inputs, folder)
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield [path for pattern in reads for path in sorted(folder.glob(pattern))]
    finally:
        os.chdir(before)


def try_example(
    inputs: Path, folder: Path, command: str, reads: tuple[str, ...], draw: random.Random
) -> None:
    with copied(inputs, folder, reads) as files:
        change_file(draw.choice(files), draw)
        before = read_contents(folder)
        code, said = call_quietly(*command.split())
        assert code in (0, 1, 2), said
        assert "is a bug in factaudit" not in said, said
        assert "Traceback" not in said, said
        assert code == 0 or said.strip(), "a failure that says nothing"
        after = read_contents(folder)
        owned = ("out", "runs/", ".judged", "judged.jsonl", "cache.db", ".cache", "wiki.db")
        changed = [
            name
            for name, data in before.items()
            if after.get(name) != data and not name.startswith(owned)
        ]
        assert not changed, f"inputs that the command changed: {changed}"


def _name_case(value: object) -> str | None:
    return value.replace(" ", "_")[:60] if isinstance(value, str) else ""


def try_examples(effort: settings, *setting: Any) -> None:
    """Try as many examples as the effort says, each with its own changes."""

    @effort
    @given(st.randoms(use_true_random=False))
    def run(draw: random.Random) -> None:
        try_example(*setting, draw)

    run()


@pytest.mark.slow
@pytest.mark.parametrize(("command", "reads"), COMMANDS, ids=_name_case)
def test_any_change_of_an_input_ends_in_success_or_a_message(command, reads, inputs, tmp_path):
    before = read_peak_memory()
    try_examples(
        COSTLY if command.startswith(COSTLY_VERBS) else SLOW,
        inputs,
        tmp_path / "copy",
        command,
        reads,
    )
    # The tests before this one may have taken more: then it is seen only where this one takes still
    # more.
    assert read_peak_memory() < max(before + 1, 2_000_000)


def read_peak_memory() -> int:
    """The most memory that this process has taken so far, in KB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# A disk that fails at any write
# ------------------------------------------------------------

ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)


@contextmanager
def failing_write(number: int, code: int) -> Iterator[list[str]]:
    """Let one write fail: a file that is opened to be written, a folder made, a file put in
    another's place.

    Gives all writes that were tried, by their paths.
    """
    tried = []

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
        name: data
        for name, data in read_contents(folder).items()
        if ".work" not in name and not name.endswith("lock")
    }


def check_failed_command(
    command: str, folder: Path, before: dict[str, bytes], code: int, said: str
) -> None:
    """What holds after a write failed."""
    failed = 2 if command.startswith("diff") else 1  # of diff, 1 says that its gate does not hold
    assert code in (0, failed), said
    assert "is a bug in factaudit" not in said, said
    assert "Traceback" not in said, said
    assert code == 0 or said.strip(), "a failure that says nothing"
    after = read_contents(folder)
    assert not [name for name in after if Path(name).name.startswith(".factaudit-")]
    owned = ("runs/", "cache.db", ".judged", "judged.jsonl", "wiki.db", ".cache")
    assert not [
        name
        for name, data in before.items()
        if after.get(name) != data and not name.startswith(owned)
    ]
    if code:
        code, said = call_quietly(*command.split())
        assert code == 0, f"the same command does not go on: {said}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", WRITING_COMMANDS, ids=lambda command: command.replace(" ", "_")[:50]
)
def test_after_a_failed_write_the_same_command_goes_on(command, inputs, tmp_path):
    folder = tmp_path / "copy"
    with copied(inputs, folder, ()), failing_write(-1, 0) as tried:
        assert call_quietly(*command.split())[0] == 0
        sound = outputs_of(folder)
    for number, error in zip(
        sorted({0, len(tried) // 2, len(tried) - 1} - {-1}), ERRORS, strict=False
    ):
        with copied(inputs, folder, ()):
            before = read_contents(folder)
            with failing_write(number, error):
                code, said = call_quietly(*command.split())
            check_failed_command(command, folder, before, code, said)
            assert outputs_of(folder).keys() == sound.keys(), tried[number]


# Two processes with one output
# ------------------------------------------------------------

#: What a process may say that came second: each names the place, or what is there by now.
SECOND = ("another run is writing to this folder", "is there already", "exists already")


#: Those that keep more than one file: a run folder, a journal, a database.
SHARED = [
    command
    for command in WRITING_COMMANDS
    if command.startswith(
        (
            "run",
            "judge claims.jsonl --evaluator rouge2",
            "factscore responses",
            "estimate",
            "knowledge",
        )
    )
]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with starter(tmp_path_factory.mktemp("two") / "output.txt") as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("command", SHARED, ids=lambda command: command.replace(" ", "_")[:50])
def test_two_processes_with_one_output_leave_what_one_leaves(command, inputs, tmp_path, start):
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
            assert not [path for path in folder.rglob(".factaudit-*") if path.is_file()]
            left.append(
                {name: data for name, data in contents(folder).items() if "/.work/" not in name}
            )
    assert left[1].keys() == left[0].keys()
    # A cache's file counts how often it was written to, the ledger of a sealed test says when.
    ours = ("cache.db", "ledger.jsonl")
    assert [
        name for name in left[0] if left[1][name] != left[0][name] and not name.endswith(ours)
    ] == []
