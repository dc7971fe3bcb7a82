"""Proportions of a slice of the units and of all others, which may share clusters, for many slices at once."""

from __future__ import annotations

import numpy as np

from factaudit.stats.clustered_proportions import ClusteredProportions
from factaudit.stats.distinct_rows import encode_distinct_integer_pairs
from factaudit.stats.undefined_values import divide_or_undefined


def estimate_slice_and_rest_proportions(
    hit: np.ndarray, kind: np.ndarray, n_kinds: int, slices: np.ndarray, n_slices: int, cluster: np.ndarray
) -> ClusteredProportions:
    """The share of hits within each slice, and among all units outside of it, by kind of unit.

    hit: int (n,), 1, 0 or -1 (left out); kind: int (n,), 0..K-1 (a class, say); slices: int (n,), 0..V-1, -1 for a
    unit in none; cluster: int (n,), 0 or more. A group for each slice: columns 0..K-1 are the slice's shares by kind,
    K..2K-1 those of the rest. The correlation is over clusters, and knows those that have units of both. Sums are of
    whole numbers, so that the order of the units changes nothing. Memory grows with the units, not with slices times
    clusters.

    >>> found = estimate_slice_and_rest_proportions(
    ...     np.array([1, 0, 1, 1]), np.zeros(4, dtype=int), 1, np.array([0, 0, 1, -1]), 2, np.array([0, 1, 0, 1])
    ... )
    >>> found.point.tolist(), found.n.tolist()
    ([[0.5, 1.0], [1.0, 0.6666666666666666]], [[2.0, 2.0], [1.0, 3.0]])
    """
    used = hit >= 0
    size = int(cluster.max(initial=-1)) + 1
    values = np.zeros((2 * n_kinds, len(hit)))  # of each kind whether a unit is a hit, and whether it is one
    for at in range(n_kinds):
        values[2 * at], values[2 * at + 1] = used & (kind == at) & (hit == 1), used & (kind == at)
    whole = np.stack([np.bincount(cluster, each, size) for each in values], 1)
    inside = np.flatnonzero(slices >= 0)
    pairs, place = encode_distinct_integer_pairs(slices[inside], cluster[inside], max(size, 1))
    of_slice, of_cluster = pairs // max(size, 1), pairs % max(size, 1)
    own = np.stack([np.bincount(place, each[inside], len(pairs)) for each in values], 1)
    both = whole[of_cluster]
    rest = both - own

    def add_up(numbers: np.ndarray) -> np.ndarray:
        flat = numbers.reshape(len(numbers), -1)
        sums = [np.bincount(of_slice, column, n_slices) for column in flat.T]
        return np.stack(sums, 1).reshape(n_slices, *numbers.shape[1:])

    def add_up_products(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return add_up(first[:, :, None] * second[:, None, :])

    # Clusters without a unit of the slice are wholly of the rest.
    totals = np.concatenate([(some := add_up(own)), whole.sum(0) - some], 1)
    squares_of_rest = whole.T @ whole + add_up_products(rest, rest) - add_up_products(both, both)
    across = add_up_products(own, rest)
    moments = np.block([[add_up_products(own, own), across], [across.swapaxes(1, 2), squares_of_rest]])
    present = add_up((own > 0).astype(float))
    present = np.concatenate([present, (whole > 0).sum(0) + add_up((rest > 0).astype(float) - (both > 0))], 1)
    n, n_clusters = totals[:, 1::2], present[:, 1::2]
    point = divide_or_undefined(totals[:, ::2], n)
    # A cluster's residual is its hits less those expected of its units.
    residual = np.zeros((n_slices, 2 * n_kinds, 4 * n_kinds))
    for at in range(2 * n_kinds):
        residual[:, at, 2 * at], residual[:, at, 2 * at + 1] = 1, -np.nan_to_num(point[:, at])
    products = residual @ moments @ residual.swapaxes(1, 2)
    own_squares = np.maximum(np.diagonal(products, axis1=1, axis2=2), 0)
    scale = np.sqrt(own_squares[:, :, None] * own_squares[:, None, :])
    correlation = np.clip(np.nan_to_num(divide_or_undefined(products, scale)), -1, 1)
    every = np.arange(2 * n_kinds)
    correlation[:, every, every] = 1.0
    small = divide_or_undefined(n_clusters, n_clusters - 1)
    return ClusteredProportions(
        point=point,
        n=n,
        n_clusters=n_clusters,
        cluster_size=divide_or_undefined(np.diagonal(moments, axis1=1, axis2=2)[:, 1::2], n),
        variance=small * divide_or_undefined(own_squares, n * n),
        correlation=correlation,
    )
