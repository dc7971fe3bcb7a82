"""Covariates of a regression from evaluators' scores: standardised logits, the part they share, and indicators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Scores are kept this far from 0 and 1 before their logit is taken.
_LOGIT_MARGIN = 0.001
#: Prior mean and standard deviation of the shared column's coefficient, and standard deviation of all others'.
SHARED_COVARIATE_PRIOR = (1.4, 1.2)
OTHER_COVARIATE_SD = 0.5
#: Standard deviation of the coefficients of columns that are 1 or 0: a lacking score, a stratum.
INDICATOR_COVARIATE_SD = 1.0
#: Systems' means of the shared column that differ by less than this (in standard deviations of claims) tell little.
_SYSTEM_MEAN_NOISE = 0.1


@dataclass(frozen=True)
class ScoreCovariates:
    """K covariates of N claims, values float64 (N, K), and the normal prior of each slope: prior_mean, prior_sd (K,).

    The first is what the evaluators share, with the main one counted double; greater means more likely an error.
    """

    values: np.ndarray
    prior_mean: np.ndarray
    prior_sd: np.ndarray
    names: tuple[str, ...]


def build_score_covariates(
    score: np.ndarray, evaluators: Sequence[str], strata: np.ndarray | None = None, system: np.ndarray | None = None
) -> ScoreCovariates:
    """Covariates of N claims from scores: float64 (E, N), support for the claim, NaN where missing; the main one first.

    An evaluator whose scores are all equal or all missing has no covariate. Where some scores of an evaluator are
    missing, the median stands in, and an indicator says for which claims: they may hold more or fewer errors. strata:
    int (N,), codes from 0; each value gets an indicator. system: int (N,), codes from 0; the mean of the shared column
    over each system's claims is a covariate, too: where scores tell errors in all systems alike, a system with more
    errors has more than its claims' own scores say (Mundlak 1978; Bafumi & Gelman 2006).

    >>> build_score_covariates(np.array([[0.9, 0.1, 0.5], [0.8, np.nan, 0.4]]), ["a", "b"]).names
    ('shared', 'a', 'b', 'b missing')
    """
    logits = [standardise_score_logits(row) for row in score]
    used = [at for at, column in enumerate(logits) if column is not None]
    x = [column for column in logits if column is not None]
    columns: list[tuple[str, np.ndarray, float, float]] = []
    if x:
        together = np.mean(x, axis=0)
        spread = together.std()
        together = together / spread if spread > 0 else together
        first = together if logits[0] is None else logits[0]
        shared = (together + first) / 2
        columns.append(("shared", shared, *SHARED_COVARIATE_PRIOR))
        if system is not None:
            mean = (np.bincount(system, shared) / np.maximum(np.bincount(system), 1))[system]
            if (spread := mean.std()) > 1e-9:
                mean = mean / np.hypot(spread, _SYSTEM_MEAN_NOISE)
                columns.append(("system mean", mean, 0.0, OTHER_COVARIATE_SD))
        if len(x) > 1:
            columns += [
                (evaluators[at], column - shared, 0.0, OTHER_COVARIATE_SD) for at, column in zip(used, x, strict=True)
            ]
    columns += [
        (f"{name} missing", missing - missing.mean(), 0.0, INDICATOR_COVARIATE_SD)
        for name, missing in zip(evaluators, np.isnan(score).astype(np.float64), strict=True)
        if 0 < missing.mean() < 1
    ]
    if strata is not None:
        for code in range(int(strata.max()) + 1):
            inside = (strata == code).astype(np.float64)
            columns.append((f"stratum {code}", inside - inside.mean(), 0.0, INDICATOR_COVARIATE_SD))
    values = np.stack([column for _, column, _, _ in columns], axis=1) if columns else np.zeros((score.shape[1], 0))
    return ScoreCovariates(
        values=values,
        prior_mean=np.array([mean for _, _, mean, _ in columns]),
        prior_sd=np.array([sd for _, _, _, sd in columns]),
        names=tuple(name for name, _, _, _ in columns),
    )


def standardise_score_logits(score: np.ndarray) -> np.ndarray | None:
    """logit(1 − score) with mean 0 and variance 1, missing ones at the median: float64 (N,); None where nothing varies.

    >>> standardise_score_logits(np.array([0.9, 0.1])).tolist()
    [-1.0, 1.0]
    """
    known = ~np.isnan(score)
    if not known.any():
        return None
    wrong = 1 - score
    np.clip(wrong, _LOGIT_MARGIN, 1 - _LOGIT_MARGIN, out=wrong)
    logit = np.log(wrong) - np.log1p(-wrong)
    logit[~known] = np.median(logit[known])
    spread = logit.std()
    return (logit - logit.mean()) / spread if spread > 1e-9 else None
