"""Files that are either whole or absent: nothing that a killed process leaves behind looks finished."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError

#: How the names of files begin that are being written, or were when a process was killed.
TEMPORARY = ".factaudit-"


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success it takes ``path``'s place in one step, else it is removed.

    A file that cannot be written (no permission, a full disk) is a `FactauditError` that names it.
    """
    target = Path(path)
    # The suffix is kept: writers (pandas, matplotlib) choose the format by it.
    temporary = target.parent / f"{TEMPORARY}{secrets.token_hex(8)}{target.suffix}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise FactauditError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically, with ``\\n`` line ends on every system."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON atomically; NaN and infinities are refused (a figure that is undefined is null)."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


@contextmanager
def held(folder: str | Path, name: str) -> Iterator[None]:
    """Hold a folder, made where it is missing, as the only process; `FactauditError` where another one has it.

    name: what a message calls it.
    """
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = (Path(folder) / "lock").open("w")
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
