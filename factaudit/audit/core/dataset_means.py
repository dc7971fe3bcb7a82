"""The unweighted mean of an audit's figures over data sets: the row of dataset ``__macro__``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.audit.core.result_rows import Row
from factaudit.stats.mover import mover_weighted_sum


def average_dataset_rows(dataset_rows: Sequence[Row], figures: Sequence[str], counts: Sequence[str]) -> Row:
    """The sums of ``counts``, and the means of ``figures`` over the rows where they are defined.

    Bounds are means over the rows that have them, and hold the mean. An interval (where the rows have some) is MOVER's,
    the data sets being independent; it is null where a defined figure has none. Keys are in the order of the rows'.
    """
    row: Row = {name: sum(each[name] for each in dataset_rows) for name in counts}
    for key in figures:
        defined = [each for each in dataset_rows if each[key] is not None]
        row[key] = _mean_of([each[key] for each in defined])
        for end, narrower in ((f"{key}_min", min), (f"{key}_max", max)):
            # A row without the figure may have bounds: their mean is over more data sets.
            row[end] = _mean_of([each[end] for each in dataset_rows if each[end] is not None])
            if row[key] is not None:
                row[end] = narrower(row[end], row[key])
        if f"{key}_low" in dataset_rows[0]:
            row |= {f"{key}_low": None, f"{key}_high": None}
            if defined and all(each[f"{key}_low"] is not None for each in defined):
                ends_of_all = [[each[f"{key}{end}"] for each in defined] for end in ("", "_low", "_high")]
                point, low, high = np.array(ends_of_all)
                _, ends = mover_weighted_sum(point, (low, high), np.full(len(defined), 1 / len(defined)))
                row |= {f"{key}_low": float(ends[0]), f"{key}_high": float(ends[1])}
    return {name: row[name] for name in dataset_rows[0] if name in row}


def explain_undefined_dataset_means(dataset_rows: Sequence[Row], figures: Sequence[str]) -> list[str]:
    """Which figures are means over fewer data sets than there are: ``undefined in 2 of 3 datasets: tpr, bacc``."""
    lacking = {key: sum(each[key] is None for each in dataset_rows) for key in figures}
    return [
        f"undefined in {n} of {len(dataset_rows)} datasets: {', '.join(key for key in figures if lacking[key] == n)}"
        for n in dict.fromkeys(lacking.values())
        if n
    ]


def _mean_of(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None
