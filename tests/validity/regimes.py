"""Simulated benchmarks whose true figures are known: documents, systems, two evaluators, in many replicates at once.

A document has a hidden difficulty u in (0, 1). In hard documents (u near 1) systems make more errors and evaluators are
right less often, so that claims of one document go together. All true figures are sums over a grid of u: no simulation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np
from scipy.stats import beta, norm

#: Points of the grid of difficulties, equally probable.
GRID = 200
#: A prediction: 0, 1, unscored.
SAID = 3


@dataclass(frozen=True)
class Regime:
    """S systems answer about ``docs`` documents, ``claims`` claims each; evaluators a and b judge every claim.

    errors: each system's true error rate; a, b: (TPR, TNR); icc: correlation of a document's labels and of whether
    judgements are right; alike: how often a and b judge by the same coin; unscored: how often b gives no prediction.
    own: every system has documents of its own; uneven: documents have 1 to 2 * claims - 1 claims; tie: b's TNR is moved
    until both evaluators have the same BAcc; sized: the harder a document, the more claims it has (log-normally: the
    hardest tenth has a quarter of all).
    """

    name: str
    docs: int = 50
    claims: int = 5
    errors: tuple[float, ...] = (0.2, 0.25, 0.3, 0.4)
    a: tuple[float, float] = (0.85, 0.7)
    b: tuple[float, float] = (0.75, 0.65)
    icc: float = 0.08
    alike: float = 0.5
    unscored: float = 0.0
    own: bool = False
    uneven: bool = False
    tie: bool = False
    sized: bool = False
    _cells: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cells", self._probabilities())
        for _ in range(60 if self.tie else 0):
            table = self.truth.mean(0)
            bacc = [balanced(each) for each in (table[:, :2].sum(-1), table[:, :, :2].sum(-2))]
            object.__setattr__(self, "b", (self.b[0], self.b[1] + 2 * (bacc[0] - bacc[1])))
            object.__setattr__(self, "_cells", self._probabilities())

    @property
    def truth(self) -> np.ndarray:
        """(S, 2, 3, 3): how probable [label, a's prediction, b's prediction] is, per system."""
        return np.average(self._cells, axis=0, weights=self._sizes()).reshape(-1, 2, SAID, SAID)

    def draw(self, random: np.random.Generator, replicates: int) -> np.ndarray:
        """int64 (replicates, docs, S, 2, 3, 3): claims counted by document, system, label and both predictions."""
        shape = (replicates, self.docs, len(self.errors))
        n = random.integers(1, 2 * self.claims, shape) if self.uneven else np.full(shape, self.claims)
        u = random.integers(0, GRID, shape if self.own else shape[:2])
        if self.sized:
            n = np.broadcast_to(self._sizes()[u] if self.own else self._sizes()[u][..., None], shape)
        probable = self._cells[u, np.arange(len(self.errors))] if self.own else self._cells[u]
        return random.multinomial(n, probable).reshape(*shape, 2, SAID, SAID)

    def _sizes(self) -> np.ndarray:
        """int (GRID,): the claims of a document of each difficulty, where they go with it; else 1."""
        if not self.sized:
            return np.ones(GRID, dtype=np.int64)
        quantile = norm.ppf((np.arange(GRID) + 0.5) / GRID)
        sizes: np.ndarray = np.maximum(np.rint(self.claims * np.exp(0.6 * quantile - 0.18)), 1).astype(np.int64)
        return sizes

    def _probabilities(self) -> np.ndarray:
        """(GRID, S, 18)."""
        cells = np.zeros((GRID, len(self.errors), 2, SAID, SAID))
        for system, rate in enumerate(self.errors):
            error = _spread(rate, self.icc)
            for label, at in ((1, 0), (0, 1)):
                right = [_spread(each[at], self.icc)[::-1] for each in (self.a, self.b)]
                both = self.alike * np.minimum(*right) + (1 - self.alike) * right[0] * right[1]
                of_label = error if label == 0 else 1 - error
                for a in (0, 1):
                    for b in (0, 1):
                        p = _joint(right[0], right[1], both, a == label, b == label)
                        cells[:, system, label, a, b] = of_label * p * (1 - self.unscored)
                    cells[:, system, label, a, 2] = (
                        of_label * self.unscored * (right[0] if a == label else 1 - right[0])
                    )
        return cells.reshape(GRID, len(self.errors), -1)


def balanced(table: np.ndarray) -> float:
    """BAcc of (2, 2) probabilities by label and prediction."""
    return float((table[1, 1] / table[1].sum() + table[0, 0] / table[0].sum()) / 2)


@cache
def _spread(mean: float, icc: float) -> np.ndarray:
    """GRID quantiles of a beta distribution of this mean and intra-class correlation."""
    quantile = (np.arange(GRID) + 0.5) / GRID
    if icc == 0:
        return np.full(len(quantile), mean)
    size = (1 - icc) / icc
    return beta.ppf(quantile, mean * size, (1 - mean) * size)


def _joint(a: np.ndarray, b: np.ndarray, both: np.ndarray, a_right: bool, b_right: bool) -> np.ndarray:
    if a_right and b_right:
        return both
    if a_right or b_right:
        return (a if a_right else b) - both
    return 1 - a - b + both


REGIMES = (
    Regime("clusters of 1", docs=200, claims=1, own=True, icc=0.0),
    Regime("clusters of 5", docs=50, claims=5),
    Regime("clusters of 20", docs=50, claims=20),
    Regime("20 documents of 5", docs=20, claims=5),
    Regime("20 documents of 20", docs=20, claims=20),
    Regime("50 documents of 1", docs=50, claims=1),
    Regime("2 % errors", docs=100, claims=5, errors=(0.02,) * 4, a=(0.9, 0.7), b=(0.8, 0.6)),
    Regime("2 % errors in clusters of 20", docs=50, claims=20, errors=(0.02,) * 4, a=(0.9, 0.7), b=(0.8, 0.6)),
    Regime("BAcc 50 %", a=(0.7, 0.3), b=(0.4, 0.6)),
    Regime("BAcc 98 %", claims=10, a=(0.98, 0.98), b=(0.97, 0.96)),
    Regime("one habit each, equal BAcc", a=(0.97, 0.45), b=(0.5, 0.92), errors=(0.1, 0.2, 0.3, 0.4), tie=True),
    Regime("shifted rates", icc=0.2, alike=0.3),
    Regime("unequal systems", errors=(0.03, 0.1, 0.25, 0.5), uneven=True),
    Regime("equal systems", errors=(0.2,) * 6, a=(0.8, 0.8), b=(0.8, 0.8), docs=40, tie=True),
    Regime("evaluators alike, tied", alike=0.95, a=(0.85, 0.7), b=(0.84, 0.71), tie=True),
    Regime("unscored and uneven", unscored=0.06, uneven=True),
    Regime("40 documents, hard ones longer", docs=40, icc=0.15, sized=True),
    Regime("20 documents, hard ones longer", docs=20, icc=0.15, sized=True),
)
