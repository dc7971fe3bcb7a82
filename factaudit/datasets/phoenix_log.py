"""Evaluations of Arize Phoenix (``evaluate_dataframe`` as CSV, JSONL or Parquet): scores are the evaluators'."""

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
    parse_framework_log_python_cell,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import list_plain_rows, read_table

_SCORE_SUFFIX, _DETAILS_SUFFIX = "_score", "_execution_details"


# Also the columns of a frame of spans.
@make_framework_log_converter(
    "*.csv",
    "*.jsonl",
    "*.parquet",
    claim=("output", "response", "answer", "generation", "attributes.output.value", "attributes.output"),
    doc=(
        *("context", "contexts", "retrieved_context", "reference", "document", "documents", "source"),
        "attributes.retrieval.documents",
    ),
    label=("label", "human", "expected", "annotation"),
    system=("model", "system", "attributes.llm.model_name", "llm.model_name"),
)
def convert_phoenix_log(path: Path) -> FrameworkLog:
    """A row is a claim, a column ``NAME_score`` what the evaluator NAME said of it.

    A score that is to be small (``direction: minimize``: hallucination) is 1 - itself here; without a number its label
    is the verdict. An evaluator that failed on a row (``NAME_execution_details``) has a verdict of the status error.
    """
    rows = [
        {name: parse_framework_log_python_cell(value) for name, value in row.items()}
        for row in list_plain_rows(read_table(path))
    ]
    names = [name.removesuffix(_SCORE_SUFFIX) for name in (rows[0] if rows else ()) if name.endswith(_SCORE_SUFFIX)]
    if not any(isinstance(row[name + _SCORE_SUFFIX], Mapping) for row in rows for name in names):
        raise InputError(str(path), [Problem("no column NAME_score holds scores as Phoenix's evaluators give them")])
    samples = []
    for number, row in enumerate(rows):
        outputs = {
            name: _parse_phoenix_score(row[name + _SCORE_SUFFIX], row.get(name + _DETAILS_SUFFIX)) for name in names
        }
        fields = {key: value for key, value in row.items() if not key.endswith((_SCORE_SUFFIX, _DETAILS_SUFFIX))}
        samples.append(
            FrameworkLogSample(str(row.get("context.span_id") or number), flatten_framework_log_fields(fields), outputs)
        )
    return FrameworkLog(path.name.split(".")[0], samples)


def _parse_phoenix_score(score: Any, execution_details: Any) -> FrameworkLogMetric:
    if not isinstance(score, Mapping):
        exceptions = execution_details.get("exceptions") if isinstance(execution_details, Mapping) else None
        return FrameworkLogMetric(None, str(exceptions) if exceptions else None, "error")
    raw = score.get("explanation") or score.get("label")
    value = score.get("score")
    if value is None:
        return FrameworkLogMetric(score.get("label"), raw)
    support = 1 - float(value) if score.get("direction") == "minimize" else float(value)
    return FrameworkLogMetric(support, raw, is_upright=score.get("direction") is not None)
