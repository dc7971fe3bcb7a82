"""CSV files with the columns y_true and y_score, one per evaluator, row-aligned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from factaudit.datasets.aligned import Scores, align, names
from factaudit.datasets.sources import Conversion, Label, Names, Probability, Row, expand, read_rows


class Pair(Row):
    y_true: Label
    y_score: Probability


def convert(sources: Sequence[Path], *, dataset: str, name: Names = ()) -> Conversion:
    """One claim per row of ``dataset``, and one verdict per file.

    The evaluators are named after the files, or ``name``; files of the same name in two folders get the folder's name
    too: ``MiniCheck (plain)`` and ``MiniCheck (sliding)``. The files must agree on rows and labels.
    """
    paths = list(expand(sources, "*.csv"))
    return align([_read(path, dataset) for path in paths], names(paths, name), "score-csv")


def _read(path: Path, dataset: str) -> Scores:
    rows = read_rows(path, Pair)
    return Scores(
        path,
        {dataset: np.array([row.y_true for row in rows], dtype=np.int8)},
        {dataset: np.array([row.y_score for row in rows])},
        label_column="y_true",
    )
