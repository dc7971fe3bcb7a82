"""Slopes of a line through yes-or-no outcomes, with intervals that hold with few clusters."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.rows import ratio
from factaudit.audit.core.shares import Clusters, Limits, quantile

#: A jackknife of fewer clusters says too little of how sure it is itself.
MIN_CLUSTERS = 15
#: A spread of x under this share of its mean square is rounding, not a spread.
NO_SPREAD = 1e-9


def slope(sums: np.ndarray) -> np.ndarray:
    """The least squares slope of (..., 5) sums of 1, x, y, xy, xx; NaN where all x are equal."""
    n, x, y, xy, xx = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    return ratio(n * xy - x * y, np.where(spread > NO_SPREAD * n * xx, spread, 0.0))


def slope_limits(clusters: Clusters, confidence: float) -> Limits:
    """(G,) each: a jackknife over clusters with Student's t (CR3; MacKinnon, Nielsen & Webb 2023).

    ``clusters.counts``: (k, 5), each cluster's sums of 1, x, y, xy, xx. NaN with fewer than `MIN_CLUSTERS` clusters,
    and where all y are equal: then the line is flat whatever is left out, which says nothing of the next document.
    """
    total = clusters.total(clusters.counts)
    point = slope(total)
    n_clusters = clusters.total(np.ones(len(clusters.group)))
    left = slope(total[clusters.group] - clusters.counts)
    # Where all but this cluster have one x, there is no slope without it: it counts as if it made none.
    apart = np.where(np.isnan(left), point[clusters.group], left - point[clusters.group])
    variance = ratio(n_clusters - 1, n_clusters - 2) * clusters.total(apart * apart)
    usable = (n_clusters >= MIN_CLUSTERS) & (total[:, 2] > 0) & (total[:, 2] < total[:, 0])
    half = np.where(usable, quantile(n_clusters - 2, confidence) * np.sqrt(variance), np.nan)
    return point - half, point + half
