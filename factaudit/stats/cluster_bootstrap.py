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
#: So many clusters are drawn at a time.
_CLUSTERS_AT_A_TIME = 1 << 17
#: What is drawn in a stratum: clusters, or so many groups of them. A standard error from so many is within 1 % of that
#: from all clusters; 2,000 replicates leave more than that to chance.
MOST_RESAMPLED_UNITS = 1 << 14
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
            # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
            largest = int(np.abs(kinds).max(initial=0)) * int(times.sum())
            kinds = kinds.astype(np.float32 if kinds.dtype.kind in "iu" and largest < 1 << 24 else np.float64)
            found.append(np.empty((self.replicates, kinds.shape[1])))
            if self._pays_multinomial(times):
                _add_bootstrap_weighted_rows(found[-1:], [kinds], self.draw_kind_weights(times, stratum))
            else:  # each unit has a row: that costs less than to add up the clusters of a kind in each replicate
                rows = self._sum_clusters_by_unit(kinds, times, stratum)
                by_unit.setdefault(len(rows), []).append((found[-1], rows))
        for n_units, those in by_unit.items():
            _add_bootstrap_weighted_rows(
                [out for out, _ in those], [rows for _, rows in those], self.draw_cluster_weights(n_units, stratum)
            )
        return found

    @staticmethod
    def _pays_multinomial(times: np.ndarray) -> bool:
        """Whether kinds are drawn, not units."""
        return len(times) * _MULTINOMIAL_PAYS < min(int(times.sum()), MOST_RESAMPLED_UNITS)

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

    def _sum_clusters_by_unit(self, kinds: np.ndarray, times: np.ndarray, stratum: str) -> np.ndarray:
        """The sums of the clusters of each unit, (units, K), of U kinds (U, K), each of which occurs so many times."""
        unit = self.assign_resampled_units(int(times.sum()), stratum)
        clusters = np.repeat(np.arange(len(kinds)), times)
        if len(unit) <= MOST_RESAMPLED_UNITS:
            return kinds[clusters]
        order = np.argsort(unit.astype(np.uint16), kind="stable")  # of short numbers numpy counts
        return np.add.reduceat(kinds[clusters[order]], np.flatnonzero(np.diff(unit[order], prepend=-1)), axis=0)

    def draw_kind_weights(self, times: np.ndarray, stratum: str) -> Iterator[np.ndarray]:
        """How often each distinct cluster is drawn: blocks of whole numbers (b, U), ``replicates`` rows in all.

        times: int (U,), how many clusters are equal to each. Equal clusters are exchangeable: where few are distinct,
        to draw ``times.sum()`` clusters with replacement and to count them is one multinomial draw.
        """
        n_clusters = int(times.sum())
        if self._pays_multinomial(times):
            random = self._stratum_generator(stratum)
            for part in _row_blocks(self.replicates, len(times)):
                yield random.multinomial(n_clusters, times / n_clusters, size=part.stop - part.start)
            return
        starts = np.cumsum(times) - times
        for drawn in self.draw_cluster_weights(n_clusters, stratum):
            all_differ = len(times) == n_clusters
            yield drawn if all_differ else np.add.reduceat(drawn, starts, axis=1, dtype=np.int64)

    def draw_cluster_weights(self, n_clusters: int, stratum: str, width: int = 0) -> Iterator[np.ndarray]:
        """How often each of the C clusters of a stratum is drawn: blocks uint8 (b, C), ``replicates`` rows in all.

        The same for all who ask. Blocks are smaller where the caller makes rows of ``width`` numbers of them; the draws
        do not depend on it.
        """
        return _draw_bootstrap_weight_blocks(self._stratum_generator(stratum), self.replicates, n_clusters, width)

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
        defined = np.full(len(ordered), len(replicates))
        some = np.isnan(ordered[:, -1])
        defined[some] -= np.isnan(ordered[some]).sum(1)
        found = np.stack([_bootstrap_quantile_of_rows(ordered, defined, q) for q in (tail, 1 - tail)])
        found[:, 2 * defined < len(replicates)] = np.nan
        low, high = found.reshape(2, *replicates.shape[1:])
        return low, high


def _add_bootstrap_weighted_rows(
    sums: Sequence[np.ndarray], rows: Sequence[np.ndarray], weight_blocks: Iterator[np.ndarray]
) -> None:
    """Write to each of ``sums`` the sums of its rows (C, K), each taken as often as it is drawn: blocks (b, C)."""
    done = 0
    for weights in weight_blocks:
        block = slice(done, done + len(weights))
        as_many = {kind: weights.astype(kind) for kind in {each.dtype for each in rows}}
        for out, each in zip(sums, rows, strict=True):
            out[block] = as_many[each.dtype] @ each
        done = block.stop


def _bootstrap_quantile_of_rows(ordered: np.ndarray, n_defined: np.ndarray, q: float) -> np.ndarray:
    """(J,): a quantile of the first ``n_defined`` of each of J ordered rows, as numpy interpolates it."""
    place = np.maximum(n_defined - 1, 0) * q
    below = np.floor(place).astype(np.int64)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, np.minimum(below + 1, np.maximum(n_defined - 1, 0))]
    part, step = place - below, high - low
    return np.where(part < 0.5, low + step * part, high - step * (1 - part))


def _draw_bootstrap_weight_blocks(
    random: np.random.Generator, replicates: int, n_clusters: int, width: int = 0
) -> Iterator[np.ndarray]:
    # So many at a time: the places that they are counted at stay in the processor's cache.
    at_once = max(1, _CLUSTERS_AT_A_TIME // max(1, n_clusters))
    for part in _row_blocks(replicates, max(n_clusters, width)):
        # No cluster is drawn more than 255 times: fewer clusters than that cannot be, more never are (p < 1e-500).
        times = np.empty((part.stop - part.start, n_clusters), dtype=np.uint8)
        for start in range(0, len(times), at_once):
            some = times[start : start + at_once]
            # Each replicate's counts are at a place of their own among the bins.
            places = random.integers(0, n_clusters, some.shape)
            places += n_clusters * np.arange(len(some))[:, None]
            some[:] = np.bincount(places.ravel(), minlength=some.size).reshape(some.shape)
        yield times


def _row_blocks(rows: int, width: int) -> Iterator[slice]:
    block = max(1, _BLOCK_NUMBERS // max(1, width))
    for start in range(0, rows, block):
        yield slice(start, min(start + block, rows))
