"""Which system is better? Differences, ranks and the best, from the draws of the hierarchical model."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from string import ascii_lowercase

import numpy as np

from factaudit.audit.core.result_rows import Row
from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.stats.posterior_comparison import (
    compact_letter_display,
    lowest_rate_interval,
    posterior_interval,
    rank_posterior_draws,
    select_directed_pairs,
    selected_rate_interval,
    wrong_direction_probabilities,
)
from factaudit.stats.undefined_values import none_if_undefined

#: Of the pairs of systems that are told apart at most this share is expected in the wrong order.
MAX_WRONG_PAIR_SHARE = 0.05


def list_compared_systems(estimation: RateEstimationCase) -> list[int]:
    """The systems that have a rate of the model: those with labels."""
    return np.flatnonzero(estimation.n_labels).tolist()


def pairwise_rate_differences(estimation: RateEstimationCase) -> list[Row]:
    """A row per pair of systems: difference = the error rate of system_a minus that of system_b, with its interval.

    p_wrong: the probability that the difference has the other sign, of `wrong_direction_probabilities`. ``order`` is
    ``<`` or ``>`` of the pairs that this alone tells apart (`MAX_WRONG_PAIR_SHARE`), else ``?``.
    """
    pairs = list(combinations(list_compared_systems(estimation), 2))
    if not pairs:
        return []
    a, b = np.array(pairs).T
    differences = estimation.rate_draws[:, a] - estimation.rate_draws[:, b]
    means, lows, highs = posterior_interval(differences, estimation.options.confidence)
    p_wrong = wrong_direction_probabilities(differences)
    apart = select_directed_pairs(p_wrong, MAX_WRONG_PAIR_SHARE, (1 - estimation.options.confidence) / 2)
    return [
        {
            "system_a": estimation.corpus.systems[pair[0]],
            "system_b": estimation.corpus.systems[pair[1]],
            "difference": none_if_undefined(means[at]),
            "difference_low": none_if_undefined(lows[at]),
            "difference_high": none_if_undefined(highs[at]),
            "p_wrong": float(p_wrong[at]),
            "order": ("<" if means[at] < 0 else ">") if apart[at] else "?",
        }
        for at, pair in enumerate(pairs)
    ]


def posterior_system_ranks(estimation: RateEstimationCase, pairs: Sequence[Row]) -> list[Row]:
    """A row per system: p_best, the probability of the lowest error rate, its rank (1 is best) with an interval, and
    the letters of its groups: systems with a letter in common are not told apart.

    pairs: from `pairwise_rate_differences`.
    """
    members = list_compared_systems(estimation)
    if len(members) < 2:
        return []
    draws = estimation.rate_draws[:, members]
    found = rank_posterior_draws(draws, estimation.options.confidence)
    place = {estimation.corpus.systems[members[at]]: i for i, at in enumerate(draws.mean(0).argsort(kind="stable"))}
    apart = [(place[row["system_a"]], place[row["system_b"]]) for row in pairs if row["order"] != "?"]
    groups = compact_letter_display(len(members), apart)
    return [
        {
            "system": estimation.corpus.systems[at],
            "p_best": none_if_undefined(found.p_best[i]),
            "rank": none_if_undefined(found.rank[i]),
            "rank_low": none_if_undefined(found.low[i]),
            "rank_high": none_if_undefined(found.high[i]),
            "letters": "".join(_name_group(number) for number in groups[place[estimation.corpus.systems[at]]]),
        }
        for i, at in enumerate(members)
    ]


def extreme_system_rates(estimation: RateEstimationCase) -> Row:
    """The lowest error rate among the systems (headroom), the highest, and that of the system that looks best, each
    with an interval that allows for the choice; null without labels."""
    members = list_compared_systems(estimation)
    ends: dict[str, tuple[float, float, float]] = dict.fromkeys(("headroom", "highest", "best_rate"), (np.nan,) * 3)
    best = None
    if members:
        draws, confidence = estimation.rate_draws[:, members], estimation.options.confidence
        at = int(draws.mean(0).argmin())
        best = estimation.corpus.systems[members[at]] if len(members) > 1 else None
        highest, high, low = (-end for end in lowest_rate_interval(-draws, confidence))
        ends["headroom"], ends["highest"] = lowest_rate_interval(draws, confidence), (highest, low, high)
        ends["best_rate"] = selected_rate_interval(draws, at, confidence)
    row: Row = {"best_system": best}
    for key, values in ends.items():
        row |= dict(zip((key, f"{key}_low", f"{key}_high"), map(none_if_undefined, values), strict=True))
    return row


def _name_group(number: int) -> str:
    """a to z, then a2 to z2, and so on."""
    times, letter = divmod(number, 26)
    return ascii_lowercase[letter] + (str(times + 1) if times else "")
