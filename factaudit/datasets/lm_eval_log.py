"""Samples of the Language Model Evaluation Harness (``--log_samples``): the model that was evaluated is the evaluator.

A task of the harness that asks whether a document supports a claim judges claims: the gold answer is the label, the
model's choice its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from pydantic import Field

from factaudit.datasets.framework_log_metrics import FrameworkLogMetric
from factaudit.datasets.framework_logs import (
    FrameworkLog,
    FrameworkLogSample,
    flatten_framework_log_fields,
    make_framework_log_converter,
)
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_rows
from factaudit.errors import InputError, Problem, UsageError
from factaudit.tables.vocabulary import is_reversed_column_name, normalise_vocabulary_words, parse_label_word

_LETTERS = "ABCDEFGHIJ"
#: A line of a prompt that says what a choice is: ``A. supported``, ``(1) refuted``.
_CHOICE_LINE = re.compile(r"^\s*\(?([A-J]|\d)[).:]\s+(\S.*?)\s*$", re.MULTILINE)


class _LmEvalSample(DatasetSourceRow):
    doc_id: str
    doc: dict[str, Any]
    target: Any = None
    arguments: Any = None
    filtered_resps: list[Any] = Field(default_factory=list)
    filter: str | None = None

    @property
    def choices(self) -> list[str]:
        """The texts of the choices that were ranked: in each request's arguments the second one."""
        requests = self.arguments.values() if isinstance(self.arguments, Mapping) else self.arguments or []
        arguments = [list(one.values()) if isinstance(one, Mapping) else one for one in requests]
        return [str(one[-1]).strip() for one in arguments] if self.is_ranked else []

    @property
    def choice_texts(self) -> dict[str, str]:
        """What the letters and numbers of the choices stand for, where the texts say whether the claim is attributable.

        They are a field ``choices`` or ``options`` of the document, or lines of the prompt (``A. supported``).
        """
        listed = self.doc.get("choices", self.doc.get("options"))
        if isinstance(listed, Mapping) and isinstance(listed.get("text"), list):
            names = [str(one) for one in listed.get("label") or _LETTERS]
            pairs = list(zip(names, map(str, listed["text"]), strict=False))
        elif isinstance(listed, list):
            texts = [str(one) for one in listed]
            pairs = [*zip(_LETTERS, texts, strict=False), *zip(map(str, range(len(texts))), texts, strict=True)]
        else:
            pairs = _CHOICE_LINE.findall(self.prompt)
        meanings = {normalise_vocabulary_words(name): text.strip() for name, text in pairs}
        return meanings if all(parse_label_word(text) is not None for text in meanings.values()) else {}

    @property
    def prompt(self) -> str:
        requests = list(self.arguments.values() if isinstance(self.arguments, Mapping) else self.arguments or [])
        first = requests[0] if requests else ""
        parts = list(first.values()) if isinstance(first, Mapping) else first
        return str(parts[0] if isinstance(parts, list) and parts else parts or "")

    @property
    def is_ranked(self) -> bool:
        """Whether the responses are choices' log-likelihoods, each with whether it is the greedy one."""
        responses = self.filtered_resps
        return bool(responses) and all(isinstance(one, list) and len(one) == 2 for one in responses)


@make_framework_log_converter(
    "samples_*.jsonl",
    claim=("doc.claim", "doc.sentence", "doc.statement", "doc.hypothesis", "doc.answer"),
    doc=("doc.document", "doc.doc", "doc.context", "doc.premise", "doc.evidence", "doc.passage", "doc.knowledge"),
    label=("label",),
    is_split=True,
)
def convert_lm_eval_log(path: Path, *, evaluator: str | None = None, attributable: str | None = None) -> FrameworkLog:
    """A line is a claim, and what the model answered its verdict.

    ``attributable`` is the text of the choice or answer that means attributable, or the choice's number (from 0); by
    default an answer's word says it (yes, no, supported, ...), or that of the choice which a letter or number stands
    for; where the targets are a field called after errors (HaluEval's ``hallucination``), no; else it is choice 1.
    Where choices were ranked by log-likelihood the score is that choice's share of the softmax, else the prediction is
    by the answer's text. The label is whether ``target`` is that choice. The evaluator is called ``evaluator``, else by
    the folder, in which the harness writes a model's samples. Several filters of an answer are an evaluator each
    (``mymodel (strict-match)``).

    Raises `InputError` where a target's meaning is unknown.
    """
    name = evaluator or path.parent.name or "model"
    lines = read_dataset_source_rows(path, _LmEvalSample)
    answers = dict.fromkeys(str(line.target) for line in lines if line.target is not None)
    choices = dict.fromkeys(choice for line in lines for choice in line.choices)
    if attributable is not None and not attributable.isdigit() and attributable not in {*answers, *choices}:
        known = ", ".join(map(repr, [*choices, *answers][:10]))
        raise UsageError(f"option attributable: no choice and no target is {attributable!r}; there are {known}")
    attributable = attributable or _find_answer_of_no_error(lines, [*answers])
    filters = dict.fromkeys(line.filter for line in lines)
    samples: dict[str, FrameworkLogSample] = {}
    repeated: list[FrameworkLogSample] = []
    for at, line in enumerate(lines):
        fields = flatten_framework_log_fields({"doc": line.doc})
        if line.target is not None:
            fields["label"] = _parse_lm_eval_answer(str(line.target), line, attributable, [*answers])
            if fields["label"] is None:
                shown = ", ".join(map(repr, list(answers)[:10])) + (" ..." if len(answers) > 10 else "")
                message = f"unknown target {str(line.target)!r} ({shown}): say --option attributable=TARGET"
                raise InputError(str(path), [Problem(message, at + 1, "target", "line")])
        output = _parse_lm_eval_responses(line, attributable, [*answers])
        own = f"{name} ({line.filter})" if len(filters) > 1 and line.filter else name
        first = samples.get(line.doc_id)
        if first is not None and own not in first.metric_outputs:  # a line for each filter of the answer
            samples[line.doc_id] = replace(first, metric_outputs={**first.metric_outputs, own: output})
        elif first is None:
            samples[line.doc_id] = FrameworkLogSample(line.doc_id, fields, {own: output})
        else:
            repeated.append(FrameworkLogSample(line.doc_id, fields, {own: output}))
    task = re.sub(r"^samples_|_\d{4}-.*$", "", path.name.removesuffix(".jsonl"))
    return FrameworkLog(task, [*samples.values(), *repeated], has_own_dataset=True)


def _find_answer_of_no_error(lines: Sequence[_LmEvalSample], answers: Sequence[str]) -> str | None:
    """The target that says no, where all targets are what a field called after errors says; else None."""
    fields = [flatten_framework_log_fields({"doc": line.doc}) for line in lines]
    targets = [normalise_vocabulary_words(line.target) for line in lines]
    for name in fields[0] if fields else ():
        said = [normalise_vocabulary_words(one.get(name)) for one in fields]
        if said == targets and is_reversed_column_name(name.rpartition(".")[2]):
            return next((one for one in answers if parse_label_word(one) == 0), None)
    return None


def _parse_lm_eval_answer(
    answer: str, line: _LmEvalSample, attributable: str | None, answers: Sequence[str], *, is_free: bool = False
) -> int | None:
    """1 where an answer means attributable, 0 where it does not, None where that is unknown.

    answer, attributable: a choice's text, letter or number. answers: the targets, any of which is a known answer.
    is_free: the answer is a text of the model's, no choice's number.
    """
    choices = [] if is_free else line.choices
    texts = line.choice_texts

    def find_text(value: str) -> str:
        by_number = value.isdigit() and int(value) < len(choices)
        text = choices[int(value)] if by_number else value.strip()
        return normalise_vocabulary_words(texts.get(normalise_vocabulary_words(text.strip("().:")), text))

    text = find_text(answer)
    if attributable is not None:
        known = {find_text(one) for one in (*answers, *choices)}
        return int(text == find_text(attributable)) if text in known else None
    if any(
        parse_label_word(find_text(choice)) is None for choice in choices
    ):  # the choices' texts say nothing: choice 1
        return int(text == find_text("1"))
    return parse_label_word(text)


def _parse_lm_eval_responses(
    line: _LmEvalSample, attributable: str | None, answers: Sequence[str]
) -> FrameworkLogMetric:
    if not line.filtered_resps:
        return FrameworkLogMetric(None, None, "error")
    if line.is_ranked:
        meanings = [_parse_lm_eval_answer(choice, line, attributable, answers) for choice in line.choices]
        choice = int(attributable) if attributable and attributable.isdigit() else 1
        if meanings.count(1) == 1:
            choice = meanings.index(1)
        shares = scipy.special.softmax(np.array([float(one[0]) for one in line.filtered_resps]))
        return FrameworkLogMetric(float(shares[choice]), str(line.filtered_resps))
    text = str(line.filtered_resps[0]).strip()
    meaning = _parse_lm_eval_answer(text, line, attributable, answers, is_free=True)
    return FrameworkLogMetric(text if meaning is None else bool(meaning), text)
