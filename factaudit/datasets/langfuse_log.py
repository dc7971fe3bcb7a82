"""Langfuse: scores and the observations or traces that they are of, as its API and its exports give them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
    parse_framework_log_json_cell,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import list_plain_rows
from factaudit.tables.foreign_files import read_foreign_file
from factaudit.tables.unreadable_rows import leave_out_unreadable_rows

#: Keys of scores as the API gives them, by those of exports to a blob storage.
_EXPORTED_KEYS = {
    "trace_id": "traceId",
    "observation_id": "observationId",
    "data_type": "dataType",
    "string_value": "stringValue",
}


@make_framework_log_converter(
    "*.json",
    "*.jsonl",
    "*.csv",
    claim=("output", "output.answer", "output.content", "output.text", "output.response"),
    doc=(
        *("input.context", "input.document", "input.documents", "input.source", "metadata.context"),
        *("metadata.document", "output.context"),
    ),
    label=("human", "metadata.label", "metadata.human"),
    system=("model",),
    is_joint=True,
)
def convert_langfuse_log(paths: Sequence[Path]) -> FrameworkLog:
    """An observation (or a trace) is a claim, a score of code or of a judge an evaluator.

    What people annotated is the field ``human.NAME``, of one name alone also ``human``; of several annotations of a
    name the majority counts. The scores and what they are of may stand in several files. Scores of a trace go to its
    observation where it has one alone.
    """
    items: dict[str, dict[str, Any]] = {}
    scores: list[Mapping[str, Any]] = []
    for path in paths:
        problems: list[Problem] = []
        rows = [
            {key: parse_framework_log_json_cell(value) for key, value in row.items()}
            for row in _read_langfuse_rows(path)
        ]
        for number, row in enumerate(rows, start=1):
            if "name" in row and ("value" in row or "stringValue" in row):
                scores.append(row)
            elif row.get("id") is not None and ("output" in row or "input" in row):
                items[str(row["id"])] = row
                scores += [{"traceId": row["id"], **one} for one in row.get("scores") or [] if isinstance(one, Mapping)]
            else:
                problems.append(Problem("expected a score (name, value) or an observation (id, output)", number))
        leave_out_unreadable_rows(path, problems, len(rows))
    if not items:
        message = "scores without what they are of: give the file of observations or traces too"
        raise InputError(", ".join(map(str, paths)), [Problem(message)])
    by_trace: dict[str, list[str]] = {}
    for item_id, row in items.items():
        by_trace.setdefault(str(row.get("traceId") or item_id), []).append(item_id)
    names = {str(one["name"]) for one in scores if one.get("source") == "ANNOTATION"}
    outputs: dict[str, dict[str, FrameworkLogMetric]] = {key: {} for key in items}
    people: dict[str, dict[str, list[Any]]] = {key: {} for key in items}
    for one in scores:
        if (key := _find_scored_langfuse_item(one, items, by_trace)) is None:
            continue
        name, value = str(one["name"]), _read_langfuse_score_value(one)
        if one.get("source") == "ANNOTATION":
            for field in (f"human.{name}", *(["human"] if len(names) == 1 else [])):
                people[key].setdefault(field, []).append(value)
        else:
            outputs[key][name] = FrameworkLogMetric(value, one.get("comment"))
    samples = [
        FrameworkLogSample(
            item_id,
            flatten_framework_log_fields(row)
            | {field: _find_majority(said) for field, said in people[item_id].items()},
            outputs[item_id],
        )
        for item_id, row in items.items()
        if outputs[item_id] or people[item_id]
    ]
    return FrameworkLog(paths[0].name.split(".")[0], samples)


def _find_majority(values: Sequence[Any]) -> Any:
    """What most people said; None where as many said another thing."""
    (first, n_first), *others = Counter(values).most_common(2)
    return None if others and others[0][1] == n_first else first


def _read_langfuse_rows(path: Path) -> list[dict[str, Any]]:
    table = read_foreign_file(path)
    rows = list_plain_rows(table.rename(columns=_EXPORTED_KEYS))
    for row in rows:  # objects within rows were made columns
        for part in ("input", "output", "metadata"):
            inner = {key: row.pop(key) for key in list(row) if key.startswith(f"{part}.")}
            row |= {part: {key.removeprefix(f"{part}."): value for key, value in inner.items()}} if inner else {}
    return rows


def _find_scored_langfuse_item(
    score: Mapping[str, Any], items: Mapping[str, Any], by_trace: Mapping[str, Sequence[str]]
) -> str | None:
    """The observation or trace that a score is of, where it is there."""
    for name in ("observationId", "traceId"):
        if str(score.get(name)) in items:
            return str(score[name])
    inside = by_trace.get(str(score.get("traceId")), [])
    return inside[0] if len(inside) == 1 and score.get("observationId") is None else None


def _read_langfuse_score_value(score: Mapping[str, Any]) -> Any:
    """A category's word, a truth value, or a number."""
    kind, text = score.get("dataType"), score.get("stringValue")
    if kind == "BOOLEAN":
        return bool(score["value"]) if score.get("value") is not None else text
    is_word = isinstance(text, str) and bool(text)
    return text if kind in ("CATEGORICAL", "TEXT") or (is_word and kind is None) else score.get("value")
