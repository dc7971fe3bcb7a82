"""Prediction-powered inference of a mean, to compare with (Angelopoulos et al. 2023; PPI++: arXiv:2311.01453).

With few labels a system its normal interval covers far less than it says: the tuned λ and the variances are of the same
few labels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri


def ppi_mean(
    error: np.ndarray,
    guess: np.ndarray,
    rest: np.ndarray,
    weight: np.ndarray | None = None,
    tune: bool = False,
    confidence: float = 0.95,
) -> tuple[float, float, float]:
    """Estimate, low and high of a mean (not clipped) from labels and guesses.

    error, guess: (n,), of the labelled claims; rest: (N,), guesses of the others; weight: (n,), of the labelled ones
    (their mean is made 1); tune: PPI++, λ of least variance in [0, 1], else λ = 1.
    """
    weight = np.ones(len(error)) if weight is None else weight / weight.mean()
    tuning = _tuned(error, guess, rest, weight) if tune else 1.0
    rectifier = weight * (error - tuning * guess)
    estimate = tuning * rest.mean() + rectifier.mean()
    variance = tuning**2 * rest.var() / len(rest) + rectifier.var() / len(error)
    half = ndtri((1 + confidence) / 2) * np.sqrt(variance)
    return float(estimate), float(estimate - half), float(estimate + half)


def _tuned(error: np.ndarray, guess: np.ndarray, rest: np.ndarray, weight: np.ndarray) -> float:
    n, total = len(error), len(rest)
    centre = rest.mean() + (weight * (error - guess)).mean()
    labelled, guessed = weight * (error - centre), weight * (guess - centre)
    together = np.concatenate([guessed, rest - centre])
    spread = together.var(ddof=1)
    if spread == 0:
        return 0.0
    covariance = ((labelled - labelled.mean()) * (guessed - guessed.mean())).mean()
    return float(np.clip(covariance / ((1 + n / total) * spread), 0, 1))
