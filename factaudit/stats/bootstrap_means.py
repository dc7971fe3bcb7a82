"""Bootstrap percentile intervals of a mean of independent values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.stats.cluster_bootstrap import ClusterBootstrap


def bootstrap_mean_interval(
    values: Sequence[float] | np.ndarray, intervals: ClusterBootstrap | None
) -> tuple[float | None, float | None]:
    """A percentile interval of the mean of independent values (n,), drawn again with replacement.

    (None, None) without ``intervals``, from fewer than two values, and where all are alike: a bootstrap of these would
    be sure of what other units would be. Where units share clusters see `clustered_mean`.

    >>> bootstrap_mean_interval([0.5], ClusterBootstrap())
    (None, None)
    >>> bootstrap_mean_interval([1.0, 1.0, 1.0], ClusterBootstrap())
    (None, None)
    >>> low, high = bootstrap_mean_interval([0.0, 0.5, 1.0, 0.5], ClusterBootstrap(seed=1))
    >>> low, high
    (0.125, 0.875)
    """
    if len(values) < 2 or intervals is None or np.ptp(values) < 1e-12:
        return None, None
    draws = np.random.default_rng(intervals.seed).integers(0, len(values), (intervals.replicates, len(values)))
    return bootstrap_percentile_interval(np.asarray(values, dtype=np.float64)[draws].mean(axis=1), intervals)


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
