"""Scores of responses and their means: the length penalty, a response's share, intervals over responses.

A response's share is supported facts / facts. A fact without a verdict counts as not supported, so that a failed call
never raises a score; bounds say what it hides. Where nothing was asked (no page, no candidate) there is no share.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.rows import Row
from factaudit.errors import UsageError

#: Responses of fewer facts than this are penalised (Min et al. 2023, its code).
GAMMA = 10.0


def penalty(n_facts: int, gamma: float = GAMMA) -> float:
    """exp(1 - γ/n) where n < γ, else 1; 0 at n = 0 (its limit), 1 everywhere where γ is 0."""
    if gamma < 0:
        raise UsageError(f"gamma is at least 0, found {gamma:g}")
    if n_facts >= gamma:
        return 1.0
    return math.exp(1 - gamma / n_facts) if n_facts else 0.0


def mean(values: Iterable[float | None] | np.ndarray) -> float | None:
    """The mean of what is defined; None of nothing."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def bootstrap_mean(
    values: Sequence[float] | np.ndarray, intervals: Intervals | None
) -> tuple[float | None, float | None]:
    """A percentile interval of the mean, resampling the values; (None, None) from fewer than two, or without intervals.

    >>> bootstrap_mean([0.5], Intervals())
    (None, None)
    """
    if len(values) < 2 or intervals is None:
        return None, None
    draws = np.random.default_rng(intervals.seed).integers(0, len(values), (intervals.replicates, len(values)))
    return percentiles(np.asarray(values, dtype=np.float64)[draws].mean(axis=1), intervals)


def averaged(key: str, values: Sequence[float | None], intervals: Intervals | None) -> Row:
    """``key``, ``key_low`` and ``key_high``: the mean of what is defined, with its interval over responses."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    low, high = bootstrap_mean(known, intervals)
    return {key: float(known.mean()) if len(known) else None, f"{key}_low": low, f"{key}_high": high}


def percentiles(values: np.ndarray, intervals: Intervals) -> tuple[float | None, float | None]:
    """The interval of replicates (r,); a draw that is NaN (of equal scores, of one class) says nothing of it."""
    known = values[~np.isnan(values)]
    if not len(known):
        return None, None
    tail = (1 - intervals.confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail])
    return float(low), float(high)
