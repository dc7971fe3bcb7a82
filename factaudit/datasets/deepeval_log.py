"""Test runs of DeepEval (the JSON files of ``DEEPEVAL_RESULTS_FOLDER``): the metrics are the evaluators."""

from __future__ import annotations

from pathlib import Path

from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogMetric,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
)
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_items


class _DeepEvalMetric(DatasetSourceRow):
    name: str
    score: float | None = None
    success: bool | None = None
    reason: str | None = None
    error: str | None = None


class _DeepEvalCase(DatasetSourceRow, extra="allow"):
    name: str
    metricsData: list[_DeepEvalMetric] | None = None


@make_framework_log_converter(
    "*.json",
    claim=("actualOutput",),
    doc=("retrievalContext", "context"),
    label=("additionalMetadata.label", "additionalMetadata.human", "metadata.label", "metadata.human"),
)
def convert_deepeval_log(path: Path) -> FrameworkLog:
    """A test case is a claim (its actual output, against its retrieval context), a metric an evaluator.

    A metric's score becomes the score; whether the case passed by the metric's own threshold is the prediction.
    """
    samples = [
        FrameworkLogSample(
            case.name,
            flatten_framework_log_fields(case.model_extra or {}),
            {one.name: _parse_deepeval_metric(one) for one in case.metricsData or ()},
        )
        for case in read_dataset_source_items(path, _DeepEvalCase, "testCases").values()
    ]
    return FrameworkLog(path.stem, samples)


def _parse_deepeval_metric(metric: _DeepEvalMetric) -> FrameworkLogMetric:
    if metric.error is not None:
        return FrameworkLogMetric(None, metric.error, "error")
    return FrameworkLogMetric(metric.score, metric.reason, prediction=metric.success)
