"""What has no interval in closed form: a cluster bootstrap that reads sufficient statistics, never rows.

Claims of one response, and responses about one document, are not independent: whole clusters are resampled (with
replacement, within each dataset), as in Koehn 2004 and sacrebleu for test sets, and every figure is computed again from
the sums of per-cluster counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import ndtr, stdtrit

from factaudit.audit.core.groups import Groups
from factaudit.audit.core.kept import fits, kept
from factaudit.audit.core.kinds import distinct
from factaudit.audit.core.tallies import Field, Stratum, Tallies
from factaudit.errors import UsageError
from factaudit.signature import digest

#: At most this many numbers in one block of weights (32 MB of float64).
_BLOCK = 1 << 22
#: So many clusters are drawn at a time.
_CACHED = 1 << 17
#: Drawing the number of times of each kind of cluster beats drawing each cluster where kinds are this much fewer.
_MULTINOMIAL_PAYS = 16


@dataclass(frozen=True)
class Intervals:
    """How intervals are made: percentile intervals of ``confidence`` from ``replicates`` bootstrap replicates.

    The draws depend on ``seed`` and the dataset alone, not on the order of rows or on other datasets.
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

    def counts(
        self, judged: Tallies, groups: Groups, *asked: Sequence[Field], adds: np.ndarray | None = None
    ) -> Iterator[tuple[str, list[np.ndarray]]]:
        """Per dataset that has groups its name and, for each list of fields asked, how many rows of each of its groups
        fall in each cell, in each replicate: float64 (replicates, groups, n_cells), groups in their order.

        adds: whole (n_cells, K), what a row of each cell adds to K numbers: these in the place of all the cells.

        A row in no group counts nowhere, but its cluster is drawn all the same. A figure that is a function of counts
        gets its bootstrap distribution by being computed on the result. A group that lies in a single cluster is NaN:
        there is nothing to resample.
        """
        n_clusters, places = judged.n_clusters(groups), np.array([key["dataset"] for key in groups.keys])
        added = [
            # Kinds are held no longer than until what they add up to is known.
            map(
                partial(_added, places, np.eye(3 ** len(fields)) if adds is None else adds),
                judged.strata(groups, *fields),
            )
            for fields in asked
        ]
        for several in zip(*added, strict=True):
            dataset, statistics = several[0][0], [each for _, each in several]
            own = np.flatnonzero(places == dataset)
            if not len(own):
                continue
            drawn = [sums.reshape(self.replicates, len(own), -1) for sums in self.sums(statistics, dataset)]
            for sums in drawn:
                sums[:, n_clusters[own] < 2] = np.nan
            yield dataset, drawn

    def sums(self, several: Sequence[np.ndarray | tuple[np.ndarray, np.ndarray]], stratum: str) -> list[np.ndarray]:
        """Resample the C clusters of one stratum and sum each of several statistics: float64 (replicates, K).

        A statistic is (C, K), a row per cluster, or what `tally` returns: the distinct rows and how often each occurs.
        """
        found: list[np.ndarray] = []
        by_cluster: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        for statistics in several:
            kinds, times = statistics if isinstance(statistics, tuple) else distinct(statistics)
            # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
            largest, n_clusters = int(np.abs(kinds).max(initial=0)) * int(times.sum()), int(times.sum())
            kinds = kinds.astype(np.float32 if kinds.dtype.kind in "iu" and largest < 1 << 24 else np.float64)
            found.append(np.empty((self.replicates, kinds.shape[1])))
            if self._by_kind(times):
                _add(found[-1:], [kinds], self.weights(times, stratum))
            else:  # each cluster has a row: that costs less than to add up the clusters of a kind in each replicate
                by_cluster.setdefault(n_clusters, []).append((found[-1], np.repeat(kinds, times, axis=0)))
        for n_clusters, those in by_cluster.items():
            _add([out for out, _ in those], [rows for _, rows in those], self.draws(n_clusters, stratum))
        return found

    @staticmethod
    def _by_kind(times: np.ndarray) -> bool:
        """Whether kinds are drawn, not clusters."""
        return len(times) * _MULTINOMIAL_PAYS < int(times.sum())

    def weights(self, times: np.ndarray, stratum: str) -> Iterator[np.ndarray]:
        """How often each kind of cluster is drawn: blocks of whole numbers (b, U), ``replicates`` rows together.

        ``times`` int (U,): how many clusters there are of each kind. Clusters of one kind are exchangeable: where kinds
        are few, drawing ``times.sum()`` clusters with replacement and counting kinds is one multinomial draw.
        """
        n_clusters = int(times.sum())
        if self._by_kind(times):
            random = self._random(stratum)
            for part in _blocks(self.replicates, len(times)):
                yield random.multinomial(n_clusters, times / n_clusters, size=part.stop - part.start)
            return
        starts = np.cumsum(times) - times
        for drawn in self.draws(n_clusters, stratum):
            all_differ = len(times) == n_clusters
            yield drawn if all_differ else np.add.reduceat(drawn, starts, axis=1, dtype=np.int64)

    def draws(self, n_clusters: int, stratum: str, width: int = 0) -> Iterator[np.ndarray]:
        """How often each of the C clusters of a stratum is drawn: blocks uint8 (b, C) of ``replicates`` rows together.

        The same for all who ask, whatever audit, evaluator or level: where it is not too large it is drawn once. Blocks
        are smaller where the caller makes rows of ``width`` numbers of them; the draws don't depend on it.
        """
        if not fits(self.replicates * n_clusters):
            yield from _drawn(self._random(stratum), self.replicates, n_clusters, width)
            return
        key = (self.seed, stratum, self.replicates, n_clusters)
        whole = kept(key, lambda: np.concatenate([*_drawn(self._random(stratum), self.replicates, n_clusters)]))
        for part in _blocks(self.replicates, max(n_clusters, width)):
            yield whole[part]

    def _random(self, stratum: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, int(digest(stratum), 16)])

    def ends(self, replicates: np.ndarray, n_clusters: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The percentile interval along the first axis; NaN where more than half of the replicates are undefined.

        With n_clusters it is expanded for few of them (Hesterberg 2015: the tails of Student's t, and of the standard
        error with n - 1).
        """
        tail = (1 - self.confidence) / 2
        if n_clusters is not None:
            t = stdtrit(max(n_clusters - 1, 1), 1 - tail)
            tail = float(ndtr(-t * np.sqrt(n_clusters / max(n_clusters - 1, 1))))
        # Sorted as they then lie in memory, undefined ones last: many times as fast as numpy's nanquantile.
        ordered = np.sort(replicates.reshape(len(replicates), -1).T, axis=1)
        defined = np.full(len(ordered), len(replicates))
        some = np.isnan(ordered[:, -1])
        defined[some] -= np.isnan(ordered[some]).sum(1)
        found = np.stack([_quantile(ordered, defined, q) for q in (tail, 1 - tail)])
        found[:, 2 * defined < len(replicates)] = np.nan
        low, high = found.reshape(2, *replicates.shape[1:])
        return low, high


def _added(datasets: np.ndarray, adds: np.ndarray, stratum: Stratum) -> tuple[str, tuple[np.ndarray, np.ndarray]]:
    """Of a stratum (`Tallies.strata`) its dataset's name, and what each kind of cluster adds to the dataset's groups.

    datasets: of all groups; adds: (n_cells, K). Gives int64 (U, groups of the dataset * K), and how often kinds occur.
    """
    dataset, codes, kinds, times = stratum
    own = np.flatnonzero(datasets == dataset)
    places, cells = np.divmod(codes[codes >= 0], len(adds))
    each = np.zeros((len(cells), len(own), adds.shape[1]))
    each[np.arange(len(cells)), np.searchsorted(own, places)] = adds[cells]
    rows = each.reshape(len(cells), len(own) * adds.shape[1])  # none where the dataset has no group
    return dataset, ((kinds[:, codes >= 0] @ rows).astype(np.int64), times)


def _add(found: Sequence[np.ndarray], rows: Sequence[np.ndarray], drawn: Iterator[np.ndarray]) -> None:
    """Write to each of ``found`` the sums of its rows (C, K), each taken as often as it is drawn: blocks (b, C)."""
    done = 0
    for weights in drawn:
        block = slice(done, done + len(weights))
        as_many = {kind: weights.astype(kind) for kind in {each.dtype for each in rows}}
        for out, each in zip(found, rows, strict=True):
            out[block] = as_many[each.dtype] @ each
        done = block.stop


def _quantile(ordered: np.ndarray, defined: np.ndarray, q: float) -> np.ndarray:
    """(J,): a quantile of the first ``defined`` of each of J ordered rows, as numpy interpolates it."""
    place = np.maximum(defined - 1, 0) * q
    below = np.floor(place).astype(np.int64)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, np.minimum(below + 1, np.maximum(defined - 1, 0))]
    part, step = place - below, high - low
    return np.where(part < 0.5, low + step * part, high - step * (1 - part))


def _drawn(random: np.random.Generator, replicates: int, n_clusters: int, width: int = 0) -> Iterator[np.ndarray]:
    # So many at a time: the places that they are counted at stay in the processor's cache.
    at_once = max(1, _CACHED // max(1, n_clusters))
    for part in _blocks(replicates, max(n_clusters, width)):
        # No cluster is drawn more than 255 times: fewer clusters than that cannot be, more never are (p < 1e-500).
        times = np.empty((part.stop - part.start, n_clusters), dtype=np.uint8)
        for start in range(0, len(times), at_once):
            some = times[start : start + at_once]
            # Each replicate's counts are at a place of their own among the bins.
            places = random.integers(0, n_clusters, some.shape)
            places += n_clusters * np.arange(len(some))[:, None]
            some[:] = np.bincount(places.ravel(), minlength=some.size).reshape(some.shape)
        yield times


def _blocks(rows: int, width: int) -> Iterator[slice]:
    block = max(1, _BLOCK // max(1, width))
    for start in range(0, rows, block):
        yield slice(start, min(start + block, rows))
