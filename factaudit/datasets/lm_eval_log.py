"""Samples of the Language Model Evaluation Harness (``--log_samples``): the model that was
evaluated is the evaluator.

A task of the harness that asks whether a document supports a claim judges claims: the gold answer
is the label, the model's choice its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from pydantic import Field

from factaudit.datasets.source_files import SourceRow, read_rows
from factaudit.errors import InputError, Problem
from factaudit.tables.vocabulary import (
    is_reversed_column_name,
    normalise_vocabulary_words,
    parse_label_word,
)


class _Sample(SourceRow):
    doc_id: str
    doc: dict[str, Any]
    target: Any = None
    arguments: list[list[Any] | dict[str, Any]] | dict[str, list[Any] | dict[str, Any]] | None = (
        None
    )
    filtered_resps: list[Any] = Field(default_factory=list)
    filter: str | None = None

    @property
    def choices(self) -> list[str]:
        """The texts of the choices that were ranked by log-likelihood; none where the model
        answered freely."""
        if not all(
            isinstance(one, list) and len(one) == 2 for one in self.filtered_resps or [None]
        ):
            return []
        requests = (
            self.arguments.values() if isinstance(self.arguments, Mapping) else self.arguments or []
        )
        texts = [list(one.values()) if isinstance(one, Mapping) else one for one in requests]
        return [str(one[-1]).strip() for one in texts]

    @property
    def answer(self) -> str | None:
        """What the target says: its text, or that of the choice whose number it is."""
        text = None if self.target is None else str(self.target).strip()
        return dict(zip(map(str, range(len(self.choices))), self.choices, strict=True)).get(
            text or "", text
        )


#: 1 where an answer means attributable, 0 where it does not, None where that is unknown.
_ReadAnswer = Callable[[str], int | None]


def _make_answer_reader(lines: Sequence[_Sample], labels: Mapping[str, int | None]) -> _ReadAnswer:
    """What the answers of a task mean: as the user says; or what their words say, turned round
    where the targets are a field called after errors (HaluEval's ``hallucination``)."""
    said = {normalise_vocabulary_words(word): value for word, value in labels.items()}
    targets = [
        (line.doc, normalise_vocabulary_words(line.answer))
        for line in lines
        if line.answer is not None
    ]
    is_reversed = any(
        all(normalise_vocabulary_words(doc.get(name)) == text for doc, text in targets)
        for name in lines[0].doc
        if is_reversed_column_name(name)
    )

    def read(answer: str) -> int | None:
        word = normalise_vocabulary_words(answer)
        if said:
            return said.get(word)
        value = None if answer.isdigit() else parse_label_word(word)
        return 1 - value if value is not None and is_reversed else value

    return read


def _read_responses(line: _Sample, read: _ReadAnswer) -> float | int | None:
    """A score if the model ranked choices, a prediction if it answered with text, None if the row
    has neither."""
    if not line.choices:
        return read(str(line.filtered_resps[0])) if line.filtered_resps else None
    meanings = [read(choice) for choice in line.choices]
    try:
        shares = scipy.special.softmax(np.array([float(one[0]) for one in line.filtered_resps]))
        return float(shares[meanings.index(1)]) if meanings.count(1) == 1 else None
    except (TypeError, ValueError, IndexError):  # no log-likelihood of each choice
        return None


def read_lm_eval_log(
    path: Path, labels: Mapping[str, int | None], evaluator: str | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """A file's task, and its claims with labels and ``scores`` by evaluator, and their texts as
    ``replies``.

    labels: what the texts of choices and answers mean; by default their words say it (yes, no,
    supported, ...). Where choices were ranked by log-likelihood the score is the share of the
    softmax that the attributable one has, else the prediction is by the answer's text. The
    evaluator is called ``evaluator``, else by the folder, in which the harness writes a model's
    samples. Several filters of an answer are an evaluator each (``mymodel (strict-match)``).

    Raises `InputError` where a target's meaning is unknown.
    """
    model = evaluator or path.parent.name or "model"
    lines = read_rows(path, _Sample)
    read = _make_answer_reader(lines, labels)
    has_filters = len({line.filter for line in lines}) > 1
    found: list[dict[str, Any]] = []
    for line in lines:
        label = None if line.answer is None else read(line.answer)
        if line.answer is not None and label is None and line.answer not in labels:
            answers = [*dict.fromkeys(one.answer for one in lines if one.answer is not None)]
            example = ",".join(
                f"{word}={value}" for word, value in zip(answers, (1, 0), strict=False)
            )
            message = (
                f"unknown target {line.answer!r} ({', '.join(map(repr, answers[:10]))}): say"
                f" --labels {example}"
            )
            raise InputError(str(path), [Problem(message, line.position, "target", "line")])
        own = f"{model} ({line.filter})" if has_filters and line.filter else model
        waiting = (
            one
            for one in found
            if has_filters and one["doc_id"] == line.doc_id and own not in one["scores"]
        )
        sample = next(waiting, None)  # a line for each filter of the answer
        if sample is None:
            sample = {
                "doc_id": line.doc_id,
                "doc": line.doc,
                "label": label,
                "scores": {},
                "replies": {},
            }
            found.append(sample)
        sample["scores"][own] = _read_responses(line, read)
        if line.filtered_resps:
            sample["replies"][own] = str(
                line.filtered_resps if line.choices else line.filtered_resps[0]
            ).strip()
    return re.sub(r"^samples_|_\d{4}-.*$", "", path.name.removesuffix(".jsonl")), found
