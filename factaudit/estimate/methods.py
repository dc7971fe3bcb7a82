"""How can the error rates of systems be estimated from few labels? Four methods, on one data set at
one level."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factaudit.estimate.corpus import Corpus
from factaudit.signature import hash_texts
from factaudit.stats import divide_or_undefined, regression
from factaudit.stats.posterior_comparison import posterior_interval
from factaudit.stats.sampling import (
    StratifiedDraw,
    cluster_design_effect,
    difference_estimate,
    stratified_wilson_interval,
)
from factaudit.text.display_text import format_count, join_reasons

#: Fewer labels a system give a design-based estimate no interval, and are flagged.
MIN_INTERVAL_LABELS = 10
MIN_LABELS = 8


@dataclass(frozen=True)
class RateEstimate:
    """The error rate of one system: a share and its interval, NaN where refused; ``reason`` says
    why, or flags.

    least, greatest: of the rates were none of the undecided claims an error, and were all; of
    predicted rates the same of the unscored claims; None: as the rate.
    """

    rate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    reason: str | None = None
    least: float | None = None
    greatest: float | None = None


@dataclass(frozen=True)
class Estimation:
    """A corpus and the draw that its labels came from; what is fitted to the labels is computed
    once.

    ``draw`` may hold claims that got no label. All arrays are over the corpus's rows, in its order.
    """

    corpus: Corpus
    draw: StratifiedDraw
    confidence: float = 0.95
    seed: int = 0

    def random_generator(self, purpose: str) -> np.random.Generator:
        """A generator of its own for each purpose: what one method draws changes no other's
        figures."""
        names = hash_texts(self.corpus.dataset, self.corpus.level, purpose)
        return np.random.default_rng([self.seed, int(names, 16)])

    @cached_property
    def labelled_rows(self) -> np.ndarray:
        """int (n,): the labelled rows, ascending."""
        return np.flatnonzero(self.corpus.is_labelled)

    @cached_property
    def n_labels(self) -> np.ndarray:
        """int (S,): the labels of each system."""
        return self.corpus.count_by_system(self.corpus.is_labelled)

    @cached_property
    def n_undecided(self) -> np.ndarray:
        """int (S,): the claims or responses of each system that people looked at and could not
        decide."""
        return self.corpus.count_by_system(self.corpus.undecided)

    @cached_property
    def covariates(self) -> regression.Covariates:
        corpus = self.corpus
        return regression.make_covariates(
            corpus.score, corpus.evaluators, corpus.stratum, corpus.system
        )

    @cached_property
    def model(self) -> regression.HierarchicalRegression:
        """The regression; a label counts for less where labels of one response are alike."""
        corpus, rows = self.corpus, self.labelled_rows
        equal = regression.HierarchicalRegression(
            self.covariates, corpus.system, rows, corpus.error[rows], len(corpus.systems)
        )
        p = equal.error_probabilities(equal.find_mode(1.0))[rows]
        effect = cluster_design_effect(
            (equal.error - p) / np.sqrt(p * (1 - p)), corpus.response[rows]
        )
        return replace(equal, label_weight=1 / effect)

    @cached_property
    def posterior(self) -> regression.PosteriorDraws:
        return self.model.draw(self.random_generator("posterior"))

    @cached_property
    def error_probabilities(self) -> np.ndarray:
        """float64 (N,): P(error) of each claim or response by the model."""
        return regression.posterior_error_probabilities(
            self.posterior, self.covariates, self.corpus.system
        )

    @cached_property
    def effect_scale(self) -> float:
        """The spread of the system effects that the labels make most likely."""
        return max(self.posterior.modes, key=lambda mode: mode.log_weight).effect_scale

    @cached_property
    def rate_draws(self) -> np.ndarray:
        """float64 (D, S): draws of each system's error rate."""
        corpus, random = self.corpus, self.random_generator("rates")
        return regression.poststratify(
            self.posterior, self.covariates, corpus.system, corpus.error, random
        )

    @cached_property
    def system_draws(self) -> Mapping[int, StratifiedDraw]:
        """The draw within each system that it reached."""
        system = self.corpus.system[self.draw.rows]
        return {int(name): self.draw.select(system == name) for name in np.unique(system)}

    def fill_undecided(self, error: float) -> Estimation:
        """The same in which all undecided claims are errors (1), or none is (0)."""
        filled = np.where(self.corpus.undecided, error, self.corpus.error)
        return replace(
            self,
            corpus=replace(self.corpus, error=filled, undecided=np.zeros(len(filled), dtype=bool)),
        )


def estimate_hierarchical(estimation: Estimation) -> list[RateEstimate]:
    """The default: the mean and the quantiles of the draws of `factaudit.stats.regression`."""
    found = _refuse_all(estimation)
    if len(estimation.labelled_rows):
        rate, low, high = posterior_interval(estimation.rate_draws, estimation.confidence)
        for at in np.flatnonzero(estimation.n_labels):
            n = estimation.n_labels[at]
            few = f"fewer than {MIN_LABELS} labels ({n})" if n < MIN_LABELS else None
            found[at] = RateEstimate(float(rate[at]), float(low[at]), float(high[at]), few)
    return found


def estimate_by_regression_ppi(estimation: Estimation) -> list[RateEstimate]:
    """A cross-fitted regression on the scores, corrected by the residuals of the labels."""
    corpus = estimation.corpus
    if len(estimation.labelled_rows) < 2:
        return _refuse_all(estimation)
    everywhere, held_out = estimation.model.cross_fit(
        estimation.effect_scale, estimation.random_generator("folds")
    )
    guess = everywhere.copy()
    guess[estimation.labelled_rows] = held_out
    means = np.bincount(corpus.system, everywhere, minlength=len(corpus.systems)) / np.maximum(
        corpus.system_sizes, 1
    )
    return _estimate_by_design(
        estimation,
        lambda at, draw, *design: difference_estimate(
            draw, *design, guess=guess[draw.rows], mean_guess=float(means[at])
        ),
    )


def estimate_by_labels_alone(estimation: Estimation) -> list[RateEstimate]:
    """The labels alone."""
    return _estimate_by_design(
        estimation, lambda at, draw, *design: stratified_wilson_interval(draw, *design)
    )


def estimate_by_raw_predictions(estimation: Estimation) -> list[RateEstimate]:
    """What the main evaluator predicts; bounds: were none of the unscored claims an error, and were
    all."""
    corpus = estimation.corpus
    sizes, scored = corpus.system_sizes, corpus.count_by_system(corpus.prediction[0] >= 0)
    errors = corpus.count_by_system(corpus.prediction[0] == 0)
    rates = divide_or_undefined(errors, scored)
    found = []
    for rate, size, n in zip(rates.tolist(), sizes.tolist(), scored.tolist(), strict=True):
        if not n:
            found.append(
                RateEstimate(reason=f"{corpus.evaluators[0]} scored none of its {corpus.level}s")
            )
            continue
        unscored = f"{format_count(size - n, corpus.level)} unscored" if size > n else ""
        reason = join_reasons(
            ["as predicted; no interval: how far off it is is not known", unscored]
        )
        least = rate * (n / size)  # exactly the rate where all are scored
        found.append(
            RateEstimate(rate, reason=reason, least=least, greatest=least + (1 - n / size))
        )
    return found


ESTIMATION_METHODS: dict[str, Callable[[Estimation], list[RateEstimate]]] = {
    "hierarchical": estimate_hierarchical,
    "regression-ppi": estimate_by_regression_ppi,
    "labels": estimate_by_labels_alone,
    "raw": estimate_by_raw_predictions,
}


def estimate_by_method(name: str, estimation: Estimation) -> list[RateEstimate]:
    """The estimates of a method. Claims that people could not decide count as unlabelled; they
    widen the bounds, from the rate if none of them were an error to the rate if all were."""
    method = ESTIMATION_METHODS[name]
    found = method(estimation)
    if name == "raw" or not estimation.corpus.undecided.any() or not len(estimation.labelled_rows):
        return found
    widened = []
    for estimate, least, most in zip(
        found, *(method(estimation.fill_undecided(error)) for error in (0.0, 1.0)), strict=True
    ):
        ends = [end for end in (estimate.rate, least.rate, most.rate) if not np.isnan(end)]
        widened.append(replace(estimate, least=min(ends), greatest=max(ends)) if ends else estimate)
    return widened


def _refuse_all(estimation: Estimation) -> list[RateEstimate]:
    """An empty estimate per system, for those that get none."""
    return [RateEstimate(reason="no label of its own")] * len(estimation.corpus.systems)


def _estimate_by_design(
    estimation: Estimation, estimate: Callable[..., tuple[float, float, float]]
) -> list[RateEstimate]:
    """Rate, low and high of each system with labels, by the design that its labels were drawn by.

    estimate: of a system's place and draw, its labels, number of claims, clusters and confidence.
    """
    found, corpus = _refuse_all(estimation), estimation.corpus
    for at, draw in estimation.system_draws.items():
        n = int(estimation.n_labels[at])
        if not n:
            continue
        rate, low, high = estimate(
            at,
            draw,
            corpus.error[draw.rows],
            int(corpus.system_sizes[at]),
            corpus.response[draw.rows],
            estimation.confidence,
        )
        found[at] = RateEstimate(rate, low, high)
        if n < MIN_INTERVAL_LABELS:
            few = f"no interval: {format_count(n, 'label')}, fewer than {MIN_INTERVAL_LABELS}"
            found[at] = RateEstimate(rate, reason=few)
    return found
