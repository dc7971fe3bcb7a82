"""Results of promptfoo (``promptfoo eval --output results.json``): assertions with a ``metric`` are the evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
)
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_items


class _PromptfooAssertion(DatasetSourceRow):
    type: str
    metric: str | None = None


class _PromptfooAssertionResult(DatasetSourceRow):
    score: float | None = None
    passed: bool | None = Field(default=None, alias="pass")
    reason: str | None = None
    assertion: _PromptfooAssertion | None = None


class _GradingResult(DatasetSourceRow):
    componentResults: list[_PromptfooAssertionResult] | None = None


class _PromptfooTestCase(DatasetSourceRow):
    metadata: dict[str, Any] | None = None


class _PromptfooResult(DatasetSourceRow):
    testIdx: int | None = None
    promptIdx: int = 0
    vars: dict[str, Any] = Field(default_factory=dict)
    response: dict[str, Any] | None = None
    provider: dict[str, Any] | None = None
    gradingResult: _GradingResult | None = None
    testCase: _PromptfooTestCase | None = None
    metadata: dict[str, Any] | None = None


@make_framework_log_converter(
    "*.json",
    claim=("response.output",),
    doc=("vars.document", "vars.doc", "vars.context", "vars.source"),
    label=("vars.label", "vars.human"),
    system=("provider.id",),
)
def convert_promptfoo_log(path: Path) -> FrameworkLog:
    """A result is a claim (the provider's output), an assertion an evaluator, called by its ``metric`` or its type.

    An assertion's score becomes the score, whether it passed the prediction. The provider is the system.
    """
    samples = []
    for number, result in read_dataset_source_items(path, _PromptfooResult, "results.results").items():
        provider = result.provider or {}
        metadata = ((result.testCase or _PromptfooTestCase()).metadata or {}) | (result.metadata or {})
        fields = {"vars": result.vars, "metadata": metadata, "response": result.response or {}, "provider": provider}
        outputs = {}
        ratings = {}
        for component in (result.gradingResult or _GradingResult()).componentResults or ():
            if component.assertion is not None:
                name = component.assertion.metric or component.assertion.type
                outputs[name] = FrameworkLogMetric(component.score, component.reason, prediction=component.passed)
                if component.assertion.type == "human":  # the thumbs of promptfoo's viewer
                    ratings[name] = component.passed
        fields |= {"scores": ratings} if ratings else {}
        test = number if result.testIdx is None else result.testIdx  # older versions do not number the tests
        sample_id = f"{test}-{result.promptIdx}-{provider.get('id', '')}"
        samples.append(FrameworkLogSample(sample_id, flatten_framework_log_fields(fields), outputs))
    return FrameworkLog(path.stem, samples)
