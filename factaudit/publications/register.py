"""The register of publications: where published data sets are, pinned by commit, size and hash.

``publications.csv`` has a row for each publication, ``published_files.csv`` one for each file, and
``citations.bib`` what to cite. A reference is ``published:NAME``, or ``published:NAME/PATH`` for a
file or folder inside the publication's repository.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Any

from factaudit.errors import UsageError, suggest_known_name

#: The start of a reference to published data, which may stand in place of a path.
REFERENCE_PREFIX = "published:"


@dataclass(frozen=True)
class Publication:
    """The files of one publication, in a repository at one commit."""

    name: str
    repository: str
    commit: str
    licence: str
    #: Its key in ``citations.bib``.
    cite: str
    about: str

    @property
    def folder(self) -> PurePosixPath:
        """The folder of its files inside the folder of published data."""
        return PurePosixPath(self.repository, self.commit)


@dataclass(frozen=True)
class PublishedFile:
    """One file of a publication. If ``bytes`` and ``sha256`` are unknown, ``git_blob`` (git's
    SHA-1) is known."""

    publication: Publication
    path: str
    bytes: int | None
    sha256: str | None
    git_blob: str | None
    #: The formats that read it (`factaudit.datasets`).
    formats: tuple[str, ...]

    @property
    def stored_path(self) -> PurePosixPath:
        """The path of the file inside the folder of published data, and behind the address of
        files."""
        return self.publication.folder / self.path


@dataclass(frozen=True)
class PublishedHubDataset:
    """A data set on the Hugging Face hub, which stores and checks its own files."""

    name: str
    repository: str
    revision: str
    licence: str
    #: Whether users must accept its conditions and give a token.
    gated: bool
    about: str
    command: str


def _read_register_rows(name: str) -> list[dict[str, str]]:
    text = files("factaudit.publications").joinpath(name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@cache
def list_publications() -> dict[str, Publication]:
    """All publications by name."""
    return {row["name"]: Publication(**row) for row in _read_register_rows("publications.csv")}


@cache
def list_published_files() -> tuple[PublishedFile, ...]:
    """All files of all publications, in the order of the register."""
    publications = list_publications()
    return tuple(
        PublishedFile(
            publications[row["name"]],
            row["path"],
            int(row["bytes"]) if row["bytes"] else None,
            row["sha256"] or None,
            row["git_blob"] or None,
            tuple(row["formats"].split()),
        )
        for row in _read_register_rows("published_files.csv")
    )


@cache
def list_hub_datasets() -> tuple[PublishedHubDataset, ...]:
    """The data sets on the Hugging Face hub that a command takes by name."""
    rows = _read_register_rows("hub_datasets.csv")
    return tuple(PublishedHubDataset(**{**row, "gated": row["gated"] == "yes"}) for row in rows)  # type: ignore[arg-type]


def find_published_files(reference: str) -> list[PublishedFile]:
    """The files of a reference: all of the publication, those in one of its folders, or one file.

    Raises `UsageError` with the nearest name if the register has no such files.
    """
    name, _, inner = reference.removeprefix(REFERENCE_PREFIX).partition("/")
    inner = inner.strip("/")
    if name not in list_publications():
        raise UsageError(
            "no publication is called"
            f" {name!r}{suggest_known_name(name, list(list_publications()))}"
        )
    own = [file for file in list_published_files() if file.publication.name == name]
    chosen = [
        file for file in own if not inner or file.path == inner or file.path.startswith(inner + "/")
    ]
    if not chosen:
        known = sorted(
            {part for file in own for part in (file.path, str(PurePosixPath(file.path).parent))}
        )
        raise UsageError(
            f"{name!r} has no file or folder {inner!r}{suggest_known_name(inner, known)}"
        )
    return chosen


def list_format_references(format_name: str) -> list[str]:
    """References to all published files that a format reads. They are converted if no source is
    named."""
    return [
        f"{REFERENCE_PREFIX}{file.publication.name}/{file.path}"
        for file in list_published_files()
        if format_name in file.formats
    ]


def recognise_publications(inputs: Iterable[Mapping[str, Any]]) -> list[Publication]:
    """The publications that have a file among the inputs of a run (``path``, ``checksum``).

    A file is recognised by its SHA-256, whatever its name. If the register has none, it is
    recognised by where it is kept.
    """
    by_checksum = {f"sha256:{file.sha256}": file for file in list_published_files() if file.sha256}
    by_place = {str(file.stored_path): file for file in list_published_files() if not file.sha256}
    found: dict[Publication, None] = {}
    for row in inputs:
        path = Path(str(row.get("path"))).as_posix()
        file = by_checksum.get(str(row.get("checksum"))) or next(
            (one for place, one in by_place.items() if path.endswith(f"/{place}")), None
        )
        if file is not None:
            found[file.publication] = None
    return list(found)


def read_publication_citation(publication: Publication) -> str:
    """The BibTeX entry of a publication."""
    text = files("factaudit.publications").joinpath("citations.bib").read_text(encoding="utf-8")
    entries = {
        entry[1]: entry[0] for entry in re.finditer(r"@\w+\{(\w+),\n.*?\n\}\n", text, re.DOTALL)
    }
    return entries[publication.cite]


def is_reference(text: str | Path) -> bool:
    """Whether a text is a reference to published data, and no path."""
    return str(text).startswith(REFERENCE_PREFIX)
