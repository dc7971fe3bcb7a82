"""Proportions of a slice of the units and of all others, which may share clusters, for many slices
at once."""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    ClusteredProportions,
    estimate_clustered_proportions,
)
from factaudit.stats.distinct_rows import (
    count_distinct_rows,
    encode_distinct_integer_pairs,
    rank_distinct_integers,
    rank_distinct_rows,
)


def count_slice_and_rest_hits(
    hit: np.ndarray, kind: np.ndarray, n_kinds: int, slices: np.ndarray, n_slices: int
) -> tuple[np.ndarray, np.ndarray]:
    """The hits, and all units that count, within each slice and outside of it, by kind of unit:
    int64 (V, 2K) each.

    Arguments and columns as in `estimate_slice_and_rest_proportions`.

    >>> arguments = (np.zeros(4, dtype=int), 1, np.array([0, 0, 1, -1]), 2)
    >>> hits, units = count_slice_and_rest_hits(np.array([1, 0, 1, 1]), *arguments)
    >>> hits.tolist(), units.tolist()
    ([[1, 2], [1, 2]], [[2, 2], [1, 3]])
    """
    cells, inside = kind * 2 + hit, hit >= 0
    known = inside & (slices >= 0)
    counts = np.bincount(
        slices[known] * 2 * n_kinds + cells[known], minlength=n_slices * 2 * n_kinds
    )
    counts = counts.reshape(n_slices, n_kinds, 2)
    rest = np.bincount(cells[inside], minlength=2 * n_kinds).reshape(n_kinds, 2) - counts
    both = np.concatenate([counts, rest], axis=1)
    return both[..., 1], both.sum(-1)


def estimate_slice_and_rest_proportions(
    hit: np.ndarray,
    kind: np.ndarray,
    n_kinds: int,
    slices: np.ndarray,
    n_slices: int,
    cluster: np.ndarray,
) -> ClusteredProportions:
    """The share of hits within each slice, and among all units outside of it, by kind of unit.

    hit: int (n,), 1, 0 or -1 (left out); kind: int (n,), 0..K-1 (a class, say); slices: int (n,),
    0..V-1, -1 for a unit in none; cluster: int (n,), 0 or more. A group for each slice: columns
    0..K-1 are the slice's shares by kind, K..2K-1 those of the rest. The correlation is over
    clusters, and knows those that have units of both.

    >>> hit, groups = np.array([1, 0, 1, 1]), np.zeros(4, dtype=int)
    >>> slices, clusters = np.array([0, 0, 1, -1]), np.array([0, 1, 0, 1])
    >>> found = estimate_slice_and_rest_proportions(hit, groups, 1, slices, 2, clusters)
    >>> found.point.tolist(), found.n.tolist()
    ([[0.5, 1.0], [1.0, 0.6666666666666666]], [[2.0, 2.0], [1.0, 3.0]])
    """
    counted = hit >= 0
    width, cells, slices = 2 * n_kinds, (kind * 2 + hit)[counted], slices[counted]
    names, cluster = rank_distinct_integers(cluster[counted])
    total = np.bincount(cluster * width + cells, minlength=len(names) * width).reshape(-1, width)
    alike, kind_of_cluster = rank_distinct_rows(total)
    # A row for each cluster that a slice has units of; all others are of the rest alone, and are
    # counted by their kind.
    known = slices >= 0
    pairs, place = encode_distinct_integer_pairs(slices[known], cluster[known], max(len(names), 1))
    part = np.bincount(place * width + cells[known], minlength=len(pairs) * width).reshape(
        -1, width
    )
    group, member = np.divmod(pairs, max(len(names), 1))
    met = np.bincount(group * len(alike) + kind_of_cluster[member], minlength=n_slices * len(alike))
    others = np.bincount(kind_of_cluster, minlength=len(alike)) - met.reshape(n_slices, len(alike))
    other_group, other_kind = np.nonzero(others)
    met_rows, times = count_distinct_rows(np.column_stack([group, kind_of_cluster[member], part]))
    clusters = ClusterCounts(
        np.concatenate([met_rows[:, 0], other_group]),
        np.concatenate([times, others[other_group, other_kind]]),
        np.vstack(
            [
                np.hstack([met_rows[:, 2:], alike[met_rows[:, 1]] - met_rows[:, 2:]]),
                np.hstack([np.zeros((len(other_kind), width), dtype=np.int64), alike[other_kind]]),
            ]
        ),
        n_slices,
    )
    counts = clusters.counts.reshape(-1, 2 * n_kinds, 2)
    return estimate_clustered_proportions(clusters, counts[..., 1], counts.sum(-1))
