"""Logs of Inspect (UKGovernmentBEIS/inspect_ai), ``.eval`` and ``.json``: the scorers are the evaluators."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
    parse_framework_log_entries,
)
from factaudit.datasets.source_files import read_dataset_source_json
from factaudit.errors import InputError, Problem
from factaudit.files import check_unpacked_size, parse_json_file_text

#: In a zip archive: the method of compression, and the bytes of a member's header before its name.
_ZSTANDARD, _LOCAL_HEADER = 93, 30
#: What Inspect's scorers say in letters: correct, incorrect; partial answers and no answer are neither.
_LETTER_VALUES = {"C": 1, "I": 0}


@make_framework_log_converter(
    "*.eval",
    "*.json",
    claim=("output.completion",),
    doc=("metadata.document", "metadata.doc", "metadata.context", "metadata.source"),
    label=("metadata.label", "metadata.human"),
    system=("output.model",),
)
def convert_inspect_log(path: Path) -> FrameworkLog:
    """A sample is a claim (what the model wrote), a scorer an evaluator; a score's C is 1, its I 0, a number a score.

    Epochs after the first are repeats. A sample that ended in an error has verdicts of the status ``error``.
    """
    header, entries = _read_inspect_log(path)
    task = str(header.get("eval", {}).get("task") or path.stem)
    return FrameworkLog(task, parse_framework_log_entries(path, entries, _parse_inspect_log_sample))


def _read_inspect_log(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if path.suffix == ".json":
        log: dict[str, Any] = read_dataset_source_json(path, dict[str, Any])
        return log, log.get("samples") or []
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked_size(str(path), sum(info.file_size for info in archive.infolist()))
            names = archive.namelist()
            header = parse_json_file_text(
                _read_inspect_archive_member(
                    archive, "header.json" if "header.json" in names else "_journal/start.json"
                )
            )
            return header, list(_read_sample_entries(archive, names))
    except FileNotFoundError:
        raise InputError(str(path), [Problem("no such file")]) from None
    except (OSError, KeyError, ValueError, NotImplementedError, struct.error, zipfile.BadZipFile) as error:
        raise InputError(str(path), [Problem(f"not a log of Inspect that can be read ({error})")]) from None


def _read_sample_entries(archive: zipfile.ZipFile, member_names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in sorted(member_names):
        if name.startswith("samples/") and name.endswith(".json"):
            yield parse_json_file_text(_read_inspect_archive_member(archive, name))


def _read_inspect_archive_member(archive: zipfile.ZipFile, member_name: str) -> bytes:
    """The content of a file in the archive, also where it is compressed by Zstandard (`zipfile` can from 3.14 on)."""
    info = archive.getinfo(member_name)
    if info.compress_type != _ZSTANDARD:
        return archive.read(member_name)
    with open(str(archive.filename), "rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER)
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        file.seek(name_length + extra_length, 1)
        with pa.CompressedInputStream(pa.BufferReader(file.read(info.compress_size)), "zstd") as stream:
            # What the archive says of its size need not be so.
            content = stream.read(info.file_size + 1)
            if len(content) > info.file_size:
                raise zipfile.BadZipFile(f"{member_name} is larger than the archive says")
            return content


def _parse_inspect_log_sample(entry: dict[str, Any]) -> FrameworkLogSample:
    fields = {key: entry[key] for key in ("input", "target", "metadata", "output") if entry.get(key) is not None}
    outputs = {name: _parse_inspect_log_score(score) for name, score in (entry.get("scores") or {}).items()}
    if entry.get("error"):
        outputs = dict.fromkeys(outputs, FrameworkLogMetric(None, str(entry["error"].get("message")), "error"))
    return FrameworkLogSample(
        str(entry["id"]), flatten_framework_log_fields(fields), outputs, int(entry.get("epoch", 1)) - 1
    )


def _parse_inspect_log_score(score: dict[str, Any]) -> FrameworkLogMetric:
    value = score.get("value")
    raw = score.get("explanation") or score.get("answer")
    if value == "N":
        return FrameworkLogMetric(None, raw, "skipped")
    if value in ("C", "I"):
        return FrameworkLogMetric(bool(_LETTER_VALUES[value]), raw, is_upright=True)
    return FrameworkLogMetric(value, raw)
