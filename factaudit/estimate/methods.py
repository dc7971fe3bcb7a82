"""Every way to estimate the error rates of a case's systems, under one signature: `METHODS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from factaudit.audit.core.rows import reasons
from factaudit.estimate.case import Case
from factaudit.estimate.design import design_effect, mean_of
from factaudit.estimate.labelled import labelled_rate
from factaudit.estimate.ppi import ppi_mean
from factaudit.estimate.regression import cross_fitted
from factaudit.estimate.rogan_gladen import confusion, rogan_gladen
from factaudit.estimate.threshold import pooled_threshold, raw_rates, threshold_rates
from factaudit.estimate.transfer import transfer_test
from factaudit.text.printable import count

#: Fewer labels a system give a design-based estimate no interval, and are flagged.
MIN_DESIGN = 10
MIN_LABELS = 8


@dataclass(frozen=True)
class Estimate:
    """The error rate of one system: a share and its interval, NaN where refused; ``reason`` says why, or flags."""

    rate: float = np.nan
    low: float = np.nan
    high: float = np.nan
    reason: str | None = None


def hierarchical(case: Case) -> list[Estimate]:
    """The default: the model of `factaudit.estimate.hierarchical`; the mean of the draws and their quantiles."""
    refused = _without_labels(case)
    if not len(case.rows):
        return refused
    tail = (1 - case.settings.confidence) / 2
    low, high = np.quantile(case.draws, [tail, 1 - tail], axis=0)
    rate = np.clip(case.draws.mean(0), low, high)
    found = []
    for at, n in enumerate(case.n_labels):
        if n == 0 and not case.settings.transfer:
            found.append(refused[at])
            continue
        flags = [transfer_test(case).sentence if n == 0 else _few(n)]
        found.append(Estimate(float(rate[at]), float(low[at]), float(high[at]), reasons(flags)))
    return found


def regression_ppi(case: Case) -> list[Estimate]:
    """A cross-fitted regression on the scores, mended by the labels' residuals."""
    found = _without_labels(case, borrow=False)
    if len(case.rows) < 2:
        return found
    corpus = case.corpus
    error = corpus.error[case.rows]
    everywhere, held_out = cross_fitted(
        case.columns, corpus.system, case.rows, error, len(corpus.systems), case.tau, case.random("folds")
    )
    guess = everywhere.copy()
    guess[case.rows] = held_out
    means = np.bincount(corpus.system, everywhere, minlength=len(corpus.systems)) / np.maximum(corpus.sizes, 1)
    z = ndtri((1 + case.settings.confidence) / 2)
    for at, draw in case.draw_of.items():
        residual = corpus.error[draw.row] - guess[draw.row]
        known = ~np.isnan(residual)
        if not known.any():
            continue
        size = int(corpus.sizes[at])
        p = guess[draw.row]
        mean = mean_of(draw, residual, p * (1 - p), size)
        spread = design_effect((residual - mean.value)[known], corpus.response[draw.row][known])
        # Where all is labelled the mean residual is over all: what is left of the predictions is their own mean.
        middle = float(corpus.error[draw.row].mean()) if known.sum() == size else means[at] + mean.value
        half = z * np.sqrt(mean.variance * spread + case.population_variance[at])
        rate, low, high = np.clip(middle + half * np.array([0, -1, 1]), 0, 1)
        found[at] = _designed(rate, low, high, int(known.sum()))
    return found


def labels(case: Case) -> list[Estimate]:
    """The labels alone."""
    found = _without_labels(case, borrow=False)
    corpus = case.corpus
    for at, draw in case.draw_of.items():
        error = corpus.error[draw.row]
        known = ~np.isnan(error)
        if not known.any():
            continue
        spread = design_effect((error - error[known].mean())[known], corpus.response[draw.row][known])
        rate, low, high = labelled_rate(
            draw, error, int(corpus.sizes[at]), case.settings.confidence, spread, case.population_variance[at]
        )
        found[at] = _designed(rate, low, high, int(known.sum()))
    return found


def pooled(case: Case) -> list[Estimate]:
    """The main evaluator's threshold with zero bias on all labels: the fair opponent, as it uses the same labels."""
    corpus, rows = case.corpus, case.rows
    found = _without_labels(case)
    if not len(rows):
        return found
    threshold = pooled_threshold(corpus.score[0, rows], corpus.error[rows], case.weights)
    rates = threshold_rates(corpus.score[0], threshold, corpus.system, len(corpus.systems))
    if np.isnan(threshold):
        return [Estimate(reason=f"no labelled {corpus.level} has a score of {corpus.evaluators[0]}")] * len(rates)
    reason = f"one threshold for all systems, {threshold:.3g}; no interval: how far off it is for one is not known"
    for at, rate in enumerate(rates):
        if case.n_labels[at] or case.settings.transfer:
            found[at] = Estimate(float(rate), reason=reasons([reason, _unscored(case, at)]))
    return found


def raw(case: Case) -> list[Estimate]:
    """What the main evaluator predicts."""
    corpus = case.corpus
    rates = raw_rates(corpus.prediction[0], corpus.system, len(corpus.systems))
    reason = "as predicted; no interval: how far off it is is not known"
    return [
        Estimate(float(rate), reason=reasons([reason, _unscored(case, at)]))
        if not np.isnan(rate)
        else Estimate(reason=f"{corpus.evaluators[0]} scored none of its {corpus.level}s")
        for at, rate in enumerate(rates)
    ]


def ppi(case: Case) -> list[Estimate]:
    """PPI with the main evaluator's predictions, each system by itself."""
    return _ppi(case, tune=False)


def ppi_tuned(case: Case) -> list[Estimate]:
    """PPI++."""
    return _ppi(case, tune=True)


def _ppi(case: Case, tune: bool) -> list[Estimate]:
    found = _without_labels(case, borrow=False)
    corpus = case.corpus
    weight = np.zeros(len(corpus.error))
    weight[case.rows] = case.weights
    guess = np.where(corpus.prediction[0] >= 0, 1.0 - corpus.prediction[0], np.nan)
    for at in np.flatnonzero(case.n_labels):
        mine = corpus.system == at
        # Any guess will do for an unscored claim: what it gets wrong, the labels tell.
        filled = np.where(np.isnan(guess), np.nanmean(guess[mine]) if (~np.isnan(guess[mine])).any() else 0.5, guess)
        known, rest = mine & corpus.labelled, mine & ~corpus.labelled
        if not rest.any():
            found[at] = Estimate(reason="all its claims are labelled: nothing is left to predict")
            continue
        rate, low, high = ppi_mean(
            corpus.error[known], filled[known], filled[rest], weight[known], tune, case.settings.confidence
        )
        rate, low, high = np.clip([rate, low, high], 0, 1)
        found[at] = _designed(rate, low, high, int(known.sum()))
    return found


def rogan(case: Case) -> list[Estimate]:
    """Rogan & Gladen with TPR and TNR from the labels of all systems; refused where they may be those of chance."""
    corpus, rows = case.corpus, case.rows
    prediction = corpus.prediction[0]
    used = prediction[rows] >= 0
    known = confusion(corpus.error[rows][used], prediction[rows][used], case.weights[used])
    found = _without_labels(case)
    n = np.bincount(corpus.system[prediction >= 0], minlength=len(corpus.systems))
    rates = raw_rates(prediction, corpus.system, len(corpus.systems))
    for at in range(len(corpus.systems)):
        if not (case.n_labels[at] or case.settings.transfer):
            continue
        if not known.usable(case.settings.confidence) or np.isnan(rates[at]):
            reason = f"the labels do not show that {corpus.evaluators[0]} does better than chance: not identified"
            found[at] = Estimate(reason=reason)
            continue
        found[at] = Estimate(*rogan_gladen(float(rates[at]), int(n[at]), known, case.settings.confidence))
    return found


METHODS: dict[str, Callable[[Case], list[Estimate]]] = {
    "hierarchical": hierarchical,
    "regression-ppi": regression_ppi,
    "labels": labels,
    "pooled-threshold": pooled,
    "raw": raw,
    "ppi": ppi,
    "ppi++": ppi_tuned,
    "rogan-gladen": rogan,
}
#: Those that are given side by side; the others on demand, to compare with.
DEFAULT_METHODS = tuple(METHODS)[:5]


def _without_labels(case: Case, borrow: bool = True) -> list[Estimate]:
    """What a system without labels of its own gets; ``borrow``: the method could take its rate from other systems."""
    way = "; --transfer gives the rate that other systems' labels suggest" if borrow and len(case.rows) else ""
    return [Estimate(reason=f"no label of its own{way}")] * len(case.corpus.systems)


def _few(n: int) -> str:
    few = f"fewer than {MIN_LABELS} labels ({n}): the pooled threshold is as good on half of the sets measured"
    return few if n < MIN_LABELS else ""


def _designed(rate: float, low: float, high: float, n: int) -> Estimate:
    if n < MIN_DESIGN:
        return Estimate(float(rate), reason=f"no interval: {count(n, 'label')}, fewer than {MIN_DESIGN}")
    return Estimate(float(rate), float(low), float(high))


def _unscored(case: Case, at: int) -> str:
    corpus = case.corpus
    n = int((corpus.prediction[0, corpus.system == at] < 0).sum())
    return f"{count(n, corpus.level)} unscored" if n else ""
