"""Slopes of "the prediction is right" on word overlap, by least squares, with bounds and resampled."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.core.rows import ratio

#: A spread of overlap under this share of its mean square is rounding, not a spread.
_NO_SPREAD = 1e-9
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


def slope(sums: np.ndarray) -> np.ndarray:
    """The least squares slope of (..., 5) moments; NaN where all overlaps are equal."""
    n, x, y, xy, xx = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    return ratio(n * xy - x * y, np.where(spread > _NO_SPREAD * n * xx, spread, 0.0))


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
        if spread <= _NO_SPREAD * (r2[rows] ** 2).sum():
            continue
        for at in range(len(judged.evaluators)):
            prediction = judged.prediction[at, rows]
            known = (centred * (prediction == label)).sum()
            free = centred[prediction < 0]
            ends[:, at, place] = known + np.minimum(free, 0).sum(), known + np.maximum(free, 0).sum()
            ends[:, at, place] /= spread
    return ends[0], ends[1]


def resampled(
    judged: Judged, task: np.ndarray, r2: np.ndarray, label: int, n_tasks: int, intervals: Intervals
) -> np.ndarray:
    """float64 (replicates, evaluators, tasks, 5): moments with whole clusters resampled within each dataset.

    All evaluators get the same draws. NaN where the claims lie in a single cluster: there is nothing to resample.
    """
    stratum, names = judged.datasets
    n_evaluators = len(judged.evaluators)
    out = np.zeros((intervals.replicates, n_evaluators, n_tasks, _MOMENTS))
    clusters_of = np.zeros((n_evaluators, n_tasks), dtype=np.int64)
    for where, name in enumerate(names):
        inside = stratum == where
        clusters = np.unique(judged.clusters[inside], return_inverse=True)[1]
        cluster = np.zeros(len(task), dtype=np.int64)
        cluster[inside] = clusters
        n_clusters = int(clusters.max(initial=-1)) + 1
        present = np.unique(task[inside & (task >= 0)])
        for place in present:
            statistics = np.zeros((n_clusters, n_evaluators, _MOMENTS))
            for at in range(n_evaluators):
                rows = _members(judged, np.where(inside & (task == place), place, -1), r2, at)
                for term, values in enumerate(_terms(r2[rows], judged.prediction[at, rows] == label)):
                    statistics[:, at, term] = np.bincount(cluster[rows], values, n_clusters)
            clusters_of[:, place] += (statistics[..., 0] > 0).sum(0)
            drawn = intervals.sums(statistics.reshape(n_clusters, -1), name)
            out[:, :, place] += drawn.reshape(-1, n_evaluators, _MOMENTS)
    out[:, clusters_of < 2] = np.nan
    return out
