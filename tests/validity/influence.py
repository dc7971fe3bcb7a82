"""How often do 95 % intervals by influence hold the truth: of means, of agreement between grades and between labels?

*Means*: scores of a and b share what the document does to both. *Responses* have 25 facts, of which a share is
supported that is drawn from a beta distribution. *Grades*: people and an evaluator grade what is good in truth, each
with an error of their own; documents are good or bad; true figures are those of 200,000 claims. *Labels*: two
annotators who are right with a probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from factaudit.stats.agreement import correlation_interval, krippendorff_alpha, pearson, spearman, weighted_kappa
from factaudit.stats.bounded_means import bounded_change_interval, bounded_mean_interval
from factaudit.stats.influence import MIN_CLUSTERS, Statistic, interval, mean

LEVEL = 0.95
Figures = dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Grades:
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


GRADES = (
    Grades("clusters of 1", docs=200, claims=1),
    Grades("clusters of 5"),
    Grades("clusters of 20", claims=20),
    Grades("20 documents of 5", docs=20),
    Grades("12 documents of 10", docs=12, claims=10),
    Grades("20 uneven documents", docs=20, uneven=True),
    Grades("uneven, claims alike", uneven=True, icc=0.6),
    Grades("three grades, ties", grades=(0.3, 0.3, 0.4)),
    Grades("skewed: 80 % the best grade", grades=(0.02, 0.03, 0.05, 0.1, 0.8)),
    Grades("20 documents, skewed", docs=20, grades=(0.02, 0.03, 0.05, 0.1, 0.8)),
    Grades("scores, no grades", continuous=True),
    Grades("close agreement", noise=0.15, shift=0.0),
    Grades("no agreement", noise=6.0, docs=40),
)


def draw_grades(regime: Grades, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


def compute_figures(regime: Grades, random: np.random.Generator) -> Figures:
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


def cover_grades(regime: Grades, replicates: int, seed: int = 3) -> dict[str, np.ndarray]:
    """Per figure whether each replicate's interval held the truth; those without an interval are left out."""
    docs = 200_000 // regime.claims
    truth = compute_figures(replace(regime, docs=docs), np.random.default_rng(0))
    random = np.random.default_rng(seed)
    drawn = [compute_figures(regime, random) for _ in range(replicates)]
    return {
        name: np.array([low <= truth[name][0] <= high for _, low, high in (one[name] for one in drawn) if low == low])
        for name in truth
    }


@dataclass(frozen=True)
class Means:
    """icc: the share of a score's variance that lies between documents; uneven: 1 to 2 * claims - 1 claims each;
    skewed: lognormal scores; bounded: scores in [0, 1], most of them near 1."""

    name: str
    docs: int = 50
    claims: int = 5
    icc: float = 0.2
    uneven: bool = False
    skewed: bool = False
    bounded: bool = False


MEANS = (
    Means("clusters of 1", docs=200, claims=1, icc=0.0),
    Means("clusters of 5"),
    Means("clusters of 20", claims=20),
    Means("10 documents of 5", docs=10),
    Means("20 documents of 5", docs=20),
    Means("20 documents of 20", docs=20, claims=20),
    Means("uneven", uneven=True, icc=0.5),
    Means("20 uneven documents", docs=20, uneven=True, icc=0.5),
    Means("skewed", skewed=True),
    Means("20 documents, skewed", docs=20, skewed=True),
    Means("near 1", bounded=True),
    Means("20 documents, near 1", docs=20, bounded=True),
)


def cover_means(regime: Means, replicates: int, seed: int = 5) -> dict[str, np.ndarray]:
    """Whether the interval held the true difference, in each replicate."""
    random, truth = np.random.default_rng(seed), true_difference(regime)
    held = []
    for _ in range(replicates):
        differences, document = draw_score_differences(regime, random)
        low, high = interval(mean(differences), document)
        held.append(low <= truth <= high)
    return {"mean paired difference": np.array(held)}


def draw_score_differences(regime: Means, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Of each claim the score of a less that of b, and its document."""
    n = random.integers(1, 2 * regime.claims, regime.docs) if regime.uneven else np.full(regime.docs, regime.claims)
    document, shared = np.repeat(np.arange(regime.docs), n), random.normal(size=regime.docs)
    scores = []
    for side in (0, 1):
        effect = (shared + random.normal(size=regime.docs)) / np.sqrt(2)
        noise = random.normal(size=len(document))
        scores.append(transform(regime, np.sqrt(regime.icc) * effect[document] + np.sqrt(1 - regime.icc) * noise, side))
    return scores[0] - scores[1], document


def transform(regime: Means, z: np.ndarray, side: int) -> np.ndarray:
    """Standard normal numbers as the scores of a (0) or b (1)."""
    if regime.skewed:
        return np.exp(0.8 * z + 0.2 * (side == 0))
    if regime.bounded:
        return 1 / (1 + np.exp(-(3 + 1.5 * z + 0.5 * (side == 0))))
    return z + 0.3 * (side == 0)


def true_difference(regime: Means) -> float:
    """By the quantiles of the normal distribution: the number of a document's claims does not depend on its scores."""
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


@dataclass(frozen=True)
class Labels:
    """Two annotators of ``claims`` claims; rate: of errors; documents: in how many the claims are, all independent."""

    claims: int
    accuracy: float
    rate: float = 0.3
    documents: int = 1_000_000

    @property
    def name(self) -> str:
        return f"{self.claims} claims, {100 * self.accuracy:g} % right, {100 * self.rate:g} % errors"


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


def cover_pearson(shape: str, replicates: int, seed: int = 9) -> dict[str, np.ndarray]:
    """Pearson's r of 20, 50 and 100 pairs."""
    random = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        z = random.normal(size=n)
        return PAIRS[shape](z), PAIRS[shape](0.6 * z + 0.8 * random.normal(size=n))

    truth, found = float(np.corrcoef(*draw(1_000_000))[0, 1]), {}
    for n in (20, 50, 100):
        ends = [correlation_interval(pearson(*draw(n)), np.arange(n), LEVEL) for _ in range(replicates)]
        found[f"r of {n}"] = np.array([low <= truth <= high for low, high in ends])
    return found
