"""Files that are either whole or absent: nothing that a killed process leaves behind looks
finished."""

from __future__ import annotations

import gzip
import io
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from factaudit.errors import FactauditError, InputError, Problem, UsageError

#: Sets how many megabytes a compressed file may unpack to.
UNPACK_LIMIT_VARIABLE = "FACTAUDIT_MAX_UNPACKED_MB"

#: How the names of files begin that are being written, or were when a process was killed.
TEMPORARY_PREFIX = ".factaudit-"


def read_unpacked_size_limit() -> int:
    """The bytes that a compressed file may unpack to: ``$FACTAUDIT_MAX_UNPACKED_MB``, else 500
    MB."""
    text = os.environ.get(UNPACK_LIMIT_VARIABLE) or "500"
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UsageError(
            f"{UNPACK_LIMIT_VARIABLE}: expected a whole number of megabytes, found {text!r}"
        )
    return int(text) * 1_000_000


def check_unpacked_size(source: str, n_bytes: int, share: float = 1.0) -> None:
    """Raise `InputError` where something unpacks to more than a share of what is allowed."""
    limit = int(share * read_unpacked_size_limit())
    if n_bytes > limit:
        part = "" if share == 1 else f", {share:g} of what it sets"
        message = (
            f"unpacks to more than {limit / 1e6:,.0f} MB; {UNPACK_LIMIT_VARIABLE} allows more{part}"
        )
        raise InputError(source, [Problem(message)])


def check_is_table_file(path: Path) -> None:
    """Raise `InputError` where there is no file, or a folder, a pipe or a link that leads
    nowhere."""
    if path.is_file():
        return
    check_no_pipe(path)
    message = "no such file"
    if path.is_dir():
        message = "this is a folder, expected a file"
    elif path.is_symlink():
        message = "this is a link to a file that is not there, or to itself"
    raise InputError(str(path), [Problem(message)])


def check_no_pipe(path: str | Path) -> None:
    """Raise `InputError` where a path leads to a pipe or a device: it can be read once at most, or
    without end."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        message = (
            "this is a pipe or a device, expected a file: write what it gives into a file, and name"
            " that"
        )
        raise InputError(str(path), [Problem(message)])


def open_input_file(path: str | Path) -> IO[bytes]:
    """Open a file of the user's, unpacked where its name ends in ``.gz``. Raises `InputError` where
    it is none.

    Reading raises `InputError` where a compressed file unpacks to more than
    `read_unpacked_size_limit`.
    """
    path = Path(path)
    check_is_table_file(path)
    return io.BufferedReader(_SizeLimitedUnpackedStream(path), 1 << 18)


class _SizeLimitedUnpackedStream(io.RawIOBase):
    """The bytes of a file, unpacked, as far as `open_input_file` allows."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._is_packed = path.name.lower().endswith(".gz")
        self._file = cast(IO[bytes], gzip.GzipFile(path) if self._is_packed else path.open("rb"))
        self._n_read = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(len(buffer))
        buffer[: len(piece)] = piece
        self._n_read += len(piece)
        if self._is_packed:
            check_unpacked_size(self._path, self._n_read)
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def resolve_path(path: str | Path) -> Path:
    """The absolute path without links; of a link that leads to itself, the link."""
    return Path(os.path.realpath(path))


@contextmanager
def replace_file_atomically(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``; on success it takes ``path``'s place in one step, else
    it is removed.

    A file that cannot be written (no permission, a full disk) is a `FactauditError` that names it.
    """
    target = Path(path)
    # The suffix is kept: writers (pandas, matplotlib) choose the format by it.
    temporary = (
        target.parent / f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(8)}{target.suffix}"
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise FactauditError(f"{target}: cannot be written ({error.strerror or error})") from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def delete_abandoned_temporaries(files: Iterable[Path]) -> None:
    """Delete what killed processes were writing; what a living one writes is left."""
    for path in files:
        writer = path.name.removeprefix(TEMPORARY_PREFIX).partition("-")[0]
        if path.name.startswith(TEMPORARY_PREFIX) and not (
            writer.isdecimal() and _is_file_owner_alive(int(writer))
        ):
            path.unlink(missing_ok=True)


def _is_file_owner_alive(process: int) -> bool:
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def parse_json_file_text(text: str | bytes) -> Any:
    """A JSON text's value. What is nested too deeply to be read is a `json.JSONDecodeError`, as all
    that is no JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically, with ``\\n`` line ends on every system."""
    with replace_file_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any, indent: int | None = 1) -> None:
    """Write JSON atomically; NaN and infinities are refused (a figure that is undefined is
    null)."""
    write_text(path, json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON line per row, atomically; NaN and infinities are refused."""
    write_text(
        path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    )


def list_folder_files(folder: Path) -> list[Path]:
    """The files of a folder and its folders, sorted; neither hidden ones nor those of a run folder
    of ours."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            found.append(path)
        elif path.is_dir() and not (path / ".work").is_dir():
            found += list_folder_files(path)
    return found


def check_outputs_do_not_replace_inputs(
    inputs: Iterable[str | Path | None], *outputs: str | Path | None
) -> None:
    """Raise `UsageError` where an output is an input or another output, by whatever name: what is
    read is not lost.

    A folder among the inputs stands for the files in it. What is None is left out.
    """
    taken = {}
    for path in (Path(each) for each in inputs if each is not None):
        for file in (path, *(path.rglob("*") if path.is_dir() else ())):
            taken[resolve_path(file)] = "would be written over what the command reads"
    for path in (Path(each) for each in outputs if each is not None):
        place = resolve_path(path)
        # The same file by another name: a hard link, or another case where the file system sees
        # none.
        twin = path.exists() and any(file.exists() and file.samefile(path) for file in taken)
        if place in taken or twin:
            reason = taken.get(place, "is the same file as one that the command reads")
            raise UsageError(f"{path}: {reason}; give another name")
        taken[place] = "would be written twice"


class HeldFolderError(FactauditError):
    """Another process holds a folder."""


@contextmanager
def hold_folder_lock(folder: str | Path, folder_label: str) -> Iterator[None]:
    """Hold a folder, made where it is missing, as the only process; `HeldFolderError` where another
    one has it.

    The folder and its lock may not be links, which would lead elsewhere. folder_label: what a
    message calls it.
    """
    with _open_folder_lock(Path(folder), folder_label):
        yield


def _open_folder_lock(folder: Path, folder_label: str) -> IO[str]:
    lock = folder / "lock"
    check_not_link(folder)
    check_not_link(lock)
    for is_last_try in (False, False, True):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = lock.open("a")
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not is_last_try:
                continue  # another process has ended, and deleted the folder just now
            raise FactauditError(
                f"{folder_label}: cannot be written to ({error.strerror})"
            ) from None
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (
            ImportError
        ):  # Windows has no fcntl: there, two runs into one folder are the user's to avoid
            return file
        except BlockingIOError:
            file.close()
            raise HeldFolderError(
                f"{folder_label}: another run is writing to this folder"
            ) from None
        # It may have been deleted before it was held: then the next process would hold another
        # file.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()
    raise HeldFolderError(f"{folder_label}: another run is writing to this folder")


def delete_unheld_folder(folder: Path) -> None:
    """Delete a folder that `hold_folder_lock` is for; one that another process holds is left to
    it."""
    try:
        with hold_folder_lock(folder, str(folder)):
            shutil.rmtree(folder, ignore_errors=True)
    except HeldFolderError:
        pass
    except FactauditError:  # a full disk, where no lock can be made, is no reason to keep it
        shutil.rmtree(folder, ignore_errors=True)


def check_not_link(path: str | Path) -> None:
    """Raise `FactauditError` where a path that is about to be written to is a link."""
    if Path(path).is_symlink():
        raise FactauditError(
            f"{path}: is a link, and nothing is written through links here; remove it"
        )


#: Made once, which is much of what a short line costs; numpy's numbers and arrays are written as
#: Python's own.
_LINE_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, default=lambda value: value.tolist()
)


class JsonLinesJournal:
    """An append-only file of JSON lines, each flushed as it is written: what a killed process had
    done is in it.

    Opening it calls ``take`` with each whole row that it holds, in order, and cuts off a last line
    that is torn. A row that is damaged, or that ``take`` cannot use (`ValueError`, `TypeError`,
    `KeyError`, `AttributeError`), costs itself and not those after it. ``header`` is the first row
    of a new file.
    """

    def __init__(
        self,
        path: str | Path,
        accept_row: Callable[[Any], None],
        header: Mapping[str, Any] | None = None,
    ) -> None:
        self.path = Path(path)
        check_not_link(self.path)
        whole = 0
        if self.path.exists():
            with self.path.open("rb") as file:
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    whole += len(line)
                    with suppress(ValueError, TypeError, KeyError, AttributeError):
                        accept_row(json.loads(line))
            os.truncate(self.path, whole)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8", buffering=1, newline="\n")
        if header is not None and not whole:
            self.write_row(header)

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Append a row; a `FactauditError` that names the file where that fails."""
        try:
            self._file.write(_LINE_ENCODER.encode(row) + "\n")
        except OSError as error:
            raise FactauditError(f"{self.path}: cannot be written ({error.strerror})") from error

    def close(self) -> None:
        # Every line is flushed as it is written: what closing cannot write again is known, and was
        # said.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> JsonLinesJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
