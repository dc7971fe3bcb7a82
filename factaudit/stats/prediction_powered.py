"""Prediction-powered inference of a mean (Angelopoulos et al. 2023; PPI++: arXiv:2311.01453), to compare with.

With few labels its normal interval covers far less than it says: λ and the variances come from the same few labels.
"""

from __future__ import annotations

import numpy as np
import scipy


def prediction_powered_mean(
    error: np.ndarray,
    labelled_guess: np.ndarray,
    unlabelled_guess: np.ndarray,
    weight: np.ndarray,
    power_tuning: bool = False,
    confidence: float = 0.95,
) -> tuple[float, float, float]:
    """Estimate, low and high of a mean (not clipped) from labels and guesses.

    error, labelled_guess, weight: float64 (n,), of the labelled claims (the weights are divided by their mean);
    unlabelled_guess: float64 (N,), of the others; power_tuning: PPI++, with the λ of least variance in [0, 1], else
    PPI, λ = 1. As `ppi_py.ppi_mean_ci`.

    The guesses miss one of three errors among ten labels, and call 20 of 100 other claims errors:

    >>> error, guess = np.repeat([1.0, 0.0], [3, 7]), np.repeat([1.0, 0.0], [2, 8])
    >>> rate, low, high = prediction_powered_mean(error, guess, np.repeat([1.0, 0.0], [20, 80]), np.ones(10))
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.30 (0.10 to 0.50)'
    """
    estimate, variance = _estimate_prediction_powered_mean(
        error, labelled_guess, unlabelled_guess, weight, power_tuning
    )
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(variance)
    return float(estimate), float(estimate - half), float(estimate + half)


def stratified_prediction_powered_mean(
    error: np.ndarray,
    labelled_guess: np.ndarray,
    unlabelled_guess: np.ndarray,
    weight: np.ndarray,
    labelled_stratum: np.ndarray,
    unlabelled_stratum: np.ndarray,
    confidence: float = 0.95,
) -> tuple[float, float, float]:
    """Estimate, low and high of a mean (not clipped) by PPI++ within strata (Fisch et al. 2024, arXiv:2406.04291).

    The arguments are those of `prediction_powered_mean`, and the stratum of each claim, codes from 0: int (n,) and
    (N,). Each stratum has a λ of its own, and counts by its share of all n + N claims. Raises `ValueError` for a
    stratum that has a claim and no label.

    >>> error, guess = np.repeat([1.0, 0.0], [3, 7]), np.repeat([1.0, 0.0], [2, 8])
    >>> labelled, rest = np.repeat([0, 1], [4, 6]), np.repeat([0, 1], [30, 70])
    >>> found = stratified_prediction_powered_mean(
    ...     error, guess, np.repeat([1.0, 0.0], [20, 80]), np.ones(10), labelled, rest
    ... )
    >>> "{:.2f} ({:.2f} to {:.2f})".format(*found)
    '0.26 (0.15 to 0.37)'
    """
    estimate = variance = 0.0
    for stratum in np.unique(np.concatenate([labelled_stratum, unlabelled_stratum])):
        known, rest = labelled_stratum == stratum, unlabelled_stratum == stratum
        if not known.any():
            raise ValueError(f"stratum {stratum} has no label")
        share = (known.sum() + rest.sum()) / (len(error) + len(unlabelled_guess))
        if not rest.any():
            estimate += share * error[known].mean()
            continue
        part, spread = _estimate_prediction_powered_mean(
            error[known], labelled_guess[known], unlabelled_guess[rest], weight[known], power_tuning=True
        )
        estimate += share * part
        variance += share**2 * spread
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(variance)
    return float(estimate), float(estimate - half), float(estimate + half)


def _estimate_prediction_powered_mean(
    error: np.ndarray, labelled_guess: np.ndarray, unlabelled_guess: np.ndarray, weight: np.ndarray, power_tuning: bool
) -> tuple[float, float]:
    """The mean and its variance."""
    weight = weight / weight.mean()
    tuning = _fit_prediction_power_tuning(error, labelled_guess, unlabelled_guess, weight) if power_tuning else 1.0
    rectifier = weight * (error - tuning * labelled_guess)
    estimate = tuning * unlabelled_guess.mean() + rectifier.mean()
    variance = tuning**2 * unlabelled_guess.var() / len(unlabelled_guess) + rectifier.var() / len(error)
    return float(estimate), float(variance)


def _fit_prediction_power_tuning(
    error: np.ndarray, labelled_guess: np.ndarray, unlabelled_guess: np.ndarray, weight: np.ndarray
) -> float:
    n, total = len(error), len(unlabelled_guess)
    centre = unlabelled_guess.mean() + (weight * (error - labelled_guess)).mean()
    labelled, guessed = weight * (error - centre), weight * (labelled_guess - centre)
    together = np.concatenate([guessed, unlabelled_guess - centre])
    spread = together.var(ddof=1)
    if spread == 0:
        return 0.0
    covariance = ((labelled - labelled.mean()) * (guessed - guessed.mean())).mean()
    return float(np.clip(covariance / ((1 + n / total) * spread), 0, 1))
