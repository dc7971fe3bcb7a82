"""Samples of the Language Model Evaluation Harness (``--log_samples``): the model that was evaluated is the evaluator.

A task of the harness that asks whether a document supports a claim judges claims: the gold answer is the label, the
model's choice its verdict.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field
from scipy.special import softmax

from factaudit.datasets.logs import Places, Said, Sample, flat, make
from factaudit.datasets.sources import Conversion, Row, expand, read_rows

_PLACES = Places(
    claim=("doc.claim", "doc.sentence", "doc.statement", "doc.hypothesis", "doc.answer"),
    doc=("doc.document", "doc.doc", "doc.context", "doc.premise", "doc.evidence", "doc.passage"),
    label=("label",),
)


class _Line(Row):
    doc_id: str
    doc: dict[str, Any]
    target: Any = None
    filtered_resps: list[Any] = Field(default_factory=list)


def convert(
    sources: Sequence[Path],
    *,
    claim: str | None = None,
    doc: str | None = None,
    label: str | None = None,
    system: str | None = None,
    dataset: str | None = None,
    evaluator: str | None = None,
    attributable: str = "1",
) -> Conversion:
    """A line is a claim, and what the model answered its verdict.

    Where choices were ranked by log-likelihood the score is the softmax's share of the choice ``attributable`` (its
    number, from 0), else the prediction is what the text answered. The label is whether ``target`` is that choice. The
    evaluator is called ``evaluator``, else by the folder, in which the harness writes a model's samples.
    """
    paths = list(expand(sources, "samples_*.jsonl"))
    samples = []
    for path in paths:
        name = evaluator or path.parent.name or "model"
        for line in read_rows(path, _Line):
            fields = flat({"doc": line.doc})
            if line.target is not None:
                fields["label"] = int(str(line.target).strip() == attributable)
            samples.append(Sample(line.doc_id, fields, {name: _said(line.filtered_resps, attributable)}))
    task = re.sub(r"^samples_|_\d{4}-.*$", "", paths[0].name.removesuffix(".jsonl"))
    own = {"claim": claim, "doc": doc, "label": label, "system": system, "dataset": dataset}
    return make(samples, _PLACES, own, source=", ".join(map(str, paths)), dataset=task)


def _said(responses: Sequence[Any], attributable: str) -> Said:
    if not responses:
        return Said(None, None, "error")
    if all(isinstance(one, list) and len(one) == 2 for one in responses):  # (log-likelihood, is it the greedy one)
        shares = softmax(np.array([float(one[0]) for one in responses]))
        return Said(float(shares[int(attributable)]), str(responses))
    text = str(responses[0]).strip()
    return Said(True, text) if text == attributable else Said(text, text)
