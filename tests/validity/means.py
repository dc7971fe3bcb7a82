"""How often do 95 % intervals of means hold the truth, of paired differences and over responses?

Scores of a and b share what the document does to both. A response has 25 facts, of which a share is supported that is
drawn from a beta distribution.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.bounded_means import bounded_change_interval, bounded_mean_interval
from factaudit.stats.influence import interval, mean


@dataclass(frozen=True)
class Regime:
    """icc: the share of a score's variance that lies between documents; uneven: 1 to 2 * claims - 1 claims each;
    skewed: lognormal scores; bounded: scores in [0, 1], most of them near 1."""

    name: str
    docs: int = 50
    claims: int = 5
    icc: float = 0.2
    uneven: bool = False
    skewed: bool = False
    bounded: bool = False


REGIMES = (
    Regime("clusters of 1", docs=200, claims=1, icc=0.0),
    Regime("clusters of 5"),
    Regime("clusters of 20", claims=20),
    Regime("10 documents of 5", docs=10),
    Regime("20 documents of 5", docs=20),
    Regime("20 documents of 20", docs=20, claims=20),
    Regime("uneven", uneven=True, icc=0.5),
    Regime("20 uneven documents", docs=20, uneven=True, icc=0.5),
    Regime("skewed", skewed=True),
    Regime("20 documents, skewed", docs=20, skewed=True),
    Regime("near 1", bounded=True),
    Regime("20 documents, near 1", docs=20, bounded=True),
)


def coverage(regime: Regime, replicates: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Whether the interval held the true difference, in each replicate."""
    random, truth = np.random.default_rng(seed), true_difference(regime)
    held = []
    for _ in range(replicates):
        differences, document = draw_score_differences(regime, random)
        low, high = interval(mean(differences), document)
        held.append(low <= truth <= high)
    return {"mean paired difference": np.array(held)}


def draw_score_differences(regime: Regime, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of each claim the score of a less that of b, and its document."""
    n = random.integers(1, 2 * regime.claims, regime.docs) if regime.uneven else np.full(regime.docs, regime.claims)
    document, shared = np.repeat(np.arange(regime.docs), n), random.normal(size=regime.docs)
    scores = []
    for side in (0, 1):
        effect = (shared + random.normal(size=regime.docs)) / np.sqrt(2)
        noise = random.normal(size=len(document))
        scores.append(transform(regime, np.sqrt(regime.icc) * effect[document] + np.sqrt(1 - regime.icc) * noise, side))
    return scores[0] - scores[1], document


def transform(regime: Regime, z: np.ndarray, side: int) -> np.ndarray:
    """Standard normal numbers as the scores of a (0) or b (1)."""
    if regime.skewed:
        return np.exp(0.8 * z + 0.2 * (side == 0))
    if regime.bounded:
        return 1 / (1 + np.exp(-(3 + 1.5 * z + 0.5 * (side == 0))))
    return z + 0.3 * (side == 0)


def true_difference(regime: Regime) -> float:
    """By the quantiles of the normal distribution: the number of a document's claims does not depend on its scores."""
    from scipy.special import ndtri

    z = ndtri((np.arange(1_000_000) + 0.5) / 1_000_000)
    return float(transform(regime, z, 0).mean() - transform(regime, z, 1).mean())


#: Of responses: the parameters of the beta distribution by which shares of supported facts differ.
RESPONSES = {"60 % supported": (3.0, 2.0), "94 % supported": (8.0, 0.5), "any share": (1.0, 1.0), "6 %": (0.5, 8.0)}
#: Of changes: those shares of supported facts, how many responses lose some, which share of these (beta distributed),
#: and how many other facts are judged anew, half of them gained.
CHANGES = {
    "a quarter loses half": ((3.0, 2.0), 0.25, (2.0, 2.0), 0.0),
    "a tenth loses half": ((9.0, 1.0), 0.1, (2.0, 2.0), 0.0),
    "half lose a tenth": ((9.0, 1.0), 0.5, (1.0, 9.0), 0.0),
    "all lose a tenth": ((8.0, 2.0), 1.0, (1.0, 9.0), 0.0),
    "judged anew, no change": ((3.0, 2.0), 0.0, (1.0, 9.0), 0.1),
    "judged anew, half lose a tenth": ((3.0, 2.0), 0.5, (1.0, 9.0), 0.1),
}
N_RESPONSES, FACTS = (10, 20, 50, 100, 200, 500), 25


def cover_responses(responses: int, replicates: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Of the mean share of supported facts and of its change: whether each interval held it."""
    held: dict[str, list[bool]] = {}
    for name, shape in RESPONSES.items():
        random, truth = np.random.default_rng(seed), shape[0] / sum(shape)
        for _ in range(replicates):
            ends = bounded_mean_interval(random.binomial(FACTS, random.beta(*shape, responses)) / FACTS)
            held.setdefault(f"mean: {name}", []).extend(_holds(ends, truth))
    for name, (shape, losers, loss, _) in CHANGES.items():
        random, truth = np.random.default_rng(seed), -shape[0] / sum(shape) * losers * loss[0] / sum(loss)
        for _ in range(replicates):
            ends = bounded_change_interval(draw_changes(name, responses, random))
            held.setdefault(f"change: {name}", []).extend(_holds(ends, truth))
    return {name: np.array(each) for name, each in held.items()}


def _holds(ends: tuple[float | None, float | None], truth: float) -> list[bool]:
    low, high = ends
    return [] if low is None or high is None else [low <= truth <= high]


def draw_changes(world: str, responses: int, random: np.random.Generator) -> np.ndarray:
    """The share of supported facts of each response after, less before: (responses,)."""
    shape, losers, loss, anew = CHANGES[world]
    share = random.beta(*shape, responses)
    before = random.binomial(FACTS, share)
    lost = random.binomial(before, np.where(random.random(responses) < losers, random.beta(*loss, responses), 0.0))
    judged_anew = random.binomial(FACTS, anew, responses)
    moved = random.binomial(judged_anew, share) - random.binomial(judged_anew, share)
    return (np.clip(before + moved, 0, FACTS) - before - lost) / FACTS
