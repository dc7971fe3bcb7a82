"""How often do 95 % intervals of figures that no comparison has hold the truth: of means over
responses, of agreement between labels, of Pearson's r
and of Spearman's ρ?

*Responses* have 25 facts, of which a share is supported that is drawn from a beta distribution.
*Labels*: two annotators who are right with a probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.agreement import (
    correlation_interval,
    krippendorff_alpha,
    pearson,
    spearman,
    weighted_kappa,
)
from factaudit.stats.influence import bounded_change_interval, bounded_mean_interval, interval, mean

LEVEL = 0.95

#: Of responses: the parameters of the beta distribution by which shares of supported facts differ.
RESPONSES = {
    "60 % supported": (3.0, 2.0),
    "94 % supported": (8.0, 0.5),
    "any share": (1.0, 1.0),
    "6 %": (0.5, 8.0),
}
#: Of changes: those shares of supported facts, how many responses lose some, which share of these
#: (beta distributed), and how many other facts are judged anew, half of them gained.
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
            ends = bounded_mean_interval(
                random.binomial(FACTS, random.beta(*shape, responses)) / FACTS
            )
            held.setdefault(f"mean: {name}", []).extend(_holds(ends, truth))
    for name, (shape, losers, loss, _) in CHANGES.items():
        random, truth = (
            np.random.default_rng(seed),
            -shape[0] / sum(shape) * losers * loss[0] / sum(loss),
        )
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
    lost = random.binomial(
        before, np.where(random.random(responses) < losers, random.beta(*loss, responses), 0.0)
    )
    judged_anew = random.binomial(FACTS, anew, responses)
    moved = random.binomial(judged_anew, share) - random.binomial(judged_anew, share)
    return (np.clip(before + moved, 0, FACTS) - before - lost) / FACTS


@dataclass(frozen=True)
class Labels:
    """Two annotators of ``claims`` claims; rate: of errors; documents: in how many the claims are,
    all independent."""

    claims: int
    accuracy: float
    rate: float = 0.3
    documents: int = 1_000_000

    @property
    def name(self) -> str:
        return (
            f"{self.claims} claims, {100 * self.accuracy:g} % right, {100 * self.rate:g} % errors"
        )


LABELS = (
    Labels(30, 0.85, 0.5),
    Labels(50, 0.9),
    Labels(50, 0.8),
    Labels(100, 0.95, 0.1),
    Labels(100, 0.9, documents=20),
    Labels(200, 0.9),
)


def cover_labels(regime: Labels, replicates: int, seed: int = 7) -> dict[str, np.ndarray]:
    """Percent, κ and α of labels; the truths are those of infinitely many claims, κ and α alike."""
    random, n = np.random.default_rng(seed), regime.claims
    shown = regime.rate * regime.accuracy + (1 - regime.rate) * (1 - regime.accuracy)
    percent, chance = regime.accuracy**2 + (1 - regime.accuracy) ** 2, shown**2 + (1 - shown) ** 2
    held: dict[str, list[bool]] = {}
    for _ in range(replicates):
        error = random.random(n) < regime.rate
        a, b = np.where(random.random((2, n)) < regime.accuracy, error, ~error).astype(np.float64)
        for name, statistic, scale in (
            ("percent", mean((a == b).astype(np.float64)), "logit"),
            ("κ", weighted_kappa(a, b), "fisher"),
            ("α", krippendorff_alpha(np.append(a, b), np.tile(np.arange(n), 2), n), "fisher"),
        ):
            truth = percent if name == "percent" else (percent - chance) / (1 - chance)
            low, high = interval(statistic, np.arange(n) % regime.documents, scale)
            if not np.isnan(low):
                held.setdefault(f"{name} of labels", []).append(low <= truth <= high)
    return {name: np.array(found) for name, found in held.items()}


#: How scores of pairs of responses come from two standard normal numbers with a correlation of 0.6.
PAIRS = {
    "normal": lambda z: z,
    "skewed": np.exp,
    "near 1": lambda z: 1 / (1 + np.exp(-3 - 1.5 * z)),
    "heavy tails": lambda z: np.sign(z) * np.abs(z) ** 1.5,
}


def cover_correlations(shape: str, replicates: int, seed: int = 9) -> dict[str, np.ndarray]:
    """Pearson's r and Spearman's ρ of 20, 50 and 100 pairs."""
    random = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        z = random.normal(size=n)
        return PAIRS[shape](z), PAIRS[shape](0.6 * z + 0.8 * random.normal(size=n))

    many, found = draw(1_000_000), {}
    for name, statistic in (("r", pearson), ("ρ", spearman)):
        truth = statistic(*many).point
        for n in (20, 50, 100):
            ends = [
                correlation_interval(statistic(*draw(n)), np.arange(n), LEVEL)
                for _ in range(replicates)
            ]
            found[f"{name} of {n}"] = np.array([low <= truth <= high for low, high in ends])
    return found
