"""Logs of OpenAI Evals (``oaieval``'s JSONL of events): a grader, or a model that was asked, is the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from factaudit.datasets.logs import Places, Said, Sample, flat, make, one_source
from factaudit.datasets.sources import Conversion, Row, read_rows
from factaudit.errors import InputError, Problem

_PLACES = Places(
    claim=(
        *("sample.claim", "sample.statement", "sample.hypothesis", "sample.sentence", "sample.completion"),
        *("written", "prompt"),
    ),
    doc=("sample.document", "sample.doc", "sample.context", "sample.source", "sample.passage", "sample.premise"),
    label=("expected", "sample.label", "sample.human", "sample.choice"),
    system=("system",),
)


class _Spec(Row):
    completion_fns: list[str] = Field(default_factory=list)
    eval_name: str = ""


class _Event(Row):
    spec: _Spec | None = None
    sample_id: str | None = None
    type: str | None = None
    data: dict[str, Any] | None = None


class _Line(Row, extra="allow"):
    """A line of the eval's samples, which the log does not have."""


def convert(
    sources: Sequence[Path],
    *,
    claim: str | None = None,
    doc: str | None = None,
    label: str | None = None,
    system: str | None = None,
    dataset: str | None = None,
    metrics: Sequence[str] | str | None = None,
    samples: Path | None = None,
) -> Conversion:
    """A sample is a claim.

    Of a model-graded eval (events ``metrics``) the claim is what the model wrote, and the grader's score (else its
    choice) the verdict of an evaluator called like the eval; further metrics are evaluators of their names. Of an eval
    that compares a model's answer with the ideal one (events ``match``) the model is the evaluator, what it answered
    its verdict, and the ideal answer the label. The log has prompts and replies; the fields of the eval's samples
    (``samples``: its JSONL) are ``sample.NAME``, found by the number that ends a sample's id.
    """
    path = one_source(sources, "*.jsonl")
    events = read_rows(path, _Event)
    spec = next((event.spec for event in events if event.spec is not None), None)
    if spec is None:
        raise InputError(str(path), [Problem("expected a line with the key 'spec', as OpenAI Evals writes it")])
    rows = [] if samples is None else [one.model_extra or {} for one in read_rows(samples, _Line)]
    of: dict[str, list[_Event]] = {}
    for event in events:
        if event.sample_id is not None:
            of.setdefault(event.sample_id, []).append(event)
    name, model = spec.eval_name.split(".")[0] or path.stem, (spec.completion_fns or ["model"])[0]
    made = [_sample(one, said, _row(rows, one, samples), name, model) for one, said in sorted(of.items(), key=_number)]
    own: dict[str, Any] = {"claim": claim, "doc": doc, "label": label, "system": system}
    return make(made, _PLACES, own | {"dataset": dataset, "metrics": metrics}, source=str(path), dataset=name)


def _number(item: tuple[str, Any]) -> tuple[str, int]:
    start, _, end = item[0].rpartition(".")
    return (start, int(end)) if end.isdigit() else (item[0], 0)


def _row(rows: Sequence[Mapping[str, Any]], sample_id: str, source: Path | None) -> Mapping[str, Any]:
    if source is None:
        return {}
    at = _number((sample_id, None))[1]
    if at >= len(rows):
        raise InputError(
            str(source), [Problem(f"sample {sample_id!r} of the log is not among its {len(rows):,} lines")]
        )
    return rows[at]


def _sample(sample_id: str, events: Sequence[_Event], row: Mapping[str, Any], name: str, model: str) -> Sample:
    of = {kind: [event.data or {} for event in events if event.type == kind] for kind in _KINDS}
    first = of["sampling"][0] if of["sampling"] else {}
    fields = {f"sample.{key}": value for key, value in flat(row).items()}
    fields |= {"prompt": first.get("prompt")} if first else {}
    said: dict[str, Said] = {}
    for data in of["metrics"]:
        if len(of["sampling"]) > 1:  # it wrote something, and something else graded that
            fields |= {"written": first.get("sampled"), "system": first.get("model") or model}
        said |= _measured(data, name, _text(of["sampling"][-1].get("sampled")) if of["sampling"] else None)
    for data in of["match"]:
        fields["expected"] = data.get("expected")
        picked, told = data.get("picked"), _text(data.get("sampled"))
        said[model] = Said(told if picked is None else picked, told)
    for data in of["error"]:
        said = {one: Said(None, str(data.get("message")), "error") for one in [*said] or [name]}
    return Sample(sample_id, fields, said)


_KINDS = ("sampling", "metrics", "match", "error")


def _measured(data: Mapping[str, Any], name: str, raw: str | None) -> dict[str, Said]:
    """What the metrics of a sample say: `score` (else `choice`) is the eval's verdict."""
    score, choice = data.get("score"), data.get("choice")
    said = {name: Said(choice if score is None else float(score), raw)} if {"score", "choice"} & set(data) else {}
    others = {key: value for key, value in data.items() if key not in ("score", "choice")}
    return said | {
        key: Said(value if isinstance(value, bool) else float(value))
        for key, value in others.items()
        if isinstance(value, bool | int | float)
    }


def _text(value: Any) -> str | None:
    if isinstance(value, list):
        value = "\n".join(map(str, value))
    return None if value is None else str(value)
