"""The difference of two groups' means at equal shares of strata (direct standardisation), in clustered data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.stats.clustered_proportions import ClusterCounts, GroupClusterPairs, estimate_clustered_proportions
from factaudit.stats.mover import discordant_difference_interval


@dataclass(frozen=True)
class StandardisedDifference:
    """point, and the ends of its interval; NaN where undefined. n_clusters: with units of either group."""

    point: float
    low: float
    high: float
    n_clusters: int


def standardised_difference(
    values: np.ndarray,
    is_first: np.ndarray,
    stratum: np.ndarray,
    weights: Sequence[float],
    cluster: np.ndarray,
    confidence: float = 0.95,
) -> StandardisedDifference:
    """The mean of the first group less that of the others within each stratum, as a weighted sum over strata.

    values: float (n,), in [-1, 1], NaN left out; is_first: bool (n,); stratum: int (n,), 0..S-1; weights: (S,), a
    stratum of weight 0 is left out; cluster: int (n,), which both groups may share. NaN where a group has no unit of a
    stratum. A mean is the share of what is above 0 less that of what is below, so that the interval is that of
    `discordant_difference_interval`: it holds where few values differ from 0.

    >>> passes, is_own, label = np.tile([1.0, 0.0, 1.0, 1.0], 50), np.tile([True, False], 100), np.zeros(200, dtype=int)
    >>> found = standardised_difference(passes, is_own, label, [1.0], np.arange(200) // 4)
    >>> found.point, round(found.low, 2), round(found.high, 2)
    (0.5, 0.47, 0.53)
    """
    known = ~np.isnan(values)
    pairs = GroupClusterPairs.of(np.where(known, 0, -1), cluster, 1)
    undefined = StandardisedDifference(np.nan, np.nan, np.nan, len(pairs.group))
    point, hits, sizes, terms = 0.0, [], [], []
    for at, stratum_weight in enumerate(weights):
        if not stratum_weight > 0:
            continue
        for is_group, weight in ((is_first, stratum_weight), (~is_first, -stratum_weight)):
            inside = known & is_group & (stratum == at)
            if not inside.any():
                return undefined
            some = values[inside]
            point += weight * float(some.mean())
            signs = [sign for sign in (1, -1) if (sign * some > 0).any()] or [1]
            for sign in signs:
                hits.append(np.bincount(pairs.pair[inside], np.maximum(sign * some, 0), len(pairs.group)))
                sizes.append(np.bincount(pairs.pair[inside], minlength=len(pairs.group)))
                terms.append(sign * weight)
    if not terms:
        return undefined
    clusters = ClusterCounts(
        pairs.group, np.ones(len(pairs.group), dtype=np.int64), np.zeros((len(pairs.group), 0)), n_groups=1
    )
    shares = estimate_clustered_proportions(clusters, np.stack(hits, 1), np.stack(sizes, 1).astype(np.float64))
    _, (low, high) = discordant_difference_interval(shares, np.array(terms), confidence)
    return StandardisedDifference(point, float(low[0]), float(high[0]), len(pairs.group))
