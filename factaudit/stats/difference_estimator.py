"""The difference estimator of a rate: the mean prediction plus the mean residual of the labels (Särndal et al. 1992).

With predictions of a regression this is the estimator of prediction-powered inference (Angelopoulos et al. 2023), with
variances of the stratified design that the labels were drawn by.
"""

from __future__ import annotations

import numpy as np
import scipy

from factaudit.stats.stratified_sampling import StratifiedDraw, cluster_design_effect, estimate_stratified_mean


def difference_estimate(
    draw: StratifiedDraw,
    error: np.ndarray,
    guess: np.ndarray,
    mean_guess: float,
    n_claims: int,
    cluster: np.ndarray,
    confidence: float,
    population_variance: float = 0.0,
) -> tuple[float, float, float]:
    """Rate, low and high of one system, clipped to [0, 1].

    draw: of that system alone; error: float64 (n,), 1, 0 or NaN where a drawn claim got no label; guess: float64 (n,),
    P(error) of the drawn claims, predicted without their labels; mean_guess: over all ``n_claims`` claims of the
    system; cluster: (n,), equal where labels may be alike; population_variance: of the rate itself, 0 for this corpus.

    Predictions of 0.2 for all claims, and labels that hold 30 % errors:

    >>> draw = StratifiedDraw(np.arange(50), np.zeros(50, int), np.zeros(50, int), np.full(50, 1000))
    >>> error = np.repeat([1.0, 0.0], [15, 35])
    >>> rate, low, high = difference_estimate(draw, error, np.full(50, 0.2), 0.2, 1000, np.arange(50), 0.95)
    >>> f"{rate:.2f} ({low:.2f} to {high:.2f})"
    '0.30 (0.18 to 0.42)'
    """
    residual = error - guess
    known = ~np.isnan(residual)
    mean = estimate_stratified_mean(draw, residual, guess * (1 - guess), n_claims)
    spread = cluster_design_effect((residual - mean.value)[known], cluster[known])
    # Where all is labelled the rate is a count: the predictions play no part.
    middle = float(error.mean()) if known.sum() == n_claims else mean_guess + mean.value
    half = scipy.special.ndtri((1 + confidence) / 2) * np.sqrt(mean.variance * spread + population_variance)
    rate, low, high = np.clip(middle + half * np.array([0, -1, 1]), 0, 1)
    return float(rate), float(low), float(high)
