"""The percentile interval of bootstrap replicates."""

from __future__ import annotations

import numpy as np

from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def bootstrap_percentile_interval(
    replicates: np.ndarray, intervals: ClusterBootstrap
) -> tuple[float | None, float | None]:
    """The percentile interval of replicates (r,); a NaN replicate (of equal scores, of one class) is left out.

    >>> bootstrap_percentile_interval(np.arange(101.0), ClusterBootstrap(confidence=0.5))
    (25.0, 75.0)
    """
    known = replicates[~np.isnan(replicates)]
    if not len(known):
        return None, None
    tail = (1 - intervals.confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)
