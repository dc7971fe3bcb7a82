"""Logs of Inspect (UKGovernmentBEIS/inspect_ai), ``.eval`` and ``.json``: the scorers are the evaluators."""

from __future__ import annotations

import re
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
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
    parse_framework_log_labels,
)
from factaudit.datasets.source_files import read_dataset_source_json
from factaudit.errors import InputError, Problem
from factaudit.files import check_unpacked_size, parse_json_file_text
from factaudit.tables.cell_values import find_verdict_in_reply
from factaudit.tables.vocabulary import BARE_WORDS, is_reversed_column_name, normalise_label_word, parse_label_word

#: In a zip archive: the method of compression, and the bytes of a member's header before its name.
_ZSTANDARD, _LOCAL_HEADER = 93, 30
#: What Inspect's scorers say in letters: correct, incorrect; partial answers and no answer are neither.
_LETTER_VALUES = {"C": 1, "I": 0}
#: What people said in these letters, too.
_LETTER_FIELDS = ("metadata.label", "metadata.human")
#: Of a model that judges: the field of what it was given, and of the answer that was expected.
_JUDGED_CLAIM, _JUDGED_LABEL = "input.claim", "target.label"
#: The choice that a reply to a multiple-choice question names.
_CHOICE = re.compile(r"(?:.*\banswer:?\s*)?\(?([A-E])\)?[.\s]*", re.IGNORECASE | re.DOTALL)


@make_framework_log_converter(
    "*.eval",
    "*.json",
    claim=(_JUDGED_CLAIM, "output.completion"),
    doc=("metadata.document", "metadata.doc", "metadata.context", "metadata.source"),
    label=(_JUDGED_LABEL, *_LETTER_FIELDS),
    system=("output.model",),
)
def convert_inspect_log(path: Path, *, labels: dict[str, int | None] | str | None = None) -> FrameworkLog:
    """A sample is a claim (what the model wrote), a scorer an evaluator; a score's C is 1, its I 0, a number a score.

    Where all targets and replies are words of verdicts, the model is the evaluator, its reply the verdict, the target
    the label, and ``metadata.claim`` or the input the claim.
    Epochs after the first are repeats. A sample that ended in an error has verdicts of the status ``error``.
    """
    header, entries = _read_inspect_log(path)
    spec = header.get("eval") or {}
    samples = parse_framework_log_entries(path, entries, _parse_inspect_log_sample)
    model = str(spec.get("model") or "model").rpartition("/")[2]
    judged = _read_model_as_judge(path, entries, samples, model, labels)
    return FrameworkLog(str(spec.get("task") or path.stem), judged or samples, has_own_dataset="task" in spec)


def _read_model_as_judge(
    path: Path,
    entries: Sequence[dict[str, Any]],
    samples: Sequence[FrameworkLogSample],
    model: str,
    labels: dict[str, int | None] | str | None,
) -> list[FrameworkLogSample]:
    """The samples of a task that has the model judge claims; none of another task. Raises `InputError` where a bare yes
    may mean an error."""
    if len(samples) != len(entries):
        return []
    targets = [_find_choice_text(entry, entry.get("target")) for entry in entries]
    replies = [
        _find_choice_text(entry, sample.fields.get("output.completion"))
        for entry, sample in zip(entries, samples, strict=True)
    ]
    words = [text if parse_label_word(text) is not None else find_verdict_in_reply(text) for text in replies]
    if {*map(parse_label_word, targets)} != {0, 1} or None in words:
        return []
    bare = {normalise_label_word(text) for text in targets} & BARE_WORDS
    if bare and not labels and is_reversed_column_name(_find_common_lines(entries)):
        yes, no = (next(text for text in targets if parse_label_word(text) == value) for value in (1, 0))
        message = f"the prompt speaks of errors: say --labels {yes}=0,{no}=1, or --labels {yes}=1,{no}=0 if"
        raise InputError(str(path), [Problem(f"{message} {yes!r} means supported", column="target")])
    meanings = parse_framework_log_labels(
        [FrameworkLogSample("", {"reply": word}, {}) for word in words], "reply", labels, str(path)
    )
    judged = []
    for sample, target, word in zip(samples, targets, words, strict=True):
        fields = {name: value for name, value in sample.fields.items() if not name.startswith("output.")}
        fields |= {_JUDGED_CLAIM: fields.get("metadata.claim", fields.get("input")), _JUDGED_LABEL: target}
        said = meanings[str(word)]
        output = FrameworkLogMetric(None if said is None else bool(said), str(word), is_upright=True)
        judged.append(FrameworkLogSample(sample.id, fields, {model: output}, sample.repeat))
    return judged


def _find_choice_text(entry: Mapping[str, Any], text: Any) -> str:
    """What a choice's letter stands for in a sample that has choices; another text as it is."""
    text = " ".join(map(str, text)) if isinstance(text, list) else str(text or "").strip()
    letter, choices = _CHOICE.fullmatch(text), entry.get("choices") or []
    at = ord(letter[1].upper()) - ord("A") if letter else len(choices)
    return str(choices[at]) if at < len(choices) else text


def _find_common_lines(entries: Sequence[Mapping[str, Any]]) -> str:
    """The lines that all prompts have: the question on each claim."""
    prompts = [
        "\n".join(str(one.get("content")) for one in entry.get("messages") or [] if one.get("role") != "assistant")
        + f"\n{entry.get('input')}"
        for entry in entries
    ]
    common = {*prompts[0].splitlines()}.intersection(*(prompt.splitlines() for prompt in prompts))
    return " ".join(sorted(common))


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
    flat = flatten_framework_log_fields(fields)
    flat |= {
        name: _LETTER_VALUES.get(flat[name], flat[name]) for name in _LETTER_FIELDS if isinstance(flat.get(name), str)
    }
    outputs = {
        name: _parse_inspect_log_score(part)
        for scorer, score in (entry.get("scores") or {}).items()
        for name, part in _split_inspect_log_score(scorer, score)
    }
    if entry.get("error"):
        outputs = dict.fromkeys(outputs, FrameworkLogMetric(None, str(entry["error"].get("message")), "error"))
    return FrameworkLogSample(str(entry["id"]), flat, outputs, int(entry.get("epoch", 1)) - 1)


def _split_inspect_log_score(scorer: str, score: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A score, or the scores of a scorer that has several under names."""
    values = score.get("value")
    if not isinstance(values, Mapping):
        yield scorer, score
        return
    yield from ((f"{scorer}.{name}", {**score, "value": value}) for name, value in values.items())


def _parse_inspect_log_score(score: dict[str, Any]) -> FrameworkLogMetric:
    value = score.get("value")
    raw = score.get("explanation") or score.get("answer")
    if value == "N":
        return FrameworkLogMetric(None, raw, "skipped")
    if value in ("C", "I"):
        return FrameworkLogMetric(bool(_LETTER_VALUES[value]), raw, is_upright=True)
    return FrameworkLogMetric(value, raw)
