"""Systems against each other, from the draws of the hierarchical model: differences, ranks, the best, headroom."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from factaudit.audit.core.rows import Row, number
from factaudit.estimate.case import Case


def compared(case: Case) -> list[int]:
    """The systems that have a rate of the model: those with labels, or all under transfer."""
    if not len(case.rows):
        return []
    return [at for at, n in enumerate(case.n_labels) if n or case.settings.transfer]


def differences(case: Case) -> list[Row]:
    """A row per pair of systems: difference = the error rate of system_a minus that of system_b, with its interval.

    ``order`` is ``<`` or ``>`` where the interval lies on one side of 0, else ``?``.
    """
    tail = (1 - case.settings.confidence) / 2
    rows = []
    for a, b in combinations(compared(case), 2):
        drawn = case.draws[:, a] - case.draws[:, b]
        low, high = np.quantile(drawn, [tail, 1 - tail])
        row: Row = {"system_a": case.corpus.systems[a], "system_b": case.corpus.systems[b]}
        row |= {"difference": number(np.clip(drawn.mean(), low, high))}
        row |= {"difference_low": number(low), "difference_high": number(high)}
        rows.append(row | {"order": "<" if high < 0 else ">" if low > 0 else "?"})
    return rows


def ranks(case: Case) -> list[Row]:
    """A row per system: p_best, the probability of the lowest error rate, and its rank (1 is best) with an interval.

    Of equal rates in a draw each is the best with an equal share, and has the mean of their ranks.
    """
    members = compared(case)
    if len(members) < 2:
        return []
    drawn = case.draws[:, members]
    best = drawn == drawn.min(1, keepdims=True)
    p_best = (best / best.sum(1, keepdims=True)).mean(0)
    rank = _ranks(drawn)
    tail = (1 - case.settings.confidence) / 2
    low, high = np.quantile(rank, [tail, 1 - tail], axis=0)
    middle = np.clip(rank.mean(0), low, high)
    return [
        {
            "system": case.corpus.systems[at],
            "p_best": number(p_best[i]),
            "rank": number(middle[i]),
            "rank_low": number(low[i]),
            "rank_high": number(high[i]),
        }
        for i, at in enumerate(members)
    ]


def lowest(case: Case) -> Row:
    """Headroom: the lowest error rate among the systems, with its interval; null without labels."""
    members = compared(case)
    if not members:
        return {"headroom": None, "headroom_low": None, "headroom_high": None}
    least = case.draws[:, members].min(1)
    tail = (1 - case.settings.confidence) / 2
    low, high = np.quantile(least, [tail, 1 - tail])
    middle = np.clip(least.mean(), low, high)
    return {"headroom": number(middle), "headroom_low": number(low), "headroom_high": number(high)}


def _ranks(values: np.ndarray) -> np.ndarray:
    """Mean ranks along the last axis, from 1."""
    below = (values[:, None, :] < values[:, :, None]).sum(-1)
    equal = (values[:, None, :] == values[:, :, None]).sum(-1)
    return below + (equal + 1) / 2
