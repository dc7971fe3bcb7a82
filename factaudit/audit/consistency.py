"""How far two evaluators find the same claims (un)attributable (VC §3.2, Figures 2, 9, 10)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from factaudit.audit.core import counts as nine
from factaudit.audit.core.groups import group_by
from factaudit.audit.core.intervals import Intervals, low_high
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import Row, number, ratio, reasons, without_interval

CLASSES = {"attributable": 1, "unattributable": 0}


def consistency(judged: Judged, *, by: Sequence[str] = ("dataset",), intervals: Intervals | None = None) -> list[Row]:
    """Per pair of evaluators and class: IoU of the sets of claims that they predict to be of that class.

    Labels aren't read. A row per group of ``by``, pair and class: the keys of ``by``, evaluator_a, evaluator_b, class,
    n (claims scored by both), n_unscored (by one or both), iou with ``_min`` and ``_max`` (whatever the missing
    predictions had been), kappa (Cohen's, the same in both rows of a pair) and, with intervals, ``_low`` and ``_high``
    of both. kappa has no bounds: its extremes over missing predictions are not those of any simple completion.
    """
    groups = group_by(judged.claims, by)
    rows: list[Row] = []
    for a, b in combinations(range(len(judged.evaluators)), 2):
        # The same nine cells as for a label and a prediction, with a's prediction in the label's place.
        first, second = judged.prediction[a], judged.prediction[b]
        counts = nine.count(groups.codes, len(groups.keys), first, second)
        drawn = None
        if intervals is not None:
            used = np.where((first >= 0) & (second >= 0), groups.codes, -1)
            drawn = intervals.counts(judged, used, len(groups.keys), nine.cells(first, second), nine.CELLS)
            drawn = drawn.reshape(*drawn.shape[:2], 3, 3)
        for name, cls in CLASSES.items():
            low, high = iou_bounds(counts, cls)
            figures = {"iou": iou(counts, cls), "iou_min": low, "iou_max": high, "kappa": kappa(counts)}
            if intervals is not None and drawn is not None:
                figures |= low_high(intervals, {"iou": iou(drawn, cls), "kappa": kappa(drawn)})
            for at, key in enumerate(groups.keys):
                n = int(counts[at, :2, :2].sum())
                row: Row = {
                    **key,
                    "evaluator_a": judged.evaluators[a],
                    "evaluator_b": judged.evaluators[b],
                    "class": name,
                    "n": n,
                    "n_unscored": int(counts[at].sum()) - n,
                }
                row |= {figure: number(values[at]) for figure, values in figures.items()}
                rows.append(row | {"reason": _reason(row)})
    order = {tuple(key.values()): at for at, key in enumerate(groups.keys)}
    return sorted(rows, key=lambda row: order[tuple(row[column] for column in groups.keys[0])])


def iou(counts: np.ndarray, cls: int) -> np.ndarray:
    """Intersection over union of "predicted ``cls``" by the evaluator of axis -2 and by that of axis -1."""
    both = counts[..., cls, cls]
    return ratio(both, both + counts[..., cls, 1 - cls] + counts[..., 1 - cls, cls])


def iou_bounds(counts: np.ndarray, cls: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and greatest IoU over all ways to score what is unscored."""
    both = counts[..., cls, cls]
    union = both + counts[..., cls, 1 - cls] + counts[..., 1 - cls, cls]
    one = counts[..., cls, -1] + counts[..., -1, cls]  # in the union already, whatever the other had said
    none = counts[..., -1, -1]
    other = counts[..., 1 - cls, -1] + counts[..., -1, 1 - cls]  # may enter the union, never the intersection
    low = ratio(both, union + one + other + none)
    high = ratio(both + one + none, union + one + none)
    return low, np.where(np.isnan(high), low, high)


def kappa(counts: np.ndarray) -> np.ndarray:
    """Cohen's kappa over what both scored; NaN where both always say the same one thing."""
    both = counts[..., :2, :2].astype(np.float64)
    n = both.sum((-1, -2))
    observed = both[..., 0, 0] + both[..., 1, 1]
    expected = (both.sum(-1) * both.sum(-2)).sum(-1)
    return ratio(n * observed - expected, n * n - expected)


def _reason(row: Row) -> str | None:
    if row["n"] == 0:
        return "no claim is scored by both"
    return reasons(
        [
            f"neither predicts a claim {row['class']}" if row["iou"] is None else "",
            "both give every claim the same prediction" if row["kappa"] is None else "",
            without_interval(row),
        ]
    )
