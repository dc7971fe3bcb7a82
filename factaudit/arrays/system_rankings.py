"""The order of systems by their error rates: significant orders of pairs, their errors and bounds, and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import scipy

from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_pair_test import clustered_pair_p_values
from factaudit.stats.clustered_proportions import ClusterCounts, ClusteredProportions, estimate_clustered_proportions
from factaudit.stats.multiplicity import MultiplicityCorrection, holm_adjusted_p
from factaudit.stats.proportion_test import two_proportion_power, two_proportion_z_test
from factaudit.stats.rank_correlation import (
    fisher_z_interval,
    kendall_tau,
    kendall_tau_interval,
    pearson_r,
)
from factaudit.stats.undefined_values import divide_or_undefined, name_ends, none_if_undefined

#: An order in the names of counts: a's error rate is significantly lower than b's, neither, higher.
ORDER_NAMES = {-1: "lt", 0: "eq", 1: "gt"}
#: A pair counts as detectable where its labels would show a true difference this often.
PAIR_DETECTION_POWER = 0.8
#: So many differences are looked at together for the least that labels would show.
_DIFFERENCES_AT_A_TIME = 20


#: How two systems are compared: by a test that knows clusters, or by VC's z-test, for which claims are independent.
SystemPairTest = Literal["clustered", "z"]
#: The error rates of the systems of a dataset, by what says them (``labelled``, ``predicted``).
SystemErrorRates = Mapping[str, ClusteredProportions]


def labelled_and_predicted_system_rates(
    clusters: ClusterCounts, n_systems: int, is_used: np.ndarray
) -> SystemErrorRates:
    """The labelled and the predicted error rates of the systems that are used, with what clusters leave of n.

    clusters: as of `Judgements.count_clusters_jointly`, of the labels and of one evaluator.
    """
    counts = clusters.counts.reshape(len(clusters.group), n_systems, 3, 3)[:, is_used]
    return {
        kind: estimate_clustered_proportions(clusters, *count_errors(counts))
        for kind, count_errors in {"labelled": count_labelled_errors, "predicted": count_predicted_errors}.items()
    }


def compute_system_rankings(
    counts: np.ndarray,
    alpha: float = 0.05,
    correction: MultiplicityCorrection = "holm",
    system_rates: SystemErrorRates | None = None,
) -> dict[str, np.ndarray]:
    """p_labelled, p_predicted, labelled_order and predicted_order (-1, 0, 1; NaN where undefined) of all pairs of
    systems.

    counts: (S, 3, 3), as in `factaudit.arrays.confusion_counts`; system_rates: of the same systems, for a test that
    knows clusters (None: the z-test). Gives (S (S - 1) / 2,), pairs a < b. The labelled order is that of all labels,
    whatever the evaluator scored.
    """
    found = {}
    for kind, (errors, n) in {
        "labelled": count_labelled_errors(counts),
        "predicted": count_predicted_errors(counts),
    }.items():
        p = None
        if system_rates is not None:
            a, b = np.triu_indices(len(n), 1)
            p = np.where((n[a] > 0) & (n[b] > 0), clustered_pair_p_values(system_rates[kind]), np.nan)
        found[f"p_{kind}"], found[f"{kind}_order"] = order_system_rankings(errors, n, alpha, correction, p)
    return found


def order_system_rankings(
    errors: np.ndarray,
    n: np.ndarray,
    alpha: float = 0.05,
    correction: MultiplicityCorrection = "none",
    p_values: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """p-values and orders (-1: a has the lower error rate, 0: no significant difference, 1) of all pairs a < b.

    errors, n: (..., S) numbers of errors and of claims per system; p_values: uncorrected ones of the pairs, by another
    test than the z-test. Raises `UsageError` for an unknown correction.
    """
    if correction not in ("none", "holm"):
        raise UsageError(f"ranking: expected correction none or holm, found {correction!r}")
    a, b = np.triu_indices(n.shape[-1], 1)
    p = two_proportion_z_test(errors[..., a], n[..., a], errors[..., b], n[..., b]) if p_values is None else p_values
    if correction == "holm":
        p = holm_adjusted_p(p)
    rates = divide_or_undefined(errors, n)
    order = np.where(p < alpha, np.sign(rates[..., a] - rates[..., b]), 0.0)
    return p, np.where(np.isnan(p), np.nan, order)


def count_labelled_errors(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., S) numbers of labelled errors, and of labels."""
    return counts[..., 0, :].sum(-1), counts[..., :2, :].sum((-1, -2))


def count_predicted_errors(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., S) numbers of predicted errors, and of predictions, among what is labelled and scored."""
    both = counts[..., :2, :2]
    return both[..., 0].sum(-1), both.sum((-1, -2))


_UNIT_CELLS = np.eye(9, dtype=np.int64).reshape(9, 3, 3)
#: int64 (9, 4): what a claim of each cell adds to `count_labelled_errors` and to `count_predicted_errors`.
ERROR_NUMBERS_BY_CELL = np.stack([*count_labelled_errors(_UNIT_CELLS), *count_predicted_errors(_UNIT_CELLS)], axis=1)


def system_ranking_power(
    counts: np.ndarray,
    difference: float | np.ndarray,
    alpha: float,
    correction: MultiplicityCorrection = "none",
    system_rates: SystemErrorRates | None = None,
) -> np.ndarray:
    """How probably the labels of each pair of systems would show a true difference, by the test that orders them.

    Of a corrected test: as if all pairs were looked at together (Bonferroni), which is the least that Holm's finds.
    """
    errors, n = count_labelled_errors(counts)
    a, b = np.triu_indices(len(n), 1)
    pooled = divide_or_undefined(errors[a] + errors[b], n[a] + n[b])
    level: Any = alpha / max(len(a), 1) if correction == "holm" else alpha
    if system_rates is None:
        return two_proportion_power(pooled, difference, n[a], n[b], level)
    rates = system_rates["labelled"]
    size, clusters = np.nan_to_num(rates.effective_n[0]), rates.n_clusters[0]
    critical = scipy.special.stdtrit(np.maximum(np.minimum(clusters[a], clusters[b]) - 1, 1), level / 2)
    power = two_proportion_power(pooled, difference, size[a], size[b], 2 * scipy.special.ndtr(critical))
    return np.where((n[a] > 0) & (n[b] > 0) & np.isnan(power), 0.0, power)  # of one cluster nothing is shown


def least_rankable_system_difference(
    counts: np.ndarray,
    alpha: float,
    correction: MultiplicityCorrection = "none",
    system_rates: SystemErrorRates | None = None,
) -> float | None:
    """The least difference (in steps of half a point) that at least half of the pairs' labels would show."""
    if len(counts) < 2:
        return None
    for first in range(1, 200, _DIFFERENCES_AT_A_TIME):
        differences = np.arange(first, min(first + _DIFFERENCES_AT_A_TIME, 200)) / 200
        powers = system_ranking_power(counts, differences[:, None], alpha, correction, system_rates)
        shown = (powers >= PAIR_DETECTION_POWER).mean(-1) >= 0.5
        if shown.any():
            return float(differences[shown.argmax()])
    return 1.0


_ORDERING_BOUND_KEYS = ("error_rate_min", "error_rate_max", "major_error_rate_min", "major_error_rate_max")


def bound_system_ranking_errors(
    certain_counts: np.ndarray,
    labelled_order: np.ndarray,
    predicted_order: np.ndarray,
    alpha: float,
    correction: MultiplicityCorrection,
    certain_clusters: ClusterCounts | None = None,
) -> dict[str, Any]:
    """What the shares of wrong orders could be, each pair on its own, had every labelled claim been scored.

    certain_counts: (S, 3, 3); labelled_order, predicted_order: the orders of the pairs. The predicted one, from fewer
    claims than are labelled, may be. certain_clusters: counts (clusters, S * 9) of the same, for a test that knows
    clusters (None: the z-test).
    """
    if len(certain_counts) < 2:
        return dict.fromkeys(_ORDERING_BOUND_KEYS)
    if not certain_counts[:, :2, 2].any():
        low = high = predicted_order
    else:
        p_values, signs = _test_system_rankings_with_extreme_unscored_claims(certain_counts, certain_clusters)
        low, high = _bound_pair_orders(p_values, signs, alpha, correction)
        low, high = np.minimum(low, predicted_order), np.maximum(high, predicted_order)
    return {
        "error_rate_min": float(((labelled_order < low) | (labelled_order > high)).mean()),
        "error_rate_max": float(((low != labelled_order) | (high != labelled_order)).mean()),
        "major_error_rate_min": float(((labelled_order * low == -1) & (labelled_order * high == -1)).mean()),
        "major_error_rate_max": float(((labelled_order * low == -1) | (labelled_order * high == -1)).mean()),
    }


def _test_system_rankings_with_extreme_unscored_claims(
    certain_counts: np.ndarray, certain_clusters: ClusterCounts | None
) -> tuple[np.ndarray, np.ndarray]:
    """p-values and signs of a's rate less b's, (2, pairs): with the fewest errors of a and the most of b; the reverse.

    The difference rises with a's errors and falls with b's, so these two hold all that completions make of it.
    """
    size = len(certain_counts)
    of_labelled = certain_counts[:, :2]
    n, least = of_labelled.sum((-1, -2)), of_labelled[..., 0].sum(-1)
    most = least + of_labelled[..., -1].sum(-1)
    a, b = np.triu_indices(size, 1)
    ends = ((least, most), (most, least))
    signs = np.array(
        [np.sign(divide_or_undefined(first[a], n[a]) - divide_or_undefined(second[b], n[b])) for first, second in ends]
    )
    if certain_clusters is None:
        p = [two_proportion_z_test(first[a], n[a], second[b], n[b]) for first, second in ends]
        return np.array(p), signs
    counts = certain_clusters.counts.reshape(len(certain_clusters.group), size, 3, 3)[:, :, :2]
    errors = np.concatenate([counts[..., 0].sum(-1), counts[..., [0, -1]].sum((-1, -2))], axis=1)
    rates = estimate_clustered_proportions(certain_clusters, errors, np.tile(counts.sum((-1, -2)), 2))
    # Of the 2 S rates, first all with the fewest errors, then all with the most.
    of_pair = np.full((2 * size, 2 * size), np.nan)
    of_pair[np.triu_indices(2 * size, 1)] = clustered_pair_p_values(rates)
    return np.array([of_pair[a, b + size], of_pair[b, a + size]]), signs


def _bound_pair_orders(
    p_values: np.ndarray, signs: np.ndarray, alpha: float, correction: MultiplicityCorrection
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest order that each pair could have, (pairs,); arguments as of
    `_test_system_rankings_with_extreme_unscored_claims`.

    Holm's correction rejects more as any p-value falls: what could be takes all others at their least, what is certain
    at their greatest.
    """
    certain = np.where(signs[0] * signs[1] > 0, p_values.max(0), 1.0)
    possible = p_values.copy()
    if correction == "holm":
        certain = holm_adjusted_p(certain)
        for side, own in enumerate(p_values):
            others = np.tile(p_values.min(0), (len(own), 1))
            np.fill_diagonal(others, own)
            possible[side] = np.diagonal(holm_adjusted_p(others))
    settled = np.where(certain < alpha, signs[0], 0)
    low = np.where((signs[0] < 0) & (possible[0] < alpha), -1, np.maximum(settled, 0))
    high = np.where((signs[1] > 0) & (possible[1] < alpha), 1, np.minimum(settled, 0))
    return low, high


def count_reversed_system_rankings(system_rates: SystemErrorRates, alpha: float) -> dict[str, Any]:
    """How many pairs of systems the labels and the predictions order, and how many they order oppositely.

    A pair is ordered where a test that knows clusters says so (Holm for the pairs), and reversed where both tests do,
    in opposite directions. p_reversed is the p-value of "no pair is reversed".
    """
    found: dict[str, Any] = dict.fromkeys(REVERSED_PAIR_KEYS)
    labelled_rates = system_rates["labelled"].point[0]
    if len(labelled_rates) < 2:
        return found
    a, b = np.triu_indices(len(labelled_rates), 1)
    p_values = [clustered_pair_p_values(rates) for rates in system_rates.values()]
    signs = [np.sign(rates.point[0, a] - rates.point[0, b]) for rates in system_rates.values()]
    labelled, predicted = (holm_adjusted_p(p) < alpha for p in p_values)
    opposite = signs[0] * signs[1] < 0
    found["n_ordered"] = int(labelled.sum())
    found["n_ordered_alike"] = int((labelled & predicted & (signs[0] == signs[1])).sum())
    found["n_one_sided"] = int((labelled != predicted).sum())
    found["n_reversed"] = int((labelled & predicted & opposite).sum())
    # Both sides must order a pair, so the greater p-value is that of its reversal.
    found["p_reversed"] = float(holm_adjusted_p(np.where(opposite, np.maximum(*p_values), 1.0)).min())
    return found


_ORDER_COUNT_KEYS = ("n_ordered", "n_ordered_alike", "n_one_sided", "n_reversed")
REVERSED_PAIR_KEYS = (*_ORDER_COUNT_KEYS, "p_reversed")


# --- the figures of one dataset's systems, counts (S, 3, 3) ---


def system_ranking_error_shares(labelled_order: np.ndarray, predicted_order: np.ndarray) -> dict[str, Any]:
    if not len(labelled_order):
        return dict.fromkeys(("error_rate", "major_error_rate", "orderable"))
    return {
        "error_rate": float((labelled_order != predicted_order).mean()),
        "major_error_rate": float((labelled_order * predicted_order == -1).mean()),
        "orderable": float((labelled_order != 0).mean()),
    }


def correlate_system_rankings(
    counts: np.ndarray, replicates: np.ndarray | None, min_systems: int, intervals: ClusterBootstrap | None
) -> dict[str, Any]:
    """Over S systems, counts (S, 3, 3); replicates: (B, S, 4), the numbers of `ERROR_NUMBERS_BY_CELL` in each
    replicate.
    """
    row: dict[str, Any] = {"kendall_tau": None, "pearson_r": None}
    if intervals is not None:
        row |= dict.fromkeys(f"{key}_{end}" for key in list(row) for end in ("low", "high"))
    if len(counts) < min_systems:
        return row
    x, y = divide_or_undefined(*count_labelled_errors(counts)), divide_or_undefined(*count_predicted_errors(counts))
    tau, r = none_if_undefined(kendall_tau(x, y)), none_if_undefined(pearson_r(x, y))
    row |= {"kendall_tau": tau, "pearson_r": r}
    if intervals is None or replicates is None or tau is None or r is None or np.isnan(replicates).any():
        return row
    found = [divide_or_undefined(replicates[..., at], replicates[..., at + 1]) for at in (0, 2)]
    whole = ~np.isnan(found).any((0, 2))  # a replicate without a claim of one system says nothing of its order
    low, high = kendall_tau_interval(found[0][whole], found[1][whole], intervals.confidence)
    row |= {"kendall_tau_low": min(low, tau), "kendall_tau_high": max(high, tau)}
    ends = fisher_z_interval(np.array(r), np.array(len(counts)), intervals.confidence)
    return row | name_ends("pearson_r", ends)


def cross_tabulate_system_rankings(
    counts: np.ndarray, labelled_order: np.ndarray, predicted_order: np.ndarray
) -> dict[str, Any]:
    rates = divide_or_undefined(*count_labelled_errors(counts))
    a, b = np.triu_indices(len(counts), 1)
    turn = np.where(rates[a] > rates[b], -1, 1)
    return {
        f"labelled_{ORDER_NAMES[true]}_predicted_{ORDER_NAMES[said]}": int(
            ((labelled_order * turn == true) & (predicted_order * turn == said)).sum()
        )
        for true in ORDER_NAMES
        for said in ORDER_NAMES
    }


def count_ordered_system_rankings(ranking_rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Numbers of pairs over rows: all; ordered by the labels, alike, by one side alone, reversed; not alike (by one
    side alone, or reversed); and those whose labels would show 10 points.

    ``_min`` and ``_max`` of those alike, not alike and reversed: at most so far apart, had all been scored."""
    found = {key: sum(row[key] for row in ranking_rows) for key in ("n_pairs", *_ORDER_COUNT_KEYS)}

    def count_open_pairs(key: str, end: str) -> int:
        with_bounds = [row for row in ranking_rows if row.get(f"{key}_{end}") is not None]
        return sum(round(abs(row[key] - row[f"{key}_{end}"]) * row["n_pairs"]) for row in with_bounds)

    for end, sign in (("min", -1), ("max", 1)):
        not_alike = found["n_one_sided"] + found["n_reversed"]
        found[f"n_not_alike_{end}"] = not_alike + sign * count_open_pairs("error_rate", end)
        found[f"n_reversed_{end}"] = found["n_reversed"] + sign * count_open_pairs("major_error_rate", end)
    found["n_ordered_alike_min"] = max(0, found["n_ordered_alike"] - count_open_pairs("error_rate", "max"))
    found["n_ordered_alike_max"] = min(
        found["n_ordered"] - found["n_reversed_min"], found["n_ordered_alike"] + count_open_pairs("error_rate", "min")
    )
    found["n_able"] = sum(round((row.get("detectable_10") or 0) * row["n_pairs"]) for row in ranking_rows)
    return found
