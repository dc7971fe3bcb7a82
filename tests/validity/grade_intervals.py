"""How often do 95 % intervals of agreement between grades hold the truth?

People and an evaluator grade what is good in truth, each with an error of their own; documents are good or bad. True
figures are those of 200,000 claims in as many documents as that makes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from factaudit.stats.agreement import correlation_interval, krippendorff_alpha, spearman, weighted_kappa
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, interval, mean

LEVEL = 0.95
Figures = dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Regime:
    """docs of ``claims`` claims each; icc: the share of the quality's variance between documents; grades: the share of
    each of people's grades; noise: of each grader beside the quality's variance of 1; shift: what the evaluator's
    grades are higher by before they are cut; uneven: 1 to 2 * claims - 1 claims; continuous: the evaluator gives
    numbers, not grades."""

    name: str
    docs: int = 50
    claims: int = 5
    icc: float = 0.3
    grades: tuple[float, ...] = (0.2, 0.2, 0.2, 0.2, 0.2)
    noise: float = 0.7
    shift: float = 0.3
    uneven: bool = False
    continuous: bool = False


REGIMES = (
    Regime("clusters of 1", docs=200, claims=1),
    Regime("clusters of 5"),
    Regime("clusters of 20", claims=20),
    Regime("20 documents of 5", docs=20),
    Regime("12 documents of 10", docs=12, claims=10),
    Regime("20 uneven documents", docs=20, uneven=True),
    Regime("uneven, claims alike", uneven=True, icc=0.6),
    Regime("three grades, ties", grades=(0.3, 0.3, 0.4)),
    Regime("skewed: 80 % the best grade", grades=(0.02, 0.03, 0.05, 0.1, 0.8)),
    Regime("20 documents, skewed", docs=20, grades=(0.02, 0.03, 0.05, 0.1, 0.8)),
    Regime("scores, no grades", continuous=True),
    Regime("close agreement", noise=0.15, shift=0.0),
    Regime("no agreement", noise=6.0, docs=40),
)


def draw_grades(regime: Regime, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three annotators' grades (n, 3), the evaluator's (n,), and the document of each claim (n,)."""
    n = random.integers(1, 2 * regime.claims, regime.docs) if regime.uneven else np.full(regime.docs, regime.claims)
    document = np.repeat(np.arange(regime.docs), n)
    quality = np.sqrt(regime.icc) * random.normal(size=regime.docs)[document]
    quality += np.sqrt(1 - regime.icc) * random.normal(size=len(document))
    seen = quality[:, None] + np.sqrt(regime.noise) * random.normal(size=(len(document), 4))
    seen[:, 3] += regime.shift
    edges = np.sqrt(1 + regime.noise) * ndtri(np.cumsum(regime.grades)[:-1])
    grades = np.searchsorted(edges, seen) + 1.0
    return grades[:, :3], seen[:, 3] if regime.continuous else grades[:, 3], document


def compute_figures(regime: Regime, random: np.random.Generator) -> Figures:
    """Of one draw each figure, and the ends of its interval."""
    annotators, given, document = draw_grades(regime, random)
    people = np.sort(annotators, axis=1)[:, 1]
    n = len(people)
    unit = np.tile(np.arange(n), 3)
    rows = np.tile(document, 3)
    others = np.concatenate([np.delete(annotators, at, axis=1).min(1) for at in range(3)])
    own = annotators.T.ravel()
    ceiling, again = spearman(own, others), spearman(np.tile(given, 3), others)
    room = Statistic(ceiling.point - again.point, ceiling.influence - again.influence)
    figures = {
        "ρ": (spearman(given, people), document, None),
        "α of annotators": (krippendorff_alpha(own, unit, n, ordinal=True), document, None),
        "ceiling": (ceiling, rows, None),
    }
    if not regime.continuous:
        both, pair = np.concatenate([given, people]), np.tile(np.arange(n), 2)
        figures["α"] = (krippendorff_alpha(both, pair, n, ordinal=True), document, None)
        figures["weighted κ"] = (weighted_kappa(given, people), document, given != people)
    found = {
        name: (one.point, *correlation_interval(one, cluster, LEVEL, telling))
        for name, (one, cluster, telling) in figures.items()
    }
    found["room"] = (room.point, *interval(room, rows, confidence=LEVEL, min_clusters=MIN_CLUSTERS))
    if not regime.continuous:
        error, shift = mean(np.abs(given - people)), mean(given - people)
        found["MAE"] = (error.point, *interval(error, document, "log", LEVEL))
        found["mean difference of grades"] = (shift.point, *interval(shift, document, confidence=LEVEL))
    return found


def coverage(regime: Regime, replicates: int, seed: int = 3) -> dict[str, np.ndarray]:
    """Per figure whether each replicate's interval held the truth; those without an interval are left out."""
    docs = 200_000 // regime.claims
    truth = compute_figures(replace(regime, docs=docs), np.random.default_rng(0))
    random = np.random.default_rng(seed)
    drawn = [compute_figures(regime, random) for _ in range(replicates)]
    return {
        name: np.array([low <= truth[name][0] <= high for _, low, high in (one[name] for one in drawn) if low == low])
        for name in truth
    }
