"""Samples of Inspect's logs (UKGovernmentBEIS/inspect_ai), ``.eval`` and ``.json``."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem
from factaudit.files import check_unpacked_size, parse_json_file_text

#: In a zip archive: the method of compression, and the bytes of a member's header before its name.
_ZSTANDARD, _LOCAL_HEADER = 93, 30


def read_inspect_log(path: Path) -> tuple[str | None, list[Any]]:
    """The name of a log's task, and its samples.

    Where a scorer gives several values, each is a score of its own: ``judge.faithful``.
    """
    document = read_json(path, dict[str, Any]) if path.suffix == ".json" else _read_archive(path)
    samples = [one for one in document.get("samples") or [] if isinstance(one, dict)]
    named = [one | {"scores": _name_scores(one.get("scores") or {})} for one in samples]
    return (document.get("eval") or {}).get("task"), named


def _name_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, one in scores.items():
        value = one.get("value")
        if isinstance(value, Mapping):
            found |= {f"{name}.{part}": {**one, "value": said} for part, said in value.items()}
        else:
            found[name] = one
    return found


def _read_archive(path: Path) -> dict[str, Any]:
    """The log that an ``.eval`` file holds: an archive of a header and a file for each sample."""
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked_size(str(path), sum(info.file_size for info in archive.infolist()))
            names = archive.namelist()
            header = "header.json" if "header.json" in names else "_journal/start.json"
            inside = [one for one in sorted(names) if re.fullmatch(r"samples/.*\.json", one)]
            texts = [_read_member(archive, one) for one in (header, *inside)]
            first, *samples = map(parse_json_file_text, texts)
            return {**first, "samples": samples}
    # A damaged archive fails in many ways; an encrypted member is a `RuntimeError`.
    except (
        *(OSError, EOFError, KeyError, ValueError, TypeError, RuntimeError),
        *(struct.error, zlib.error, zipfile.BadZipFile),
    ) as error:
        raise InputError(str(path), [Problem(f"not a log of Inspect ({error})")]) from None


def _read_member(archive: zipfile.ZipFile, member_name: str) -> bytes:
    """The content of a file in the archive.

    Inspect compresses by Zstandard, which `zipfile` can read from Python 3.14 on.
    """
    info = archive.getinfo(member_name)
    if info.compress_type != _ZSTANDARD:
        return archive.read(member_name)
    with open(str(archive.filename), "rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER)
        file.seek(sum(struct.unpack("<HH", head[26:30])), 1)  # its name and further fields
        packed = pa.BufferReader(file.read(info.compress_size))
    with pa.CompressedInputStream(packed, "zstd") as stream:
        # What the archive says of its size need not be so.
        content = stream.read(info.file_size + 1)
    if len(content) > info.file_size:
        raise zipfile.BadZipFile(f"{member_name} is larger than the archive says")
    return content
