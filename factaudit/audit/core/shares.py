"""Shares of claims (TPR, PPR, an error rate ...) with intervals that hold in clustered data and for rare errors.

Claims about one document are not independent. A share's variance is linearised over clusters (Taylor series, as in
survey statistics); it makes the *effective* number of claims, on which Wilson's interval is computed with Student's t
at clusters - 1 degrees of freedom (Wilson 1927; Korn & Graubard 1998; Franco, Little, Louis & Slud 2019).

With few errors the variance between clusters is itself hardly known: from 3 errors in 3 documents it looks as if
claims were independent, and from none there is no variance at all. So the intra-cluster correlation that the variance
implies is drawn towards `TYPICAL_ICC`, with the weight of `PRIOR_CLUSTERS` clusters that have errors. The coverage is
simulated in ``tests/validity``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from factaudit.audit.core.groups import pair_codes
from factaudit.audit.core.kinds import distinct
from factaudit.audit.core.rows import ratio

#: What the correlation of claims within a cluster is taken for, where errors are too few to tell.
TYPICAL_ICC = 0.15
#: Weighs as much as so many clusters with errors.
PRIOR_CLUSTERS = 2.0

#: Low and high ends, each of the shape of the figure; NaN where there is no interval.
Limits = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Clusters:
    """Counts of the claims of G groups, cluster by cluster: k (group, cluster) pairs, or kinds of them.

    group: int64 (k,), 0..n_groups-1; times: int64 (k,), how many clusters are of this kind; counts: int64 (k, K), of
    each of K kinds of claims. `kinds` are in an order that follows from the counts, whoever counted them.
    """

    group: np.ndarray
    times: np.ndarray
    counts: np.ndarray
    n_groups: int

    @classmethod
    def kinds(cls, group: np.ndarray, counts: np.ndarray, n_groups: int, times: np.ndarray | None = None) -> Clusters:
        """Equal clusters of a group collapsed to one kind, sorted by group, then by counts from the last one on.

        times: int (k,), how many clusters each row stands for; None: one.
        """
        rows, found = distinct(np.column_stack([group, counts[:, ::-1]]), times)
        return cls(rows[:, 0], found, rows[:, :0:-1], n_groups)

    def total(self, values: np.ndarray) -> np.ndarray:
        """Sums over the clusters of each group: (k,) or (k, ...) -> (G, ...)."""
        flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
        sums = np.zeros((self.n_groups, flat.shape[1]))
        for at, column in enumerate(flat.T):
            sums[:, at] = np.bincount(self.group, column * self.times, self.n_groups)
        return sums.reshape(self.n_groups, *values.shape[1:])


def by_cluster(clusters: np.ndarray, groups: np.ndarray, n_groups: int, codes: np.ndarray, n_codes: int) -> Clusters:
    """Count the claims' codes 0..n_codes-1 in each cluster of each group (-1: in no group): int (n,) each."""
    return Places.of(groups, clusters, n_groups).count(codes, n_codes)


@dataclass(frozen=True)
class Places:
    """The k pairs of a group and a cluster that have claims: group int64 (k,), and each claim's pair (n,), -1: none."""

    group: np.ndarray
    pair: np.ndarray
    n_groups: int

    @classmethod
    def of(cls, groups: np.ndarray, clusters: np.ndarray, n_groups: int) -> Places:
        """groups: int (n,), -1 for none; clusters: int (n,)."""
        size = int(clusters.max(initial=-1)) + 1
        inside = np.flatnonzero(groups >= 0)
        found = np.full(len(groups), -1, dtype=np.int64)
        pairs, found[inside] = pair_codes(groups[inside].astype(np.int64), clusters[inside], size)
        return cls(pairs // max(size, 1), found, n_groups)

    def count(self, codes: np.ndarray, n_codes: int) -> Clusters:
        """Kinds of pairs by how often each has the codes 0..n_codes-1: int (n,), -1 where a claim does not count."""
        inside = (self.pair >= 0) & (codes >= 0)
        every = self.pair * n_codes + codes if inside.all() else (self.pair * n_codes + codes)[inside]
        counts = np.bincount(every, minlength=len(self.group) * n_codes).reshape(len(self.group), n_codes)
        sizes = counts.sum(1)
        if len(sizes) and sizes.max() == 1:  # every claim is its own cluster: a kind is a code
            group, code = np.divmod(np.flatnonzero(counts), n_codes)
            times = np.bincount(self.group[group] * n_codes + code, minlength=self.n_groups * n_codes)
            kinds = np.flatnonzero(times)
            return Clusters(
                kinds // n_codes, times[kinds], np.eye(n_codes, dtype=np.int64)[kinds % n_codes], self.n_groups
            )
        return Clusters.kinds(self.group[sizes > 0], counts[sizes > 0], self.n_groups)


@dataclass(frozen=True)
class Shares:
    """J shares of each of G groups.

    point, n (claims), n_clusters, cluster_size (the mean over claims of the number of claims in their cluster),
    variance (linearised): float64 (G, J), point and variance NaN where undefined; correlation: float64 (G, J, J), of
    the shares' errors over clusters.
    """

    point: np.ndarray
    n: np.ndarray
    n_clusters: np.ndarray
    cluster_size: np.ndarray
    variance: np.ndarray
    correlation: np.ndarray

    @property
    def effective_n(self) -> np.ndarray:
        """(G, J): of how many independent claims the share would be as certain; NaN with fewer than two clusters."""
        binomial = self.point * (1 - self.point) / np.maximum(self.n, 1)
        deff = np.where(binomial > 0, ratio(self.variance, binomial), 1.0)
        others = self.cluster_size - 1
        clustered = others > 1e-9
        icc = np.clip(ratio(deff - 1, np.where(clustered, others, 0)), -1, 1)
        hits = self.n * self.point
        known = np.minimum(np.minimum(hits, self.n - hits), self.n_clusters)
        icc = np.maximum((known * icc + PRIOR_CLUSTERS * TYPICAL_ICC) / (known + PRIOR_CLUSTERS), 0)
        deff = np.where(clustered, 1 + others * icc, np.maximum(deff, 1))
        return np.where(self.n_clusters > 1, self.n / deff, np.nan)

    def limits(self, confidence: float) -> Limits:
        """(G, J) each: Wilson's interval on the effective number of claims, with t."""
        return wilson(self.point, self.effective_n, self.n_clusters - 1, confidence)


def shares(clusters: Clusters, hits: np.ndarray, of: np.ndarray) -> Shares:
    """The shares hits / of, summed over each group's clusters. hits, of: (k, J), from ``clusters.counts``."""
    n, times = clusters.total(of), clusters.times[:, None]
    point = ratio(clusters.total(hits), n)
    present = of > 0
    n_clusters = clusters.total(present)
    residual = np.where(present, hits - np.nan_to_num(point)[clusters.group] * of, 0.0)
    width = hits.shape[1]
    products = np.empty((clusters.n_groups, width, width))
    for a in range(width):
        for b in range(a, width):
            summed = np.bincount(clusters.group, residual[:, a] * residual[:, b] * times[:, 0], clusters.n_groups)
            products[:, a, b] = products[:, b, a] = summed
    squares = np.diagonal(products, axis1=1, axis2=2)
    small = ratio(n_clusters, n_clusters - 1)
    scale = np.sqrt(squares[:, :, None] * squares[:, None, :])
    correlation = np.clip(np.nan_to_num(ratio(products, scale)), -1, 1)
    correlation[:, np.arange(width), np.arange(width)] = 1.0  # of a share that did not vary, too
    return Shares(
        point=point,
        n=n,
        n_clusters=n_clusters,
        cluster_size=ratio(clusters.total(of.astype(np.float64) ** 2), n),
        variance=small * ratio(squares, n * n),
        correlation=correlation,
    )


def wilson(point: np.ndarray, n: np.ndarray, freedom: np.ndarray, confidence: float) -> Limits:
    """Wilson's score interval of a share of ``n`` (effective) claims, Student's t in the place of z; elementwise.

    NaN where there is no degree of freedom. Always holds the point, and has a width even where the point is 0 or 1.
    """
    t = quantile(freedom, confidence)
    part = ratio(t * t, n)
    middle = (point + part / 2) / (1 + part)
    half = np.sqrt(part * (point * (1 - point) + part / 4)) / (1 + part)
    # On paper the ends are in [0, 1] and around the point; in floating point they may miss them by a bit.
    return np.minimum(np.maximum(middle - half, 0), point), np.maximum(np.minimum(middle + half, 1), point)


def quantile(freedom: np.ndarray, confidence: float) -> np.ndarray:
    """Student's t between whose negative and which lies ``confidence``; NaN where there is no degree of freedom."""
    return np.where(freedom > 0, stdtrit(np.maximum(freedom, 1), 0.5 + confidence / 2), np.nan)
