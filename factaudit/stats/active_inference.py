"""Active statistical inference of a mean (Zrnic & Candès 2024, arXiv:2403.03208), to compare with.

Claims are labelled with probabilities that grow with the evaluator's uncertainty; each label's correction of the
evaluator is weighted by one over its probability.
"""

from __future__ import annotations

import numpy as np
import scipy

#: The part of the labels that is drawn with equal probabilities: no claim's is too small.
UNIFORM_SHARE = 0.5


def uncertainty_sampling_probabilities(guess: np.ndarray, budget: float) -> np.ndarray:
    """The probability of each claim to be labelled, float64 (N,), where ``budget`` labels are expected.

    guess: float64 (N,), the evaluator's P(error); the uncertainty is √(p(1 − p)).

    >>> uncertainty_sampling_probabilities(np.array([0.5, 0.5, 0.02, 0.02]), 2).round(2).tolist()
    [0.64, 0.64, 0.36, 0.36]
    """
    uncertainty = np.sqrt(np.clip(guess * (1 - guess), 1e-4, None))
    wanted = UNIFORM_SHARE / len(guess) + (1 - UNIFORM_SHARE) * uncertainty / uncertainty.sum()
    probability = np.minimum(budget * wanted, 1.0)
    for _ in range(20):  # what is drawn for sure leaves the rest of the budget to others
        free = probability < 1
        missing = min(budget, len(guess)) - probability.sum()
        if missing < 1e-9 or not free.any():
            break
        probability[free] = np.minimum(probability[free] * (1 + missing / probability[free].sum()), 1.0)
    return probability


def active_inference_mean(
    error: np.ndarray, labelled_guess: np.ndarray, probability: np.ndarray, guess: np.ndarray, confidence: float = 0.95
) -> tuple[float, float, float]:
    """Estimate, low and high of a mean (not clipped).

    error, labelled_guess, probability: float64 (n,), of the labelled claims, the last one of being drawn; guess:
    float64 (N,), of all claims. The normal interval is that of independent draws.

    >>> error, guess = np.repeat([1.0, 0.0], [3, 7]), np.repeat([1.0, 0.0], [2, 8])
    >>> found = active_inference_mean(error, guess, np.full(10, 0.1), np.repeat([1.0, 0.0], [20, 80]))
    >>> "{:.2f} ({:.2f} to {:.2f})".format(*found)
    '0.30 (0.09 to 0.51)'
    """
    n_claims = len(guess)
    correction = (error - labelled_guess) / probability
    estimate = guess.mean() + correction.sum() / n_claims
    squares = ((guess - estimate) ** 2).sum() + ((labelled_guess + correction - estimate) ** 2).sum()
    squares -= ((labelled_guess - estimate) ** 2).sum()
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(squares / (n_claims - 1) / n_claims)
    return float(estimate), float(estimate - half), float(estimate + half)
