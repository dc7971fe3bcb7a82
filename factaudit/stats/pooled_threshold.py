"""One threshold for all systems that has zero bias on their labels together, and error rates with and without it."""

from __future__ import annotations

import numpy as np

from factaudit.stats.threshold_calibration import list_candidate_thresholds
from factaudit.stats.undefined_values import divide_or_undefined


def pooled_prediction_error_rates(prediction: np.ndarray, system: np.ndarray, n_systems: int) -> np.ndarray:
    """The share of each system's scored claims that are predicted 0: float64 (S,), NaN where none is scored.

    prediction: int (N,), 1, 0 or -1 where missing; system: int (N,), 0..n_systems-1.

    >>> pooled_prediction_error_rates(np.array([0, 1, -1, -1]), np.array([0, 0, 0, 1]), 2).tolist()
    [0.5, nan]
    """
    errors = np.bincount(system[prediction == 0], minlength=n_systems)
    return divide_or_undefined(errors, np.bincount(system[prediction >= 0], minlength=n_systems))


def fit_pooled_threshold(score: np.ndarray, error: np.ndarray, weight: np.ndarray) -> float:
    """The threshold with zero bias on the labels of all systems together; NaN where no labelled claim has a score.

    score (NaN where missing), error (1 or 0), weight: float64 (n,), of the labelled claims. Candidates are midpoints
    between neighbouring scores and both ends; of equally good ones the nearest to 0.5. A claim is predicted an error
    where its score is not above the threshold.

    >>> fit_pooled_threshold(np.array([0.1, 0.3, 0.5, 0.9]), np.array([1.0, 0, 1, 0]), np.ones(4))
    0.4
    """
    known = ~np.isnan(score)
    if not known.any():
        return np.nan
    score, error, weight = score[known], error[known], weight[known]
    order = np.argsort(score, kind="stable")
    score, weight = score[order], weight[order]
    values, first = np.unique(score, return_index=True)
    candidates = list_candidate_thresholds(values)
    below = np.append(0, np.cumsum(weight))[np.append(first, len(score))]
    loss = np.abs(below - weight @ error[order])
    best = np.flatnonzero(loss <= loss.min() + 1e-12 * weight.sum())
    return float(candidates[best[np.abs(candidates[best] - 0.5).argmin()]])


def error_rates_at_pooled_threshold(
    score: np.ndarray, threshold: float, system: np.ndarray, n_systems: int
) -> np.ndarray:
    """The share of each system's scored claims that are not above a threshold: float64 (S,), NaN where none is scored.

    score: float64 (N,), NaN where missing; system: int (N,), 0..n_systems-1.

    >>> error_rates_at_pooled_threshold(np.array([0.1, 0.6, np.nan, 0.9]), 0.5, np.array([0, 0, 0, 1]), 2).tolist()
    [0.5, 0.0]
    """
    known = ~np.isnan(score)
    errors = np.bincount(system[known & (score <= threshold)], minlength=n_systems)
    return divide_or_undefined(errors, np.bincount(system[known], minlength=n_systems))
