"""The variance of each system's error rate from one set of documents to the next."""

from __future__ import annotations

import numpy as np


def superpopulation_variance(p: np.ndarray, system: np.ndarray, document: np.ndarray, n_systems: int) -> np.ndarray:
    """The variance of the mean label of each system over documents drawn at random: float64 (S,).

    p: float64 (N,), P(error) of each claim; system, document: int (N,), codes from 0. The variance of the sum of p over
    documents plus that of the labels given p, over the squared number of claims. It is added to the sampling variance
    where the rate of the population is estimated and not that of these claims (Särndal, Swensson & Wretman 1992).

    Four documents of one claim, each an error with probability 1/2: the binomial variance of a share of four.

    >>> superpopulation_variance(np.full(4, 0.5), np.zeros(4, int), np.arange(4), 1).tolist()
    [0.0625]
    """
    sizes = np.maximum(np.bincount(system, minlength=n_systems), 1)
    mean = np.bincount(system, p, minlength=n_systems) / sizes
    code = np.unique(system * (int(document.max()) + 1) + document, return_inverse=True)[1]
    system_of_code = np.zeros(int(code.max()) + 1, dtype=np.int64)
    system_of_code[code] = system
    between = np.bincount(system_of_code, np.bincount(code, p - mean[system]) ** 2, minlength=n_systems)
    within = np.bincount(system, p * (1 - p), minlength=n_systems)
    variance: np.ndarray = (between + within) / sizes**2
    return variance
