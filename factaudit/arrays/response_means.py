"""What is the score of a response, and what is the mean over responses? With the length penalty and
intervals.

The share of a response is supported facts / facts. A fact without a verdict counts as not
supported, so that a failed call never raises a score; the bounds show its possible effect. If
nothing was asked (no page, no candidate), there is no share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.arrays.figures import share_units
from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.errors import UsageError
from factaudit.stats import name_ends
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.influence import bounded_mean_interval
from factaudit.stats.influence import interval as influence_interval
from factaudit.stats.influence import mean as mean_statistic

#: Responses with fewer facts than this are penalised (the code of Min et al. 2023).
DEFAULT_GAMMA = 10.0
#: Why a mean over responses has no interval (`bounded_mean_interval`).
TOO_FEW_RESPONSES = "its responses are fewer than two, or all have the same value"

#: A function of values, a confidence and the values' clusters that returns the two ends of an
#: interval of their mean.
MeanInterval = Callable[[np.ndarray, float, np.ndarray], Iterable[Any]]


def length_penalty(n_facts: Any, gamma: float = DEFAULT_GAMMA) -> np.ndarray:
    """exp(1 - γ/n) if n < γ, else 1. It is 0 at n = 0 (the limit), and 1 everywhere if γ is 0.

    >>> length_penalty([5, 10, 0]).round(3).tolist()
    [0.368, 1.0, 0.0]
    """
    if gamma < 0:
        raise UsageError(f"gamma is at least 0, found {gamma:g}")
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.exp(np.minimum(1 - gamma / np.asarray(n_facts, dtype=float), 0))
    return np.nan_to_num(penalty, nan=1.0)


def mean_of_defined(values: Iterable[float | None] | np.ndarray) -> float | None:
    """The mean of the values that are neither None nor NaN; None if there are none."""
    known = np.array([value for value in values if value is not None], dtype=float)
    known = known[~np.isnan(known)]
    return float(known.mean()) if len(known) else None


def number_clusters(names: Iterable[str | None]) -> np.ndarray:
    """The cluster of each response by what it is about: int (n,). Responses about one name are a
    cluster; a response about None is a cluster of its own.

    >>> number_clusters(["Ann", None, "Ann", None]).tolist()
    [0, 2, 0, 4]
    """
    codes, _ = pd.factorize(np.array(list(names), dtype=object))
    return np.where(codes >= 0, codes, np.arange(len(codes)) + codes.max(initial=0) + 1)


def split_by_system(responses: pd.DataFrame) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """The systems of each data set (``__all__`` first if there are several): dataset and system,
    and which of the R responses belong to it, bool (R,). responses: has the columns dataset and
    system.

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
    """Wilson's interval of a share of responses. It has a width even if the share is 0 or 1."""
    return np.concatenate(share_units(values > 0, values >= 0, cluster, confidence).ends)


def count_interval(values: np.ndarray, confidence: float, cluster: np.ndarray) -> Iterable[float]:
    """The interval of a mean count, such as the mean number of people that a response describes."""
    return influence_interval(mean_statistic(values), cluster, "log", confidence)


def average_responses(
    key: str,
    values: Iterable[float | None],
    intervals: ClusterBootstrap | None,
    interval: MeanInterval = bounded_mean_interval,
    least: float = -np.inf,
    cluster: np.ndarray | None = None,
) -> dict[str, float | None]:
    """``key``, the mean of the values that are defined, and if intervals are wanted ``key_low`` and
    ``key_high``.

    interval: the method; by default that of scores in [0, 1], `bounded_change_interval` for the
    difference of two scores, `share_interval` for yes and no, `count_interval` for counts. least:
    the lowest value that a response, and therefore the mean, can have. cluster: int, from
    `number_clusters`; None: all responses are independent. Except for a share, there is no interval
    if all responses have the same value: `TOO_FEW_RESPONSES`.
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


def average_with_bounds(
    key: str,
    rows: Sequence[Mapping[str, Any]],
    intervals: ClusterBootstrap | None,
    interval: MeanInterval = bounded_mean_interval,
    least: float = -np.inf,
) -> dict[str, float | None]:
    """`average_responses` of a figure in the rows of responses, with ``key_min`` and ``key_max``,
    the means of its bounds.

    Rows with one ``topic`` are a cluster.
    """
    cluster = number_clusters(row.get("topic") for row in rows)
    found = average_responses(key, [row[key] for row in rows], intervals, interval, least, cluster)
    bounds = (f"{key}_min", f"{key}_max")
    return found | {end: mean_of_defined(row[end] for row in rows) for end in bounds}
