"""Logs of Inspect (UKGovernmentBEIS/inspect_ai), ``.eval`` and ``.json``: the scorers are the evaluators."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from factaudit.datasets.logs import Places, Said, Sample, flat, make, one_source
from factaudit.datasets.sources import Conversion, read_json
from factaudit.errors import InputError, Problem
from factaudit.files import from_json

_PLACES = Places(
    claim=("output.completion",),
    doc=("metadata.document", "metadata.doc", "metadata.context", "metadata.source"),
    label=("metadata.label", "metadata.human"),
    system=("output.model",),
)
#: In a zip archive: the method of compression, and the bytes of a member's header before its name.
_ZSTANDARD, _LOCAL_HEADER = 93, 30
#: What Inspect's scorers say in letters: correct, incorrect; partial answers and no answer are neither.
_LETTERS = {"C": 1, "I": 0}


def convert(
    sources: Sequence[Path],
    *,
    claim: str | None = None,
    doc: str | None = None,
    label: str | None = None,
    system: str | None = None,
    dataset: str | None = None,
    metrics: Sequence[str] | str | None = None,
) -> Conversion:
    """A sample is a claim (what the model wrote), a scorer an evaluator; a score's C is 1, its I 0, a number a score.

    Epochs after the first are repeats. A sample that ended in an error has verdicts of the status ``error``.
    """
    path = one_source(sources, "*.eval", "*.json")
    header, entries = _read(path)
    name = str(header.get("eval", {}).get("task") or path.stem)
    samples = [_sample(entry) for entry in entries]
    own = {"claim": claim, "doc": doc, "label": label, "system": system, "dataset": dataset, "metrics": metrics}
    return make(samples, _PLACES, own, source=str(path), dataset=name)


def _read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix == ".json":
        log: dict[str, Any] = read_json(path, dict[str, Any])
        return log, log.get("samples") or []
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            header = from_json(_member(archive, "header.json" if "header.json" in names else "_journal/start.json"))
            return header, list(_entries(archive, names))
    except FileNotFoundError:
        raise InputError(str(path), [Problem("no such file")]) from None
    except (OSError, KeyError, ValueError, NotImplementedError, struct.error, zipfile.BadZipFile) as error:
        raise InputError(str(path), [Problem(f"not a log of Inspect that can be read ({error})")]) from None


def _entries(archive: zipfile.ZipFile, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in sorted(names):
        if name.startswith("samples/") and name.endswith(".json"):
            yield from_json(_member(archive, name))


def _member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a file in the archive, also where it is compressed by Zstandard (`zipfile` can from 3.14 on)."""
    info = archive.getinfo(name)
    if info.compress_type != _ZSTANDARD:
        return archive.read(name)
    with open(str(archive.filename), "rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER)
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        file.seek(name_length + extra_length, 1)
        with pa.CompressedInputStream(pa.BufferReader(file.read(info.compress_size)), "zstd") as stream:
            return stream.read()


def _sample(entry: dict[str, Any]) -> Sample:
    told = {key: entry[key] for key in ("input", "target", "metadata", "output") if entry.get(key) is not None}
    said = {name: _said(score) for name, score in (entry.get("scores") or {}).items()}
    if entry.get("error"):
        said = {name: Said(None, str(entry["error"].get("message")), "error") for name in said}
    return Sample(str(entry["id"]), flat(told), said, int(entry.get("epoch", 1)) - 1)


def _said(score: dict[str, Any]) -> Said:
    value = score.get("value")
    raw = score.get("explanation") or score.get("answer")
    if value == "N":
        return Said(None, raw, "skipped")
    return Said(bool(_LETTERS[value]) if value in ("C", "I") else value, raw)
