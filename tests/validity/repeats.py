"""How often do the 95 % intervals of `compute_verdict_stability` hold the truth?

A claim's probability of a verdict of 1 is drawn from a beta distribution; claims of one document share theirs with a
probability. All replicates are data sets of one audit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.audit.stability import compute_verdict_stability
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import validate_claims


@dataclass(frozen=True)
class Repeated:
    """documents x claims, asked ``repeats`` times; probabilities from Beta(a, b), shared in a document."""

    documents: int
    claims: int
    repeats: int
    a: float
    b: float
    shared: float = 0.0

    @property
    def name(self) -> str:
        return (
            f"{self.documents} x {self.claims}, {self.repeats} repeats, Beta({self.a:g}, {self.b:g}), {self.shared:g}"
        )

    @property
    def truth(self) -> tuple[float, float]:
        """The flip rate 2 E[p (1 - p)], and kappa."""
        total = self.a + self.b
        flips = 2 * self.a * self.b / (total * (total + 1))
        return flips, 1 - flips / (2 * self.a * self.b / total**2)


REGIMES = (
    Repeated(20, 1, 2, 0.3, 0.3),
    Repeated(50, 1, 2, 0.3, 0.3),
    Repeated(50, 1, 3, 0.1, 0.1),
    Repeated(50, 1, 5, 0.2, 0.1),
    Repeated(20, 5, 2, 0.3, 0.3, 0.5),
    Repeated(50, 5, 2, 0.1, 0.1, 0.5),
    Repeated(50, 5, 3, 0.1, 0.1, 0.5),
    Repeated(50, 5, 3, 0.05, 0.2, 0.5),
    Repeated(20, 20, 2, 0.1, 0.1, 0.5),
    Repeated(20, 20, 3, 0.3, 0.2, 0.5),
    Repeated(50, 20, 2, 0.02, 0.02, 0.5),
    Repeated(50, 20, 3, 0.02, 0.1, 0.2),
)


def coverage(regime: Repeated, replicates: int, seed: int = 11) -> dict[str, np.ndarray]:
    """Whether the interval holds the truth, of the flip rate and of kappa, in each replicate."""
    random = np.random.default_rng(seed)
    documents = replicates * regime.documents
    n = documents * regime.claims
    own, base = random.beta(regime.a, regime.b, n), random.beta(regime.a, regime.b, documents)
    p = np.where(random.random(n) < regime.shared, np.repeat(base, regime.claims), own)
    said = (random.random((regime.repeats, 1, n)) < p).astype(np.int8)
    place = np.arange(n)
    table = {"claim_id": place.astype(str), "dataset": (place // (n // replicates)).astype(str), "claim": "c"}
    table |= {"doc_id": (place // regime.claims).astype(str), "label": None}
    claims = validate_claims(pd.DataFrame(table))
    nothing = np.full(n, -1, dtype=np.int8)
    judged = Judgements(
        claims, ("e",), nothing, said[0], np.full((1, n), np.nan), nothing[None], repeat_predictions=said
    )
    rows = compute_verdict_stability(judged, intervals=ClusterBootstrap(replicates=1))
    found = {}
    for key, truth in zip(("flip_rate", "kappa"), regime.truth, strict=True):
        inside = [row[f"{key}_low"] <= truth <= row[f"{key}_high"] for row in rows if row[f"{key}_low"] is not None]
        found[key] = np.array(inside)
    return found
