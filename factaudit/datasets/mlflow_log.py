"""MLflow: traces with assessments (``search_traces``, the table of ``genai.evaluate``), and tables of ``evaluate``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
    parse_framework_log_entries,
    parse_framework_log_json_cell,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import list_plain_rows, read_table
from factaudit.tables.foreign_files import read_foreign_file

_SCORE_SUFFIX, _REASON_SUFFIX = "/score", "/justification"
#: The grades of MLflow's GenAI metrics, which say why: from the worst to the best.
_LOWEST_GRADE, _HIGHEST_GRADE = 1, 5


@make_framework_log_converter(
    "*.json",
    "*.jsonl",
    "*.csv",
    "*.parquet",
    claim=("response", "outputs", "predictions", "output"),
    doc=(
        *("request.context", "request.document", "request.documents", "request.source", "inputs.context"),
        *("inputs.document", "context", "document", "documents", "source"),
    ),
    label=(
        *("human", "expectation.label", "expectation.supported", "expectation.faithful", "expectation.grounded"),
        *("label", "human_label", "inputs.label"),
    ),
    system=("tags.model", "model"),
)
def convert_mlflow_log(path: Path) -> FrameworkLog:
    """A trace is a claim (its response), a feedback of code or of a judge an evaluator.

    What people said is the field ``human.NAME``, an expectation ``expectation.NAME``; of one name alone, which for
    expectations is true or false, also ``human``.
    In a table of ``evaluate`` an evaluator is a column ``NAME/v1/score``; one with a justification has grades from 1 to
    5, of which (grade - 1) / 4 is the score.
    """
    rows = _read_mlflow_split_table(path) if path.name.endswith(".json") else list_plain_rows(read_table(path))
    if any(name.endswith(_SCORE_SUFFIX) for row in rows[:1] for name in row):
        return FrameworkLog(
            path.name.split(".")[0], parse_framework_log_entries(path, list(enumerate(rows)), _parse_mlflow_table_row)
        )
    if not any("assessments" in row or "info" in row for row in rows):
        raise InputError(str(path), [Problem("no assessments of MLflow's traces in it, and no column NAME/v1/score")])
    samples = parse_framework_log_entries(path, rows, _parse_mlflow_trace)
    names = {name for sample in samples for name in sample.fields if name.startswith("human.")}
    names = names or {
        name
        for sample in samples
        for name, value in sample.fields.items()
        if name.startswith("expectation.") and isinstance(value, bool)
    }
    if len(names) == 1:
        (name,) = names
        samples = [
            FrameworkLogSample(one.id, {"human": one.fields.get(name), **one.fields}, one.metric_outputs)
            for one in samples
        ]
    return FrameworkLog(path.name.split(".")[0], samples)


def _read_mlflow_split_table(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON table: pandas' ``orient="split"``, as MLflow stores it, or a list of rows."""
    content = parse_framework_log_json_cell(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, Mapping) and isinstance(content.get("columns"), list):
        return [dict(zip(map(str, content["columns"]), row, strict=True)) for row in content.get("data", [])]
    return list_plain_rows(read_foreign_file(path)) if not isinstance(content, list) else content


def _parse_mlflow_trace(row: Mapping[str, Any]) -> FrameworkLogSample:
    info = parse_framework_log_json_cell(row.get("info")) or {}
    stored = info.get("trace_metadata") or {}
    row = {**(parse_framework_log_json_cell(row.get("data")) or {}), **row}  # MLflow 3
    request = parse_framework_log_json_cell(
        row.get("request", stored.get("mlflow.traceInputs", info.get("request_preview")))
    )
    fields = flatten_framework_log_fields({"request": request}) if request is not None else {}
    response = row.get("response", stored.get("mlflow.traceOutputs", info.get("response_preview")))
    fields["response"] = parse_framework_log_json_cell(response)
    fields |= flatten_framework_log_fields(
        {"tags": parse_framework_log_json_cell(row.get("tags", info.get("tags"))) or {}}
    )
    outputs: dict[str, FrameworkLogMetric] = {}
    for one in parse_framework_log_json_cell(row.get("assessments", info.get("assessments"))) or []:
        name = one["assessment_name"]
        feedback, expectation = one.get("feedback") or {}, one.get("expectation") or {}
        if one.get("valid") is False:
            continue  # somebody took it back
        if expectation:
            fields[f"expectation.{name}"] = expectation.get("value")
        elif str(one["source"]["source_type"]).upper() == "HUMAN":
            fields[f"human.{name}"] = feedback.get("value")
        elif feedback.get("error"):
            outputs[name] = FrameworkLogMetric(None, json.dumps(feedback["error"]), "error")
        else:
            outputs[name] = FrameworkLogMetric(feedback.get("value"), one.get("rationale"))
    return FrameworkLogSample(str(row.get("trace_id") or info["trace_id"]), fields, outputs)


def _parse_mlflow_table_row(numbered_row: tuple[int, Mapping[str, Any]]) -> FrameworkLogSample:
    number, row = numbered_row
    names = [name.removesuffix(_SCORE_SUFFIX) for name in row if name.endswith(_SCORE_SUFFIX)]
    fields = {
        key: parse_framework_log_json_cell(value) for key, value in row.items() if not key.startswith(tuple(names))
    }
    outputs = {}
    for name in names:
        value, reason = row[name + _SCORE_SUFFIX], row.get(name + _REASON_SUFFIX)
        score = None if value is None or value != value else float(value)
        if score is not None and name + _REASON_SUFFIX in row:
            score = (score - _LOWEST_GRADE) / (_HIGHEST_GRADE - _LOWEST_GRADE)
        outputs[name] = FrameworkLogMetric(score, reason, "error" if score is None else "ok")
    return FrameworkLogSample(str(number), flatten_framework_log_fields(fields), outputs)
