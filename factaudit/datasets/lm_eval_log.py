"""Samples of the Language Model Evaluation Harness (``--log_samples``): the model that was evaluated is the evaluator.

A task of the harness that asks whether a document supports a claim judges claims: the gold answer is the label, the
model's choice its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from pydantic import Field

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
    arguments: list[list[Any] | dict[str, Any]] | dict[str, list[Any] | dict[str, Any]] | None = None
    filtered_resps: list[Any] = Field(default_factory=list)
    filter: str | None = None

    @property
    def requests(self) -> list[list[Any]]:
        """The arguments of each request: the prompt, then the choice that was ranked."""
        found = self.arguments.values() if isinstance(self.arguments, Mapping) else self.arguments or []
        return [list(one.values()) if isinstance(one, Mapping) else one for one in found]

    @property
    def choices(self) -> list[str]:
        """The texts of the choices that were ranked by log-likelihood; none where the model answered freely."""
        is_ranked = self.filtered_resps and all(isinstance(one, list) and len(one) == 2 for one in self.filtered_resps)
        return [str(one[-1]).strip() for one in self.requests] if is_ranked else []

    @property
    def choice_texts(self) -> dict[str, str]:
        """What the letters and numbers of the choices stand for, where the texts say whether the claim is attributable.

        They are a field ``choices`` or ``options`` of the document, or lines of the prompt (``A. supported``).
        """
        listed = self.doc.get("choices", self.doc.get("options"))
        if isinstance(listed, Mapping) and isinstance(listed.get("text"), list):
            pairs = list(zip(map(str, listed.get("label") or _LETTERS), map(str, listed["text"]), strict=False))
        elif isinstance(listed, list):
            pairs = [(name, str(text)) for at, text in enumerate(listed) for name in (_LETTERS[at : at + 1], str(at))]
        else:
            first = self.requests[0] if self.requests else ""
            pairs = _CHOICE_LINE.findall(str(first[0] if isinstance(first, list) and first else first))
        meanings = {normalise_vocabulary_words(name): text.strip() for name, text in pairs}
        return meanings if all(parse_label_word(text) is not None for text in meanings.values()) else {}


def read_lm_eval_log(
    path: Path, evaluator: str | None = None, attributable: str | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """A file's task, and its claims with labels and ``scores`` by evaluator, and their texts as ``replies``.

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
    answers = list(dict.fromkeys(str(line.target) for line in lines if line.target is not None))
    choices = dict.fromkeys(choice for line in lines for choice in line.choices)
    if attributable is not None and not attributable.isdigit() and attributable not in {*answers, *choices}:
        known = ", ".join(map(repr, [*choices, *answers][:10]))
        raise UsageError(f"option attributable: no choice and no target is {attributable!r}; there are {known}")
    attributable = attributable or _find_answer_of_no_error(lines, answers)
    has_filters = len({line.filter for line in lines}) > 1
    found: list[dict[str, Any]] = []
    first: dict[str, dict[str, Any]] = {}
    for at, line in enumerate(lines):
        label = None if line.target is None else _parse_answer(str(line.target), line, attributable, answers)
        if line.target is not None and label is None:
            shown = ", ".join(map(repr, answers[:10])) + (" ..." if len(answers) > 10 else "")
            message = f"unknown target {str(line.target)!r} ({shown}): say --option attributable=TARGET"
            raise InputError(str(path), [Problem(message, at + 1, "target", "line")])
        own = f"{name} ({line.filter})" if has_filters and line.filter else name
        said: dict[str, dict[str, Any]] = {
            "scores": {own: _parse_responses(line, attributable, answers)},
            "replies": {},
        }
        if line.filtered_resps:
            said["replies"][own] = str(line.filtered_resps if line.choices else line.filtered_resps[0]).strip()
        before = first.get(line.doc_id)
        if before is not None and own not in before["scores"]:  # a line for each filter of the answer
            before["scores"] |= said["scores"]
            before["replies"] |= said["replies"]
        else:
            found.append({"doc_id": line.doc_id, "doc": line.doc, "label": label, **said})
            first.setdefault(line.doc_id, found[-1])
    return re.sub(r"^samples_|_\d{4}-.*$", "", path.name.removesuffix(".jsonl")), found


def _find_answer_of_no_error(lines: Sequence[_LmEvalSample], answers: Sequence[str]) -> str | None:
    """The target that says no, where all targets are what a field called after errors says; else None."""
    targets = [normalise_vocabulary_words(line.target) for line in lines]
    for name in lines[0].doc if lines else ():
        said = [normalise_vocabulary_words(line.doc.get(name)) for line in lines]
        if said == targets and is_reversed_column_name(name):
            return next((one for one in answers if parse_label_word(one) == 0), None)
    return None


def _parse_answer(
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
    if any(parse_label_word(find_text(choice)) is None for choice in choices):  # their texts say nothing: choice 1
        return int(text == find_text("1"))
    return parse_label_word(text)


def _parse_responses(line: _LmEvalSample, attributable: str | None, answers: Sequence[str]) -> float | int | None:
    """The score of ranked choices, the prediction of an answer's text, None where the row has neither."""
    if not line.filtered_resps:
        return None
    if not line.choices:
        return _parse_answer(str(line.filtered_resps[0]).strip(), line, attributable, answers, is_free=True)
    meanings = [_parse_answer(choice, line, attributable, answers) for choice in line.choices]
    choice = int(attributable) if attributable and attributable.isdigit() else 1
    if meanings.count(1) == 1:
        choice = meanings.index(1)
    try:
        return float(scipy.special.softmax(np.array([float(one[0]) for one in line.filtered_resps]))[choice])
    except (TypeError, ValueError, IndexError):  # no log-likelihood of each choice
        return None
