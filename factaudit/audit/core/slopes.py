"""Slopes of "the prediction is right" on word overlap, by least squares, with bounds, and by cluster."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.jackknife import NO_SPREAD
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.shares import Clusters

#: What a slope is made of, of each claim: 1, x, y, xy, xx.
_MOMENTS = 5


def _terms(r2: np.ndarray, right: np.ndarray) -> list[np.ndarray]:
    return [np.ones(len(r2)), r2, right, r2 * right, r2 * r2]


def _members(judged: Judged, task: np.ndarray, r2: np.ndarray, at: int) -> np.ndarray:
    """The scored claims, by rising overlap: sums then do not depend on the order of the table's rows."""
    rows = np.flatnonzero((task >= 0) & (judged.prediction[at] >= 0))
    return rows[np.argsort(r2[rows], kind="stable")]


def moments(judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int) -> np.ndarray:
    """float64 (evaluators, tasks, 5)."""
    out = np.zeros((len(judged.evaluators), n_tasks, _MOMENTS))
    for at in range(len(judged.evaluators)):
        rows = _members(judged, task, r2, at)
        for term, values in enumerate(_terms(r2[rows], judged.prediction[at, rows] == label)):
            out[at, :, term] = np.bincount(task[rows], values, n_tasks)
    return out


def slope_bounds(
    judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int
) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest slope, whatever the missing predictions had been: float64 (evaluators, tasks) each.

    A slope is linear in what is right, with the sign of the claim's overlap above or below the mean.
    """
    ends = np.full((2, len(judged.evaluators), n_tasks), np.nan)
    for place in range(n_tasks):
        rows = np.flatnonzero(task == place)
        rows = rows[np.argsort(r2[rows], kind="stable")]
        if not len(rows):
            continue
        centred = r2[rows] - r2[rows].mean()
        spread = (centred * centred).sum()
        if spread <= NO_SPREAD * (r2[rows] ** 2).sum():
            continue
        for at in range(len(judged.evaluators)):
            prediction = judged.certain[at, rows]
            known = (centred * (prediction == label)).sum()
            free = centred[prediction < 0]
            ends[:, at, place] = known + np.minimum(free, 0).sum(), known + np.maximum(free, 0).sum()
            ends[:, at, place] /= spread
    return ends[0], ends[1]


def by_document(judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, at: int, n_tasks: int) -> Clusters:
    """One evaluator's moments of each cluster of each task: counts (k, 5)."""
    rows = _members(judged, task, r2, at)
    size = int(judged.clusters.max(initial=-1)) + 1
    pairs, place = np.unique(task[rows] * size + judged.clusters[rows], return_inverse=True)
    terms = _terms(r2[rows], judged.prediction[at, rows] == label)
    counts = np.stack([np.bincount(place, values, len(pairs)) for values in terms], axis=1)
    return Clusters(pairs // max(size, 1), np.ones(len(pairs), dtype=np.int64), counts, n_tasks)
