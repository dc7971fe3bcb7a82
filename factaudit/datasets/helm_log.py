"""HELM: a run's ``per_instance_stats.json``, and the texts in ``scenario_state.json`` beside it; stats judge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
)
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_items, read_dataset_source_json
from factaudit.errors import InputError, Problem

#: Stats that count, time or describe a request, and judge nothing.
_BOOKKEEPING = re.compile(
    r"num_|finish_reason|inference_|training_|batch_size|logprob|max_prob|predicted_index|prompt_truncated"
    r"|perplexity|bits_per_byte|output_length|ref_length|quasi_length|cost|latency|runtime"
)


class _StatName(DatasetSourceRow):
    name: str


class _Stat(DatasetSourceRow):
    name: _StatName
    count: int = 0
    mean: float | None = None


class _HelmInstanceStats(DatasetSourceRow):
    instance_id: str
    train_trial_index: int = 0
    perturbation: dict[str, Any] | None = None
    stats: list[_Stat]


@make_framework_log_converter(
    "per_instance_stats.json",
    "scenario_state.json",
    claim=("completion",),
    doc=("instance.extra_data.context", "instance.extra_data.document", "input"),
    label=("instance.extra_data.label", "instance.extra_data.human_label"),
    system=("model",),
    is_joint=True,
)
def convert_helm_log(paths: Sequence[Path]) -> FrameworkLog:
    """An instance is a claim (the model's first completion), a stat between 0 and 1 an evaluator.

    Perturbed instances are left out; further trials are repeats.
    """
    stats_paths = [path for path in paths if path.name != "scenario_state.json"]
    if len(stats_paths) != 1:
        raise InputError(", ".join(map(str, paths)), [Problem("expected one per_instance_stats.json")])
    (path,) = stats_paths
    stats = read_dataset_source_items(path, _HelmInstanceStats)
    state_path = next((one for one in paths if one.name == "scenario_state.json"), path.parent / "scenario_state.json")
    if not state_path.is_file():
        message = "the texts are in the run's scenario_state.json, which is not beside it: give it too"
        raise InputError(str(path), [Problem(message)])
    texts, run_name = _read_helm_request_texts(state_path)
    samples = []
    for one in stats.values():
        if one.perturbation is not None or (one.instance_id, one.train_trial_index) not in texts:
            continue
        outputs = {
            stat.name.name: FrameworkLogMetric(stat.mean)
            for stat in one.stats
            if stat.count and not _BOOKKEEPING.search(stat.name.name)
        }
        samples.append(
            FrameworkLogSample(
                one.instance_id, texts[one.instance_id, one.train_trial_index], outputs, one.train_trial_index
            )
        )
    return FrameworkLog(run_name or path.parent.name or "helm", samples)


def _read_helm_request_texts(path: Path) -> tuple[dict[tuple[str, int], dict[str, Any]], str]:
    """By instance and trial the fields of its request, without those that were perturbed; and the model's name."""
    state: dict[str, Any] = read_dataset_source_json(path, dict[str, Any])
    adapter = state.get("adapter_spec") or {}
    fields: dict[tuple[str, int], dict[str, Any]] = {}
    for request in state.get("request_states") or []:
        instance = request.get("instance") or {}
        if instance.get("perturbation") is not None:
            continue
        completions = (request.get("result") or {}).get("completions") or []
        references = [one for one in instance.get("references") or [] if isinstance(one, Mapping)]
        own = {
            "completion": completions[0].get("text") if completions else None,
            "input": (instance.get("input") or {}).get("text"),
            "model": adapter.get("model"),
            "references": [(one.get("output") or {}).get("text") for one in references],
            "instance": {"extra_data": instance.get("extra_data") or {}},
        }
        fields[str(instance.get("id")), int(request.get("train_trial_index") or 0)] = flatten_framework_log_fields(own)
    return fields, path.parent.name
