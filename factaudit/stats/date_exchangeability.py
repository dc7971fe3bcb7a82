"""Have verdicts or labels changed over dates? A test that may be looked at after each date, for ever.

Where nothing changes, dates are exchangeable: given all that a claim was ever judged, any of it might have come at the
last date. So the last date's sum over claims has a known distribution, and its p-value is uniform, whatever earlier
p-values were (as in conformal prediction: Vovk, Gammerman & Shafer 2005, ch. 7). A gambler bets that p-values become
small from some unknown date on. The capital is a martingale, and reaches 1/α in at most a share α of all runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Bets on p-values: each multiplies the capital by κ·p^(κ−1).
BET_POWERS = (0.1, 0.25, 0.5)
#: No p-value counts as less: what is computed from sums of many claims is not known more exactly.
LEAST_P = 1e-10
#: Random draws of dates that a p-value of clusters rests on.
N_DRAWS = 9999


@dataclass(frozen=True)
class DirectedPValues:
    """p-values of one date: that it is lower than dates before, and that it is higher."""

    lower: float
    higher: float


def repeated_units_p_value(scores: np.ndarray, random: np.random.Generator) -> DirectedPValues:
    """p-values of the last date of units that are all judged at each date.

    scores: int (K, T + 1), what each of K independent units (claims, or documents with all their claims) scores at each
    date, at least 0. For claims that are right or wrong at two dates, this is the sign test of those that changed.
    ``random`` breaks ties, which makes p-values uniform.

    Of 20 claims, all right at four dates, eight are wrong at the fifth:

    >>> scores = np.ones((20, 5), dtype=int)
    >>> scores[:8, 4] = 0
    >>> found = repeated_units_p_value(scores, np.random.default_rng(0))
    >>> found.lower < 0.001, found.higher > 0.999
    (True, True)
    """
    changing = scores[(scores != scores[:, :1]).any(1)]
    if not len(changing):
        tie = float(random.random())
        return DirectedPValues(tie, 1 - tie)
    most = int(changing.max(1).sum())
    # The distribution of a sum of independent numbers, by the product of their Fourier transforms.
    waves = np.exp(-2j * np.pi * np.arange(most + 1) / (most + 1))
    transform = np.ones(most + 1, dtype=complex)
    for unit, n_alike in zip(*np.unique(np.sort(changing, axis=1), axis=0, return_counts=True), strict=True):
        values, times = np.unique(unit, return_counts=True)
        transform *= ((times / len(unit)) @ waves[None] ** values[:, None]) ** n_alike
    mass = np.maximum(np.fft.ifft(transform).real, 0)
    observed = int(changing[:, -1].sum())
    tie = float(random.random()) * mass[observed]
    return DirectedPValues(float(mass[:observed].sum() + tie), float(mass[observed + 1 :].sum() + mass[observed] - tie))


def fresh_units_p_value(
    errors: np.ndarray, sizes: np.ndarray, is_last: np.ndarray, random: np.random.Generator
) -> DirectedPValues:
    """p-values of the last date where each date has units of its own: labels of new claims of a system.

    errors, sizes: int (K,), each independent unit's errors and labelled claims; is_last: bool (K,). By random draws of
    which units came last, without replacement.

    >>> errors, sizes = np.repeat([0, 1, 1], [80, 20, 20]), np.ones(120, dtype=int)
    >>> found = fresh_units_p_value(errors, sizes, np.arange(120) >= 90, np.random.default_rng(0))
    >>> found.lower > 0.999, found.higher < 0.001
    (True, True)
    """
    kinds, code = np.unique(np.stack([errors, sizes]), axis=1, return_inverse=True)
    times = np.bincount(code.ravel())
    drawn = random.multivariate_hypergeometric(times, int(is_last.sum()), size=N_DRAWS)
    own = np.bincount(code.ravel()[is_last], minlength=len(times))
    drawn_share, own_share = ((counts @ kinds[0]) / (counts @ kinds[1]) for counts in (drawn, own))
    below = int((drawn_share < own_share - 1e-12).sum())
    equal = int((abs(drawn_share - own_share) <= 1e-12).sum())
    lower = (below + random.random() * (equal + 1)) / (N_DRAWS + 1)
    return DirectedPValues(float(lower), float(1 - lower))


def change_capital(p_values: Sequence[float]) -> np.ndarray:
    """The capital after each date of bets that p-values become small at some date: float64 (T,).

    The date has a prior of 1/(t(t + 1)). What is not bet yet is kept.

    >>> change_capital([0.5, 0.4, 1e-6, 0.01]).round(1).tolist()
    [0.7, 0.6, 1990.2, 13586.9]
    """
    kept = np.ones(())
    running = np.zeros(len(BET_POWERS))
    found = []
    powers = np.array(BET_POWERS)
    for at, p in enumerate(p_values, start=1):
        share = 1 / (at * (at + 1))
        kept = kept - share
        running = (running + share / len(powers)) * powers * max(p, LEAST_P) ** (powers - 1)
        found.append(float(kept + running.sum()))
    return np.array(found)
