"""The cluster bootstrap: percentile intervals of figures that have none in closed form.

Units of one cluster (claims of one response, responses about one document) are not independent: whole clusters are
drawn with replacement, within each stratum, as in Koehn 2004 and sacrebleu for test sets. What is summed are statistics
of clusters, never rows, so that a million claims cost what their distinct clusters cost. More clusters than
`MOST_RESAMPLED_UNITS` are merged at random to so many units first, and units are drawn (random groups: Wolter 2007):
units are as independent as clusters, and sums over them vary as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import scipy

from factaudit.errors import UsageError
from factaudit.stats.distinct_rows import count_distinct_rows

#: At most this many numbers in one block of weights (32 MB of float64).
_BLOCK_NUMBERS = 1 << 22
#: What is drawn in a stratum: clusters, or so many groups of them. A standard error from so many is within 1 % of that
#: from all clusters; 2,000 replicates leave more than that to chance.
MOST_RESAMPLED_UNITS = 1 << 14
#: So many clusters are drawn at a time.
_CLUSTERS_AT_A_TIME = 1 << 17
#: Drawing the number of times of each kind of cluster beats drawing each cluster where kinds are this much fewer.
_MULTINOMIAL_PAYS = 16


@dataclass(frozen=True)
class ClusterBootstrap:
    """Percentile intervals of ``confidence`` (in (0, 1)) from ``replicates`` bootstrap replicates.

    The draws depend on ``seed`` and the stratum's name alone, not on the order of rows or on other strata.

    >>> bootstrap = ClusterBootstrap(replicates=1000, seed=1)
    >>> errors_and_claims = np.array([[1, 5], [0, 5], [3, 5], [1, 5]])  # a row for each document
    >>> (sums,) = bootstrap.resample_sums([errors_and_claims], "my data")
    >>> low, high = bootstrap.percentile_ends(sums[:, 0] / sums[:, 1])
    >>> low.item(), high.item()
    (0.05, 0.5)
    """

    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if self.replicates < 1:
            raise UsageError(f"expected at least 1 bootstrap replicate, found {self.replicates}")
        if self.seed < 0:
            raise UsageError(f"expected a seed of at least 0, found {self.seed}")
        if not 0 < self.confidence < 1:
            raise UsageError(f"expected a confidence between 0 and 1, found {self.confidence}")

    def resample_sums(
        self, cluster_statistics: Sequence[np.ndarray | tuple[np.ndarray, np.ndarray]], stratum: str
    ) -> list[np.ndarray]:
        """Draw the C clusters of one stratum again and sum each of several statistics: float64 (replicates, K) each.

        A statistic is (C, K), a row for each cluster, or what `count_distinct_rows` gives: the distinct rows (U, K) and
        how often each occurs (U,). All statistics of as many clusters are drawn alike.
        """
        found: list[np.ndarray] = []
        by_unit: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for statistics in cluster_statistics:
            kinds, times = statistics if isinstance(statistics, tuple) else count_distinct_rows(statistics)
            n_clusters = int(times.sum())
            # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
            largest = int(np.abs(kinds).max(initial=0)) * n_clusters
            kinds = kinds.astype(np.float32 if kinds.dtype.kind in "iu" and largest < 1 << 24 else np.float64)
            found.append(np.empty((self.replicates, kinds.shape[1])))
            if len(times) * _MULTINOMIAL_PAYS < min(n_clusters, MOST_RESAMPLED_UNITS):
                # Equal clusters are exchangeable: drawing clusters and counting them is one multinomial draw of kinds.
                drawn = self._stratum_generator(stratum).multinomial(n_clusters, times / n_clusters, self.replicates)
                found[-1][:] = drawn.astype(kinds.dtype) @ kinds
                continue
            unit = self.assign_resampled_units(n_clusters, stratum)
            rows = np.repeat(kinds, times, axis=0)
            if n_clusters > MOST_RESAMPLED_UNITS:
                order = np.argsort(unit.astype(np.uint16), kind="stable")  # of short numbers numpy counts
                rows = np.add.reduceat(rows[order], np.flatnonzero(np.diff(unit[order], prepend=-1)), axis=0)
            by_unit.setdefault(len(rows), []).append((found[-1], rows))
        for n_units, alike in by_unit.items():
            done = 0
            for weights in self.draw_cluster_weights(n_units, stratum):
                as_many = {kind: weights.astype(kind) for kind in {rows.dtype for _, rows in alike}}
                for sums, rows in alike:
                    sums[done : done + len(weights)] = as_many[rows.dtype] @ rows
                done += len(weights)
        return found

    def assign_resampled_units(self, n_clusters: int, stratum: str) -> np.ndarray:
        """int64 (C,): the unit that each cluster of a stratum is drawn in; the same for as many clusters.

        Each is its own unit where there are no more than `MOST_RESAMPLED_UNITS`; else units have equal numbers of
        clusters, or one more.

        >>> ClusterBootstrap().assign_resampled_units(3, "few").tolist()
        [0, 1, 2]
        >>> np.unique(np.bincount(ClusterBootstrap().assign_resampled_units(100_000, "many"))).tolist()
        [6, 7]
        """
        if n_clusters <= MOST_RESAMPLED_UNITS:
            return np.arange(n_clusters)
        (random,) = self._stratum_generator(stratum).spawn(1)
        return random.permutation(n_clusters) % MOST_RESAMPLED_UNITS

    def draw_cluster_weights(self, n_clusters: int, stratum: str) -> Iterator[np.ndarray]:
        """How often each of the C clusters of a stratum is drawn: blocks uint8 (b, C), ``replicates`` rows in all.

        The same for all who ask.
        """
        random = self._stratum_generator(stratum)
        block = max(1, _BLOCK_NUMBERS // max(1, n_clusters))
        # So many at a time: the places that they are counted at stay in the processor's cache.
        at_once = max(1, _CLUSTERS_AT_A_TIME // max(1, n_clusters))
        for start in range(0, self.replicates, block):
            # No cluster is drawn more than 255 times: fewer clusters than that cannot be, more never are (p < 1e-500).
            times = np.empty((min(block, self.replicates - start), n_clusters), dtype=np.uint8)
            for first in range(0, len(times), at_once):
                some = times[first : first + at_once]
                # Each replicate's counts are at a place of their own among the bins.
                places = random.integers(0, n_clusters, some.shape) + n_clusters * np.arange(len(some))[:, None]
                some[:] = np.bincount(places.ravel(), minlength=some.size).reshape(some.shape)
            yield times

    def _stratum_generator(self, stratum: str) -> np.random.Generator:
        name = stratum.encode("utf-8", "surrogatepass")
        hashed = sha256(len(name).to_bytes(8, "big") + name).hexdigest()
        return np.random.default_rng([self.seed, int(hashed[:16], 16)])

    def percentile_ends(self, replicates: np.ndarray, n_clusters: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The percentile interval along the first axis: (...), (...); NaN where more than half of the replicates are
        undefined.

        With n_clusters it is widened for few of them (Hesterberg 2015: the tails of Student's t, and of the standard
        error with n - 1).
        """
        tail = (1 - self.confidence) / 2
        if n_clusters is not None:
            t = scipy.special.stdtrit(max(n_clusters - 1, 1), 1 - tail)
            tail = float(scipy.special.ndtr(-t * np.sqrt(n_clusters / max(n_clusters - 1, 1))))
        # Sorted as they then lie in memory, undefined ones last: many times as fast as numpy's nanquantile.
        ordered = np.sort(replicates.reshape(len(replicates), -1).T, axis=1)
        n_defined = len(replicates) - np.isnan(ordered).sum(1)
        found = np.stack([_quantile_of_rows(ordered, n_defined, q) for q in (tail, 1 - tail)])
        found[:, 2 * n_defined < len(replicates)] = np.nan
        low, high = found.reshape(2, *replicates.shape[1:])
        return low, high


def _quantile_of_rows(ordered: np.ndarray, n_defined: np.ndarray, q: float) -> np.ndarray:
    """(J,): a quantile of the first ``n_defined`` of each of J ordered rows, as numpy interpolates it."""
    place = np.maximum(n_defined - 1, 0) * q
    below = np.floor(place).astype(np.int64)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, np.minimum(below + 1, np.maximum(n_defined - 1, 0))]
    part, step = place - below, high - low
    return np.where(part < 0.5, low + step * part, high - step * (1 - part))
