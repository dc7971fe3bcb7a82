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
    weight = weight / weight.mean()
    tuning = _power_tuning_weight(error, labelled_guess, unlabelled_guess, weight) if power_tuning else 1.0
    rectifier = weight * (error - tuning * labelled_guess)
    estimate = tuning * unlabelled_guess.mean() + rectifier.mean()
    variance = tuning**2 * unlabelled_guess.var() / len(unlabelled_guess) + rectifier.var() / len(error)
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(variance)
    return float(estimate), float(estimate - half), float(estimate + half)


def _power_tuning_weight(
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
