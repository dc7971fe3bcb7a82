"""Finds published files on this machine, or fetches them once into a cache folder.

A file gets its final name only after its size and hash were checked. So several processes may fetch
the same file, and an interrupted download leaves nothing that looks complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from platformdirs import user_cache_dir

from factaudit.errors import FactauditError
from factaudit.files import replace_file_atomically
from factaudit.publications.register import (
    PublishedFile,
    find_published_files,
    is_reference,
    list_published_files,
)
from factaudit.text.display_text import format_count

#: The environment variable with the user's folder of published data.
FOLDER_VARIABLE = "FACTAUDIT_DATA"
#: The address of files: ``ADDRESS/REPOSITORY/COMMIT/PATH``.
ADDRESS_VARIABLE = "FACTAUDIT_DATA_URL"
DEFAULT_ADDRESS = "https://raw.githubusercontent.com"
#: Nothing is fetched if this is set to anything but 0.
OFFLINE_VARIABLE = "FACTAUDIT_OFFLINE"
#: The number of further attempts if a server fails, and the longest silence in seconds.
_RETRIES = 2
_MAX_SILENCE = 60.0


def is_offline() -> bool:
    """Whether nothing may be fetched, because ``FACTAUDIT_OFFLINE`` is set to anything but 0."""
    return os.environ.get(OFFLINE_VARIABLE, "0") not in ("", "0")


def publication_folder() -> Path:
    """The user's cache folder for fetched files. Nothing is written into a folder of the user's own
    data."""
    return Path(user_cache_dir("factaudit")).expanduser().resolve() / "published"


def locate_published_reference(reference: str, own_folder: str | Path | None = None) -> Path:
    """The file or folder of a reference (``published:NAME/PATH``), whether or not it has been
    fetched.

    The user's own folder or clone (``own_folder``, ``FACTAUDIT_DATA``) is read in place if it has
    the files under their published names. Files that it has under other names are recognised by
    size and hash and copied to the cache.
    """
    wanted = find_published_files(reference)
    inner = reference.partition("/")[2].strip("/")
    publication = wanted[0].publication
    given = [own_folder, os.environ.get(FOLDER_VARIABLE)]
    own = [Path(folder).expanduser().resolve() for folder in given if folder]
    for folder in (*own, publication_folder()):
        owner, _, repository = publication.repository.partition("/")
        for root in (folder, folder / repository, folder / owner / repository):
            if all(_is_published_file(root / file.path, file) for file in wanted):
                return root / inner
    for folder in own:
        _fetch_published_copy_by_hash(
            [file for file in wanted if not _stored_file_path(file).is_file()], folder
        )
    return publication_folder() / publication.folder / inner


def resolve_published_data_paths(value: Any) -> Any:
    """A path, or a list of paths, with each reference (``published:NAME/PATH``) replaced by its
    file or folder."""
    if isinstance(value, list | tuple):
        return [resolve_published_data_paths(one) for one in value]
    return (
        str(locate_published_reference(value))
        if isinstance(value, str) and is_reference(value)
        else value
    )


def list_missing_published_files(paths: Iterable[str | Path]) -> list[PublishedFile]:
    """The published files at or inside some paths of `publication_folder` that have not been
    fetched."""
    folder = publication_folder()
    inside = [
        path.relative_to(folder)
        for path in map(Path, paths)
        if path.is_absolute() and path.is_relative_to(folder)
    ]
    return [
        file
        for file in list_published_files()
        if any(Path(file.stored_path).is_relative_to(path) for path in inside)
        and not _is_published_file(_stored_file_path(file), file)
    ]


def fetch_missing_published_files(
    paths: Iterable[str | Path], say: Callable[[str], None] = lambda text: None
) -> None:
    """Fetch the files that `list_missing_published_files` finds, after saying which, from where,
    how large and under which licence.

    Raises `FactauditError` that names file and address if a file cannot be fetched.
    """
    missing = list_missing_published_files(paths)
    if not missing:
        return
    if is_offline():
        raise FactauditError("\n".join(_list_offline_lines(missing)))
    publications = list(dict.fromkeys(file.publication for file in missing))
    for publication in publications:
        own = [file for file in missing if file.publication == publication]
        say(
            f"fetching  {publication.name}: {format_count(len(own), 'file')},"
            f" {format_published_size(own)}, from {_base_address()}/{publication.repository} at"
            f" {publication.commit[:8]}; licence: {publication.licence}; cite {publication.cite}"
        )
    for file in missing:
        _fetch_published_file(file)


def _stored_file_path(file: PublishedFile) -> Path:
    return publication_folder() / file.stored_path


def _is_published_file(path: Path, file: PublishedFile) -> bool:
    return path.is_file() and find_published_file_difference(path, file) is None


def format_published_size(published_files: Sequence[PublishedFile]) -> str:
    """``1.2 MB``, ``1.2 MB, 3 of unknown size``, ``3 of unknown size``."""
    known = sum(file.bytes or 0 for file in published_files)
    unknown = sum(file.bytes is None for file in published_files)
    return ", ".join(
        [f"{known / 1e6:,.1f} MB"] * bool(known) + [f"{unknown} of unknown size"] * bool(unknown)
    )


def _list_offline_lines(missing: list[PublishedFile]) -> Iterator[str]:
    yield (
        f"{format_count(len(missing), 'published file')} missing, and nothing is fetched offline."
        " Bring them from another machine:"
    )
    for file in missing:
        checksum = f"sha256 {file.sha256}" if file.sha256 else f"git blob {file.git_blob}"
        yield f"  {_stored_file_path(file)}\n    from {_published_file_address(file)} ({checksum})"


def _published_file_address(file: PublishedFile) -> str:
    return f"{_base_address()}/{quote(str(file.stored_path))}"


def _base_address() -> str:
    return (os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS).rstrip("/")


def _fetch_published_copy_by_hash(wanted: list[PublishedFile], folder: Path) -> None:
    """Copy files that a folder has under other names, recognised by size (or name) and hash."""
    if not wanted or not folder.is_dir():
        return
    sizes = {file.bytes for file in wanted}
    names = {Path(file.path).name for file in wanted if file.bytes is None}
    for root, folders, inside in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(root, name) for name in sorted(inside)):
            if not path.is_file() or (path.stat().st_size not in sizes and path.name not in names):
                continue
            for file in [
                one for one in wanted if find_published_file_difference(path, one) is None
            ]:
                with replace_file_atomically(_stored_file_path(file)) as temporary:
                    shutil.copyfile(path, temporary)
                wanted.remove(file)


def find_published_file_difference(path: Path, file: PublishedFile) -> str | None:
    """How a file on disk differs from the published one in size or hash; None if it does not."""
    size = path.stat().st_size
    if file.bytes is not None and size != file.bytes:
        return f"{size:,} bytes, expected {file.bytes:,}"
    # Git names a file by the hash of a header and its content.
    digest = (
        hashlib.sha256()
        if file.sha256
        else hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    )
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, lambda: digest).hexdigest()
    expected = file.sha256 or file.git_blob
    return (
        None if found == expected else f"hash {found[:12]}…, expected {expected and expected[:12]}…"
    )


def _fetch_published_file(file: PublishedFile) -> None:
    """Fetch one file. It gets its final name only after it was checked."""
    import pooch
    import requests

    address, path = _published_file_address(file), _stored_file_path(file)
    name = str(file.stored_path)

    def download(url: str, temporary: str, owner: Any) -> None:
        pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_MAX_SILENCE)(
            url, temporary, owner
        )
        # Pooch checks neither sizes nor the hashes of git.
        difference = find_published_file_difference(Path(temporary), file)
        if difference is not None:
            raise ValueError(f"not what was published: {difference}; nothing was kept")

    pooch.get_logger().setLevel("WARNING")
    folder = pooch.create(
        path=publication_folder(),
        base_url=_base_address(),
        registry={name: file.sha256},
        urls={name: address},
        retry_if_failed=_RETRIES,
    )
    try:
        if path.is_file() and not _is_published_file(path, file):
            path.unlink()  # it is damaged; a complete file may be in use by another process
        folder.fetch(name, downloader=download)
    except requests.RequestException as error:
        answer = error.response
        reason = "could not be reached, or broke off"
        if answer is not None:
            reason = f"answered {answer.status_code}"
        raise FactauditError(f"{address}: not fetched: {reason} ({type(error).__name__})") from None
    except ValueError as error:
        raise FactauditError(f"{address}: {error}") from None
    except OSError as error:
        raise FactauditError(f"{path}: cannot be written ({error})") from error
