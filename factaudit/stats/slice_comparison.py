"""Proportions of a slice of the units and of all others, which may share clusters, for many slices at once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from factaudit.stats.clustered_proportions import (
    ClusteredProportions,
    count_codes_by_cluster,
    estimate_clustered_proportions,
)


def estimate_slice_and_rest_proportions(
    hit: np.ndarray, kind: np.ndarray, n_kinds: int, slices: np.ndarray, n_slices: int, cluster: np.ndarray
) -> ClusteredProportions:
    """The share of hits within each slice, and among all units outside of it, by kind of unit.

    hit: int (n,), 1, 0 or -1 (left out); kind: int (n,), 0..K-1 (a class, say); slices: int (n,), 0..V-1, -1 for a
    unit in none; cluster: int (n,), 0 or more. A group for each slice: columns 0..K-1 are the slice's shares by kind,
    K..2K-1 those of the rest. The correlation is over clusters, and knows those that have units of both.

    >>> found = estimate_slice_and_rest_proportions(
    ...     np.array([1, 0, 1, 1]), np.zeros(4, dtype=int), 1, np.array([0, 0, 1, -1]), 2, np.array([0, 1, 0, 1])
    ... )
    >>> found.point.tolist(), found.n.tolist()
    ([[0.5, 1.0], [1.0, 0.6666666666666666]], [[2.0, 2.0], [1.0, 3.0]])
    """
    one_group, found = np.zeros(len(hit), dtype=np.int64), []
    for at in range(n_slices):
        cells = np.where(hit < 0, -1, (np.where(slices == at, kind, n_kinds + kind)) * 2 + hit)
        clusters = count_codes_by_cluster(cluster, one_group, 1, cells, 4 * n_kinds)
        counts = clusters.counts.reshape(-1, 2 * n_kinds, 2)
        found.append(estimate_clustered_proportions(clusters, counts[..., 1], counts.sum(-1)))
    return ClusteredProportions(
        **{
            each.name: np.concatenate([getattr(one, each.name) for one in found])
            for each in fields(ClusteredProportions)
        }
    )
