"""The noise floor of merged responses: how many a verifier's errors alone would make look merged.

A verifier that calls a false cell supported with probability f makes a response look merged when it does so in any of
the m cells that could: with probability 1 - (1 - f)^m. f is measured on cells that are known to be false.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined


@dataclass(frozen=True)
class NoiseFloor:
    """false_positive_rate (f), floor (the expected share of merged responses by noise alone) and excess (the observed
    share less the floor), in [0, 1]; intervals: the low and high end of each in this order, None where there is none.
    """

    false_positive_rate: float
    floor: float
    excess: float
    intervals: tuple[tuple[float | None, float | None], ...]


def estimate_noise_floor(
    is_merged: np.ndarray,
    n_open: np.ndarray,
    false_cells: np.ndarray,
    bootstrap: ClusterBootstrap | None = None,
    false_positive_rate: float | None = None,
) -> NoiseFloor | None:
    """The noise floor of R responses, over those that are decided; None where none is, or f cannot be measured.

    is_merged: float (R,), 1, 0, NaN where undecided. n_open: int (R,), m above. false_cells: int (2, R), the cells of
    each response that are known to be false, and those of them that the verifier calls supported.
    false_positive_rate: f, where it is known from elsewhere.

    Intervals: responses are resampled, and f is drawn from its posterior (Jeffreys' prior, Beta(1/2, 1/2)), so that no
    error among few cells does not mean that there is none. A given f is not drawn. Of few responses a bootstrap ends
    too early (with none merged, at no excess): the excess's holds Wilson's interval of the observed share, too, less
    the floor.

    >>> found = estimate_noise_floor(np.array([1, 0, np.nan]), np.array([2, 0, 5]), np.array([[5, 5, 0], [1, 0, 0]]))
    >>> found.false_positive_rate, round(found.floor, 3), round(found.excess, 3)
    (0.1, 0.095, 0.405)
    """
    decided = ~np.isnan(is_merged)
    n_false = false_cells[0].sum()
    if not decided.any() or (false_positive_rate is None and not n_false):
        return None
    rate = float(false_cells[1].sum() / n_false) if false_positive_rate is None else false_positive_rate
    merged, n_open = np.nan_to_num(is_merged), n_open.astype(np.float64)
    floor = float((1 - (1 - rate) ** n_open[decided]).mean())
    share, size = float(merged[decided].mean()), len(merged)
    excess = share - floor
    if bootstrap is None or size < 2:
        return NoiseFloor(rate, floor, excess, ((None, None),) * 3)
    random = np.random.default_rng(bootstrap.seed)
    weights = random.multinomial(size, np.full(size, 1 / size), bootstrap.replicates)
    rates = np.full(len(weights), rate)
    if false_positive_rate is None:
        n, hits = false_cells @ weights.T
        rates = random.beta(hits + 0.5, n - hits + 0.5)
    weights = weights * decided
    total = weights.sum(1)
    floors = divide_or_undefined((weights * (1 - (1 - rates[:, None]) ** n_open)).sum(1), total)
    excesses = divide_or_undefined(weights @ merged, total) - floors
    rates[total == 0] = np.nan
    intervals = []
    for point, drawn in zip((rate, floor, excess), (rates, floors, excesses), strict=True):
        low, high = map(none_if_undefined, bootstrap.percentile_ends(drawn))
        # Jeffreys' posterior never has f at 0 or 1; its interval is taken to reach a rate that is there.
        if low is not None and high is not None:
            low, high = min(low, point), max(high, point)
        intervals.append((low, high))
    n_decided = np.array(int(decided.sum()))
    ends = [float(end) for end in wilson_interval(np.array(share), n_decided, n_decided - 1, bootstrap.confidence)]
    low, high = intervals[-1]
    if low is not None and high is not None and n_decided > 1:
        intervals[-1] = min(low, ends[0] - floor), max(high, ends[1] - floor)
    return NoiseFloor(rate, floor, excess, tuple(intervals))
