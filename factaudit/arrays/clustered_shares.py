"""Shares over clusters with Wilson's intervals, as figures by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.stats.undefined_values import name_ends, none_if_undefined


def estimate_clustered_shares(
    names: Sequence[str], hits: np.ndarray, totals: np.ndarray, intervals: ClusterBootstrap | None
) -> dict[str, float | None]:
    """``NAME``, and with ``intervals`` ``NAME_low`` and ``NAME_high``: hits / totals over all clusters.

    hits, totals: int64 (C, K), of C clusters and the K names. A share of nothing is None; so are the ends of one that
    is of fewer than two clusters.

    >>> estimate_clustered_shares(["right"], np.array([[1], [2]]), np.array([[2], [2]]), None)
    {'right': 0.75}
    """
    counts = np.concatenate([hits, totals], axis=1)
    clusters = ClusterCounts.collapse_equal_clusters(np.zeros(len(counts), dtype=np.int64), counts, 1)
    width = len(names)
    shares = estimate_clustered_proportions(clusters, clusters.counts[:, :width], clusters.counts[:, width:])
    ends = None if intervals is None else shares.wilson_intervals(intervals.confidence)
    row: dict[str, float | None] = {}
    for at, name in enumerate(names):
        row[name] = none_if_undefined(shares.point[0, at])
        if ends is not None:
            row |= name_ends(name, (end[0, at] for end in ends))
    return row
