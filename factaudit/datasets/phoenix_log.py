"""Evaluations of Arize Phoenix (``evaluate_dataframe`` as CSV, JSONL or Parquet): scores are the evaluators'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.logs import Places, Said, Sample, flat, listed, make, one_source
from factaudit.datasets.sources import Conversion
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table, records

#: Also the columns of a frame of spans.
_PLACES = Places(
    claim=("output", "response", "answer", "generation", "attributes.output.value", "attributes.output"),
    doc=(
        *("context", "contexts", "retrieved_context", "reference", "document", "documents", "source"),
        "attributes.retrieval.documents",
    ),
    label=("label", "human", "expected", "annotation"),
    system=("model", "system", "attributes.llm.model_name", "llm.model_name"),
)
_SCORE, _DETAILS = "_score", "_execution_details"


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
    """A row is a claim, a column ``NAME_score`` what the evaluator NAME said of it.

    A score that is to be small (``direction: minimize``: hallucination) is 1 - itself here; without a number its label
    is the verdict. An evaluator that failed on a row (``NAME_execution_details``) has a verdict of the status error.
    """
    path = one_source(sources, "*.csv", "*.jsonl", "*.parquet")
    rows = [{name: listed(value) for name, value in row.items()} for row in records(read_table(path))]
    names = [name for name in rows[0] if name.endswith(_SCORE)] if rows else []
    if not any(isinstance(row[name], Mapping) for row in rows for name in names):
        raise InputError(str(path), [Problem("no column NAME_score holds scores as Phoenix's evaluators give them")])
    samples = []
    for number, row in enumerate(rows):
        said = {name.removesuffix(_SCORE): _said(row[name], row.get(_details(name))) for name in names}
        fields = {key: value for key, value in row.items() if not key.endswith((_SCORE, _DETAILS))}
        samples.append(Sample(str(row.get("context.span_id") or number), flat(fields), said))
    own: dict[str, Any] = {"claim": claim, "doc": doc, "label": label, "system": system}
    own |= {"dataset": dataset, "metrics": metrics}
    return make(samples, _PLACES, own, source=str(path), dataset=path.name.split(".")[0])


def _details(name: str) -> str:
    return name.removesuffix(_SCORE) + _DETAILS


def _said(score: Any, details: Any) -> Said:
    if not isinstance(score, Mapping):
        told = details.get("exceptions") if isinstance(details, Mapping) else None
        return Said(None, str(told) if told else None, "error")
    raw = score.get("explanation") or score.get("label")
    value = score.get("score")
    if value is None:
        return Said(score.get("label"), raw)
    return Said(1 - float(value) if score.get("direction") == "minimize" else float(value), raw)
