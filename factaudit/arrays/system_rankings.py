"""In which order are systems by their error rates? Significant orders of pairs, their errors and
bounds, and correlations.

Arrays over pairs cover the S (S - 1) / 2 pairs a < b of S systems, in the order of
`numpy.triu_indices`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factaudit.arrays.figures import Tally
from factaudit.arrays.judgements import LABEL, ClaimGroups, Judgements
from factaudit.stats import name_figure
from factaudit.stats.agreement import fisher_z_interval, kendall_tau, pearson
from factaudit.stats.clustered_proportions import (
    ClusteredProportions,
    estimate_clustered_proportions,
)
from factaudit.stats.hypothesis_tests import (
    MultiplicityCorrection,
    SystemPairTest,
    holm_adjusted_p,
    pair_p_values,
)

#: The level at which two systems differ significantly.
ALPHA = 0.05
#: Wider intervals of τ are not given: they would cover more than half of the possible values.
MAX_TAU_INTERVAL_WIDTH = 1.0
#: The columns of `RankingCase.rates`.
SIDES = {"labelled": 0, "predicted": 1}


@dataclass(frozen=True)
class PairTest:
    """How pairs of systems are ordered."""

    test: SystemPairTest = "clustered"
    correction: MultiplicityCorrection = "holm"

    def adjust(self, p: np.ndarray) -> np.ndarray:
        return holm_adjusted_p(p) if self.correction == "holm" else p


@dataclass(frozen=True)
class RankingCase:
    """The systems of one dataset at one level, as one evaluator sees them.

    members: int (S,), the systems by their positions among all G groups. tally: of all groups, by
    label and prediction. rates: (G, 2), the error rates by the labels, and as predicted among the
    claims that are labelled and scored. extremes: (G, 2), the lowest and the highest rate that
    could be predicted; None if every claim is scored.
    """

    groups: ClaimGroups
    members: np.ndarray
    dataset: str
    evaluator: int
    tally: Tally
    rates: ClusteredProportions
    extremes: ClusteredProportions | None

    @property
    def systems(self) -> list[str]:
        return [self.groups.keys[place]["system"] for place in self.members]

    @property
    def cells(self) -> np.ndarray:
        """int64 (S, 3, 3): claims by label and prediction."""
        return self.tally.cells[self.members]

    @property
    def stated(self) -> np.ndarray:
        """int64 (S, 3, 3): the same, guessed predictions counted as missing."""
        return self.tally.stated[self.members]

    def error_rates(self, side: str) -> np.ndarray:
        """float64 (S,): of one of `SIDES`."""
        return self.rates.point[self.members, SIDES[side]]

    def pair_positions(self) -> tuple[np.ndarray, np.ndarray]:
        """The groups of both systems of each pair: (pairs,) each."""
        a, b = np.triu_indices(len(self.members), 1)
        return self.members[a], self.members[b]

    def test_pairs(self, side: str, test: SystemPairTest = "clustered") -> np.ndarray:
        """The p-values of equal error rates: (pairs,), NaN if a system has no claim."""
        a, b = self.pair_positions()
        return pair_p_values(self.rates, (a, SIDES[side]), (b, SIDES[side]), test)

    def compare_pairs(self, side: str) -> np.ndarray:
        """(pairs,): -1 if a has the lower error rate, 1 if b has, 0 if they are equal."""
        rate = self.error_rates(side)
        a, b = np.triu_indices(len(rate), 1)
        return np.sign(rate[a] - rate[b])

    def order_pairs(self, side: str, how: PairTest) -> tuple[np.ndarray, np.ndarray]:
        """The p-values and the orders: as `compare_pairs` if the difference is significant, else 0;
        NaN if a system has no claim."""
        p = how.adjust(self.test_pairs(side, how.test))
        order = np.where(p < ALPHA, self.compare_pairs(side), 0.0)
        return p, np.where(np.isnan(p), np.nan, order)


def list_ranking_cases(judgements: Judgements, groups: ClaimGroups) -> list[RankingCase]:
    """A case for each evaluator and data set. groups: of systems. The cases are kept, because two
    audits read them."""
    return judgements.compute_once(
        ("rankings", groups), lambda: list(_make_ranking_cases(judgements, groups))
    )


def _make_ranking_cases(judgements: Judgements, groups: ClaimGroups) -> Iterator[RankingCase]:
    units = judgements.at_level(groups.level)
    for place in range(len(judgements.evaluators)):
        tally = judgements.tally(groups, LABEL, place)
        labelled = tally.clusters.counts.reshape(-1, 3, 3)[:, :2]
        both = labelled[:, :, :2]
        errors = np.stack([labelled[:, 0].sum(1), both[:, :, 0].sum(1)], 1)
        of = np.stack([labelled.sum((1, 2)), both.sum((1, 2))], 1)
        rates, extremes = estimate_clustered_proportions(tally.clusters, errors, of), None
        if tally.stated[:, :2, 2].any():
            values = units.label, units.stated_prediction[place]
            clusters = judgements.tally_values(groups, values, values).clusters
            # By prediction, over both labels.
            said = clusters.counts.reshape(-1, 3, 3)[:, :2].sum(1)
            least = said[:, 0]
            extremes = estimate_clustered_proportions(
                clusters,
                np.stack([least, least + said[:, 2]], 1),
                np.repeat(said.sum(1, keepdims=True), 2, 1),
            )
        for dataset in judgements.dataset_names:
            members = [at for at, key in enumerate(groups.keys) if key["dataset"] == dataset]
            at = np.array(members, dtype=np.int64)
            yield RankingCase(groups, at, dataset, place, tally, rates, extremes)


def measure_orders(case: RankingCase, how: PairTest) -> dict[str, Any]:
    """How both sides order the pairs of systems: shares and numbers of pairs, None without a pair.

    error_rate: the share ordered differently; major_error_rate: in opposite directions; orderable:
    by the labels at all. The bounds say what the first two could be, for each pair on its own, if
    every labelled claim had been scored; the predicted order, which rests on fewer claims, may then
    change. n_ordered pairs are ordered by the labels, n_ordered_alike by both sides alike,
    n_reversed by both in opposite directions, and n_one_sided by one side alone. p_reversed is the
    p-value of the hypothesis that no pair is reversed, whatever ``how`` is: by the test that uses
    clusters, with Holm's correction over the pairs.
    """
    labelled, predicted = (case.order_pairs(side, how)[1] for side in SIDES)
    low = high = predicted
    if case.extremes is not None and case.stated[:, :2, 2].any():
        low, high = _bound_pair_orders(case.extremes, case.pair_positions(), how)
        low, high = np.minimum(low, predicted), np.maximum(high, predicted)
    reversed_low, reversed_high = labelled * low == -1, labelled * high == -1
    is_reversed = labelled * predicted == -1
    shares = {
        "error_rate": labelled != predicted,
        "error_rate_min": (labelled < low) | (labelled > high),
        "error_rate_max": (low != labelled) | (high != labelled),
        "major_error_rate": is_reversed,
        "major_error_rate_min": reversed_low & reversed_high,
        "major_error_rate_max": reversed_low | reversed_high,
        "orderable": labelled != 0,
    }
    numbers = {
        "n_ordered": labelled != 0,
        "n_ordered_alike": (labelled == predicted) & (labelled != 0),
        "n_one_sided": (labelled != predicted) & ~is_reversed,
        "n_reversed": is_reversed,
    }
    if not len(labelled):
        return {"n_pairs": 0, **dict.fromkeys([*shares, *numbers, "p_reversed"])}
    return (
        {"n_pairs": len(labelled), "p_reversed": _test_reversals(case)}
        | {key: float(which.mean()) for key, which in shares.items()}
        | {key: int(which.sum()) for key, which in numbers.items()}
    )


def _test_reversals(case: RankingCase) -> float:
    """Both sides must order a pair, so the greater of its two p-values is that of its reversal."""
    p = np.maximum(*(case.test_pairs(side) for side in SIDES))
    is_opposite = np.multiply(*(case.compare_pairs(side) for side in SIDES)) < 0
    return float(holm_adjusted_p(np.where(is_opposite, p, 1.0)).min())


def _bound_pair_orders(
    extremes: ClusteredProportions, pairs: tuple[np.ndarray, np.ndarray], how: PairTest
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest order that each pair could have, (pairs,).

    The difference of the rates of a and b rises with the errors of a and falls with those of b, so
    it is lowest with the fewest errors of a and the most of b. Holm's correction rejects more if
    any p-value falls. So a possible rejection assumes the lowest p-values of all other pairs, and a
    certain one the highest.
    """
    a, b = pairs
    sides = [((a, 0), (b, 1)), ((a, 1), (b, 0))]
    p = np.array([pair_p_values(extremes, *side, how.test) for side in sides])
    sign = np.sign([extremes.point[one] - extremes.point[other] for one, other in sides])
    is_possible = np.maximum(how.adjust(p.min(0)), p) < ALPHA
    is_certain = how.adjust(np.where(sign[0] * sign[1] > 0, p.max(0), 1.0)) < ALPHA
    settled = np.where(is_certain, sign[0], 0)
    low = np.where((sign[0] < 0) & is_possible[0], -1, np.maximum(settled, 0))
    return low, np.where((sign[1] > 0) & is_possible[1], 1, np.minimum(settled, 0))


def correlate_rates(case: RankingCase, confidence: float | None) -> dict[str, float | None]:
    """kendall_tau (tau-b) and pearson_r between the labelled and the predicted error rates, with
    intervals unless ``confidence`` is None. An interval of τ that is wider than
    `MAX_TAU_INTERVAL_WIDTH` is not given.

    The interval of τ contains all values that the data leave open: pairs whose rates do not differ
    significantly, by the labels or by the predictions, may be in either order. This is
    conservative. (Percentiles of τ over bootstrap replicates contain the true τ in 2 to 99 % of
    simulations, because noise pulls τ towards 0 and the bootstrap adds noise again.)
    """
    x, y = (case.error_rates(side) for side in SIDES)
    tau, r = kendall_tau(x, y), pearson(x, y).point
    if confidence is None:
        return name_figure("kendall_tau", tau) | name_figure("pearson_r", r)
    of_tau, of_r = (np.nan, np.nan), fisher_z_interval(r, len(x), confidence)
    if not np.isnan(tau):
        product = np.multiply(*(case.compare_pairs(side) for side in SIDES))
        p = np.maximum(*(case.test_pairs(side) for side in SIDES))
        settled, is_open = product[p < 1 - confidence].sum(), (p >= 1 - confidence) | (product == 0)
        low, high = ((settled + sign * is_open.sum()) / len(p) for sign in (-1, 1))
        low, high = min(low, tau), max(high, tau)
        if high - low <= MAX_TAU_INTERVAL_WIDTH:
            of_tau = low, high
    return name_figure("kendall_tau", tau, of_tau) | name_figure("pearson_r", r, of_r)


def count_ordered_system_rankings(ranking_rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Numbers of pairs, summed over rows: all pairs; those that the labels order, that both order
    alike, that are reversed, and that one side alone orders; and the lowest and the highest number
    of those not ordered alike, if all claims had been scored (``n_not_alike_min``,
    ``n_not_alike_max``)."""
    found = {
        key: sum(row[key] for row in ranking_rows)
        for key in ("n_pairs", "n_ordered", "n_ordered_alike", "n_reversed", "n_one_sided")
    }
    for end in ("min", "max"):
        # Without bounds (published rates whose numbers of claims are not known) all is scored.
        shares = [row.get(f"error_rate_{end}") for row in ranking_rows]
        found[f"n_not_alike_{end}"] = sum(
            round((row["error_rate"] if share is None else share) * row["n_pairs"])
            for row, share in zip(ranking_rows, shares, strict=True)
        )
    return found
