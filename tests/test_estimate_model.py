"""The hierarchical model: modes, draws, and what it makes of labels."""

from __future__ import annotations

import numpy as np
import pytest
from estimate_data import World, tables
from scipy.special import expit as reference_expit

from factaudit.arrays.judgements import Judgements
from factaudit.estimate.estimation_case import RateEstimationCase, RateEstimationOptions
from factaudit.estimate.scored_corpus import ScoredCorpus, build_scored_corpora
from factaudit.estimate.system_comparison import pairwise_rate_differences
from factaudit.stats.hierarchical_regression import (
    APART_SCALE,
    EFFECT_SCALES,
    PosteriorDraws,
    fit_hierarchical_regression,
    stable_logistic,
)
from factaudit.stats.poststratification import poststratify_error_rates
from factaudit.stats.score_covariates import build_score_covariates, standardise_score_logits
from factaudit.stats.stratified_sampling import assume_simple_random_draw

WORLDS = {
    "usual": World(),
    "rare": World(rates=(-4.5, -4.0, -3.5, -3.0)),
    "one system": World(rates=(-1.0,)),
    "thirty": World(rates=tuple(np.linspace(-3, 0.5, 30)), size=60),
    "useless": World(skill=(0.0, 0.0)),
    "perfect": World(skill=(12.0, 12.0)),
    "extreme": World(rates=(-8.0, 8.0)),
}


def corpus_of(world: World, seed: int = 0) -> ScoredCorpus:
    claims, verdicts = tables(world, seed)
    (corpus,) = build_scored_corpora(Judgements.join(claims, verdicts), "claim", sorted(verdicts["evaluator"].unique()))
    return corpus


def fitted(corpus: ScoredCorpus, rows: np.ndarray, seed: int = 0, draws: int = 1000) -> PosteriorDraws:
    columns = build_score_covariates(corpus.score, corpus.evaluators, system=corpus.system)
    random = np.random.default_rng(seed)
    return fit_hierarchical_regression(
        columns, rows, corpus.system[rows], corpus.error[rows], len(corpus.systems), random, draws
    )


def rates_of(corpus: ScoredCorpus, rows: np.ndarray, posterior: PosteriorDraws, seed: int = 0) -> np.ndarray:
    known = np.full(len(corpus.error), np.nan)
    known[rows] = corpus.error[rows]
    columns = build_score_covariates(corpus.score, corpus.evaluators, system=corpus.system)
    return poststratify_error_rates(posterior, columns, corpus.system, known, np.random.default_rng(seed))


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("n", [8, 60, 300])
def test_the_gradient_vanishes_at_every_mode(name: str, n: int) -> None:
    corpus = corpus_of(WORLDS[name])
    rows = np.random.default_rng(1).choice(len(corpus.error), min(n, len(corpus.error)), replace=False)
    posterior = fitted(corpus, rows)
    n_systems = len(corpus.systems)
    assert len(posterior.modes) == len(EFFECT_SCALES) * (3 if n_systems > 2 else 1)
    for mode in posterior.modes:
        # Not what the fit says of itself: the gradient computed again from the model's definition.
        columns = build_score_covariates(corpus.score, corpus.evaluators, system=corpus.system)
        design = np.concatenate(
            [np.ones((len(rows), 1)), columns.values[rows], np.eye(len(corpus.systems))[corpus.system[rows]]], axis=1
        )
        mean = np.concatenate([[0], columns.prior_mean, np.zeros(len(corpus.systems))])
        sd = np.concatenate([[5.0], columns.prior_sd, np.full(n_systems, mode.effect_scale)])
        if mode.apart is not None:
            sd[-n_systems + mode.apart] = APART_SCALE
        gradient = (
            design.T @ (corpus.error[rows] - reference_expit(design @ mode.parameters))
            - (mode.parameters - mean) / sd**2
        )
        assert np.abs(gradient).max() < 1e-4
    assert posterior.n_effective_proposals >= 100


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n"), [("usual", 60), ("usual", 300), ("rare", 120), ("useless", 60), ("thirty", 400)]
)
def test_a_thousand_draws_are_near_a_long_run(name: str, n: int) -> None:
    corpus = corpus_of(WORLDS[name])
    rows = np.random.default_rng(2).choice(len(corpus.error), n, replace=False)
    long = rates_of(corpus, rows, fitted(corpus, rows, seed=99, draws=20_000)).mean(0)
    for seed in range(5):
        short = rates_of(corpus, rows, fitted(corpus, rows, seed=seed), seed=seed).mean(0)
        assert np.abs(short - long).max() < 0.006


def test_agrees_with_importance_weights_over_a_wide_proposal() -> None:
    """One system, one evaluator: the posterior of the rate by brute force over a grid of its parameters."""
    corpus = corpus_of(World(rates=(-1.0,), size=120, skill=(1.5,)), seed=3)
    rows = np.random.default_rng(0).choice(120, 25, replace=False)
    x = build_score_covariates(corpus.score, corpus.evaluators).values[:, 0]
    a, b = (grid.ravel() for grid in np.meshgrid(np.linspace(-9, 9, 361), np.linspace(-4, 7, 221), indexing="ij"))
    # The intercept plus the one effect is normal with variance 25 + τ², given τ.
    weight = np.zeros(len(a))
    for tau in EFFECT_SCALES:
        variance = 25 + tau**2
        weight += tau / (1 + tau**2) * np.exp(-0.5 * a**2 / variance) / np.sqrt(variance)
    eta = a[:, None] + b[:, None] * x[rows]
    weight *= np.exp(-0.5 * ((b - 1.4) / 1.2) ** 2 + (eta @ corpus.error[rows] - np.logaddexp(0, eta).sum(1)))
    rest = np.setdiff1d(np.arange(120), rows)
    rate = (corpus.error[rows].sum() + reference_expit(a[:, None] + b[:, None] * x[rest]).sum(1)) / 120
    exact = float(weight @ rate / weight.sum())
    found = rates_of(corpus, rows, fitted(corpus, rows, draws=20_000))
    assert found.mean() == pytest.approx(exact, abs=0.003)


def test_draws_are_the_same_for_the_same_seed_and_any_order_of_rows() -> None:
    claims, verdicts = tables(World())
    keep = np.random.default_rng(0).permutation(len(claims))[:80]
    claims["label"] = claims["label"].where(claims.index.isin(keep))
    shuffled = claims.sample(frac=1, random_state=1).reset_index(drop=True)
    found = []
    for table in (claims, shuffled):
        (corpus,) = build_scored_corpora(Judgements.join(table, verdicts), "claim", ["e0", "e1"])
        found.append(
            RateEstimationCase(corpus, assume_simple_random_draw(corpus.is_labelled, corpus.system)).rate_draws
        )
    np.testing.assert_array_equal(*found)


def test_everything_labelled_is_the_share_itself() -> None:
    corpus = corpus_of(World())
    case = RateEstimationCase(corpus, assume_simple_random_draw(corpus.is_labelled, corpus.system))
    truth = [corpus.error[corpus.system == s].mean() for s in range(4)]
    np.testing.assert_allclose(case.rate_draws, np.tile(truth, (1000, 1)), atol=1e-6)


@pytest.mark.parametrize("target", ["corpus", "population"])
def test_blocks_do_not_matter(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents that reach over blocks keep their one weight."""
    corpus = corpus_of(World(documents=7, size=90))
    rows = np.arange(0, len(corpus.error), 9)
    error = np.full(len(corpus.error), np.nan)
    error[rows] = corpus.error[rows]
    case = RateEstimationCase(
        corpus, assume_simple_random_draw(~np.isnan(error), corpus.system), RateEstimationOptions(target=target)
    )
    spread = []
    for block in (256, 5000):
        monkeypatch.setattr("factaudit.stats.poststratification._BLOCK_SIZE", block)
        documents = corpus.document if target == "population" else None
        posterior = fitted(corpus, rows)
        drawn = poststratify_error_rates(
            posterior, case.covariates, corpus.system, error, np.random.default_rng(0), documents
        )
        spread.append(drawn.std(0))
    # The same draws of weights come in another order, so only their spread can be compared.
    np.testing.assert_allclose(*spread, rtol=0.1 if target == "population" else 1e-4)


def test_columns() -> None:
    score = np.array([[0.9, 0.1, 0.5, np.nan], [0.5, 0.5, 0.5, 0.5], [0.8, 0.2, 0.6, 0.4]])
    columns = build_score_covariates(score, ["a", "constant", "b"])
    assert columns.names == ("shared", "a", "b", "a missing")
    assert columns.values.shape == (4, 4)
    shared = columns.values[:, 0]
    assert shared[1] == max(shared), "the least support is the greatest log-odds of an error"
    assert build_score_covariates(score[1:2], ["constant"]).values.shape == (4, 0)
    one = build_score_covariates(score[2:], ["b"])
    np.testing.assert_allclose(one.values[:, 0], standardise_score_logits(score[2]))
    assert (one.prior_mean.tolist(), one.prior_sd.tolist()) == ([1.4], [1.2])
    of_systems = build_score_covariates(score, ["a", "constant", "b"], system=np.array([0, 1, 0, 1]))
    assert of_systems.names == ("shared", "system mean", "a", "b", "a missing")
    mean = of_systems.values[:, 1]
    assert mean[0] == mean[2] < mean[1] == mean[3], "the system with less support"
    alone = build_score_covariates(score, ["a", "constant", "b"], system=np.zeros(4, dtype=int))
    assert alone.names == columns.names, "one system has no other to differ from"
    values = standardise_score_logits(np.array([0.0, 1.0, 0.5]))
    assert values is not None
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    assert standardise_score_logits(np.array([np.nan, np.nan])) is None


def test_expit() -> None:
    x = np.array([-800.0, -1.0, 0.0, 3.0, 800.0])
    np.testing.assert_allclose(stable_logistic(x), reference_expit(x), atol=1e-15)


def test_the_wrong_order_is_that_of_the_difference_shown() -> None:
    corpus = corpus_of(World())
    case = RateEstimationCase(corpus, assume_simple_random_draw(corpus.is_labelled, corpus.system))
    # Most draws lie above 0, their mean below: the order shown is wrong in most of them.
    draws = np.tile(np.array([0.2, 0.1, 0.5, 0.5]), (100, 1))
    draws[:30, 0] = 0.0
    draws[:30, 1] = 0.4
    vars(case)["rate_draws"] = draws
    first = pairwise_rate_differences(case)[0]
    assert first["difference"] == pytest.approx(-0.05)
    assert first["p_wrong"] == pytest.approx(0.7)
    assert first["order"] == "?"
