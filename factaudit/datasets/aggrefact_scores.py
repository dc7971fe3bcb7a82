"""Scores on LLM-AggreFact's claims: JSON files {dataset: [[label, score], ...]}, one per evaluator, row-aligned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from factaudit.datasets.row_aligned_scores import (
    RowAlignedScores,
    convert_row_aligned_scores,
    name_row_aligned_evaluators,
)
from factaudit.datasets.source_files import (
    BinaryLabel,
    Conversion,
    NamesOption,
    Probability,
    expand_dataset_source_folders,
    read_dataset_source_json,
)
from factaudit.errors import InputError, Problem


def convert_aggrefact_scores(sources: Sequence[Path], *, name: NamesOption = ()) -> Conversion:
    """One claim per row and dataset, and one verdict per file; the evaluators are named after the files, or ``name``.

    The files must agree on datasets, rows and labels. They have neither text nor systems.
    """
    paths = list(expand_dataset_source_folders(sources, "*.json"))
    return convert_row_aligned_scores(
        [_read_aggrefact_scores(path) for path in paths], name_row_aligned_evaluators(paths, name), "aggrefact-scores"
    )


def _read_aggrefact_scores(path: Path) -> RowAlignedScores:
    data: dict[str, list[tuple[int, float]]] = read_dataset_source_json(
        path, dict[str, list[tuple[BinaryLabel, Probability]]]
    )
    rows = {dataset: np.array(pairs, dtype=np.float64) for dataset, pairs in data.items() if pairs}
    if not rows:
        raise InputError(str(path), [Problem("the file has no rows")])
    return RowAlignedScores(
        path,
        {dataset: pairs[:, 0].astype(np.int8) for dataset, pairs in rows.items()},
        {dataset: pairs[:, 1] for dataset, pairs in rows.items()},
    )
