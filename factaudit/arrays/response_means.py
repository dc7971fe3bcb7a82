"""Scores of responses and their means: the length penalty, and a mean with its interval over
responses.

A response's share is supported facts / facts. A fact without a verdict counts as not supported, so
that a failed call never raises a score; bounds say what it hides. Where nothing was asked (no page,
no candidate) there is no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.figures import share_units
from factaudit.errors import UsageError
from factaudit.stats.bounded_means import bounded_change_interval, bounded_mean_interval
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import interval as influence_interval
from factaudit.stats.influence import mean as mean_statistic
from factaudit.stats.undefined_values import name_ends

#: Responses of fewer facts than this are penalised (Min et al. 2023, its code).
DEFAULT_GAMMA = 10.0
#: Why a mean over responses has no interval (`bounded_mean_interval`).
TOO_FEW_RESPONSES = "its responses are fewer than two, or all have the same value"

#: From values, a confidence and the values' clusters to the two ends of an interval of their mean.
MeanInterval = Callable[[np.ndarray, float, np.ndarray], Iterable[Any]]


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


def split_by_system(responses: pd.DataFrame) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """The systems of each data set, ``__all__`` first where it has several: dataset and system, and
    which of the R responses are of it (bool (R,)). responses: with the columns dataset and system.

    >>> two = pd.DataFrame({"dataset": ["d", "d"], "system": ["a", "b"]})
    >>> [(key["system"], inside.tolist()) for key, inside in split_by_system(two)]
    [('__all__', [True, True]), ('a', [True, False]), ('b', [False, True])]
    """
    dataset, system = (responses[name].to_numpy(dtype=object) for name in ("dataset", "system"))
    for name in dict.fromkeys(dataset):
        inside = dataset == name
        systems = list(dict.fromkeys(system[inside]))
        if len(systems) > 1:
            yield {"dataset": name, "system": ALL_TOGETHER}, inside
        for one in systems:
            yield {"dataset": name, "system": one}, inside & (system == one)


def share_interval(values: np.ndarray, confidence: float, cluster: np.ndarray) -> Iterable[float]:
    """Wilson's interval of a share of responses: it has a width where all, or none, are so."""
    return np.concatenate(share_units(values > 0, values >= 0, cluster, confidence).ends)


def count_interval(values: np.ndarray, confidence: float, cluster: np.ndarray) -> Iterable[float]:
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
    """``key``, and with intervals ``key_low`` and ``key_high``: the mean of the values that are
    defined.

    interval: by default that of scores in [0, 1]; `bounded_change_interval` of one score less
    another, `share_interval` of yes and no, `count_interval`. least: the least that a response can
    have, and so the mean. cluster: int, as `number_clusters` has it; None: no response is like
    another. There is no interval where all responses have one value (but of a share):
    `TOO_FEW_RESPONSES`.
    """
    given = np.array([np.nan if value is None else value for value in values], dtype=float)
    is_known = ~np.isnan(given)
    mean = mean_of_defined(given)
    if intervals is None:
        return {key: mean}
    found: dict[str, float | None] = {key: mean, f"{key}_low": None, f"{key}_high": None}
    if mean is not None:
        clusters = np.arange(len(given)) if cluster is None else cluster
        low, high = interval(given[is_known], intervals.confidence, clusters[is_known])
        if low is not None:
            found |= name_ends(key, (max(low, min(mean, least)), high))
    return found


def average_changes(
    key: str,
    values: Iterable[float | None],
    intervals: ClusterBootstrap | None,
    least: float = -1,
    cluster: np.ndarray | None = None,
) -> dict[str, float | None]:
    """`average_responses` of one score of each response less another of it."""
    return average_responses(key, values, intervals, bounded_change_interval, least, cluster)


def average_with_bounds(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    intervals: ClusterBootstrap | None,
    interval: MeanInterval = bounded_mean_interval,
    least: float = -np.inf,
) -> dict[str, float | None]:
    """`average_responses` of a figure of responses' rows, with ``key_min`` and ``key_max``, the
    means of their bounds.

    Rows with one ``topic`` are a cluster.
    """
    cluster = number_clusters(row.get("topic") for row in rows)
    found = average_responses(key, [row[key] for row in rows], intervals, interval, least, cluster)
    bounds = (f"{key}_min", f"{key}_max")
    return found | {end: mean_of_defined(row[end] for row in rows) for end in bounds}
