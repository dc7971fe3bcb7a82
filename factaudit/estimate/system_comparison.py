"""Systems against each other, from the draws of the hierarchical model: differences, ranks, the best, headroom."""

from __future__ import annotations

from itertools import combinations

from factaudit.audit.core.result_rows import Row
from factaudit.estimate.estimation_case import EstimationCase
from factaudit.stats.posterior_comparison import posterior_interval, rank_posterior_draws
from factaudit.stats.undefined_values import none_if_undefined


def list_compared_systems(estimation: EstimationCase) -> list[int]:
    """The systems that have a rate of the model: those with labels, or all under transfer."""
    if not len(estimation.labelled_rows):
        return []
    return [at for at, n in enumerate(estimation.n_labels) if n or estimation.options.transfer]


def pairwise_rate_differences(estimation: EstimationCase) -> list[Row]:
    """A row per pair of systems: difference = the error rate of system_a minus that of system_b, with its interval.

    ``order`` is ``<`` or ``>`` where the interval lies on one side of 0, else ``?``.
    """
    rows = []
    for a, b in combinations(list_compared_systems(estimation), 2):
        difference = estimation.rate_draws[:, a] - estimation.rate_draws[:, b]
        mean, low, high = posterior_interval(difference, estimation.options.confidence)
        row: Row = {"system_a": estimation.corpus.systems[a], "system_b": estimation.corpus.systems[b]}
        row |= {"difference": none_if_undefined(mean)}
        row |= {"difference_low": none_if_undefined(low), "difference_high": none_if_undefined(high)}
        rows.append(row | {"order": "<" if high < 0 else ">" if low > 0 else "?"})
    return rows


def posterior_system_ranks(estimation: EstimationCase) -> list[Row]:
    """A row per system: p_best, the probability of the lowest error rate, and its rank (1 is best) with an interval."""
    members = list_compared_systems(estimation)
    if len(members) < 2:
        return []
    found = rank_posterior_draws(estimation.rate_draws[:, members], estimation.options.confidence)
    return [
        {
            "system": estimation.corpus.systems[at],
            "p_best": none_if_undefined(found.p_best[i]),
            "rank": none_if_undefined(found.rank[i]),
            "rank_low": none_if_undefined(found.low[i]),
            "rank_high": none_if_undefined(found.high[i]),
        }
        for i, at in enumerate(members)
    ]


def lowest_system_rate(estimation: EstimationCase) -> Row:
    """Headroom: the lowest error rate among the systems, with its interval; null without labels."""
    members = list_compared_systems(estimation)
    if not members:
        return {"headroom": None, "headroom_low": None, "headroom_high": None}
    mean, low, high = posterior_interval(estimation.rate_draws[:, members].min(1), estimation.options.confidence)
    return {
        "headroom": none_if_undefined(mean),
        "headroom_low": none_if_undefined(low),
        "headroom_high": none_if_undefined(high),
    }
