"""The main evaluator's own error rates: as predicted, and with one threshold tuned on the labels of all systems."""

from __future__ import annotations

import numpy as np

from factaudit.audit.core.rows import ratio


def raw_rates(prediction: np.ndarray, system: np.ndarray, n_systems: int) -> np.ndarray:
    """The share of each system's scored claims predicted 0: (S,), NaN where none is scored. prediction: 1, 0 or -1."""
    errors = np.bincount(system[prediction == 0], minlength=n_systems)
    return ratio(errors, np.bincount(system[prediction >= 0], minlength=n_systems))


def pooled_threshold(score: np.ndarray, error: np.ndarray, weight: np.ndarray) -> float:
    """The threshold with zero bias on the labels of all systems together; NaN where no labelled claim has a score.

    score, error, weight: (n,), of the labelled claims. Candidates are midpoints between neighbouring scores and both
    ends; of equally good ones the nearest to 0.5. A claim is predicted an error where its score is not above it.
    """
    known = ~np.isnan(score)
    if not known.any():
        return np.nan
    score, error, weight = score[known], error[known], weight[known]
    order = np.argsort(score, kind="stable")
    score, weight = score[order], weight[order]
    values, first = np.unique(score, return_index=True)
    lowest = -1.0 if values[0] == 0 else 0.0
    candidates = np.concatenate([[lowest], (values[:-1] + values[1:]) / 2, [1.0]])
    below = np.append(0, np.cumsum(weight))[np.append(first, len(score))]
    loss = np.abs(below - weight @ error[order])
    best = np.flatnonzero(loss <= loss.min() + 1e-12 * weight.sum())
    return float(candidates[best[np.abs(candidates[best] - 0.5).argmin()]])


def threshold_rates(score: np.ndarray, threshold: float, system: np.ndarray, n_systems: int) -> np.ndarray:
    """The share of each system's scored claims that are not above a threshold: (S,)."""
    known = ~np.isnan(score)
    errors = np.bincount(system[known & (score <= threshold)], minlength=n_systems)
    return ratio(errors, np.bincount(system[known], minlength=n_systems))
