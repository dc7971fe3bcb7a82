"""What does every method estimate from? One data set at one level, its labels, and what is fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from factaudit.estimate.scored_corpus import ScoredCorpus
from factaudit.signature import hash_texts
from factaudit.stats.hierarchical_regression import (
    PosteriorDraws,
    PosteriorMode,
    error_probabilities_at_mode,
    fit_hierarchical_regression,
    fit_posterior_mode,
)
from factaudit.stats.poststratification import (
    posterior_error_probabilities,
    poststratify_error_rates,
)
from factaudit.stats.score_covariates import ScoreCovariates, build_score_covariates
from factaudit.stats.stratified_sampling import StratifiedDraw, cluster_design_effect, stratified_label_weights
from factaudit.stats.superpopulation_variance import superpopulation_variance


@dataclass(frozen=True)
class RateEstimationOptions:
    """How rates are estimated.

    target: ``corpus`` (the claims at hand) or ``population`` (what they were drawn from, documents at random).
    """

    target: str = "corpus"
    confidence: float = 0.95
    seed: int = 0


@dataclass(frozen=True)
class RateEstimationCase:
    """A corpus, the draw that its labels came from, and options; what is fitted to the labels is computed once.

    ``draw`` may hold claims that got no label. All arrays are over the corpus's rows, in its order.
    """

    corpus: ScoredCorpus
    draw: StratifiedDraw
    options: RateEstimationOptions = field(default_factory=RateEstimationOptions)

    def random_generator(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose: what one method draws changes no other's figures."""
        names = hash_texts(self.corpus.dataset, self.corpus.level, purpose)
        return np.random.default_rng([self.options.seed, int(names, 16)])

    @cached_property
    def labelled_rows(self) -> np.ndarray:
        """int (n,): the labelled rows, ascending."""
        return np.flatnonzero(self.corpus.is_labelled)

    @cached_property
    def n_labels(self) -> np.ndarray:
        """int (S,): the labels of each system."""
        return np.bincount(self.corpus.system[self.labelled_rows], minlength=len(self.corpus.systems))

    @cached_property
    def covariates(self) -> ScoreCovariates:
        corpus = self.corpus
        return build_score_covariates(corpus.score, corpus.evaluators, corpus.stratum, corpus.system)

    def fit_mode(self, effect_scale: float, label_weight: float) -> PosteriorMode:
        """The most likely model of the labels, its system effects spread by ``effect_scale``."""
        rows, corpus = self.labelled_rows, self.corpus
        return fit_posterior_mode(
            self.covariates,
            rows,
            corpus.system[rows],
            corpus.error[rows],
            len(corpus.systems),
            effect_scale,
            label_weight,
        )

    @cached_property
    def label_weight(self) -> float:
        """How many independent labels one is worth: less than 1 where labels of one response are alike."""
        rows, corpus = self.labelled_rows, self.corpus
        p = error_probabilities_at_mode(self.fit_mode(1.0, 1.0), self.covariates, corpus.system, rows)
        return 1 / cluster_design_effect((corpus.error[rows] - p) / np.sqrt(p * (1 - p)), corpus.response[rows])

    @cached_property
    def posterior(self) -> PosteriorDraws:
        rows, corpus = self.labelled_rows, self.corpus
        return fit_hierarchical_regression(
            self.covariates,
            rows,
            corpus.system[rows],
            corpus.error[rows],
            len(corpus.systems),
            self.random_generator("posterior"),
            label_weight=self.label_weight,
        )

    @cached_property
    def error_probabilities(self) -> np.ndarray:
        """float64 (N,): P(error) of each claim or response by the model."""
        return posterior_error_probabilities(self.posterior, self.covariates, self.corpus.system)

    @cached_property
    def effect_scale(self) -> float:
        """The spread of the system effects that the labels make most likely."""
        return max(self.posterior.modes, key=lambda mode: mode.log_weight).effect_scale

    @cached_property
    def rate_draws(self) -> np.ndarray:
        """float64 (D, S): draws of each system's error rate."""
        corpus = self.corpus
        return poststratify_error_rates(
            self.posterior,
            self.covariates,
            corpus.system,
            corpus.error,
            self.random_generator("rates"),
            corpus.document if self.options.target == "population" else None,
        )

    def fill_undecided(self, error: float) -> RateEstimationCase:
        """The case in which all undecided claims are errors (1), or none is (0)."""
        corpus = self.corpus
        filled = np.where(corpus.undecided, error, corpus.error)
        corpus = replace(corpus, error=filled, undecided=np.zeros_like(corpus.undecided))
        return replace(self, corpus=corpus)

    @property
    def n_undecided(self) -> np.ndarray:
        """int (S,): the claims or responses of each system that people looked at and could not decide."""
        return np.bincount(self.corpus.system[self.corpus.undecided], minlength=len(self.corpus.systems))

    @cached_property
    def claims_per_label(self) -> np.ndarray:
        """float64 (n,): how many claims each labelled row stands for, in the order of ``labelled_rows``."""
        drawn = stratified_label_weights(
            self.draw, self.corpus.system[self.draw.rows], self.corpus.is_labelled[self.draw.rows]
        )
        weight = np.zeros(len(self.corpus.error))
        weight[self.draw.rows] = drawn
        return weight[self.labelled_rows]

    @cached_property
    def system_draws(self) -> Mapping[int, StratifiedDraw]:
        """The draw within each system that it reached."""
        system = self.corpus.system[self.draw.rows]
        return {int(name): self.draw.select(system == name) for name in np.unique(system)}

    @cached_property
    def population_variance(self) -> np.ndarray:
        """float64 (S,): how much a system's rate varies from one set of documents to the next; 0 for the corpus."""
        corpus = self.corpus
        if self.options.target == "corpus":
            return np.zeros(len(corpus.systems))
        mode = self.fit_mode(self.effect_scale, self.label_weight)
        p = error_probabilities_at_mode(mode, self.covariates, corpus.system)
        return superpopulation_variance(p, corpus.system, corpus.document, len(corpus.systems))
