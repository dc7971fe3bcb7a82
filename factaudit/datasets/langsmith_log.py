"""LangSmith: experiments (``to_pandas()``, the page's CSV) and exported runs; a feedback is an evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
    parse_framework_log_entries,
    parse_framework_log_json_cell,
    parse_framework_log_score_cell,
)
from factaudit.errors import InputError, Problem
from factaudit.tables import list_plain_rows
from factaudit.tables.foreign_files import read_foreign_file

_FEEDBACK = "feedback."
#: The keys of a feedback in a file of its own.
_FEEDBACK_KEYS = {"run_id", "key", "score"}
_INPUT_FIELDS = ("inputs.context", "inputs.document", "inputs.documents", "inputs.source", "inputs.passage")


@make_framework_log_converter(
    "*.csv",
    "*.jsonl",
    "*.json",
    "*.parquet",
    claim=("outputs.answer", "outputs.output", "outputs.response", "outputs.claim", "inputs.claim", "outputs"),
    doc=(*_INPUT_FIELDS, "outputs.documents", "outputs.contexts", "outputs.context"),
    label=(
        *("reference.label", "reference.human_label", "feedback.human", "feedback.human_label", "feedback.label"),
        *("extra.metadata.label", "extra.metadata.human"),
    ),
    system=("extra.metadata.model", "extra.metadata.ls_model_name"),
    is_joint=True,
)
def convert_langsmith_log(paths: Sequence[Path]) -> FrameworkLog:
    """A run is a claim (its output), a feedback an evaluator, but the one that the label is taken from.

    Feedback may stand in a file of its own. A run that several gave one feedback has their mean as its score. What
    people said on LangSmith's pages is the field ``feedback.human``.
    """
    tables = [list_plain_rows(read_foreign_file(path)) for path in paths]
    runs = [row for table in tables for row in table if _FEEDBACK_KEYS - {*row}]
    said = [row for table in tables for row in table if not _FEEDBACK_KEYS - {*row}]
    if said and not runs:
        message = "feedback without the runs that it is of: give the file of runs too"
        raise InputError(", ".join(map(str, paths)), [Problem(message)])
    path, rows = paths[0], _add_langsmith_feedback(runs, said)
    samples = parse_framework_log_entries(path, list(enumerate(rows)), _parse_langsmith_run)
    if not any(sample.metric_outputs for sample in samples):
        raise InputError(str(path), [Problem("no feedback of LangSmith: expected feedback.NAME or feedback_stats")])
    return FrameworkLog(path.name.split(".")[0], samples)


def _add_langsmith_feedback(
    runs: Sequence[Mapping[str, Any]], feedback: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The runs with what each feedback of another file said of them: the mean of several numbers, a word where all say
    it."""
    human_keys = {one["key"] for one in feedback if one.get("feedback_source.type") == "app"}
    given: dict[str, dict[str, list[Any]]] = {}
    for one in feedback:
        if one.get("feedback_source.type") != "app":
            name = one["key"]
        else:
            name = "human" if len(human_keys) == 1 else f"human.{one['key']}"
        score = parse_framework_log_score_cell(one["score"])
        value = one.get("value") if score is None else score
        given.setdefault(str(one["run_id"]), {}).setdefault(f"{_FEEDBACK}{name}", []).append(value)
    found = [given.get(str(run.get("id")), {}) for run in runs]
    joined = [{key: _join_feedback(said) for key, said in one.items()} for one in found]
    return [{**run, **one} for run, one in zip(runs, joined, strict=True)]


def _join_feedback(values: Sequence[Any]) -> Any:
    if all(isinstance(value, bool | int | float) for value in values):
        return fmean(map(float, values))
    return values[0] if len({*map(str, values)}) == 1 else None


def _parse_langsmith_run(numbered_row: tuple[int, Mapping[str, Any]]) -> FrameworkLogSample:
    number, row = numbered_row
    row = {key: parse_framework_log_json_cell(value) for key, value in row.items()}
    fields = flatten_framework_log_fields(row)
    outputs: dict[str, FrameworkLogMetric] = {}
    for key, value in fields.items():
        name, _, part = key.removeprefix("feedback_stats.").rpartition(".")
        if key.startswith("feedback_stats.") and part == "avg":
            outputs[name] = FrameworkLogMetric(value)
        elif key.startswith(_FEEDBACK):
            said = parse_framework_log_score_cell(value)
            outputs[key.removeprefix(_FEEDBACK)] = FrameworkLogMetric(said, None, "error" if said is None else "ok")
    shown = {key: value for key, value in fields.items() if not key.startswith("feedback_stats.")}
    shown |= {f"{_FEEDBACK}{name}": output.value for name, output in outputs.items()}
    return FrameworkLogSample(str(row.get("id") or row.get("run_id") or number), shown, outputs)
