"""Scores of responses and their means: the length penalty, and a mean with its interval over responses.

A response's share is supported facts / facts. A fact without a verdict counts as not supported, so that a failed call
never raises a score; bounds say what it hides. Where nothing was asked (no page, no candidate) there is no share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from factaudit.errors import UsageError
from factaudit.stats.bounded_means import bounded_change_interval, bounded_mean_interval
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.influence import interval, mean
from factaudit.stats.undefined_values import none_if_undefined

#: Responses of fewer facts than this are penalised (Min et al. 2023, its code).
DEFAULT_GAMMA = 10.0


def response_length_penalty(n_facts: int, gamma: float = DEFAULT_GAMMA) -> float:
    """exp(1 - γ/n) where n < γ, else 1; 0 at n = 0 (its limit), 1 everywhere where γ is 0."""
    if gamma < 0:
        raise UsageError(f"gamma is at least 0, found {gamma:g}")
    if n_facts >= gamma:
        return 1.0
    return math.exp(1 - gamma / n_facts) if n_facts else 0.0


def mean_of_defined(values: Iterable[float | None] | np.ndarray) -> float | None:
    """The mean of what is defined; None of nothing."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def response_mean_with_interval(
    key: str, values: Sequence[float | None], intervals: ClusterBootstrap | None
) -> dict[str, float | None]:
    """``key``, ``key_low`` and ``key_high``: the mean of the scores, in [0, 1], that are defined, with its interval.

    No interval where responses have one value: `explain_missing_mean_intervals`.
    """
    return _average_with_interval(key, values, intervals, bounded_mean_interval)


def response_change_with_interval(
    key: str, values: Sequence[float | None], intervals: ClusterBootstrap | None, least: float = -1
) -> dict[str, float | None]:
    """`response_mean_with_interval` of changes: one score of each response less another, in [-1, 1].

    least: the least change that a response can have, and so the least that their mean can be.
    """
    return _average_with_interval(key, values, intervals, bounded_change_interval, least)


def response_count_with_interval(
    key: str, values: Sequence[float | None], intervals: ClusterBootstrap | None, least: float = 0
) -> dict[str, float | None]:
    """`response_mean_with_interval` of counts, such as how many people a response tells of.

    least: the least count that a response can have, and so the least that their mean can be.
    """
    return _average_with_interval(key, values, intervals, _mean_count_interval, least)


def _mean_count_interval(counts: np.ndarray, confidence: float) -> tuple[float | None, float | None]:
    low, high = interval(mean(counts), np.arange(len(counts)), "log", confidence)
    return none_if_undefined(low), none_if_undefined(high)


def _average_with_interval(
    key: str,
    values: Sequence[float | None],
    intervals: ClusterBootstrap | None,
    mean_interval: Callable[[np.ndarray, float], tuple[float | None, float | None]],
    least: float | None = None,
) -> dict[str, float | None]:
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    mean = float(known.mean()) if len(known) else None
    low, high = mean_interval(known, intervals.confidence) if intervals is not None else (None, None)
    if least is not None and mean is not None and low is not None:
        low = max(low, min(mean, least))
    return {key: mean, f"{key}_low": low, f"{key}_high": high}


def explain_missing_mean_intervals(
    row: Mapping[str, Any], keys: Iterable[str], intervals: ClusterBootstrap | None
) -> str:
    """Why means of `response_mean_with_interval` have no interval, though intervals were asked for; "" where all have.

    >>> row = {"score": 1.0, "score_low": None, "gap": None, "gap_low": None}
    >>> explain_missing_mean_intervals(row, ["score", "gap"], ClusterBootstrap())
    'no interval for score: its responses are fewer than two, or all have the same value'
    """
    lacking = [key for key in keys if row[key] is not None and row[f"{key}_low"] is None]
    if intervals is None or not lacking:
        return ""
    return f"no interval for {', '.join(lacking)}: its responses are fewer than two, or all have the same value"


def response_share_with_interval(
    key: str, values: Sequence[bool | None], intervals: ClusterBootstrap | None
) -> dict[str, float | None]:
    """``key``, ``key_low`` and ``key_high``: the share of the responses in which something is so, Wilson's interval.

    It has a width where all responses, or none, are so; one that is not known does not count.
    """
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    n, share = len(known), mean_of_defined(known)
    ends: Sequence[float | None] = (None, None)
    if share is not None and intervals is not None:
        found = wilson_interval(np.array(share), np.array(n), np.array(n - 1), intervals.confidence)
        ends = [none_if_undefined(end) for end in found]
    return {key: share, f"{key}_low": ends[0], f"{key}_high": ends[1]}
