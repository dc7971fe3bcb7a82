"""In which order are systems by their error rates? Significant orders of pairs, their errors and
bounds, and correlations.

Arrays over pairs cover the S (S - 1) / 2 pairs a < b of S systems, in the order of
`numpy.triu_indices`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy

from factaudit.arrays.claim_groups import ClaimGroups
from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import LABEL, Judgements
from factaudit.stats.agreement import pearson
from factaudit.stats.clustered_proportions import (
    ClusteredProportions,
    estimate_clustered_proportions,
)
from factaudit.stats.hypothesis_tests import pair_p_values, two_proportion_p, two_proportion_power
from factaudit.stats.multiplicity import MultiplicityCorrection, holm_adjusted_p
from factaudit.stats.rank_correlation import fisher_z_interval, kendall_tau
from factaudit.stats.undefined_values import divide_or_undefined

#: A pair counts as detectable if its labels would show a true difference with this probability.
PAIR_DETECTION_POWER = 0.8
#: How two systems are compared: by a test that uses clusters, or by VC's z-test, which treats
#: claims as independent.
SystemPairTest = Literal["clustered", "z"]


@dataclass(frozen=True)
class PairTest:
    """How pairs of systems are ordered."""

    test: SystemPairTest = "clustered"
    correction: MultiplicityCorrection = "holm"
    alpha: float = 0.05

    def adjust(self, p: np.ndarray) -> np.ndarray:
        return holm_adjusted_p(p) if self.correction == "holm" else p


@dataclass(frozen=True)
class SystemErrors:
    """Errors among the n claims of S systems, int (S,) each, by the labels or as predicted.

    proportions: the same counts by cluster, (1, S); None if claims count as independent (VC's
    z-test).
    """

    errors: np.ndarray
    n: np.ndarray
    proportions: ClusteredProportions | None = None

    @property
    def rates(self) -> np.ndarray:
        return divide_or_undefined(self.errors, self.n)

    def test_pairs(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Two-sided p-values for equal rates of the systems at these positions; NaN if a system has
        no claim."""
        if self.proportions is None:
            return two_proportion_p(self.errors[a], self.n[a], self.errors[b], self.n[b])
        return np.where(
            (self.n[a] > 0) & (self.n[b] > 0), pair_p_values(self.proportions, a, b), np.nan
        )

    def order_pairs(self, test: PairTest) -> tuple[np.ndarray, np.ndarray]:
        """The p-values and the orders: -1 if a has significantly fewer errors than b, 1 if
        significantly more, else 0; NaN where undefined."""
        a, b = np.triu_indices(len(self.n), 1)
        p = test.adjust(self.test_pairs(a, b))
        order = np.where(p < test.alpha, np.sign(self.rates[a] - self.rates[b]), 0.0)
        return p, np.where(np.isnan(p), np.nan, order)

    def compute_power(self, difference: float, test: PairTest) -> np.ndarray:
        """The probability that these claims of each pair show a true difference, by the test that
        orders them.

        For a corrected test, the level is Bonferroni's for all pairs, which is the smallest that
        Holm's correction uses.
        """
        a, b = np.triu_indices(len(self.n), 1)
        pooled = divide_or_undefined(self.errors[a] + self.errors[b], self.n[a] + self.n[b])
        level: Any = test.alpha / max(len(a), 1) if test.correction == "holm" else test.alpha
        if self.proportions is None:
            return two_proportion_power(pooled, difference, self.n[a], self.n[b], level)
        size, clusters = (
            np.nan_to_num(self.proportions.effective_n[0]),
            self.proportions.n_clusters[0],
        )
        critical = scipy.special.stdtrit(
            np.maximum(np.minimum(clusters[a], clusters[b]) - 1, 1), level / 2
        )
        power = two_proportion_power(
            pooled, difference, size[a], size[b], 2 * scipy.special.ndtr(critical)
        )
        # Of one cluster there is none.
        return np.where((self.n[a] > 0) & (self.n[b] > 0) & np.isnan(power), 0.0, power)


#: A function of cells (..., S, 3, 3), for one or several tables, that returns the errors and the
#: number of claims.
CellCounter = Callable[[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]


def _count_errors(cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The errors by the labels, and the predicted ones among the claims that are labelled and
    scored."""
    labelled, both = cells[..., :2, :], cells[..., :2, :2]
    return [
        (labelled[..., 0, :].sum(-1), labelled.sum((-1, -2))),
        (both[..., 0].sum(-1), both.sum((-1, -2))),
    ]


def _count_extreme_errors(cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The systems with the fewest errors that could be predicted, then those with the most."""
    least, unscored = cells[..., :2, 0].sum(-1), cells[..., :2, 2].sum(-1)
    n = cells[..., :2, :].sum((-1, -2))
    errors = np.concatenate([least, least + unscored], axis=-1)
    return [(errors, np.concatenate([n, n], axis=-1))]


@dataclass(frozen=True)
class RankingCase:
    """The systems of one dataset at one level, as one evaluator sees them.

    cells, stated (without guesses): int64 (S, 3, 3).
    """

    judgements: Judgements
    groups: ClaimGroups
    members: Sequence[int]
    dataset: str
    evaluator: int
    cells: np.ndarray
    stated: np.ndarray

    @property
    def systems(self) -> list[str]:
        return [self.groups.keys[place]["system"] for place in self.members]

    def select(self, used: np.ndarray) -> RankingCase:
        """The case with only the systems that are used: bool (S,)."""
        if used.all():
            return self
        members = [place for place, is_used in zip(self.members, used, strict=True) if is_used]
        return replace(self, members=members, cells=self.cells[used], stated=self.stated[used])

    @cached_property
    def errors(self) -> tuple[SystemErrors, SystemErrors]:
        """The errors by the labels, and as predicted."""
        labelled, predicted = self.count_by_cluster(_count_errors, stated=False)
        return labelled, predicted

    def errors_for(self, test: PairTest) -> tuple[SystemErrors, SystemErrors]:
        """`errors`, with clusters if the test uses them."""
        labelled, predicted = self.errors
        if test.test == "z":
            return replace(labelled, proportions=None), replace(predicted, proportions=None)
        return labelled, predicted

    def count_by_cluster(self, count: CellCounter, *, stated: bool) -> list[SystemErrors]:
        """What ``count`` makes of the cells, in total and in each cluster."""
        totals = count(self.stated if stated else self.cells)
        if not self.members:
            return [SystemErrors(*total) for total in totals]
        clusters = self.judgements.tally_jointly(
            self.groups, self.members, self.evaluator, stated=stated
        )
        parts = count(clusters.counts.reshape(-1, len(self.members), 3, 3))
        return [
            SystemErrors(*total, estimate_clustered_proportions(clusters, *part))
            for total, part in zip(totals, parts, strict=True)
        ]


def list_ranking_cases(judgements: Judgements, groups: ClaimGroups) -> list[RankingCase]:
    """A case for each data set and evaluator. groups: of systems. The cases are kept, because two
    audits read them."""
    return judgements.compute_once(
        ("rankings", groups), lambda: list(_make_ranking_cases(judgements, groups))
    )


def _make_ranking_cases(judgements: Judgements, groups: ClaimGroups) -> Iterator[RankingCase]:
    for dataset in judgements.dataset_names:
        members = [place for place, key in enumerate(groups.keys) if key["dataset"] == dataset]
        for place in range(len(judgements.evaluators)):
            tally = judgements.tally(groups, LABEL, place)
            cells, stated = tally.cells[members], tally.stated[members]
            yield RankingCase(judgements, groups, members, dataset, place, cells, stated)


def measure_order_errors(
    case: RankingCase, labelled_order: np.ndarray, predicted_order: np.ndarray, test: PairTest
) -> dict[str, float | None]:
    """Shares of pairs: those ordered differently, those ordered in opposite directions, and those
    that the labels order at all.

    The bounds say what the first two could be, for each pair on its own, if every labelled claim
    had been scored; the predicted order, which rests on fewer claims, may then change.
    """
    low = high = predicted_order
    if case.stated[:, :2, 2].any():
        low, high = _bound_pair_orders(case, test)
        low, high = np.minimum(low, predicted_order), np.maximum(high, predicted_order)
    reversed_low, reversed_high = labelled_order * low == -1, labelled_order * high == -1
    pairs = {
        "error_rate": labelled_order != predicted_order,
        "error_rate_min": (labelled_order < low) | (labelled_order > high),
        "error_rate_max": (low != labelled_order) | (high != labelled_order),
        "major_error_rate": labelled_order * predicted_order == -1,
        "major_error_rate_min": reversed_low & reversed_high,
        "major_error_rate_max": reversed_low | reversed_high,
        "orderable": labelled_order != 0,
    }
    return {key: float(which.mean()) if len(which) else None for key, which in pairs.items()}


def _bound_pair_orders(case: RankingCase, test: PairTest) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest order that each pair could have, (pairs,).

    The difference of the rates of a and b rises with the errors of a and falls with those of b, so
    it is lowest with the fewest errors of a and the most of b. Holm's correction rejects more if
    any p-value falls. So a possible rejection assumes the lowest p-values of all other pairs, and a
    certain one the highest.
    """
    size = len(case.members)
    a, b = np.triu_indices(size, 1)
    (extremes,) = case.count_by_cluster(_count_extreme_errors, stated=True)
    if test.test == "z":
        extremes = replace(extremes, proportions=None)
    sides = ((a, b + size), (a + size, b))
    p = np.array([extremes.test_pairs(*side) for side in sides])
    sign = np.sign([extremes.rates[one] - extremes.rates[other] for one, other in sides])
    is_possible = np.maximum(test.adjust(p.min(0)), p) < test.alpha
    is_certain = test.adjust(np.where(sign[0] * sign[1] > 0, p.max(0), 1.0)) < test.alpha
    settled = np.where(is_certain, sign[0], 0)
    low = np.where((sign[0] < 0) & is_possible[0], -1, np.maximum(settled, 0))
    return low, np.where((sign[1] > 0) & is_possible[1], 1, np.minimum(settled, 0))


#: Numbers of pairs in significant order, and the p-value of the hypothesis that no pair is
#: reversed.
REVERSED_PAIR_KEYS = ("n_ordered", "n_ordered_alike", "n_one_sided", "n_reversed", "p_reversed")


def count_reversed_pairs(
    labelled: SystemErrors, predicted: SystemErrors, alpha: float
) -> dict[str, Any]:
    """How many pairs the labels order, both sides order alike, only one side orders, and both sides
    order oppositely.

    A pair is ordered if a test that uses clusters says so (with Holm's correction over the pairs).
    It is reversed if both tests order it in opposite directions. p_reversed is the p-value of the
    hypothesis that no pair is reversed.
    """
    if labelled.proportions is None or predicted.proportions is None or len(labelled.n) < 2:
        return dict.fromkeys(REVERSED_PAIR_KEYS)
    a, b = np.triu_indices(len(labelled.n), 1)
    p_values = [each.test_pairs(a, b) for each in (labelled, predicted)]
    signs = [np.sign(each.rates[a] - each.rates[b]) for each in (labelled, predicted)]
    by_labels, by_predictions = (holm_adjusted_p(p) < alpha for p in p_values)
    opposite, both = signs[0] * signs[1] < 0, by_labels & by_predictions
    numbers = by_labels, both & (signs[0] == signs[1]), by_labels != by_predictions, both & opposite
    # Both sides must order a pair, so the greater p-value is that of its reversal.
    p = float(holm_adjusted_p(np.where(opposite, np.maximum(*p_values), 1.0)).min())
    return dict(zip(REVERSED_PAIR_KEYS, [*(int(each.sum()) for each in numbers), p], strict=True))


def correlate_rates(
    labelled: SystemErrors, predicted: SystemErrors, confidence: float | None
) -> dict[str, Figure]:
    """kendall_tau (tau-b) and pearson_r between the labelled and the predicted error rates, as
    figures of one group.

    The interval of τ contains all values that the data leave open: pairs whose rates do not differ
    significantly, by the labels or by the predictions, may be in either order. This is
    conservative. (Percentiles of τ over bootstrap replicates contain the true τ in 2 to 99 % of
    simulations, because noise pulls τ towards 0 and the bootstrap adds noise again.)
    """
    x, y = labelled.rates, predicted.rates
    tau, r = kendall_tau(x, y), pearson(x, y).point
    ends = {"kendall_tau": (np.nan, np.nan), "pearson_r": (np.nan, np.nan)}
    if confidence is not None:
        ends["pearson_r"] = fisher_z_interval(r, len(x), confidence)
    if confidence is not None and not np.isnan(tau):
        a, b = np.triu_indices(len(x), 1)
        significant = [side.test_pairs(a, b) < 1 - confidence for side in (labelled, predicted)]
        product = np.sign(x[a] - x[b]) * np.sign(y[a] - y[b]) * np.all(significant, axis=0)
        settled, n_open = product.sum(), (product == 0).sum()
        low, high = (settled - n_open) / len(a), (settled + n_open) / len(a)
        ends["kendall_tau"] = min(low, tau), max(high, tau)
    return {
        key: Figure(
            np.array([point]),
            interval=None if confidence is None else (np.array([low]), np.array([high])),
        )
        for (key, (low, high)), point in zip(ends.items(), (tau, r), strict=True)
    }


def count_ordered_system_rankings(ranking_rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Numbers of pairs, summed over rows: all pairs; those that the labels order, that both order
    alike, that one side alone orders, and that are reversed; and those not ordered alike (by one
    side alone, or reversed) with ``_min`` and ``_max``, the lowest and highest numbers if all
    claims had been scored; also ``n_reversed_max``."""
    found = {
        key: sum(row[key] for row in ranking_rows) for key in ("n_pairs", *REVERSED_PAIR_KEYS[:-1])
    }

    def count_open_pairs(key: str, end: str) -> int:
        with_bounds = [row for row in ranking_rows if row.get(f"{key}_{end}") is not None]
        return sum(
            round(abs(row[key] - row[f"{key}_{end}"]) * row["n_pairs"]) for row in with_bounds
        )

    not_alike = found["n_one_sided"] + found["n_reversed"]
    found["n_not_alike_min"] = not_alike - count_open_pairs("error_rate", "min")
    found["n_not_alike_max"] = not_alike + count_open_pairs("error_rate", "max")
    found["n_reversed_max"] = found["n_reversed"] + count_open_pairs("major_error_rate", "max")
    return found
