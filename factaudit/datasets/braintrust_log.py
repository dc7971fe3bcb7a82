"""Braintrust: an experiment's export (JSON, JSONL, CSV or Parquet); a score is an evaluator."""

from __future__ import annotations

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
    parse_framework_log_score_cell,
)
from factaudit.tables import list_plain_rows
from factaudit.tables.foreign_files import read_foreign_file


@make_framework_log_converter(
    "*.jsonl",
    "*.json",
    "*.csv",
    "*.parquet",
    claim=("output", "output.answer", "output.output", "output.response", "output.text"),
    doc=(
        *("input.context", "input.document", "input.documents", "input.source", "input.passage"),
        *("metadata.context", "metadata.document", "output.context", "output.contexts"),
    ),
    label=("scores.human", "scores.human_label", "metadata.label", "metadata.human", "expected.label"),
    system=("metadata.model",),
)
def convert_braintrust_log(path: Path) -> FrameworkLog:
    """A row of the experiment is a claim (its output), a score an evaluator, but the one that the label is taken from.

    Spans within a row's task are no claims.
    """
    rows = list_plain_rows(read_foreign_file(path))
    samples = parse_framework_log_entries(path, list(enumerate(rows)), _parse_braintrust_row)
    whole = [
        one for one in samples if one.fields.get("span_id") == one.fields.get("root_span_id", one.fields.get("span_id"))
    ]
    return FrameworkLog(path.name.split(".")[0], whole)


def _parse_braintrust_row(numbered_row: tuple[int, Mapping[str, Any]]) -> FrameworkLogSample:
    number, row = numbered_row
    fields = flatten_framework_log_fields({key: parse_framework_log_json_cell(value) for key, value in row.items()})
    failed = fields.get("error") is not None
    outputs = {}
    for key, value in fields.items():
        if key.startswith("scores."):
            missing = "error" if failed else "skipped"
            outputs[key.removeprefix("scores.")] = FrameworkLogMetric(
                parse_framework_log_score_cell(value), None, missing if value is None else "ok"
            )
    return FrameworkLogSample(str(row.get("id") or number), fields, outputs)
