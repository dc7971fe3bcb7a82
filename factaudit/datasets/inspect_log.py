"""Samples of Inspect's logs (UKGovernmentBEIS/inspect_ai), ``.eval`` and ``.json``."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from factaudit.datasets.source_files import read_json
from factaudit.errors import InputError, Problem
from factaudit.files import check_unpacked_size, parse_json_file_text
from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    is_reversed_column_name,
    normalise_label_word,
    parse_label_word,
)

#: In a zip archive: the method of compression, and the bytes of a member's header before its name.
_ZSTANDARD, _LOCAL_HEADER = 93, 30
#: The choice that a reply to a multiple-choice question names.
_CHOICE = re.compile(r"(?:.*\banswer:?\s*)?\(?([A-E])\)?[.\s]*", re.IGNORECASE | re.DOTALL)


def read_inspect_log(path: Path, has_labels: bool) -> tuple[str | None, list[Any]]:
    """A log's task and samples; scores of a scorer that has several have its name before theirs
    (``judge.faithful``).

    Where all targets and replies are words of verdicts, the model under test is the judge: its
    reply is the verdict, the target the label, and ``metadata.claim`` or the input the claim.
    has_labels: the user said what words mean.
    """
    document = _read_document(path)
    spec = document.get("eval") or {}
    given = [one for one in document.get("samples") or [] if isinstance(one, dict)]
    samples = [one | {"scores": _name_all_scores(one.get("scores") or {})} for one in given]
    model = str(spec.get("model") or "model").rpartition("/")[2]
    return spec.get("task"), _read_model_as_judge(path, samples, model, has_labels) or samples


def _name_all_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of one value each: those of a scorer that has several under names are scores each."""
    found: dict[str, Any] = {}
    for name, one in scores.items():
        value = one.get("value")
        parts = value.items() if isinstance(value, Mapping) else [("", value)]
        found |= {
            f"{name}.{part}".removesuffix("."): {**one, "value": said} for part, said in parts
        }
    return found


def _read_model_as_judge(
    path: Path, samples: Sequence[dict[str, Any]], model: str, has_labels: bool
) -> list[dict[str, Any]]:
    """The samples of a task that has the model judge claims; none of another task. Raises
    `InputError` where a bare yes may mean an error."""
    targets = [_find_choice_text(one, one.get("target")) for one in samples]
    replies = [
        _find_choice_text(one, (one.get("output") or {}).get("completion")) for one in samples
    ]
    words = [
        text if parse_label_word(text) is not None else find_verdict_in_reply(text)
        for text in replies
    ]
    if {*map(parse_label_word, targets)} != {0, 1} or None in words:
        return []
    is_bare = bool({*map(normalise_label_word, targets)} & BARE_WORDS)
    if is_bare and not has_labels and is_reversed_column_name(_find_common_lines(samples)):
        yes, no = (
            next(text for text in targets if parse_label_word(text) == value) for value in (1, 0)
        )
        message = (
            f"the prompt speaks of errors: say --labels {yes}=0,{no}=1, or --labels"
            f" {yes}=1,{no}=0 if"
        )
        raise InputError(
            str(path), [Problem(f"{message} {yes!r} means supported", column="target")]
        )
    judged = []
    for sample, target, word in zip(samples, targets, words, strict=True):
        metadata = {**(sample.get("metadata") or {}), "label": target}
        output = {"completion": metadata.get("claim", sample.get("input"))}
        judged.append(
            sample | {"metadata": metadata, "scores": {model: {"value": word}}, "output": output}
        )
    return judged


def _find_choice_text(sample: Mapping[str, Any], text: Any) -> str:
    """What a choice's letter stands for in a sample that has choices; another text as it is."""
    text = " ".join(map(str, text)) if isinstance(text, list) else str(text or "").strip()
    letter = _CHOICE.fullmatch(text)
    choices = dict(zip("ABCDE", sample.get("choices") or [], strict=False))
    return str(choices.get(letter[1].upper(), text)) if letter else text


def _find_common_lines(samples: Sequence[Mapping[str, Any]]) -> str:
    """The lines that all prompts have: the question on each claim."""
    lines = []
    for sample in samples:
        asked = [
            one.get("content")
            for one in sample.get("messages") or []
            if one.get("role") != "assistant"
        ]
        lines.append({*"\n".join(map(str, [*asked, sample.get("input")])).splitlines()})
    return " ".join(sorted(set.intersection(*lines)))


def _read_document(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return read_json(path, dict[str, Any])
    try:
        with zipfile.ZipFile(path) as archive:
            check_unpacked_size(str(path), sum(info.file_size for info in archive.infolist()))
            names = archive.namelist()
            header = "header.json" if "header.json" in names else "_journal/start.json"
            samples = [one for one in sorted(names) if re.fullmatch(r"samples/.*\.json", one)]
            read = [parse_json_file_text(_read_member(archive, one)) for one in (header, *samples)]
            return {**read[0], "samples": read[1:]}
    except (
        OSError,
        KeyError,
        ValueError,
        NotImplementedError,
        struct.error,
        zipfile.BadZipFile,
    ) as error:
        reason = (
            "no such file"
            if isinstance(error, FileNotFoundError)
            else f"not a log of Inspect ({error})"
        )
        raise InputError(str(path), [Problem(reason)]) from None


def _read_member(archive: zipfile.ZipFile, member_name: str) -> bytes:
    """The content of a file in the archive, also where it is compressed by Zstandard (`zipfile` can
    from 3.14 on)."""
    info = archive.getinfo(member_name)
    if info.compress_type != _ZSTANDARD:
        return archive.read(member_name)
    with open(str(archive.filename), "rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER)
        file.seek(sum(struct.unpack("<HH", head[26:30])), 1)  # its name and further fields
        with pa.CompressedInputStream(
            pa.BufferReader(file.read(info.compress_size)), "zstd"
        ) as stream:
            # What the archive says of its size need not be so.
            content = stream.read(info.file_size + 1)
    if len(content) > info.file_size:
        raise zipfile.BadZipFile(f"{member_name} is larger than the archive says")
    return content
