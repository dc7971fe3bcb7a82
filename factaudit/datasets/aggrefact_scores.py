"""Scores on LLM-AggreFact's claims: JSON files {dataset: [[label, score], ...]}, one per evaluator, row-aligned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from factaudit.datasets.aligned import Scores, align, names
from factaudit.datasets.sources import Conversion, Label, Names, Probability, expand, read_json
from factaudit.errors import InputError, Problem


def convert(sources: Sequence[Path], *, name: Names = ()) -> Conversion:
    """One claim per row and dataset, and one verdict per file; the evaluators are named after the files, or ``name``.

    The files must agree on datasets, rows and labels. They have neither text nor systems.
    """
    paths = list(expand(sources, "*.json"))
    return align([_read(path) for path in paths], names(paths, name), "aggrefact-scores")


def _read(path: Path) -> Scores:
    data: dict[str, list[tuple[int, float]]] = read_json(path, dict[str, list[tuple[Label, Probability]]])
    rows = {dataset: np.array(pairs, dtype=np.float64) for dataset, pairs in data.items() if pairs}
    if not rows:
        raise InputError(str(path), [Problem("the file has no rows")])
    return Scores(
        path,
        {dataset: pairs[:, 0].astype(np.int8) for dataset, pairs in rows.items()},
        {dataset: pairs[:, 1] for dataset, pairs in rows.items()},
    )
