"""Records of TruLens (``get_records_and_feedback()`` as JSONL, CSV or Parquet): the feedbacks are the evaluators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.logs import Places, Said, Sample, listed, make, one_source
from factaudit.datasets.sources import Conversion
from factaudit.errors import InputError, Problem
from factaudit.tables import read_table, records

_CALLS = "_calls"
#: ``call.X`` is the argument X of a feedback function, as it was called.
_PLACES = Places(
    claim=("output", "main_output", "call.statement"),
    doc=("call.source", "call.context", "call.contexts", "call.document"),
    label=("label", "human", "meta.label"),
    system=("app_name", "app_id"),
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
    """A record is a claim (the app's output), a feedback an evaluator; the document is what the feedback was given.

    Feedbacks are the columns that have their calls beside them (``NAME_calls``). Records are in order of time.
    """
    path = one_source(sources, "*.jsonl", "*.csv", "*.parquet")
    table = read_table(path)
    names = [str(name) for name in table.columns if f"{name}{_CALLS}" in table.columns]
    if not names:
        raise InputError(str(path), [Problem("no feedback of TruLens in it: expected columns NAME and NAME_calls")])
    rows = records(table.sort_values("ts", kind="stable") if "ts" in table else table)
    samples = []
    for number, row in enumerate(rows):
        fields = {key: value for key, value in row.items() if key not in names and not key.endswith(_CALLS)}
        for name in names:
            fields |= {f"call.{key}": value for key, value in _arguments(row[f"{name}{_CALLS}"]).items()}
        said = {name: Said(None, None, "error") if row[name] is None else Said(float(row[name])) for name in names}
        samples.append(Sample(str(row.get("record_id") or number), fields, said))
    own: dict[str, Any] = {"claim": claim, "doc": doc, "label": label, "system": system}
    own |= {"dataset": dataset, "metrics": metrics}
    return make(samples, _PLACES, own, source=str(path), dataset=path.name.split(".")[0])


def _arguments(calls: Any) -> Mapping[str, Any]:
    """The arguments of a feedback's first call."""
    calls = listed(calls)
    first = calls[0] if isinstance(calls, list) and calls else None
    args = first.get("args") if isinstance(first, Mapping) else None
    return args if isinstance(args, Mapping) else {}
