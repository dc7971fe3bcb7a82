"""How can the error rates of systems be estimated? Every method under one signature: `ESTIMATION_METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.scored_corpus import ScoredCorpus
from factaudit.stats.cross_fitting import cross_fit_error_probabilities
from factaudit.stats.difference_estimator import difference_estimate
from factaudit.stats.posterior_comparison import posterior_interval
from factaudit.stats.predicted_rates import pooled_prediction_error_rates
from factaudit.stats.stratified_sampling import cluster_design_effect
from factaudit.stats.stratified_wilson import stratified_wilson_interval
from factaudit.text.display_text import format_count, join_reasons

#: Fewer labels a system give a design-based estimate no interval, and are flagged.
MIN_INTERVAL_LABELS = 10
MIN_LABELS = 8


@dataclass(frozen=True)
class RateEstimate:
    """The error rate of one system: a share and its interval, NaN where refused; ``reason`` says why, or flags.

    least, greatest: of the rates were none of the undecided claims an error, and were all; of predicted rates the same
    of the unscored claims; None: as the rate.
    """

    rate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    reason: str | None = None
    least: float | None = None
    greatest: float | None = None


def estimate_rates_by_hierarchical_model(estimation: RateEstimationCase) -> list[RateEstimate]:
    """The default: the mean and the quantiles of the draws of `factaudit.stats.hierarchical_regression`."""
    refused = _refuse_estimate_of_unlabelled_systems(estimation)
    if not len(estimation.labelled_rows):
        return refused
    rate, low, high = posterior_interval(estimation.rate_draws, estimation.options.confidence)
    found = []
    for at, n in enumerate(estimation.n_labels):
        if n == 0:
            found.append(refused[at])
            continue
        ends = float(rate[at]), float(low[at]), float(high[at])
        found.append(RateEstimate(*ends, _flag_few_labels(n) or None))
    return found


def estimate_rates_by_regression_ppi(estimation: RateEstimationCase) -> list[RateEstimate]:
    """A cross-fitted regression on the scores, corrected by the residuals of the labels."""
    found = _refuse_estimate_of_unlabelled_systems(estimation)
    if len(estimation.labelled_rows) < 2:
        return found
    corpus = estimation.corpus
    error = corpus.error[estimation.labelled_rows]
    everywhere, held_out = cross_fit_error_probabilities(
        estimation.covariates,
        corpus.system,
        estimation.labelled_rows,
        error,
        len(corpus.systems),
        estimation.effect_scale,
        estimation.random_generator("folds"),
    )
    guess = everywhere.copy()
    guess[estimation.labelled_rows] = held_out
    means = np.bincount(corpus.system, everywhere, minlength=len(corpus.systems)) / np.maximum(corpus.system_sizes, 1)
    for at, draw in estimation.system_draws.items():
        n_labels = int(corpus.is_labelled[draw.rows].sum())
        if n_labels:
            rate, low, high = difference_estimate(
                draw,
                corpus.error[draw.rows],
                guess[draw.rows],
                float(means[at]),
                int(corpus.system_sizes[at]),
                corpus.response[draw.rows],
                estimation.options.confidence,
                float(estimation.population_variance[at]),
            )
            found[at] = _make_design_based_estimate(rate, low, high, n_labels)
    return found


def estimate_rates_by_labels_alone(estimation: RateEstimationCase) -> list[RateEstimate]:
    """The labels alone."""
    found = _refuse_estimate_of_unlabelled_systems(estimation)
    corpus = estimation.corpus
    for at, draw in estimation.system_draws.items():
        error = corpus.error[draw.rows]
        known = ~np.isnan(error)
        if not known.any():
            continue
        spread = cluster_design_effect((error - error[known].mean())[known], corpus.response[draw.rows][known])
        rate, low, high = stratified_wilson_interval(
            draw,
            error,
            int(corpus.system_sizes[at]),
            estimation.options.confidence,
            spread,
            estimation.population_variance[at],
        )
        found[at] = _make_design_based_estimate(rate, low, high, int(known.sum()))
    return found


def estimate_rates_by_raw_predictions(estimation: RateEstimationCase) -> list[RateEstimate]:
    """What the main evaluator predicts."""
    corpus = estimation.corpus
    rates = pooled_prediction_error_rates(corpus.prediction[0], corpus.system, len(corpus.systems))
    reason = "as predicted; no interval: how far off it is is not known"
    bounds = _bound_rates_by_unscored_claims(corpus, rates, corpus.prediction[0] >= 0)
    return [
        RateEstimate(
            float(rate),
            reason=join_reasons([reason, _flag_unscored_claims(estimation, at)]),
            least=bounds[0, at],
            greatest=bounds[1, at],
        )
        if not np.isnan(rate)
        else RateEstimate(reason=f"{corpus.evaluators[0]} scored none of its {corpus.level}s")
        for at, rate in enumerate(rates)
    ]


ESTIMATION_METHODS: dict[str, Callable[[RateEstimationCase], list[RateEstimate]]] = {
    "hierarchical": estimate_rates_by_hierarchical_model,
    "regression-ppi": estimate_rates_by_regression_ppi,
    "labels": estimate_rates_by_labels_alone,
    "raw": estimate_rates_by_raw_predictions,
}


def estimate_rates_by_method(name: str, estimation: RateEstimationCase) -> list[RateEstimate]:
    """The estimates of a method. Claims that people could not decide count as unlabelled; they widen the bounds, from
    the rate if none of them were an error to the rate if all were."""
    method = ESTIMATION_METHODS[name]
    found = method(estimation)
    if name == "raw" or not estimation.corpus.undecided.any() or not len(estimation.labelled_rows):
        return found
    none, every = (method(estimation.fill_undecided(error)) for error in (0.0, 1.0))
    widened = []
    for estimate, least, most in zip(found, none, every, strict=True):
        ends = [estimate.least, estimate.greatest, estimate.rate, least.rate, most.rate]
        known = [end for end in ends if end is not None and not np.isnan(end)]
        widened.append(replace(estimate, least=min(known), greatest=max(known)) if known else estimate)
    return widened


def _refuse_estimate_of_unlabelled_systems(estimation: RateEstimationCase) -> list[RateEstimate]:
    """An empty estimate per system, for those that get none."""
    return [RateEstimate(reason="no label of its own")] * len(estimation.corpus.systems)


def _flag_few_labels(n_labels: int) -> str:
    return f"fewer than {MIN_LABELS} labels ({n_labels})" if n_labels < MIN_LABELS else ""


def _make_design_based_estimate(rate: float, low: float, high: float, n_labels: int) -> RateEstimate:
    if n_labels < MIN_INTERVAL_LABELS:
        return RateEstimate(
            float(rate), reason=f"no interval: {format_count(n_labels, 'label')}, fewer than {MIN_INTERVAL_LABELS}"
        )
    return RateEstimate(float(rate), float(low), float(high))


def _bound_rates_by_unscored_claims(corpus: ScoredCorpus, rates: np.ndarray, is_scored: np.ndarray) -> np.ndarray:
    """float64 (2, S): the rates were none of the unscored claims an error, and were all."""
    share = np.bincount(corpus.system[is_scored], minlength=len(corpus.systems)) / corpus.system_sizes
    return np.stack([rates * share, rates * share + (1 - share)])  # exactly the rates where all are scored


def _flag_unscored_claims(estimation: RateEstimationCase, system: int) -> str:
    corpus = estimation.corpus
    n = int((corpus.prediction[0, corpus.system == system] < 0).sum())
    return f"{format_count(n, corpus.level)} unscored" if n else ""
