"""Files that are either whole or absent: nothing that a killed process leaves behind looks finished."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError

#: How the names of files begin that are being written, or were when a process was killed.
TEMPORARY = ".factaudit-"


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success it takes ``path``'s place in one step, else it is removed.

    A file that cannot be written (no permission, a full disk) is a `FactauditError` that names it.
    """
    target = Path(path)
    # The suffix is kept: writers (pandas, matplotlib) choose the format by it.
    temporary = target.parent / f"{TEMPORARY}{os.getpid()}-{secrets.token_hex(8)}{target.suffix}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise FactauditError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def clear_away(files: Iterable[Path]) -> None:
    """Delete what killed processes were writing; what a living one writes is left."""
    for path in files:
        writer = path.name.removeprefix(TEMPORARY).partition("-")[0]
        if path.name.startswith(TEMPORARY) and not (writer.isdecimal() and _is_alive(int(writer))):
            path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def from_json(text: str | bytes) -> Any:
    """A JSON text's value. What is nested too deeply to be read is a `json.JSONDecodeError`, as all that is no JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically, with ``\\n`` line ends on every system."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused (a figure that is undefined is null)."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON line per row, atomically; NaN and infinities are refused."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows))


def file_name(name: str) -> str:
    """A name of the user's as (the start of) a file's: at most 60 letters, digits, ``-``, ``_`` and dots within.

    Two names can become one: whoever writes a file for each adds a digest.

    >>> file_name("llm:gpt-4o/v2")
    'llm_gpt-4o_v2'
    """
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)[:60].strip(".") or "data"


def spare(inputs: Iterable[str | Path], *outputs: str | Path | None) -> None:
    """Raise `UsageError` where an output is an input or another output, by whatever name: what is read is not lost.

    A folder among the inputs stands for the files in it. Outputs that are None are left out.
    """
    taken = {}
    for path in map(Path, inputs):
        for file in (path, *(path.rglob("*") if path.is_dir() else ())):
            taken[file.resolve()] = "would be written over what the command reads"
    for path in (Path(each) for each in outputs if each is not None):
        place = path.resolve()
        # The same file by another name: a hard link, or another case where the file system sees none.
        twin = path.exists() and any(file.exists() and file.samefile(path) for file in taken)
        if place in taken or twin:
            reason = taken.get(place, "is the same file as one that the command reads")
            raise UsageError(f"{path}: {reason}; give another name")
        taken[place] = "would be written twice"


@contextmanager
def held(folder: str | Path, name: str) -> Iterator[None]:
    """Hold a folder, made where it is missing, as the only process; `FactauditError` where another one has it.

    The folder and its lock may not be links, which would lead elsewhere. name: what a message calls it.
    """
    refuse_link(folder)
    refuse_link(Path(folder) / "lock")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = (Path(folder) / "lock").open("a")
    except OSError as error:
        raise FactauditError(f"{name}: cannot be written to ({error.strerror})") from None
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows has no fcntl: there, two runs into one folder are the user's to avoid
            pass
        except BlockingIOError:
            raise FactauditError(f"{name}: another run is writing to this folder") from None
        yield


def refuse_link(path: str | Path) -> None:
    """Raise `FactauditError` where a path that is about to be written to is a link."""
    if Path(path).is_symlink():
        raise FactauditError(f"{path}: is a link, and nothing is written through links here; remove it")


#: Made once, which is much of what a short line costs; numpy's numbers and arrays are written as Python's own.
_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=lambda value: value.tolist())


class Journal:
    """An append-only file of JSON lines, each flushed as it is written: what a killed process had done is in it.

    Opening it calls ``take`` with each whole row that it holds, in order, and cuts off a last line that is torn. A row
    that is damaged, or that ``take`` cannot use (`ValueError`, `TypeError`, `KeyError`, `AttributeError`), costs itself
    and not those after it. ``header`` is the first row of a new file.
    """

    def __init__(self, path: str | Path, take: Callable[[Any], None], header: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        refuse_link(self.path)
        whole = 0
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    whole += len(line)
                    with suppress(ValueError, TypeError, KeyError, AttributeError):
                        take(json.loads(line))
            os.truncate(self.path, whole)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8", buffering=1, newline="\n")
        if header is not None and not whole:
            self.write(header)

    def write(self, row: Mapping[str, Any]) -> None:
        """Append a row; a `FactauditError` that names the file where that fails."""
        try:
            self._file.write(_LINE.encode(row) + "\n")
        except OSError as error:
            raise FactauditError(f"{self.path}: cannot be written ({error.strerror})") from error

    def close(self) -> None:
        # Every line is flushed as it is written: what closing cannot write again is known, and was said.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
