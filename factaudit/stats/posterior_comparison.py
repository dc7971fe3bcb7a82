"""Posterior summaries of S systems from joint draws of their error rates: intervals, ranks, the
lowest rate, pairs."""

from __future__ import annotations

import numpy as np
import scipy


def posterior_interval(
    draws: np.ndarray, confidence: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, low and high over the first axis of (D, ...) draws: equal tails; the mean is kept
    inside the interval.

    >>> mean, low, high = posterior_interval(np.linspace(0, 1, 1001), 0.9)
    >>> f"{mean:.2f} ({low:.2f} to {high:.2f})"
    '0.50 (0.05 to 0.95)'
    """
    tail = (1 - confidence) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return np.clip(draws.mean(0), low, high), low, high


def rank_posterior_draws(
    draws: np.ndarray, confidence: float
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Of S systems the probability of the lowest rate, and the rank (1 is lowest): mean, low, high;
    (S,) each.

    draws: (D, S) of their error rates. Of equal rates in a draw each is the best with an equal
    share, and has the mean of their ranks.

    >>> draws = np.array([[0.1, 0.2], [0.1, 0.3], [0.2, 0.1], [0.1, 0.1]])
    >>> p_best, (rank, _, _) = rank_posterior_draws(draws, 0.95)
    >>> p_best.tolist(), rank.tolist()
    ([0.625, 0.375], [1.375, 1.625])
    """
    best = draws == draws.min(1, keepdims=True)
    ranks = scipy.stats.rankdata(draws, axis=1)
    return (best / best.sum(1, keepdims=True)).mean(0), posterior_interval(ranks, confidence)


def wrong_direction_probabilities(differences: np.ndarray) -> np.ndarray:
    """P(the difference has the other sign than the mean of its draws), to call pairs by: (n,).

    differences: (D, n) draws. It is the share of the draws with the other sign or, where that is
    larger, the tail of a normal distribution with their mean and standard deviation: of many pairs
    some are called that are surer than D draws can tell.

    >>> draws = np.random.default_rng(0).normal([0.02, -0.05], 0.01, (1000, 2))
    >>> wrong_direction_probabilities(draws).round(7).tolist()
    [0.027, 1e-07]
    """
    mean, deviation = differences.mean(0), differences.std(0)
    wrong = np.where(mean < 0, differences > 0, differences < 0)
    share = wrong.mean(0) + (differences == 0).mean(0) / 2
    tail = scipy.special.ndtr(-np.abs(mean) / np.maximum(deviation, np.finfo(float).tiny))
    larger: np.ndarray = np.maximum(share, tail)
    return larger


def select_directed_pairs(
    p_wrong: np.ndarray, max_wrong_share: float, max_p_wrong: float
) -> np.ndarray:
    """The pairs to call, so that a bounded share of them is expected in the wrong direction: bool
    (n,).

    p_wrong: (n,), the posterior probability that a pair's direction is the other one;
    max_wrong_share: bound of the directional false discovery rate (Benjamini & Yekutieli 2005);
    max_p_wrong: of each pair's. The mean p_wrong of the pairs called is no such bound where all are
    nearly equal: a few of many pairs look sure by chance.

    >>> select_directed_pairs(np.array([0.02, 0.001, 0.3, 0.026]), 0.05, 0.025).tolist()
    [True, True, False, False]
    """
    # Benjamini & Hochberg's adjusted p-values.
    adjusted = scipy.stats.false_discovery_control(p_wrong)
    called: np.ndarray = (adjusted <= max_wrong_share) & (p_wrong <= max_p_wrong)
    return called
