"""How often do the intervals of `factaudit.stats` from few labels hold the truth?

All truths are known: corpora, draws, labels and scores are simulated as arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from factaudit.stats.agreement import krippendorff_alpha, weighted_kappa
from factaudit.stats.allocation import allocate_first_phase, allocate_further_phase
from factaudit.stats.difference_estimator import difference_estimate
from factaudit.stats.hierarchical_regression import fit_hierarchical_regression, stable_logistic
from factaudit.stats.influence import interval, mean
from factaudit.stats.posterior_comparison import posterior_interval
from factaudit.stats.poststratification import poststratify_error_rates
from factaudit.stats.score_covariates import build_score_covariates
from factaudit.stats.stratified_sampling import StratifiedDraw, cluster_design_effect
from factaudit.stats.stratified_wilson import stratified_wilson_interval, wilson_share_interval
from factaudit.stats.superpopulation_variance import superpopulation_variance

LEVEL = 0.95
#: A simulation: from a generator whether intervals held, one or several.
Simulation = Callable[[np.random.Generator], list[bool]]


def holds(truth: float, low: float, high: float) -> bool:
    return low - 1e-9 <= truth <= high + 1e-9


def wilson(rate: float, n: int) -> Simulation:
    return lambda random: [holds(rate, *wilson_share_interval(random.binomial(n, rate) / n, n, LEVEL))]


def draw_two_phases(guess: np.ndarray, budget: int, random: np.random.Generator) -> StratifiedDraw:
    """One system's claims, half of the budget by the guess and half by it again, as `factaudit sample` does."""
    system = np.zeros(len(guess), dtype=np.int64)
    first = allocate_first_phase(guess, system, budget // 2, random, has_second_phase=True)
    return first.append(allocate_further_phase(guess, system, first, budget - budget // 2, random))


def corpus_of(random: np.random.Generator, size: int, documents: int, rate: float) -> tuple[np.ndarray, ...]:
    """Guesses at P(error), labels, documents; claims of a document are alike where there are fewer than claims."""
    document = np.arange(size) % documents
    effect = (documents < size) * random.standard_normal(documents)
    odds = np.log(rate / (1 - rate)) + effect[document]
    error = (random.random(size) < stable_logistic(odds)).astype(np.float64)
    return stable_logistic(2 * (error - 0.5) + random.standard_normal(size) - 0.7), error, document


def design(method: str, budget: int, rate: float, documents: int = 600) -> Simulation:
    """The rate of a corpus of 600 claims, labelled in two phases (in one, of whole documents, where these are few)."""

    def simulate(random: np.random.Generator) -> list[bool]:
        guess, error, document = corpus_of(random, 600, documents, rate)
        draw = draw_two_phases(guess, budget, random)
        labels, cluster = error[draw.rows], document[draw.rows]
        if method == "labels":
            effect = cluster_design_effect(labels - labels.mean(), cluster)
            _, low, high = stratified_wilson_interval(draw, labels, 600, LEVEL, effect)
        else:
            mean = float(guess.mean())
            _, low, high = difference_estimate(draw, labels, guess[draw.rows], mean, 600, cluster, LEVEL)
        return [holds(float(error.mean()), low, high)]

    return simulate


def population(budget: int, documents: int) -> Simulation:
    """The rate that the documents of a corpus of 600 claims were drawn from, by the labels alone."""
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    truth = float(stable_logistic(np.log(0.3 / 0.7) + z) @ weight / weight.sum())

    def simulate(random: np.random.Generator) -> list[bool]:
        _, error, document = corpus_of(random, 600, documents, 0.3)
        rows = random.choice(600, budget, replace=False)
        zeros = np.zeros(budget, dtype=np.int64)
        draw = StratifiedDraw(rows, zeros, zeros, np.full(budget, 600))
        share = error[rows].mean()
        # The probabilities that the model would fit: those of the documents, here known.
        p = np.bincount(document, error)[document] / np.bincount(document)[document]
        spread = superpopulation_variance(p, np.zeros(600, dtype=np.int64), document, 1)[0]
        effect = cluster_design_effect(error[rows] - share, document[rows])
        _, low, high = stratified_wilson_interval(draw, error[rows], 600, LEVEL, effect, spread)
        return [holds(truth, low, high)]

    return simulate


def predictions(random: np.random.Generator, size: int, rate: float, tpr: float, tnr: float) -> tuple[np.ndarray, ...]:
    error = (random.random(size) < rate).astype(np.float64)
    return error, np.where(random.random(size) < np.where(error == 1, tnr, tpr), error, 1 - error)


def agreement(coefficient: str, n: int, accuracy: float, rate: float = 0.3) -> Simulation:
    """Two annotators who are right with a probability; the truths are those of infinitely many claims."""
    shown = rate * accuracy + (1 - rate) * (1 - accuracy)
    percent = accuracy**2 + (1 - accuracy) ** 2
    chance = shown**2 + (1 - shown) ** 2
    truth = {"percent": percent, "kappa": (percent - chance) / (1 - chance)}
    truth["alpha"] = truth["kappa"]  # both annotators have the same margins

    def simulate(random: np.random.Generator) -> list[bool]:
        error = random.random(n) < rate
        labels = np.where(random.random((2, n)) < accuracy, error, ~error).astype(np.float64).T
        a, b = labels.T
        found, scale = {
            "percent": (mean((a == b).astype(np.float64)), "logit"),
            "kappa": (weighted_kappa(a, b), "fisher"),
            "alpha": (krippendorff_alpha(labels.ravel(), np.repeat(np.arange(n), 2), n), "fisher"),
        }[coefficient]
        low, high = interval(found, np.arange(n), scale, LEVEL)
        return [] if np.isnan(low) else [holds(truth[coefficient], low, high)]

    return simulate


def hierarchical(n_labels: int, rates: tuple[float, ...], skill: float = 2.0, cluster: bool = False) -> Simulation:
    """Rates of systems of 250 claims (of their corpus, or of the population of 50 documents) from labels at random."""
    z, weight = np.polynomial.hermite_e.hermegauss(60)
    odds = np.log(np.array(rates) / (1 - np.array(rates)))
    expected = stable_logistic(odds[:, None] + z) @ (weight / weight.sum())

    def simulate(random: np.random.Generator) -> list[bool]:
        system = np.repeat(np.arange(len(rates)), 250)
        document = np.tile(np.arange(250) % 50, len(rates))
        eta = odds[system] + (random.standard_normal(50)[document] if cluster else 0)
        error = (random.random(len(system)) < stable_logistic(eta)).astype(np.float64)
        score = stable_logistic(-skill * (error - 0.5) - random.standard_normal((2, len(system))))
        covariates = build_score_covariates(score, ["a", "b"])
        rows = random.choice(len(system), n_labels, replace=False)
        known = np.full(len(system), np.nan)
        known[rows] = error[rows]
        posterior = fit_hierarchical_regression(covariates, rows, system[rows], error[rows], len(rates), random)
        draws = poststratify_error_rates(posterior, covariates, system, known, random, document if cluster else None)
        truth = expected if cluster else np.bincount(system, error) / 250
        _, low, high = posterior_interval(draws, LEVEL)
        return ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).tolist()

    return simulate


FOUR = (0.12, 0.2, 0.3, 0.42)
#: By function of `factaudit.stats` and design; slow ones have fewer replicates.
DESIGNS: dict[tuple[str, str], Simulation] = {
    ("stratified_wilson.wilson_share_interval", "5 %, 50 labels"): wilson(0.05, 50),
    ("stratified_wilson.wilson_share_interval", "30 %, 20 labels"): wilson(0.3, 20),
    ("stratified_wilson.stratified_wilson_interval", "30 %, 30 labels"): design("labels", 30, 0.3),
    ("stratified_wilson.stratified_wilson_interval", "30 %, 100 labels"): design("labels", 100, 0.3),
    ("stratified_wilson.stratified_wilson_interval", "5 %, 60 labels"): design("labels", 60, 0.05),
    ("stratified_wilson.stratified_wilson_interval", "30 %, 100 labels, 60 documents"): design("labels", 100, 0.3, 60),
    ("superpopulation_variance.superpopulation_variance", "30 %, 100 labels, 60 documents"): population(100, 60),
    ("difference_estimator.difference_estimate", "30 %, 30 labels"): design("guess", 30, 0.3),
    ("difference_estimator.difference_estimate", "30 %, 100 labels"): design("guess", 100, 0.3),
    ("difference_estimator.difference_estimate", "5 %, 60 labels"): design("guess", 60, 0.05),
    ("influence.interval", "percent, 50 claims"): agreement("percent", 50, 0.9),
    ("influence.interval", "κ, 50 claims"): agreement("kappa", 50, 0.9),
    ("influence.interval", "κ, 200 claims"): agreement("kappa", 200, 0.9),
    ("influence.interval", "α, 50 claims"): agreement("alpha", 50, 0.9),
    ("influence.interval", "α, 200 claims"): agreement("alpha", 200, 0.9),
    ("poststratification.poststratify_error_rates", "four systems, 60 labels"): hierarchical(60, FOUR, 2.0),
    ("poststratification.poststratify_error_rates", "four systems, 200 labels"): hierarchical(200, FOUR, 2.0),
    ("poststratification.poststratify_error_rates", "four systems, 120 labels, scores useless"): hierarchical(
        120, FOUR, 0.0
    ),
    ("poststratification.poststratify_error_rates", "population, 50 documents, 120 labels"): hierarchical(
        120, FOUR, 2.0, cluster=True
    ),
}


def coverage(key: tuple[str, str], replicates: int) -> dict[str, np.ndarray]:
    """Whether each interval held the truth."""
    random = np.random.default_rng([len(key[1]), *key[1].encode()])
    return {"interval": np.array([held for _ in range(replicates) for held in DESIGNS[key](random)])}
