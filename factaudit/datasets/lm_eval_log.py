"""Samples of the Language Model Evaluation Harness (``--log_samples``).

Here the model that was evaluated is the evaluator: a task that asks whether a document supports a
claim judges claims. The gold answer is the label, the model's choice its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from pydantic import Field

from factaudit.datasets.source_files import SourceRow, describe_wrong_file, read_rows
from factaudit.tables.vocabulary import is_reversed_name, parse_label_word


class _Line(SourceRow):
    doc_id: str
    doc: dict[str, Any]
    target: Any
    arguments: Any = None
    filtered_resps: list[Any] = Field(min_length=1)
    filter: str | None = None


def read_lm_eval_log(
    path: Path, labels: Mapping[str, int | None]
) -> tuple[str | None, list[dict[str, Any]]]:
    """The name of a file's task, and its claims: each with its ``target``, and with ``scores`` by
    evaluator.

    Targets and answers are words that are read like those of any table (yes, supported, ...). Where
    the model ranked choices by log-likelihood, and their words say which is "attributable", its
    score is the share of the softmax that this choice has. The evaluator is called as the folder,
    in which the harness writes a model's samples; several filters of an answer are an evaluator
    each (``mymodel (strict-match)``). labels: what the words mean, if the user
    says so.
    """
    lines = read_rows(path, _Line)
    _check_targets_are_no_errors(path, lines)
    model = path.parent.name or "model"
    has_filters = len({line.filter for line in lines}) > 1
    samples: dict[str, dict[str, Any]] = {}
    for line in lines:
        choices = _list_choices(line)
        target = "" if line.target is None else str(line.target).strip()
        if target in map(str, range(len(choices))):
            target = choices[int(target)]
        new = {"doc": line.doc, "target": _name_answer(target, labels), "scores": {}}
        sample = samples.setdefault(line.doc_id, {"doc_id": line.doc_id, **new})
        own = f"{model} ({line.filter})" if has_filters else model
        if own in sample["scores"]:
            message = f"a second answer to doc_id {line.doc_id!r}: keep one line for each sample"
            raise describe_wrong_file(path, message, line.position, unit="line")
        sample["scores"][own] = _read_verdict(line, choices, labels)
    task = re.sub(r"^samples_|_\d{4}-.*$", "", path.name.removesuffix(".jsonl"))
    return task, [*samples.values()]


def _check_targets_are_no_errors(path: Path, lines: list[_Line]) -> None:
    """Raise `InputError` where the targets are a field like HaluEval's ``hallucination``, of which
    "yes" is no support: the model's answers would be read upside down."""
    for name in filter(is_reversed_name, lines[0].doc):
        if all(str(line.doc.get(name)) == str(line.target) for line in lines):
            message = f"the targets are the field {name!r}, of which yes means an error"
            wanted = "export a table with claim, doc, label and prediction (1: supported)"
            raise describe_wrong_file(path, f"{message}: {wanted}", column="target")


def _list_choices(line: _Line) -> list[str]:
    """The choices that were ranked by log-likelihood; none where the model answered freely."""
    if not all(isinstance(one, list) and len(one) == 2 for one in line.filtered_resps):
        return []
    requests = line.arguments or []
    requests = [*requests.values()] if isinstance(requests, Mapping) else requests
    texts = [[*one.values()] if isinstance(one, Mapping) else one for one in requests]
    return [str(one[-1]).strip() for one in texts]


def _name_answer(text: str, labels: Mapping[str, int | None]) -> str | None:
    """An answer in words. A number is one of a choice, and no label; no answer where a filter found
    none."""
    if text == "[invalid]":
        return None
    return f"choice {text}" if text.isdigit() and text not in labels else text


def _read_verdict(
    line: _Line, choices: list[str], labels: Mapping[str, int | None]
) -> float | str | None:
    """The share of the choice for "attributable"; else what the model answered or chose."""
    if not choices:
        return _name_answer(str(line.filtered_resps[0]).strip(), labels)
    if len(choices) != len(line.filtered_resps):
        return None
    likelihoods = np.array([float(one[0]) for one in line.filtered_resps])
    meanings = [labels.get(one) if labels else parse_label_word(one) for one in choices]
    if meanings.count(1) == 1 and None not in meanings:
        return float(scipy.special.softmax(likelihoods)[meanings.index(1)])
    return choices[int(likelihoods.argmax())]
