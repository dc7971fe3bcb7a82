"""Scores of responses and their means: the length penalty, and a mean with its interval over
responses.

A response's share is supported facts / facts. A fact without a verdict counts as not supported, so
that a failed call never raises a score; bounds say what it hides. Where nothing was asked (no page,
no candidate) there is no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from factaudit.errors import UsageError
from factaudit.stats.bounded_means import bounded_change_interval, bounded_mean_interval
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import wilson_interval
from factaudit.stats.influence import interval as influence_interval
from factaudit.stats.influence import mean as mean_statistic
from factaudit.stats.undefined_values import name_ends

#: Responses of fewer facts than this are penalised (Min et al. 2023, its code).
DEFAULT_GAMMA = 10.0

#: From values, a confidence and the values' clusters to the two ends of an interval of their mean.
MeanInterval = Callable[[np.ndarray, float, np.ndarray], Iterable[float | None]]


def length_penalty(n_facts: Any, gamma: float = DEFAULT_GAMMA) -> np.ndarray:
    """exp(1 - γ/n) where n < γ, else 1; 0 at n = 0 (its limit), 1 everywhere where γ is 0.

    >>> length_penalty([5, 10, 0]).round(3).tolist()
    [0.368, 1.0, 0.0]
    """
    if gamma < 0:
        raise UsageError(f"gamma is at least 0, found {gamma:g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.exp(np.minimum(1 - gamma / np.asarray(n_facts, dtype=float), 0))
    return np.nan_to_num(penalty, nan=1.0)


def mean_of_defined(values: Iterable[float | None] | np.ndarray) -> float | None:
    """The mean of what is neither None nor NaN; None of nothing."""
    known = np.array([value for value in values if value is not None], dtype=float)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else None


def number_clusters(names: Iterable[str | None]) -> np.ndarray:
    """Which responses may be alike, by what they are about: int (n,), equal for one name; None is
    like nothing else.

    >>> number_clusters(["Ann", None, "Ann", None]).tolist()
    [0, 2, 0, 4]
    """
    codes, _ = pd.factorize(np.array(list(names), dtype=object))
    return np.where(codes >= 0, codes, np.arange(len(codes)) + codes.max(initial=0) + 1)


def share_interval(
    values: np.ndarray, confidence: float, cluster: np.ndarray
) -> tuple[float, float]:
    """Wilson's interval of a share of responses: it has a width where all, or none, are so."""
    n, share = len(np.unique(cluster)), float(values.mean())
    units = float(n)
    if 0 < share < 1:
        sums = np.bincount(cluster - cluster.min(), values - share)
        units = min(len(values), len(values) ** 2 * share * (1 - share) / float(sums @ sums))
    low, high = wilson_interval(np.array(share), np.array(units), np.array(n - 1), confidence)
    return float(low), float(high)


def count_interval(
    values: np.ndarray, confidence: float, cluster: np.ndarray
) -> tuple[float, float]:
    """The interval of a mean count, such as how many people a response tells of."""
    return influence_interval(mean_statistic(values), cluster, "log", confidence)


def average_responses(
    key: str,
    values: Iterable[float | None],
    intervals: ClusterBootstrap | None,
    interval: MeanInterval = bounded_mean_interval,
    least: float = -np.inf,
    cluster: np.ndarray | None = None,
) -> dict[str, float | None]:
    """``key``, ``key_low`` and ``key_high``: the mean of the values that are defined, with its
    interval.

    interval: by default that of scores in [0, 1]; `bounded_change_interval` of one score less
    another, `share_interval`
    of yes and no, `count_interval`. least: the least that a response can have, and so the mean.
    cluster: int, as `number_clusters` has it; None: no response is like another. There is no
    interval where all responses have one value (but of a share): `explain_missing_mean_intervals`.
    """
    given = np.array([np.nan if value is None else value for value in values], dtype=float)
    is_known = ~np.isnan(given)
    known = given[is_known]
    row: dict[str, float | None] = {key: None, f"{key}_low": None, f"{key}_high": None}
    if len(known):
        row[key] = mean = float(known.mean())
        if intervals is not None:
            clusters = (np.arange(len(given)) if cluster is None else cluster)[is_known]
            low, high = interval(known, intervals.confidence, clusters)
            ends = [np.nan if end is None else end for end in (low, high)]
            row |= name_ends(key, (max(ends[0], min(mean, least)), ends[1]))
    return row


def average_changes(
    key: str,
    values: Iterable[float | None],
    intervals: ClusterBootstrap | None,
    least: float = -1,
    cluster: np.ndarray | None = None,
) -> dict[str, float | None]:
    """`average_responses` of one score of each response less another of it."""
    return average_responses(key, values, intervals, bounded_change_interval, least, cluster)


def average_bounds(key: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    """``key_min`` and ``key_max``: the means of those of responses."""
    told = list(rows)
    return {
        f"{key}{end}": mean_of_defined(row[f"{key}{end}"] for row in told)
        for end in ("_min", "_max")
    }


def explain_missing_mean_intervals(
    row: Mapping[str, Any], keys: Iterable[str], intervals: ClusterBootstrap | None
) -> str:
    """Why means of `average_responses` have no interval, though intervals were asked for; "" where
    all have.

    >>> row = {"score": 1.0, "score_low": None, "gap": None, "gap_low": None}
    >>> explain_missing_mean_intervals(row, ["score", "gap"], ClusterBootstrap())
    'no interval for score: its responses are fewer than two, or all have the same value'
    """
    lacking = [key for key in keys if row[key] is not None and row[f"{key}_low"] is None]
    if intervals is None or not lacking:
        return ""
    return (
        f"no interval for {', '.join(lacking)}: its responses are fewer than two, or all have the"
        " same value"
    )
