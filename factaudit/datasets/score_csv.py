"""CSV files with the columns y_true and y_score, one per evaluator, row-aligned."""

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
    DatasetSourceRow,
    NamesOption,
    Probability,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)


class LabelScoreRow(DatasetSourceRow):
    y_true: BinaryLabel
    y_score: Probability


def convert_score_csv(sources: Sequence[Path], *, dataset: str, name: NamesOption = ()) -> Conversion:
    """One claim per row of ``dataset``, and one verdict per file.

    The evaluators are named after the files, or ``name``; files of the same name in two folders get the folder's name
    too: ``MiniCheck (plain)`` and ``MiniCheck (sliding)``. The files must agree on rows and labels.
    """
    paths = list(expand_dataset_source_folders(sources, "*.csv"))
    return convert_row_aligned_scores(
        [_read_score_csv(path, dataset) for path in paths], name_row_aligned_evaluators(paths, name), "score-csv"
    )


def _read_score_csv(path: Path, dataset: str) -> RowAlignedScores:
    rows = read_dataset_source_rows(path, LabelScoreRow, is_counted=True)
    return RowAlignedScores(
        path,
        {dataset: np.array([row.y_true for row in rows], dtype=np.int8)},
        {dataset: np.array([row.y_score for row in rows])},
        label_column="y_true",
    )
