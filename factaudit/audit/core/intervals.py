"""What has no interval in closed form: a cluster bootstrap that reads sufficient statistics, never rows.

Claims of one response, and responses about one document, are not independent: whole clusters are resampled (with
replacement, within each dataset), as in Koehn 2004 and sacrebleu for test sets, and every figure is computed again from
the sums of per-cluster counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, stdtrit

from factaudit.audit.core.groups import Groups
from factaudit.audit.core.kinds import distinct
from factaudit.audit.core.tallies import Field, Tallies
from factaudit.errors import UsageError
from factaudit.signature import digest

#: At most this many numbers in one block of weights (32 MB of float64).
_BLOCK = 1 << 22
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

    def counts(self, judged: Tallies, groups: Groups, *fields: Field) -> np.ndarray:
        """How many rows of each group fall in each cell, in each replicate: float64 (replicates, n_groups, n_cells).

        A row in no group counts nowhere, but its cluster is drawn all the same. A figure that is a function of counts
        gets its bootstrap distribution by being computed on the result. A group that lies in a single cluster is NaN:
        there is nothing to resample.
        """
        n_cells = 3 ** len(fields)
        out = np.zeros((self.replicates, len(groups.keys) * n_cells))
        for dataset, codes, kinds, times in judged.strata(groups, *fields):
            sums = self.sums((kinds, times), dataset)
            out[:, codes[codes >= 0]] += sums[:, codes >= 0]
        drawn = out.reshape(self.replicates, len(groups.keys), n_cells)
        drawn[:, judged.n_clusters(groups) < 2] = np.nan
        return drawn

    def sums(self, statistics: np.ndarray | tuple[np.ndarray, np.ndarray], stratum: str) -> np.ndarray:
        """Resample the C clusters of one stratum and sum their statistics: float64 (replicates, K).

        ``statistics`` is (C, K), a row per cluster, or what `tally` returns: the distinct rows and how often each
        occurs.
        """
        kinds, times = statistics if isinstance(statistics, tuple) else distinct(statistics)
        kinds = kinds.astype(np.float64)
        out = np.empty((self.replicates, kinds.shape[1]))
        done = 0
        for weights in self.weights(times, stratum):
            out[done : done + len(weights)] = weights @ kinds
            done += len(weights)
        return out

    def weights(self, times: np.ndarray, stratum: str, width: int = 0) -> Iterator[np.ndarray]:
        """How often each kind of cluster is drawn: blocks (b, U) that add up to ``replicates`` rows.

        ``times`` int (U,): how many clusters there are of each kind. Clusters of one kind are exchangeable: drawing
        ``times.sum()`` clusters with replacement and counting kinds is one multinomial draw. Blocks are smaller where
        the caller makes rows of ``width`` numbers of them; the draws don't depend on it.
        """
        random = np.random.default_rng([self.seed, int(digest(stratum), 16)])
        n_clusters = int(times.sum())
        multinomial = len(times) * _MULTINOMIAL_PAYS < n_clusters
        block = max(1, _BLOCK // max(1, len(times) if multinomial else n_clusters, width))
        for start in range(0, self.replicates, block):
            length = min(block, self.replicates - start)
            if multinomial:
                yield random.multinomial(n_clusters, times / n_clusters, size=length).astype(np.float64)
                continue
            # Cluster by cluster; each replicate's counts are at a place of their own among the bins.
            kind = np.repeat(np.arange(len(times)), times)[random.integers(0, n_clusters, (length, n_clusters))]
            kind += len(times) * np.arange(length)[:, None]
            yield np.bincount(kind.ravel(), minlength=length * len(times)).reshape(length, -1).astype(np.float64)

    def ends(self, replicates: np.ndarray, n_clusters: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The percentile interval along the first axis; NaN where more than half of the replicates are undefined.

        With n_clusters it is expanded for few of them (Hesterberg 2015: the tails of Student's t, and of the standard
        error with n - 1).
        """
        tail = (1 - self.confidence) / 2
        if n_clusters is not None:
            t = stdtrit(max(n_clusters - 1, 1), 1 - tail)
            tail = float(ndtr(-t * np.sqrt(n_clusters / max(n_clusters - 1, 1))))
        undefined = np.isnan(replicates).mean(0) > 0.5
        filled = np.where(undefined, 0.0, replicates)
        quantile = np.nanquantile if np.isnan(filled).any() else np.quantile
        low, high = quantile(filled, [tail, 1 - tail], axis=0)
        return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)
