"""The order of systems by their error rates: significant orders of pairs, their errors and bounds,
and correlations.

Arrays over pairs are over the S (S - 1) / 2 pairs a < b of S systems, in the order of
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

#: A pair counts as detectable where its labels would show a true difference this often.
PAIR_DETECTION_POWER = 0.8
#: How two systems are compared: by a test that knows clusters, or by VC's z-test, for which claims
#: are independent.
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

    proportions: the same cluster by cluster, (1, S); None where claims count as independent (VC's
    z-test).
    """

    errors: np.ndarray
    n: np.ndarray
    proportions: ClusteredProportions | None = None

    @property
    def rates(self) -> np.ndarray:
        return divide_or_undefined(self.errors, self.n)

    def test_pairs(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Two-sided p-values of equal rates of the systems at these places; NaN where one has no
        claim."""
        if self.proportions is None:
            return two_proportion_p(self.errors[a], self.n[a], self.errors[b], self.n[b])
        return np.where(
            (self.n[a] > 0) & (self.n[b] > 0), pair_p_values(self.proportions, a, b), np.nan
        )

    def order_pairs(self, test: PairTest) -> tuple[np.ndarray, np.ndarray]:
        """p-values and orders: -1 where a has significantly fewer errors than b, 0, 1; NaN where
        undefined."""
        a, b = np.triu_indices(len(self.n), 1)
        p = test.adjust(self.test_pairs(a, b))
        order = np.where(p < test.alpha, np.sign(self.rates[a] - self.rates[b]), 0.0)
        return p, np.where(np.isnan(p), np.nan, order)

    def compute_power(self, difference: float, test: PairTest) -> np.ndarray:
        """How probably these claims of each pair would show a true difference, by the test that
        orders them.

        Of a corrected test: as if all pairs were looked at together (Bonferroni), which is the
        least that Holm's finds.
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


#: Of cells (..., S, 3, 3), one or several times: errors, and of how many claims.
CellCounter = Callable[[np.ndarray], list[tuple[np.ndarray, np.ndarray]]]


def _count_errors(cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """By the labels; and as predicted, of what is labelled and scored."""
    labelled, both = cells[..., :2, :], cells[..., :2, :2]
    return [
        (labelled[..., 0, :].sum(-1), labelled.sum((-1, -2))),
        (both[..., 0].sum(-1), both.sum((-1, -2))),
    ]


def _count_extreme_errors(cells: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """All systems with the fewest errors that could be predicted, then all with the most."""
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
        """Those systems that are used: bool (S,)."""
        if used.all():
            return self
        members = [place for place, is_used in zip(self.members, used, strict=True) if is_used]
        return replace(self, members=members, cells=self.cells[used], stated=self.stated[used])

    @cached_property
    def errors(self) -> tuple[SystemErrors, SystemErrors]:
        """By the labels, and as predicted."""
        labelled, predicted = self.count_by_cluster(_count_errors, stated=False)
        return labelled, predicted

    def errors_for(self, test: PairTest) -> tuple[SystemErrors, SystemErrors]:
        """`errors`, with clusters where the test knows them."""
        labelled, predicted = self.errors
        if test.test == "z":
            return replace(labelled, proportions=None), replace(predicted, proportions=None)
        return labelled, predicted

    def count_by_cluster(self, count: CellCounter, *, stated: bool) -> list[SystemErrors]:
        """What ``count`` makes of the cells, in all and in each cluster."""
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
    """A case for each data set and evaluator; groups: of systems. Kept, as two audits read them."""
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
    """Shares of pairs: ordered differently, in opposite directions, and ordered by the labels at
    all.

    The bounds are what the first two could be, each pair on its own, had every labelled claim been
    scored: the predicted order, from fewer claims than are labelled, may be another.
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

    The difference of a's and b's rates rises with a's errors and falls with b's: it is least with
    the fewest errors of a and the most of b. Holm's correction rejects more as any p-value falls:
    what could be takes all others at their least, what is certain at their greatest.
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


#: Numbers of pairs in significant order, and the p-value of "no pair is reversed".
REVERSED_PAIR_KEYS = ("n_ordered", "n_ordered_alike", "n_one_sided", "n_reversed", "p_reversed")


def count_reversed_pairs(
    labelled: SystemErrors, predicted: SystemErrors, alpha: float
) -> dict[str, Any]:
    """How many pairs the labels order, both order alike, only one side orders, and both order
    oppositely.

    A pair is ordered where a test that knows clusters says so (Holm for the pairs), and reversed
    where both tests do, in opposite directions. p_reversed is the p-value of "no pair is reversed".
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
    """kendall_tau (tau-b) and pearson_r of the labelled and the predicted error rates, as figures
    of one group.

    The interval of τ holds all that the data leave open: pairs whose rates do not differ
    significantly by the labels, or by the predictions, may be in either order. That is
    conservative. (Percentiles of τ over bootstrap replicates hold the true τ in 2 to 99 % of
    simulations, since noise pulls τ towards 0 and the bootstrap adds noise again.)
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
    """Numbers of pairs over rows: all; ordered by the labels, alike, by one side alone, reversed;
    and not alike (by one side alone, or reversed) with ``_min`` and ``_max``, at most so far apart,
    had all been scored; ``n_reversed_max``.
    """
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
