"""Do bootstrap intervals hold the truth where clusters are so many that random groups of them are drawn?

Two systems answer about each of 40,000 documents; 500 replicates draw `MOST_RESAMPLED_UNITS` groups of documents.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.calibration import adjust_counts
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

DOCUMENTS, REPLICATES = 40_000, 500


@dataclass(frozen=True)
class Regime:
    """Claims of a system in a document: 1 to 2 * claims - 1 where uneven. errors: true error rates of two systems.

    spread: the standard deviation of a document's error rate, over the greatest that there can be; the evaluator finds
    errors and approves of others with these probabilities.
    """

    name: str
    claims: int = 2
    errors: tuple[float, float] = (0.2, 0.3)
    spread: float = 0.3
    finds: float = 0.7
    approves: float = 0.85
    uneven: bool = False

    @property
    def truth(self) -> np.ndarray:
        first, second = self.errors
        predicted = first * self.finds + (1 - first) * (1 - self.approves)
        return np.array([first, predicted - first, second - first, second])

    def draw_counts(self, random: np.random.Generator) -> np.ndarray:
        """int64 (documents, 2, 4): of each system errors found and missed, other claims flagged and approved."""
        shape = (DOCUMENTS, 2)
        n = random.integers(1, 2 * self.claims, shape) if self.uneven else np.full(shape, self.claims)
        weight = 1 / self.spread**2 - 1
        rate = random.beta(weight * np.array(self.errors), weight * (1 - np.array(self.errors)), shape)
        wrong = random.binomial(n, rate)
        found, flagged = random.binomial(wrong, self.finds), random.binomial(n - wrong, 1 - self.approves)
        return np.stack([found, wrong - found, flagged, n - wrong - flagged], axis=-1)


FIGURES = ("error rate", "bias", "difference of systems", "adjusted count")
REGIMES = (
    Regime("1 claim", claims=1),
    Regime("2 claims"),
    Regime("10 claims", claims=10),
    Regime("uneven", claims=4, uneven=True),
    Regime("alike in a document", claims=5, spread=0.9),
    Regime("2 % errors", errors=(0.02, 0.03)),
    Regime("0.1 % errors", errors=(0.001, 0.002)),
    Regime("0.1 % errors, alike", claims=5, errors=(0.001, 0.002), spread=0.9),
    Regime("BAcc 55 %", finds=0.4, approves=0.7),
    Regime("BAcc 98 %", finds=0.98, approves=0.98),
    Regime("rates far apart", errors=(0.05, 0.6)),
    Regime("even rates", errors=(0.5, 0.5)),
)


def compute_figures(sums: np.ndarray) -> np.ndarray:
    """(..., 2, 4) sums of counts -> (..., figures)."""
    errors, n = sums[..., :2].sum(-1), sums.sum(-1)
    rate, predicted = errors / n, (sums[..., 0] + sums[..., 2]) / n
    calibration = sums[..., 0, :].reshape(*sums.shape[:-2], 2, 2)
    adjusted = adjust_counts(predicted[..., 1], calibration)
    return np.stack([rate[..., 0], predicted[..., 0] - rate[..., 0], rate[..., 1] - rate[..., 0], adjusted], axis=-1)


def coverage(regime: Regime, tables: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Per figure which intervals of the simulated tables held the truth."""
    random, held = np.random.default_rng(seed), []
    for table in range(tables):
        intervals = ClusterBootstrap(REPLICATES, seed=seed * 1_000_000 + table)
        counts = regime.draw_counts(random).reshape(DOCUMENTS, 8)
        (sums,) = intervals.resample_sums([counts], "documents")
        low, high = intervals.percentile_ends(compute_figures(sums.reshape(-1, 2, 4)), DOCUMENTS)
        held.append((low <= regime.truth) & (regime.truth <= high))
    return dict(zip(FIGURES, np.array(held).T, strict=True))
