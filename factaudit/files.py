"""How are files read and written safely? A file is either complete or absent, also after a process
was killed."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from factaudit.errors import FactauditError, InputError, Problem, UsageError

#: The environment variable that limits how many megabytes a compressed file may unpack to.
UNPACK_LIMIT_VARIABLE = "FACTAUDIT_MAX_UNPACKED_MB"

#: The beginning of the names of files that are still being written, or were when a process was
#: killed.
TEMPORARY_PREFIX = ".factaudit-"


def read_unpacked_size_limit() -> int:
    """How many bytes a compressed file may unpack to: ``$FACTAUDIT_MAX_UNPACKED_MB``, by default
    500 MB."""
    text = os.environ.get(UNPACK_LIMIT_VARIABLE) or "500"
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise UsageError(
            f"{UNPACK_LIMIT_VARIABLE}: expected a whole number of megabytes, found {text!r}"
        )
    return int(text) * 1_000_000


def check_unpacked_size(source: str, n_bytes: int, share: float = 1.0) -> None:
    """Raise `InputError` if something unpacks to more than a share of the limit."""
    limit = int(share * read_unpacked_size_limit())
    if n_bytes > limit:
        part = "" if share == 1 else f", {share:g} of what it sets"
        message = (
            f"unpacks to more than {limit / 1e6:,.0f} MB; {UNPACK_LIMIT_VARIABLE} allows more{part}"
        )
        raise InputError(source, [Problem(message)])


def check_is_table_file(path: Path) -> None:
    """Raise `InputError` if the path does not exist, or is a folder, a pipe or a broken link."""
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
    """Raise `InputError` if a path is a pipe or a device, because these can be read only once, or
    have no end."""
    path = Path(path)
    if path.exists() and not path.is_file() and not path.is_dir():
        message = (
            "this is a pipe or a device, expected a file: write what it gives into a file, and name"
            " that"
        )
        raise InputError(str(path), [Problem(message)])


def open_input_file(path: str | Path) -> IO[bytes]:
    """Open a file of the user's; if its name ends in ``.gz``, it is unpacked. Raises `InputError`
    if it cannot be opened.

    Reading raises `InputError` as soon as a compressed file unpacks to more than
    `read_unpacked_size_limit`.
    """
    path = Path(path)
    check_is_table_file(path)
    return io.BufferedReader(_SizeLimitedUnpackedStream(path), 1 << 18)


class _SizeLimitedUnpackedStream(io.RawIOBase):
    """The unpacked bytes of a file, up to the limit of `open_input_file`."""

    def __init__(self, path: Path) -> None:
        import gzip  # slow to import, and `factaudit --help` needs none of it

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
    """The absolute path with links resolved; a link that leads to itself is returned as it is."""
    return Path(os.path.realpath(path))


@contextmanager
def replace_file_atomically(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path``. On success it replaces ``path`` in one step, otherwise
    it is removed.

    If the file cannot be written (no permission, a full disk), a `FactauditError` names it.
    """
    target = Path(path)
    # Keep the suffix, because writers such as pandas and matplotlib choose the format by it.
    temporary = (
        target.parent / f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(8).hex()}{target.suffix}"
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
    """Delete the temporary files of killed processes; those of running processes are left alone."""
    for path in files:
        writer = path.name.removeprefix(TEMPORARY_PREFIX).partition("-")[0]
        if path.name.startswith(TEMPORARY_PREFIX) and not (
            writer.isdecimal() and _is_file_owner_alive(int(writer))
        ):
            path.unlink(missing_ok=True)


def _is_file_owner_alive(process: int) -> bool:
    if os.name == "nt":  # on Windows, where asking would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


def parse_json_file_text(text: str | bytes) -> Any:
    """The value of a JSON text. Text that is nested too deeply raises `json.JSONDecodeError`, like
    any text that is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically, with ``\n`` as the line end on every system."""
    with replace_file_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any, *, is_compact: bool = False) -> None:
    """Write JSON atomically. NaN and infinities are refused, because an undefined figure must be
    null.

    is_compact: on one line and without spaces. For large files: the encoder of the standard library
    is many times slower with line breaks.
    """
    layout: dict[str, Any] = {"separators": (",", ":")} if is_compact else {"indent": 1}
    write_text(path, json.dumps(value, ensure_ascii=False, allow_nan=False, **layout) + "\n")


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON line per row, atomically; NaN and infinities are refused."""
    write_text(
        path, "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)
    )


def list_folder_files(folder: Path) -> list[Path]:
    """All files in a folder and its subfolders, sorted, without hidden files and without the files
    of run folders."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_file():
            found.append(path)
        elif path.is_dir() and not (path / ".work").is_dir():
            found += list_folder_files(path)
    return found


def check_outputs(inputs: Iterable[str | Path | None], *outputs: str | Path | None) -> None:
    """Raise `UsageError` if an output is also an input or another output, even under another name,
    so that no input is lost.

    A folder among the inputs stands for the files in it. None is ignored.
    """
    taken = {}
    for path in (Path(each) for each in inputs if each is not None):
        for file in (path, *(path.rglob("*") if path.is_dir() else ())):
            taken[resolve_path(file)] = "would be written over what the command reads"
    for path in (Path(each) for each in outputs if each is not None):
        place = resolve_path(path)
        # The same file under another name: a hard link, or other capitals on a file system that
        # ignores case.
        twin = path.exists() and any(file.exists() and file.samefile(path) for file in taken)
        if place in taken or twin:
            reason = taken.get(place, "is the same file as one that the command reads")
            raise UsageError(f"{path}: {reason}; give another name")
        taken[place] = "would be written twice"


class HeldFolderError(FactauditError):
    """Another process holds a folder."""


@contextmanager
def hold_folder_lock(folder: str | Path, folder_label: str) -> Iterator[None]:
    """Lock a folder for this process, and create it if necessary. Raises `HeldFolderError` if
    another process holds it.

    The folder and its lock must not be links, which would lead elsewhere.
    folder_label: how a message calls the folder.
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
                continue  # another process has ended and deleted the folder at this moment
            raise FactauditError(
                f"{folder_label}: cannot be written to ({error.strerror})"
            ) from None
        # Windows has no fcntl; users must not start two runs into one folder there.
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:
            return file
        except BlockingIOError:
            file.close()
            raise HeldFolderError(
                f"{folder_label}: another run is writing to this folder"
            ) from None
        # It may have been deleted before it was locked; then the next process would lock another
        # file.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file
        file.close()
    raise HeldFolderError(f"{folder_label}: another run is writing to this folder")


def delete_unheld_folder(folder: Path) -> None:
    """Delete a folder that `hold_folder_lock` protects, unless another process holds it."""
    try:
        with hold_folder_lock(folder, str(folder)):
            shutil.rmtree(folder, ignore_errors=True)
    except HeldFolderError:
        pass
    # on a full disk no lock can be made, but the folder should go all the same
    except FactauditError:
        shutil.rmtree(folder, ignore_errors=True)


def check_not_link(path: str | Path) -> None:
    """Raise `FactauditError` if a path that is about to be written to is a link."""
    if Path(path).is_symlink():
        raise FactauditError(
            f"{path}: is a link, and nothing is written through links here; remove it"
        )


#: Created once, because creating an encoder takes longer than writing a short line. Numbers and
#: arrays of NumPy are written like Python's own.
_LINE_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, default=lambda value: value.tolist()
)


class JsonLinesJournal:
    """An append-only file of JSON lines. Each line is flushed as it is written, so that the work of
    a killed process is kept.

    Opening the journal calls ``take`` with each complete row in order, and cuts off an incomplete
    last line. A row that is damaged, or that ``take`` cannot use (`ValueError`, `TypeError`,
    `KeyError`, `AttributeError`), is skipped; the rows after it are still read. ``header`` is the
    first row of a new file.
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
        """Append a row. If that fails, a `FactauditError` names the file."""
        try:
            self._file.write(_LINE_ENCODER.encode(row) + "\n")
        except OSError as error:
            raise FactauditError(f"{self.path}: cannot be written ({error.strerror})") from error

    def close(self) -> None:
        # Every line is flushed as it is written. If closing fails to write a line again, this has
        # already been reported.
        with suppress(OSError):
            self._file.close()

    def __enter__(self) -> JsonLinesJournal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
