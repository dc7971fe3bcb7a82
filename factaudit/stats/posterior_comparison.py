"""Posterior summaries of S systems from joint draws of their error rates: intervals, ranks, the lowest rate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def posterior_interval(draws: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, low and high over the first axis of (D, ...) draws: equal tails; the mean is kept inside the interval.

    >>> mean, low, high = posterior_interval(np.linspace(0, 1, 1001), 0.9)
    >>> f"{mean:.2f} ({low:.2f} to {high:.2f})"
    '0.50 (0.05 to 0.95)'
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return np.clip(draws.mean(0), low, high), low, high


@dataclass(frozen=True)
class PosteriorRanks:
    """Of S systems, each (S,): the probability of the lowest rate, the mean rank (1 is lowest), its low and high."""

    p_best: np.ndarray
    rank: np.ndarray
    low: np.ndarray
    high: np.ndarray


def rank_posterior_draws(draws: np.ndarray, confidence: float) -> PosteriorRanks:
    """Rank S systems within each of (D, S) draws of their error rates.

    Of equal rates in a draw each is the best with an equal share, and has the mean of their ranks.

    >>> ranks = rank_posterior_draws(np.array([[0.1, 0.2], [0.1, 0.3], [0.2, 0.1], [0.1, 0.1]]), 0.95)
    >>> ranks.p_best.tolist(), ranks.rank.tolist()
    ([0.625, 0.375], [1.375, 1.625])
    """
    best = draws == draws.min(1, keepdims=True)
    below = (draws[:, None, :] < draws[:, :, None]).sum(-1)
    equal = (draws[:, None, :] == draws[:, :, None]).sum(-1)
    return PosteriorRanks(
        (best / best.sum(1, keepdims=True)).mean(0), *posterior_interval(below + (equal + 1) / 2, confidence)
    )
