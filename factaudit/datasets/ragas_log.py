"""Results of ragas (``EvaluationResult.to_pandas()`` as CSV, JSONL or Parquet): the metrics are the evaluators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.logs import Places, Said, Sample, listed, make, one_source
from factaudit.datasets.sources import Conversion
from factaudit.tables import read_table, records

_PLACES = Places(claim=("response", "answer"), doc=("retrieved_contexts", "contexts"), label=("label", "human"))
#: Columns of ragas' samples, which are no metrics.
_SAMPLE = (
    *("user_input", "question", "retrieved_contexts", "contexts", "reference_contexts", "response", "answer"),
    *("reference", "ground_truth", "rubrics", "retrieved_context_ids", "reference_context_ids", "multi_responses"),
    *("persona_name", "query_style", "query_length"),
)


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
    """A row is a claim (the response, against the retrieved contexts joined), a column of numbers an evaluator."""
    path = one_source(sources, "*.csv", "*.jsonl", "*.parquet")
    own = {"claim": claim, "doc": doc, "label": label, "system": system, "dataset": dataset, "metrics": metrics}
    used = {*_SAMPLE, *_PLACES.label, *(str(value) for value in own.values() if isinstance(value, str))} - {metrics}
    samples = []
    for number, row in enumerate(records(read_table(path))):
        said = {
            name: Said(None, None, "error") if value is None else Said(_number(value))
            for name, value in row.items()
            if name not in used
        }
        samples.append(Sample(str(number), {name: listed(value) for name, value in row.items()}, said))
    numbers = {name for one in samples for name, said in one.said.items() if isinstance(said.value, float)}
    samples = [
        Sample(one.id, one.fields, {name: said for name, said in one.said.items() if name in numbers})
        for one in samples
    ]
    return make(samples, _PLACES, own, source=str(path), dataset=path.name.split(".")[0])


def _number(value: Any) -> Any:
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
