"""Every way to estimate the error rates of a case's systems, under one signature: `ESTIMATION_METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.estimate.scored_corpus import ScoredCorpus
from factaudit.estimate.transferability import explain_transferability
from factaudit.stats.active_inference import active_inference_mean
from factaudit.stats.cross_fitting import cross_fit_error_probabilities
from factaudit.stats.difference_estimator import difference_estimate
from factaudit.stats.pooled_threshold import (
    error_rates_at_pooled_threshold,
    fit_pooled_threshold,
    pooled_prediction_error_rates,
)
from factaudit.stats.posterior_comparison import posterior_interval
from factaudit.stats.prediction_powered import prediction_powered_mean, stratified_prediction_powered_mean
from factaudit.stats.rogan_gladen import estimate_rogan_gladen_confusion, rogan_gladen_error_rate
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
    least, greatest = estimation.rate_bounds if estimation.keeps_undecided else (rate, rate)
    least, greatest = np.minimum(least, rate), np.maximum(greatest, rate)
    found = []
    for at, n in enumerate(estimation.n_labels):
        if n == 0 and not estimation.options.transfer:
            found.append(refused[at])
            continue
        flags = [explain_transferability(estimation) if n == 0 else _flag_few_labels(n)]
        ends = float(rate[at]), float(low[at]), float(high[at])
        found.append(RateEstimate(*ends, join_reasons(flags), float(least[at]), float(greatest[at])))
    return found


def estimate_rates_by_regression_ppi(estimation: RateEstimationCase) -> list[RateEstimate]:
    """A cross-fitted regression on the scores, corrected by the residuals of the labels."""
    found = _refuse_estimate_of_unlabelled_systems(estimation, can_borrow=False)
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
    found = _refuse_estimate_of_unlabelled_systems(estimation, can_borrow=False)
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


def estimate_rates_by_pooled_threshold(estimation: RateEstimationCase) -> list[RateEstimate]:
    """The main evaluator with one threshold that has zero bias on all labels: it uses the same labels as the others."""
    corpus, rows = estimation.corpus, estimation.labelled_rows
    found = _refuse_estimate_of_unlabelled_systems(estimation)
    if not len(rows):
        return found
    threshold = fit_pooled_threshold(corpus.score[0, rows], corpus.error[rows], estimation.claims_per_label)
    rates = error_rates_at_pooled_threshold(corpus.score[0], threshold, corpus.system, len(corpus.systems))
    if np.isnan(threshold):
        return [RateEstimate(reason=f"no labelled {corpus.level} has a score of {corpus.evaluators[0]}")] * len(rates)
    reason = f"one threshold for all systems, {threshold:.3g}; no interval: how far off it is for one is not known"
    bounds = _bound_rates_by_unscored_claims(corpus, rates, ~np.isnan(corpus.score[0]))
    for at, rate in enumerate(rates):
        if estimation.n_labels[at] or estimation.options.transfer:
            reasons = join_reasons([reason, _flag_unscored_claims(estimation, at)])
            found[at] = RateEstimate(float(rate), reason=reasons, least=bounds[0, at], greatest=bounds[1, at])
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


def estimate_by_ppi(estimation: RateEstimationCase) -> list[RateEstimate]:
    """PPI with the main evaluator's predictions, each system by itself."""
    return _estimate_rates_by_ppi_variant(estimation, power_tuning=False)


def estimate_by_tuned_ppi(estimation: RateEstimationCase) -> list[RateEstimate]:
    """PPI++."""
    return _estimate_rates_by_ppi_variant(estimation, power_tuning=True)


def _estimate_rates_by_ppi_variant(estimation: RateEstimationCase, power_tuning: bool) -> list[RateEstimate]:
    found = _refuse_estimate_of_unlabelled_systems(estimation, can_borrow=False)
    corpus = estimation.corpus
    weight = np.zeros(len(corpus.error))
    weight[estimation.labelled_rows] = estimation.claims_per_label
    guess = np.where(corpus.prediction[0] >= 0, 1.0 - corpus.prediction[0], np.nan)
    for at in np.flatnonzero(estimation.n_labels):
        mine = corpus.system == at
        # Any guess will do for an unscored claim: the labels correct it.
        filled = np.where(np.isnan(guess), np.nanmean(guess[mine]) if (~np.isnan(guess[mine])).any() else 0.5, guess)
        known, rest = mine & corpus.is_labelled, mine & ~corpus.is_labelled
        if not rest.any():
            found[at] = RateEstimate(reason="all its claims are labelled: nothing is left to predict")
            continue
        rate, low, high = prediction_powered_mean(
            corpus.error[known], filled[known], filled[rest], weight[known], power_tuning, estimation.options.confidence
        )
        rate, low, high = np.clip([rate, low, high], 0, 1)
        found[at] = _make_design_based_estimate(rate, low, high, int(known.sum()))
    return found


def estimate_rates_by_stratified_ppi(estimation: RateEstimationCase) -> list[RateEstimate]:
    """PPI++ within thirds of the main evaluator's score, each system by itself."""
    found = _refuse_estimate_of_unlabelled_systems(estimation, can_borrow=False)
    corpus, guess = estimation.corpus, _predict_errors_from_scores(estimation)
    weight = np.zeros(len(corpus.error))
    weight[estimation.labelled_rows] = estimation.claims_per_label
    for at in np.flatnonzero(estimation.n_labels):
        mine = np.flatnonzero(corpus.system == at)
        if corpus.is_labelled[mine].all():
            found[at] = RateEstimate(reason="all its claims are labelled: nothing is left to predict")
            continue
        stratum = np.full(len(corpus.error), -1)
        for n_strata in (3, 2, 1):  # fewer where one would have a single label, of which no spread is known
            stratum[mine[np.argsort(guess[mine], kind="stable")]] = np.arange(len(mine)) * n_strata // len(mine)
            if np.bincount(stratum[mine], corpus.is_labelled[mine], n_strata).min() > 1:
                break
        known, rest = mine[corpus.is_labelled[mine]], mine[~corpus.is_labelled[mine]]
        interval = stratified_prediction_powered_mean(
            corpus.error[known],
            guess[known],
            guess[rest],
            weight[known],
            stratum[known],
            stratum[rest],
            estimation.options.confidence,
        )
        rate, low, high = np.clip(interval, 0, 1)
        found[at] = _make_design_based_estimate(rate, low, high, len(known))
    return found


def estimate_rates_by_active_inference(estimation: RateEstimationCase) -> list[RateEstimate]:
    """Active inference: the main evaluator's scores, corrected by labels weighted as they were drawn."""
    found = _refuse_estimate_of_unlabelled_systems(estimation, can_borrow=False)
    corpus, rows, guess = estimation.corpus, estimation.labelled_rows, _predict_errors_from_scores(estimation)
    for at in np.flatnonzero(estimation.n_labels):
        mine = corpus.system[rows] == at
        interval = active_inference_mean(
            corpus.error[rows[mine]],
            guess[rows[mine]],
            1 / estimation.claims_per_label[mine],
            guess[corpus.system == at],
            estimation.options.confidence,
        )
        rate, low, high = np.clip(interval, 0, 1)
        found[at] = _make_design_based_estimate(rate, low, high, int(mine.sum()))
    return found


def _predict_errors_from_scores(estimation: RateEstimationCase) -> np.ndarray:
    """float64 (N,): one minus the main evaluator's score; its mean where there is none."""
    guess = 1 - estimation.corpus.score[0]
    known = ~np.isnan(guess)
    return np.where(known, guess, guess[known].mean() if known.any() else 0.5)


def estimate_rates_by_rogan_gladen(estimation: RateEstimationCase) -> list[RateEstimate]:
    """Rogan & Gladen with TPR and TNR from the labels of all systems; refused where they may be those of guessing."""
    corpus, rows = estimation.corpus, estimation.labelled_rows
    prediction = corpus.prediction[0]
    used = prediction[rows] >= 0
    known = estimate_rogan_gladen_confusion(
        corpus.error[rows][used], prediction[rows][used], estimation.claims_per_label[used]
    )
    found = _refuse_estimate_of_unlabelled_systems(estimation)
    n = np.bincount(corpus.system[prediction >= 0], minlength=len(corpus.systems))
    rates = pooled_prediction_error_rates(prediction, corpus.system, len(corpus.systems))
    bounds = _bound_rates_by_unscored_claims(corpus, rates, prediction >= 0)
    for at in range(len(corpus.systems)):
        if not (estimation.n_labels[at] or estimation.options.transfer):
            continue
        if not known.is_better_than_chance(estimation.options.confidence) or np.isnan(rates[at]):
            reason = f"the labels do not show that {corpus.evaluators[0]} does better than chance: not identified"
            found[at] = RateEstimate(reason=reason)
            continue
        estimate, least, greatest = (
            rogan_gladen_error_rate(float(rate), int(n[at]), known, estimation.options.confidence)
            for rate in (rates[at], *bounds[:, at])
        )
        found[at] = RateEstimate(*estimate, least=least[0], greatest=greatest[0])
    return found


ESTIMATION_METHODS: dict[str, Callable[[RateEstimationCase], list[RateEstimate]]] = {
    "hierarchical": estimate_rates_by_hierarchical_model,
    "regression-ppi": estimate_rates_by_regression_ppi,
    "labels": estimate_rates_by_labels_alone,
    "pooled-threshold": estimate_rates_by_pooled_threshold,
    "raw": estimate_rates_by_raw_predictions,
    "ppi": estimate_by_ppi,
    "ppi++": estimate_by_tuned_ppi,
    "stratified-ppi": estimate_rates_by_stratified_ppi,
    "active": estimate_rates_by_active_inference,
    "rogan-gladen": estimate_rates_by_rogan_gladen,
}
#: Those that are given side by side; the others on demand, to compare with.
DEFAULT_METHODS = tuple(ESTIMATION_METHODS)[:5]


def estimate_rates_by_method(name: str, estimation: RateEstimationCase) -> list[RateEstimate]:
    """The estimates of a method, undecided claims included.

    The hierarchical model knows them. Any other method is run twice, with none and with all of them as errors: its
    interval holds both of theirs, and the rate lies between as far as the model's P(error) of the undecided claims
    says. By a regression the rate with all of them as errors may be the lower one.
    """
    method = ESTIMATION_METHODS[name]
    if name in ("hierarchical", "raw") or not estimation.keeps_undecided or not len(estimation.labelled_rows):
        return method(estimation)
    none, every = (method(estimation.fill_undecided(error)) for error in (0.0, 1.0))
    (low, high), rate = estimation.rate_bounds, estimation.rate_draws.mean(0)
    share = np.where(high > low, (rate - low) / np.where(high > low, high - low, 1), 0.5).clip(0, 1)
    found = []
    for at, (least, most) in enumerate(zip(none, every, strict=True)):
        between = least.rate + share[at] * (most.rate - least.rate)
        reason = most.reason
        if most.reason != least.reason:
            reason = join_reasons(
                f"were {word} of the undecided claims an error: {one.reason}"
                for word, one in (("none", least), ("all", most))
                if one.reason
            )
        if reason and estimation.n_undecided[at]:
            reason += "; undecided claims count as labels here"
        interval = float(np.minimum(least.low, most.low)), float(np.maximum(least.high, most.high))
        ends = [one.rate if end is None else end for one in (least, most) for end in (one.least, one.greatest)]
        found.append(RateEstimate(between, *interval, reason, float(np.min(ends)), float(np.max(ends))))
    return found


def _refuse_estimate_of_unlabelled_systems(
    estimation: RateEstimationCase, can_borrow: bool = True
) -> list[RateEstimate]:
    """An empty estimate per system; ``can_borrow``: the method could take a rate from other systems' labels."""
    borrows = can_borrow and len(estimation.labelled_rows)
    way = "; --transfer gives the rate that other systems' labels suggest" if borrows else ""
    return [RateEstimate(reason=f"no label of its own{way}")] * len(estimation.corpus.systems)


def _flag_few_labels(n_labels: int) -> str:
    few = f"fewer than {MIN_LABELS} labels ({n_labels}): the pooled threshold is about as good on most data sets "
    few += "with known rates"
    return few if n_labels < MIN_LABELS else ""


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
