"""Test runs of DeepEval (the JSON files of ``DEEPEVAL_RESULTS_FOLDER``, and what ``evaluate`` returns as JSON): the
metrics are the evaluators."""

from __future__ import annotations

from pathlib import Path

from pydantic import AliasChoices, Field

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
)
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_items, read_dataset_source_json

#: Where a test case has what its user knows of it.
_METADATA = ("additionalMetadata", "additional_metadata", "metadata")


class _DeepEvalMetric(DatasetSourceRow):
    name: str
    score: float | None = None
    success: bool | None = None
    reason: str | None = None
    error: str | None = None


class _DeepEvalCase(DatasetSourceRow, extra="allow"):
    name: str
    metricsData: list[_DeepEvalMetric] | None = Field(
        None, validation_alias=AliasChoices("metricsData", "metrics_data")
    )


@make_framework_log_converter(
    "*.json",
    claim=("actualOutput", "actual_output"),
    doc=("retrievalContext", "retrieval_context", "context"),
    label=tuple(f"{where}.{what}" for where in _METADATA for what in ("label", "human")),
)
def convert_deepeval_log(path: Path) -> FrameworkLog:
    """A test case is a claim (its actual output, against its retrieval context), a metric an evaluator.

    A metric's score becomes the score; whether the case passed by the metric's own threshold is the prediction.
    """
    key = "test_results" if "test_results" in read_dataset_source_json(path, dict) else "testCases"
    samples = [
        FrameworkLogSample(
            case.name,
            flatten_framework_log_fields(case.model_extra or {}),
            {one.name: _parse_deepeval_metric(one) for one in case.metricsData or ()},
        )
        for case in read_dataset_source_items(path, _DeepEvalCase, key).values()
    ]
    return FrameworkLog(path.stem, samples)


def _parse_deepeval_metric(metric: _DeepEvalMetric) -> FrameworkLogMetric:
    if metric.error is not None:
        return FrameworkLogMetric(None, metric.error, "error")
    return FrameworkLogMetric(metric.score, metric.reason, prediction=metric.success)
