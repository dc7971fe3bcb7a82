"""Test runs of DeepEval (the JSON files of ``DEEPEVAL_RESULTS_FOLDER``): the metrics are the evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.logs import Places, Said, Sample, flat, make, one_source
from factaudit.datasets.sources import Conversion, Row, read_json

_PLACES = Places(
    claim=("actualOutput",),
    doc=("retrievalContext", "context"),
    label=("additionalMetadata.label", "additionalMetadata.human", "metadata.label", "metadata.human"),
)


class _Metric(Row):
    name: str
    score: float | None = None
    success: bool | None = None
    reason: str | None = None
    error: str | None = None


class _Case(Row, extra="allow"):
    name: str
    metricsData: list[_Metric] | None = None


class _Run(Row):
    testCases: list[_Case] = Field(min_length=1)


def convert(
    sources: Sequence[Path],
    *,
    claim: str | None = None,
    doc: str | None = None,
    label: str | None = None,
    system: str | None = None,
    dataset: str | None = None,
    metrics: Sequence[str] | str | None = None,
) -> Conversion:
    """A test case is a claim (its actual output, against its retrieval context), a metric an evaluator.

    A metric's score becomes the score; whether the case passed by the metric's own threshold is the prediction.
    """
    path = one_source(sources, "*.json")
    run: _Run = read_json(path, _Run)
    samples = [
        Sample(case.name, flat(case.model_extra or {}), {one.name: _said(one) for one in case.metricsData or ()})
        for case in run.testCases
    ]
    own: dict[str, Any] = {"claim": claim, "doc": doc, "label": label, "system": system}
    return make(samples, _PLACES, own | {"dataset": dataset, "metrics": metrics}, source=str(path), dataset=path.stem)


def _said(metric: _Metric) -> Said:
    if metric.error is not None:
        return Said(None, metric.error, "error")
    return Said(metric.score, metric.reason, prediction=metric.success)
