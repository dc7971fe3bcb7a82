"""The cluster bootstrap: percentile intervals of figures that have none in closed form.

Units of one cluster (claims of one response, responses about one document) are not independent:
whole clusters are drawn with replacement, within each stratum, as in Koehn 2004 and sacrebleu for
test sets. More clusters than `MOST_RESAMPLED_UNITS` are merged at random to so many units first,
and units are drawn (random groups: Wolter 2007): units are as independent as clusters, and sums
over them vary as much.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import scipy

from factaudit.errors import UsageError
from factaudit.stats.clustered_proportions import rank_distinct_integers

#: What is drawn in a stratum: clusters, or so many groups of them. A standard error from so many is
#: within 1 % of that from all clusters; 2,000 replicates leave more than that to chance.
MOST_RESAMPLED_UNITS = 1 << 14
#: Replicates whose weights are multiplied at a time: they stay in the processor's cache.
_REPLICATES_AT_A_TIME = 500


@dataclass(frozen=True)
class ClusterDraws:
    """Clusters of n rows drawn again in B replicates.

    unit: int64 (n,), what the cluster of each row is drawn in; times: uint8 (B, U), how often each
    unit is drawn.
    """

    unit: np.ndarray
    times: np.ndarray

    @property
    def n_units(self) -> int:
        return self.times.shape[1]

    def blocks(self) -> list[np.ndarray]:
        """The times of some replicates each: uint8 (b, U)."""
        return [
            self.times[at : at + _REPLICATES_AT_A_TIME]
            for at in range(0, len(self.times), _REPLICATES_AT_A_TIME)
        ]


@dataclass(frozen=True)
class ClusterBootstrap:
    """Percentile intervals of ``confidence`` (in (0, 1)) from ``replicates`` bootstrap replicates.

    The draws depend on ``seed``, the stratum's name and its number of clusters alone.

    >>> bootstrap = ClusterBootstrap(replicates=1000, seed=1)
    >>> errors_and_claims = np.array([[1, 5], [0, 5], [3, 5], [1, 5]])  # a row for each document
    >>> sums = bootstrap.draw(np.arange(4), "my data").times @ errors_and_claims
    >>> low, high = bootstrap.percentile_ends(sums[:, 0] / sums[:, 1], n_clusters=4)
    >>> low.item(), high.item()
    (0.0, 0.5)
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

    def draw(self, cluster: np.ndarray, stratum: str) -> ClusterDraws:
        """Draw the clusters of one stratum again. cluster: int (n,), of each row."""
        name = stratum.encode("utf-8", "surrogatepass")
        hashed = sha256(len(name).to_bytes(8, "big") + name).hexdigest()
        random = np.random.default_rng([self.seed, int(hashed[:16], 16)])
        names, unit = rank_distinct_integers(cluster)
        n_units = min(len(names), MOST_RESAMPLED_UNITS)
        if n_units < len(names):
            (merging,) = random.spawn(1)
            unit = (merging.permutation(len(names)) % n_units)[unit]
        # No unit is drawn more than 255 times: fewer units than that cannot be, more never are (p <
        # 1e-500).
        times = np.empty((self.replicates, n_units), dtype=np.uint8)
        for row in times:
            row[:] = np.bincount(random.integers(0, max(n_units, 1), n_units), minlength=n_units)
        return ClusterDraws(unit, times)

    def percentile_ends(
        self, replicates: np.ndarray, n_clusters: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The percentile interval along the last axis: (...), (...); NaN where more than half of
        the replicates are undefined.

        It is widened for few clusters (Hesterberg 2015: the tails of Student's t, and of the
        standard error with n - 1).
        """
        t = scipy.special.stdtrit(max(n_clusters - 1, 1), (1 - self.confidence) / 2)
        tail = float(scipy.special.ndtr(t * np.sqrt(n_clusters / max(n_clusters - 1, 1))))
        is_known = 2 * (~np.isnan(replicates)).sum(-1) >= replicates.shape[-1]
        known = np.where(is_known[..., None], replicates, 0.0)
        low, high = np.nanquantile(known, [tail, 1 - tail], axis=-1)
        return np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)
