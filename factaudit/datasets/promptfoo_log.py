"""Results of promptfoo (``promptfoo eval --output results.json``): assertions with a ``metric`` are the evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.logs import Places, Said, Sample, flat, make, one_source
from factaudit.datasets.sources import Conversion, Row, read_json

_PLACES = Places(
    claim=("response.output",),
    doc=("vars.document", "vars.doc", "vars.context", "vars.source"),
    label=("vars.label", "vars.human"),
    system=("provider.id",),
)


class _Assertion(Row):
    type: str
    metric: str | None = None


class _Component(Row):
    score: float | None = None
    passed: bool | None = Field(default=None, alias="pass")
    reason: str | None = None
    assertion: _Assertion | None = None


class _Grading(Row):
    componentResults: list[_Component] | None = None


class _Result(Row):
    testIdx: int
    promptIdx: int = 0
    vars: dict[str, Any] = Field(default_factory=dict)
    response: dict[str, Any] | None = None
    provider: dict[str, Any] | None = None
    gradingResult: _Grading | None = None


class _Results(Row):
    results: list[_Result] = Field(min_length=1)


class _File(Row):
    results: _Results


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
    """A result is a claim (the provider's output), an assertion an evaluator, called by its ``metric`` or its type.

    An assertion's score becomes the score, whether it passed the prediction. The provider is the system.
    """
    path = one_source(sources, "*.json")
    file: _File = read_json(path, _File)
    samples = []
    for result in file.results.results:
        provider = result.provider or {}
        told = {"vars": result.vars, "response": result.response or {}, "provider": provider}
        said = {}
        for component in (result.gradingResult or _Grading()).componentResults or ():
            if component.assertion is not None:
                name = component.assertion.metric or component.assertion.type
                said[name] = Said(component.score, component.reason, prediction=component.passed)
        samples.append(Sample(f"{result.testIdx}-{result.promptIdx}-{provider.get('id', '')}", flat(told), said))
    own: dict[str, Any] = {"claim": claim, "doc": doc, "label": label, "system": system}
    return make(samples, _PLACES, own | {"dataset": dataset, "metrics": metrics}, source=str(path), dataset=path.stem)
