"""Records of TruLens (``get_records_and_feedback()`` as JSONL, CSV or Parquet): the feedbacks are the evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    make_framework_log_converter,
    parse_framework_log_python_cell,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import list_plain_rows, read_table

_CALLS_SUFFIX = "_calls"


# ``call.X`` is the argument X of a feedback function, as it was called.
@make_framework_log_converter(
    "*.jsonl",
    "*.csv",
    "*.parquet",
    claim=("output", "main_output", "call.statement"),
    doc=("call.source", "call.context", "call.contexts", "call.document"),
    label=("label", "human", "meta.label"),
    system=("app_name", "app_id"),
)
def convert_trulens_log(path: Path) -> FrameworkLog:
    """A record is a claim (the app's output), a feedback an evaluator; the document is what the feedback was given.

    Feedbacks are the columns that have their calls beside them (``NAME_calls``). Records are in order of time.
    """
    table = read_table(path)
    names = [str(name) for name in table.columns if f"{name}{_CALLS_SUFFIX}" in table]
    if not names:
        raise InputError(str(path), [Problem("no feedback of TruLens in it: expected columns NAME and NAME_calls")])
    rows = list_plain_rows(table.sort_values("ts", kind="stable") if "ts" in table else table)
    samples = []
    for number, row in enumerate(rows):
        fields = {key: value for key, value in row.items() if key not in names and not key.endswith(_CALLS_SUFFIX)}
        fields |= {f"feedback.{name}": row[name] for name in names}
        for name in names:
            arguments = _parse_trulens_feedback(row[name + _CALLS_SUFFIX])
            fields |= {f"call.{key}": value for key, value in arguments.items()}
        outputs = {
            name: FrameworkLogMetric(None, None, "error") if row[name] is None else FrameworkLogMetric(float(row[name]))
            for name in names
        }
        samples.append(FrameworkLogSample(str(row.get("record_id") or number), fields, outputs))
    return FrameworkLog(path.name.split(".")[0], samples)


def _parse_trulens_feedback(feedback_calls: Any) -> Mapping[str, Any]:
    """The arguments of a feedback's first call."""
    feedback_calls = parse_framework_log_python_cell(feedback_calls)
    first = feedback_calls[0] if isinstance(feedback_calls, list) and feedback_calls else None
    args = first.get("args") if isinstance(first, Mapping) else None
    return args if isinstance(args, Mapping) else {}
