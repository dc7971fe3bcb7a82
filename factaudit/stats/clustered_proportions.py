"""Proportions in clustered data, with Wilson intervals on the effective sample size.

Units of one cluster (claims about one document) are not independent. A proportion's variance is
linearised over clusters (Taylor series, as in survey statistics); it gives the *effective* number
of units, on which Wilson's interval is computed with Student's t at clusters - 1 degrees of freedom
(Wilson 1927; Korn & Graubard 1998; Franco, Little, Louis & Slud 2019).

With few errors the variance between clusters is itself hardly known: 3 errors in 3 clusters look as
if units were independent, and no error gives no variance at all. So the intra-cluster correlation
that the variance implies is drawn towards `TYPICAL_ICC`, with the weight of `PRIOR_CLUSTERS`
clusters that have errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from factaudit.stats import divide_or_undefined

#: What the correlation of claims within a cluster is taken for, where errors are too few to tell.
TYPICAL_ICC = 0.15
#: Weighs as much as so many clusters with errors.
PRIOR_CLUSTERS = 2.0

#: Low and high ends, each of the shape of the figure; NaN where there is no interval.
IntervalEnds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class ClusterCounts:
    """Counts of the units of G groups, cluster by cluster.

    group: int64 (k,), 0..n_groups-1. times: int64 (k,), how many clusters the row stands for.
    counts: int64 (k, K), the units of each of K codes. Equal clusters of a group may share one row,
    so that a million clusters are some thousand rows.

    >>> rows = np.array([[3, 1], [0, 2]])
    >>> counts = ClusterCounts(np.array([0, 0]), np.array([1, 2]), rows, n_groups=1)
    >>> counts.sum_by_group(counts.counts).tolist()
    [[3.0, 5.0]]
    """

    group: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    n_groups: int

    def sum_by_group(self, values: np.ndarray) -> np.ndarray:
        """Sums over the clusters of each group: (k,) or (k, ...) -> (G, ...)."""
        flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
        sums = np.zeros((self.n_groups, flat.shape[1]))
        for at, column in enumerate(flat.T):
            sums[:, at] = np.bincount(self.group, column * self.times, self.n_groups)
        return sums.reshape(self.n_groups, *values.shape[1:])


def count_codes_by_cluster(
    clusters: np.ndarray, groups: np.ndarray, n_groups: int, codes: np.ndarray, n_codes: int
) -> ClusterCounts:
    """Count codes in each cluster of each group.

    clusters, groups, codes: int (n,); groups: -1 for a unit in no group; codes: 0..n_codes-1, -1
    for a unit that does not count.

    >>> clusters, groups, codes = np.array([0, 0, 1]), np.zeros(3, dtype=int), np.array([0, 1, 1])
    >>> counts = count_codes_by_cluster(clusters, groups, 1, codes, 2)
    >>> counts.counts.tolist(), counts.times.tolist()
    ([[0, 1], [1, 1]], [1, 1])
    """
    return GroupClusterPairs.of(groups, clusters, n_groups).count_codes(codes, n_codes)


@dataclass(frozen=True)
class GroupClusterPairs:
    """The k pairs of a group and a cluster that have units, for counting several codes of the same
    units.

    group: int64 (k,), the group of each pair. pair: int64 (n,), the pair of each unit, -1 for none.

    >>> pairs = GroupClusterPairs.of(np.array([0, 0, -1]), np.array([4, 4, 5]), n_groups=1)
    >>> pairs.count_codes(np.array([1, 1, 0]), n_codes=2).counts.tolist()
    [[0, 2]]
    """

    group: np.ndarray
    pair: np.ndarray
    n_groups: int

    @classmethod
    def of(cls, groups: np.ndarray, clusters: np.ndarray, n_groups: int) -> GroupClusterPairs:
        """Find the pairs. groups: int (n,), -1 for none; clusters: int (n,), 0 or more."""
        size = int(clusters.max(initial=-1)) + 1
        inside = np.flatnonzero(groups >= 0)
        found = np.full(len(groups), -1, dtype=np.int64)
        pairs, found[inside] = encode_distinct_integer_pairs(
            groups[inside].astype(np.int64), clusters[inside], size
        )
        return cls(pairs // max(size, 1), found, n_groups)

    def count_codes(self, codes: np.ndarray, n_codes: int) -> ClusterCounts:
        """Count codes 0..n_codes-1 in each pair, equal pairs of a group merged. codes: int (n,),
        -1: the unit does not count.
        """
        inside = (self.pair >= 0) & (codes >= 0)
        pair, codes = self.pair[inside], codes[inside]
        # A table of all pairs by all codes would mostly hold zeros. So each code is a random number
        # of 64 bits, and pairs of a group are equal where the sums of their units' numbers are. Two
        # sums of a million pairs are equal by chance once in 10 million times.
        random = np.random.default_rng(0)
        numbers = random.integers(0, 1 << 64, n_codes + self.n_groups, dtype=np.uint64)
        sums = numbers[n_codes:][self.group]
        np.add.at(sums, pair, numbers[codes])
        kind, names = pd.factorize(sums)
        times, first = np.bincount(kind), np.empty(len(names), dtype=np.int64)
        first[kind[::-1]] = np.arange(len(kind))[::-1]
        is_first = np.zeros(len(kind), dtype=bool)
        is_first[first] = True
        known = is_first[pair]
        places = kind[pair[known]] * n_codes + codes[known]
        counts = np.bincount(places, minlength=len(names) * n_codes).reshape(-1, n_codes)
        # In an order that follows from the counts alone, so that sums over rows are the same to the
        # last bit in whatever order the clusters came.
        group = self.group[first]
        order = np.lexsort([*counts.T, group])
        order = order[counts[order].any(1)]
        return ClusterCounts(group[order], times[order], counts[order], self.n_groups)


@dataclass(frozen=True)
class ClusteredProportions:
    """J proportions of each of G groups, from `estimate_clustered_proportions`.

    point (in [0, 1]), n (units), n_clusters, variance (linearised): float64 (G, J), point and
    variance NaN where undefined. correlation: float64 (G, J, J), of the proportions' errors over
    clusters; rests_on_one: bool (G, J, J), whether a single cluster makes most of it. size_moments:
    float64 (G, J, 3), the sums over clusters of the squares, cubes and fourth powers of their
    units. concentration: float64 (G, J), the sum of the fourth powers of the clusters' influences
    over the square of their variance: 1 where one cluster makes it all, NaN without variance.

    >>> rows = np.array([[2, 5], [3, 5]])
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.array([20, 20]), rows, n_groups=1)
    >>> found = estimate_clustered_proportions(counts, counts.counts[:, :1], counts.counts[:, 1:])
    >>> low, high = found.wilson_intervals(0.95)
    >>> found.point.item(), round(low.item(), 3), round(high.item(), 3)
    (0.5, 0.429, 0.571)
    """

    point: np.ndarray
    n: np.ndarray
    n_clusters: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray
    rests_on_one: np.ndarray
    size_moments: np.ndarray
    concentration: np.ndarray

    @property
    def cluster_size(self) -> np.ndarray:
        """float64 (G, J): the mean over units of the number of units in their cluster; NaN without
        a unit."""
        return divide_or_undefined(self.size_moments[..., 0], self.n)

    @property
    def effective_n(self) -> np.ndarray:
        """float64 (G, J): of how many independent units the proportion would be as certain; NaN
        below two clusters."""
        binomial = self.point * (1 - self.point) / np.maximum(self.n, 1)
        deff = np.where(binomial > 0, divide_or_undefined(self.variance, binomial), 1.0)
        others = self.cluster_size - 1
        clustered = others > 1e-9
        icc = np.clip(divide_or_undefined(deff - 1, np.where(clustered, others, 0)), -1, 1)
        hits = self.n * self.point
        known = np.minimum(np.minimum(hits, self.n - hits), self.n_clusters)
        icc = np.maximum((known * icc + PRIOR_CLUSTERS * TYPICAL_ICC) / (known + PRIOR_CLUSTERS), 0)
        deff = np.where(clustered, 1 + others * icc, 1.0)
        return np.where(self.n_clusters > 1, self.n / deff, np.nan)

    @property
    def degrees_of_freedom(self) -> np.ndarray:
        """float64 (G, J): 1 less than the number of equal clusters that tell the variance as
        precisely.

        A cluster's part of the variance is expected to grow with its units, and with their square
        as far as units of a cluster are alike (Satterthwaite 1946; Bell & McCaffrey 2002). Of
        clusters of one unit it is their number.
        """
        others = self.cluster_size - 1
        deff = divide_or_undefined(self.n, self.effective_n)
        alike = np.clip(
            np.nan_to_num(divide_or_undefined(deff - 1, np.where(others > 1e-9, others, 0))), 0, 1
        )
        square, cube, fourth = np.moveaxis(self.size_moments, -1, 0)
        total = (1 - alike) * self.n + alike * square
        squares = (1 - alike) ** 2 * square + 2 * alike * (1 - alike) * cube + alike**2 * fourth
        return np.where(
            self.n_clusters > 1, np.maximum(divide_or_undefined(total**2, squares) - 1, 1), 0.0
        )

    def select_as_one_group(self, groups: Sequence[int], column: int) -> ClusteredProportions:
        """One proportion of several groups as the proportions of one group, (1, S), taken for
        uncorrelated."""
        figures = ("point", "n", "n_clusters", "variance", "size_moments", "concentration")
        picked = {key: getattr(self, key)[list(groups), column][None] for key in figures}
        correlation = np.eye(len(groups))[None]
        return ClusteredProportions(
            **picked, correlation=correlation, rests_on_one=np.zeros_like(correlation, bool)
        )

    def select(self, columns: Sequence[int]) -> ClusteredProportions:
        """Some of the J proportions."""
        at = list(columns)
        picked = {key: value[:, at] for key, value in vars(self).items()}
        pairs = {key: picked[key][:, :, at] for key in ("correlation", "rests_on_one")}
        return ClusteredProportions(**picked | pairs)

    def wilson_intervals(self, confidence: float) -> IntervalEnds:
        """(G, J) each: Wilson's interval on the effective number of units, with Student's t."""
        return wilson_interval(self.point, self.effective_n, self.degrees_of_freedom, confidence)


def estimate_clustered_proportions(
    clusters: ClusterCounts, hits: np.ndarray, denominators: np.ndarray
) -> ClusteredProportions:
    """Estimate the proportions hits / denominators, each summed over its group's clusters, and
    their joint variance.

    hits, denominators: (k, J), a row for each row of ``clusters``. NaN where a denominator is 0.

    >>> rows = np.array([[1, 4], [3, 4]])
    >>> counts = ClusterCounts(np.zeros(2, dtype=int), np.ones(2, dtype=int), rows, n_groups=1)
    >>> found = estimate_clustered_proportions(counts, counts.counts[:, :1], counts.counts[:, 1:])
    >>> found.point.tolist(), found.n_clusters.tolist()
    ([[0.5]], [[2.0]])
    """
    n = clusters.sum_by_group(denominators)
    point = divide_or_undefined(clusters.sum_by_group(hits), n)
    present = denominators > 0
    n_clusters = clusters.sum_by_group(present)
    residual = np.where(present, hits - np.nan_to_num(point)[clusters.group] * denominators, 0.0)
    # What a cluster moves the proportion by when it is left out (the jackknife): more than its
    # residual where it is large. Large clusters draw the proportion to themselves, and their
    # residuals are too small.
    rest = 1 - divide_or_undefined(denominators, n[clusters.group])
    residual = np.where(rest > 0, residual / np.where(rest > 0, rest, 1), residual)
    product = residual[:, :, None] * residual[:, None, :]
    products, sizes, squared = map(
        clusters.sum_by_group, (product, np.abs(product), product * product)
    )
    squares = np.diagonal(products, axis1=1, axis2=2)
    small = np.where(n_clusters > 1, divide_or_undefined(n_clusters - 1, n_clusters), np.nan)
    scale = np.sqrt(squares[:, :, None] * squares[:, None, :])
    correlation = np.clip(np.nan_to_num(divide_or_undefined(products, scale)), -1, 1)
    own = np.arange(hits.shape[1])
    correlation[:, own, own] = 1.0  # of a share that did not vary, too
    return ClusteredProportions(
        point=point,
        n=n,
        n_clusters=n_clusters,
        variance=small * divide_or_undefined(squares, n * n),
        correlation=correlation,
        # Fewer than two clusters with equal products would have this sum and this sum of squares.
        rests_on_one=sizes**2 < 2 * squared,
        size_moments=clusters.sum_by_group(denominators[..., None] ** np.array([2.0, 3.0, 4.0])),
        concentration=divide_or_undefined(
            np.diagonal(squared, axis1=1, axis2=2), squares * squares
        ),
    )


def wilson_interval(
    point: np.ndarray, effective_n: np.ndarray, degrees_of_freedom: np.ndarray, confidence: float
) -> IntervalEnds:
    """Wilson's score interval of a proportion, with Student's t in the place of z; elementwise.

    point: in [0, 1]; effective_n: number of independent units that the point is worth;
    degrees_of_freedom: of t. NaN where there is no degree of freedom. The interval always holds the
    point, and has a width even where the point is 0 or 1 (Wilson 1927). Of up to two hits (three of
    more than 50 units), or as few misses, the end that is next to 0, or to 1, is that of a Poisson
    count (Brown, Cai & DasGupta 2001): with 30 units Wilson's own holds rare rates in 86 %.

    >>> low, high = wilson_interval(np.array(0.0), np.array(50), np.array(1000), 0.95)
    >>> low.item(), round(high.item(), 4)
    (0.0, 0.0715)
    """
    t = student_t_quantile(degrees_of_freedom, confidence)
    part = divide_or_undefined(t * t, effective_n)
    middle = (point + part / 2) / (1 + part)
    half = np.sqrt(part * (point * (1 - point) + part / 4)) / (1 + part)
    low = np.minimum(middle - half, _rare_proportion_lower_limit(point, effective_n, confidence))
    high = np.maximum(
        middle + half, 1 - _rare_proportion_lower_limit(1 - point, effective_n, confidence)
    )
    # On paper the ends are in [0, 1] and around the point; in floating point they may miss them by
    # a bit.
    return np.minimum(np.maximum(low, 0), point), np.maximum(np.minimum(high, 1), point)


def _rare_proportion_lower_limit(
    share: np.ndarray, effective_n: np.ndarray, confidence: float
) -> np.ndarray:
    """The lower limit of the share of few hits among many units; 1 where hits are not few."""
    hits = share * effective_n
    is_rare = (hits > 0) & (hits <= np.where(effective_n > 50, 3, 2) + 1e-9)
    limit = scipy.special.gammaincinv(np.where(is_rare, hits, 1), 1 - confidence)
    return np.where(is_rare, divide_or_undefined(limit, effective_n), 1.0)


def student_t_quantile(degrees_of_freedom: np.ndarray, confidence: float) -> np.ndarray:
    """The quantile of Student's t with ``confidence`` between its negative and itself; NaN without
    a degree of freedom.

    >>> student_t_quantile(np.array([0, 10]), 0.95).round(3).tolist()
    [nan, 2.228]
    """
    return np.where(
        degrees_of_freedom > 0,
        scipy.special.stdtrit(np.maximum(degrees_of_freedom, 1), 0.5 + confidence / 2),
        np.nan,
    )


# ---- codes of clusters and groups


def rank_distinct_integers(integers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct whole numbers of (n,), ascending, and the place of each of the n among them.

    As `numpy.unique` with ``return_inverse``, many times as fast: by a table where the numbers lie
    close, else by a hash.

    >>> names, places = rank_distinct_integers(np.array([2, -1, 2]))
    >>> names.tolist(), places.tolist()
    ([-1, 2], [1, 0, 1])
    """
    least, most = (int(integers.min()), int(integers.max())) if len(integers) else (0, 0)
    if most - least > 4 * len(integers):
        places, found = pd.factorize(integers, sort=True)
        return found, places
    # Numbers that lie close are looked up in a table, which is much faster than by a hash.
    there = np.zeros(most - least + 1, dtype=bool)
    there[integers - least] = True
    return np.flatnonzero(there) + least, (np.cumsum(there) - 1)[integers - least]


def encode_distinct_integer_pairs(
    first: np.ndarray, second: np.ndarray, n_second: int
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of codes that occur, as ``first * n_second + second`` in ascending order, and each
    row's place among them.

    first, second: int (n,); n_second: the number of codes of ``second``. There are never more pairs
    than rows.

    >>> pairs, places = encode_distinct_integer_pairs(np.array([0, 1, 0]), np.array([2, 0, 2]), 3)
    >>> pairs.tolist(), places.tolist()
    ([2, 3], [0, 1, 0])
    """
    return rank_distinct_integers(first * n_second + second)
