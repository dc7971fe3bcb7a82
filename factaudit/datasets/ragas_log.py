"""Results of ragas (``EvaluationResult.to_pandas()`` as CSV, JSONL or Parquet): the metrics are the evaluators."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    make_framework_log_converter,
    parse_framework_log_python_cell,
)
from factaudit.tables import list_plain_rows, read_table
from factaudit.tables.class_labels import list_class_names_of_parquet, replace_class_codes_by_names
from factaudit.tables.column_kinds import find_judged_columns, is_surely_evaluator_verdict

#: Columns of ragas' samples, which are no metrics.
_SAMPLE_COLUMNS = (
    *("user_input", "question", "retrieved_contexts", "contexts", "reference_contexts", "response", "answer"),
    *("reference", "ground_truth", "rubrics", "retrieved_context_ids", "reference_context_ids", "multi_responses"),
    *("persona_name", "query_style", "query_length"),
)
#: Metrics of ragas that say 1 or 0, and other qualities that its aspect critics judge.
_COARSE_METRICS = re.compile(
    r"faithful|relevanc|context|recall|precision|entity|noise|similarity|match|rubric|goal|tool|topic|harm|malicious"
    r"|concise|coheren|sql|presence"
)
#: Words of columns that count, time or price a row, or say what is right: no metric says that.
_OTHER_WORDS = re.compile(
    r"(^|[_ .])(id|index|idx|row|epoch|seed|step|turn|rank|batch|time|timestamp|created|updated|latency|duration"
    r"|seconds|ms|cost|price|tokens?|length|n|num|count|human|gold|gt|expected|target|annotator|annotation|rater"
    r"|reviewer|labels?)([_ .]|$)|^unnamed"
)


@make_framework_log_converter(
    "*.csv",
    "*.jsonl",
    "*.parquet",
    claim=("response", "answer"),
    doc=("retrieved_contexts", "contexts"),
    label=("label", "human"),
    system=("system", "app", "app_name", "model", "model_name"),
)
def convert_ragas_log(path: Path, *, label: str | None = None, system: str | None = None) -> FrameworkLog:
    """A row is a claim (the response, against the retrieved contexts joined), a column of numbers an evaluator.

    Columns that count, time or price a row, and what people said of it, are none.
    """
    table = replace_class_codes_by_names(read_table(path), list_class_names_of_parquet(path))
    rows = [
        {name: parse_framework_log_python_cell(value) for name, value in row.items()} for row in list_plain_rows(table)
    ]
    numbers = {
        name: _parse_metric_numbers(table[name])
        for name in table.columns
        if name not in (*_SAMPLE_COLUMNS, "label", "human", label, system)
        and not _OTHER_WORDS.search(str(name).lower())
    }
    # A metric that failed has no number; a column without any number is no metric.
    scores = {name: values.tolist() for name, values in numbers.items() if values.notna().any()}
    worded = find_judged_columns({str(name): table[name].tolist() for name in numbers.keys() - scores.keys()})
    scores |= {name: [math.nan] * len(table) for name, column in worded.items() if is_surely_evaluator_verdict(column)}
    samples = [
        FrameworkLogSample(
            str(at), row, {name: _make_metric_output(name, row[name], values[at]) for name, values in scores.items()}
        )
        for at, row in enumerate(rows)
    ]
    return FrameworkLog(path.name.split(".")[0], samples)


def _parse_metric_numbers(cells: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(cells, errors="coerce")
    except OverflowError:  # an integer beyond the range of floats
        return pd.to_numeric(cells.astype("str"), errors="coerce").replace([math.inf, -math.inf], math.nan)


def _make_metric_output(name: str, cell: Any, score: float) -> FrameworkLogMetric:
    if cell is None:
        return FrameworkLogMetric(None, None, "error")
    is_added = _COARSE_METRICS.search(name.lower()) is None
    return FrameworkLogMetric(cell if math.isnan(score) else score, is_of_any_column=is_added)
