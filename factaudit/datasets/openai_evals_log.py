"""Logs of OpenAI Evals (``oaieval``'s JSONL of events): a grader, or a model that was asked, is the evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_rows
from factaudit.errors import InputError, Problem

_EVENT_TYPES = ("sampling", "metrics", "match", "error")


class _EvalSpec(DatasetSourceRow):
    completion_fns: list[str] = Field(default_factory=list)
    eval_name: str = ""


class _OpenAIEvalEvent(DatasetSourceRow):
    spec: _EvalSpec | None = None
    sample_id: str | None = None
    type: str | None = None
    data: dict[str, Any] | None = None


class _EvalSampleLine(DatasetSourceRow, extra="allow"):
    """A line of the eval's samples, which the log does not have."""


@make_framework_log_converter(
    "*.jsonl",
    claim=(
        *("sample.claim", "sample.statement", "sample.hypothesis", "sample.sentence", "sample.completion"),
        *("written", "prompt"),
    ),
    doc=("sample.document", "sample.doc", "sample.context", "sample.source", "sample.passage", "sample.premise"),
    label=("expected", "sample.label", "sample.human", "sample.choice"),
    system=("system",),
)
def convert_openai_evals_log(path: Path, *, samples: Path | None = None) -> FrameworkLog:
    """A sample is a claim.

    Of a model-graded eval (events ``metrics``) the claim is what the model wrote, and the grader's score (else its
    choice) the verdict of an evaluator called like the eval; further metrics are evaluators of their names. Of an eval
    that compares a model's answer with the ideal one (events ``match``) the model is the evaluator, what it answered
    its verdict, and the ideal answer the label. The log has prompts and replies; the fields of the eval's samples
    (``samples``: its JSONL) are ``sample.NAME``, found by the number that ends a sample's id.
    """
    events = read_dataset_source_rows(path, _OpenAIEvalEvent)
    spec = next((event.spec for event in events if event.spec is not None), None)
    if spec is None:
        raise InputError(str(path), [Problem("expected a line with the key 'spec', as OpenAI Evals writes it")])
    rows = (
        [] if samples is None else [one.model_extra or {} for one in read_dataset_source_rows(samples, _EvalSampleLine)]
    )
    events_by_sample: dict[str, list[_OpenAIEvalEvent]] = {}
    for event in events:
        if event.sample_id is not None:
            events_by_sample.setdefault(event.sample_id, []).append(event)
    name, model = spec.eval_name.split(".")[0] or path.stem, (spec.completion_fns or ["model"])[0]
    log_samples = [
        _parse_openai_eval_sample(
            sample_id, events_by_sample[sample_id], _find_openai_sample_line(rows, sample_id, samples), name, model
        )
        for sample_id in sorted(events_by_sample, key=_split_sample_number)
    ]
    return FrameworkLog(name, log_samples)


def _split_sample_number(sample_id: str) -> tuple[str, int]:
    start, _, end = sample_id.rpartition(".")
    return (start, int(end)) if end.isdigit() else (sample_id, 0)


def _find_openai_sample_line(
    sample_lines: Sequence[Mapping[str, Any]], sample_id: str, samples_path: Path | None
) -> Mapping[str, Any]:
    if samples_path is None:
        return {}
    at = _split_sample_number(sample_id)[1]
    if at >= len(sample_lines):
        message = f"sample {sample_id!r} of the log is not among its {len(sample_lines):,} lines"
        raise InputError(str(samples_path), [Problem(message)])
    return sample_lines[at]


def _parse_openai_eval_sample(
    sample_id: str, events: Sequence[_OpenAIEvalEvent], sample_line: Mapping[str, Any], eval_name: str, model: str
) -> FrameworkLogSample:
    data_of = {kind: [event.data or {} for event in events if event.type == kind] for kind in _EVENT_TYPES}
    replies = data_of["sampling"]
    fields = {f"sample.{key}": value for key, value in flatten_framework_log_fields(sample_line).items()}
    if replies:
        fields["prompt"] = replies[0].get("prompt")
    outputs: dict[str, FrameworkLogMetric] = {}
    for data in data_of["metrics"]:
        if len(replies) > 1:  # the first reply is the model's, and the last one the grader's
            fields |= {"written": replies[0].get("sampled"), "system": replies[0].get("model") or model}
        outputs |= _parse_openai_eval_metrics(
            data, eval_name, _format_reply_text(replies[-1].get("sampled")) if replies else None
        )
    for data in data_of["match"]:
        expected = data.get("expected")
        fields["expected"] = expected[0] if isinstance(expected, list) and len(expected) == 1 else expected
        picked, reply = data.get("picked"), _format_reply_text(data.get("sampled"))
        outputs[model] = FrameworkLogMetric(reply if picked is None else picked, reply)
    for data in data_of["error"]:
        outputs = dict.fromkeys(outputs or [eval_name], FrameworkLogMetric(None, str(data.get("message")), "error"))
    return FrameworkLogSample(sample_id, fields, outputs)


def _parse_openai_eval_metrics(
    data: Mapping[str, Any], eval_name: str, reply: str | None
) -> dict[str, FrameworkLogMetric]:
    """The outputs of a sample's metrics: ``score`` (else ``choice``) is the eval's verdict."""
    outputs = {
        key: FrameworkLogMetric(value if isinstance(value, bool) else float(value))
        for key, value in data.items()
        if key not in ("score", "choice") and isinstance(value, bool | int | float)
    }
    if "score" not in data and "choice" not in data:
        return outputs
    score = data.get("score")
    return {eval_name: FrameworkLogMetric(data.get("choice") if score is None else float(score), reply)} | outputs


def _format_reply_text(reply: Any) -> str | None:
    if isinstance(reply, list):
        reply = "\n".join(map(str, reply))
    return None if reply is None else str(reply)
