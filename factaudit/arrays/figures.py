"""Figures of groups of claims: rates of labels and predictions, with bounds and intervals.

Claims are counted in cells of k values, each 0, 1 or missing (in that order along an axis of 3): a
`Tally`. The cells of a label and a prediction are ``[label, prediction]``.

Figures of the labels alone are over all labels, whatever an evaluator scored. Figures that need a
prediction are over what is labelled and scored; of a group without any label, those that need none
(the predicted error rate) are over all that is scored. Bounds say what a figure could be, had every
claim been scored by a reply that states a verdict: they count guessed predictions
(`Judgements.stated_prediction`) as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    ClusteredProportions,
    IntervalEnds,
    count_codes_by_cluster,
    estimate_clustered_proportions,
)
from factaudit.stats.mover import error_balance_interval, mover_proportion_sum
from factaudit.stats.multiplicity import p_value_of_interval, sign_test_p
from factaudit.stats.undefined_values import divide_or_undefined

#: With fewer clusters that are judged wrongly on balance, the t test of a bias is checked by an
#: exact one.
FEWEST_CLUSTERS_FOR_T_TEST = 20


@dataclass(frozen=True)
class Figure:
    """A figure of N groups: float64 (N,), NaN where undefined.

    bounds: what it could be, whatever the unscored claims are. interval: what other claims would
    give.
    """

    point: np.ndarray
    bounds: IntervalEnds | None = None
    interval: IntervalEnds | None = None

    @property
    def limits(self) -> IntervalEnds:
        """The bounds; the point itself, where nothing is unscored."""
        return (self.point, self.point) if self.bounds is None else self.bounds

    @property
    def ends(self) -> IntervalEnds:
        """The interval; NaN without one."""
        lacking = np.full(len(self.point), np.nan)
        return (lacking, lacking) if self.interval is None else self.interval


Figures = dict[str, Figure]


def encode_cells(*values: np.ndarray) -> np.ndarray:
    """The cell of each claim by its k values, each 0, 1 or -1: int64 (n,), in the order of an array
    of k axes of 3."""
    # As unsigned numbers -1 is the greatest of all: minima cost less than divisions.
    found = np.zeros(len(values[0]), dtype=np.uint8)
    for one in values:
        found = found * np.uint8(3) + np.minimum(one.astype(np.uint8), 2)
    return found.astype(np.int64)


@dataclass(frozen=True)
class Tally:
    """Claims of G groups by k values: ``clusters`` has, of each kind of cluster, the claims in each
    of 3 ** k cells.

    stated: the cells (G, 3, ..., 3) without guessed predictions; None where none is guessed.
    """

    clusters: ClusterCounts
    stated_cells: np.ndarray | None = None

    @cached_property
    def cells(self) -> np.ndarray:
        """int64 (G, 3, ..., 3)."""
        sums = self.clusters.sum_by_group(self.clusters.counts).astype(np.int64)
        n_values = round(np.log(sums.shape[1]) / np.log(3))
        return sums.reshape(-1, *[3] * n_values)

    @property
    def stated(self) -> np.ndarray:
        """int64 (G, 3, ..., 3), guessed predictions counted as missing."""
        return self.cells if self.stated_cells is None else self.stated_cells

    @property
    def is_unlabelled(self) -> np.ndarray:
        """bool (G,): no claim of the group is labelled, so its shares are over all that is
        scored."""
        return self.cells[:, :2].sum((1, 2)) == 0

    @property
    def scored(self) -> np.ndarray:
        """int64 (G, 3): claims predicted 0, 1 and unscored, of what is labelled; of all where
        nothing is."""
        return count_predictions(self.cells, self.is_unlabelled)

    @property
    def stated_scored(self) -> np.ndarray:
        """`scored`, guessed predictions counted as missing."""
        return count_predictions(self.stated, self.is_unlabelled)

    def count_sizes(self) -> dict[str, np.ndarray]:
        """``n`` predictions, ``n_unscored`` that are missing, ``n_guessed`` of n, ``n_unlabelled``
        of all claims."""
        scored = self.scored
        return {
            "n": scored[:, :2].sum(1),
            "n_unscored": scored[:, 2],
            "n_guessed": self.stated_scored[:, 2] - scored[:, 2],
            "n_unlabelled": self.cells[:, 2].sum(1),
        }


@dataclass(frozen=True)
class Shares:
    """J shares of G groups, whose weighted sums are figures.

    hits, of: (kinds of clusters, J). bounds: (G, J) each. confidence: of intervals; None: there are
    none.
    """

    clusters: ClusterCounts
    hits: np.ndarray
    of: np.ndarray
    bounds: IntervalEnds
    confidence: float | None

    @cached_property
    def estimate(self) -> ClusteredProportions:
        return estimate_clustered_proportions(self.clusters, self.hits, self.of)

    @cached_property
    def _intervals(self) -> IntervalEnds:
        return self.estimate.wilson_intervals(self.confidence or 0.95)

    def sum(self, weights: Mapping[int, float], plus: float = 0.0) -> Figure:
        """A weighted sum of columns: its interval is MOVER's, which of one share is Wilson's."""
        at, weight = list(weights), np.array(list(weights.values()))
        least, most = (each[:, at] for each in self.bounds)
        bounds = (
            (weight * np.where(weight > 0, least, most)).sum(1) + plus,
            (weight * np.where(weight > 0, most, least)).sum(1) + plus,
        )
        if self.confidence is None:
            return Figure((weight * self.estimate.point[:, at]).sum(1) + plus, bounds)
        terms = self._intervals[0][:, at], self._intervals[1][:, at]
        point, (low, high) = mover_proportion_sum(
            self.estimate.select(at), weight, self.confidence, terms
        )
        return Figure(point + plus, bounds, (low + plus, high + plus))


def share_units(
    is_hit: np.ndarray,
    inside: np.ndarray,
    cluster: np.ndarray,
    confidence: float | None,
    bounds: IntervalEnds | None = None,
) -> Figure:
    """The share of hits among the units that are inside, as a figure of one group: bool (n,) each,
    cluster int (n,)."""
    hits, everywhere = is_hit[inside].astype(np.int64), np.zeros(int(inside.sum()), dtype=np.int64)
    clusters = count_codes_by_cluster(cluster[inside], everywhere, 1, hits, 2)
    shares = estimate_clustered_proportions(
        clusters, clusters.counts[:, 1:], clusters.counts.sum(1, keepdims=True)
    )
    low, high = (end[:, 0] for end in shares.wilson_intervals(confidence or 0.95))
    return Figure(shares.point[:, 0], bounds, None if confidence is None else (low, high))


def compute_rates(tally: Tally, confidence: float | None) -> Figures:
    """tpr, tnr, fpr, fnr, bacc, ppr and gap (= tpr - tnr) of each group; ppr is over all where
    nothing is labelled."""
    cells = tally.clusters.counts.reshape(-1, 3, 3)
    predicted = count_predictions(cells, tally.is_unlabelled[tally.clusters.group])
    hits = np.stack([cells[:, 1, 1], cells[:, 0, 0], predicted[:, 1]], 1)
    of = np.stack([cells[:, 1, :2].sum(1), cells[:, 0, :2].sum(1), predicted[:, :2].sum(1)], 1)
    bounds = _bound_shares(
        (tally.stated[:, 1], 1), (tally.stated[:, 0], 0), (tally.stated_scored, 1)
    )
    shares = Shares(tally.clusters, hits, of, bounds, confidence)
    return {
        "tpr": shares.sum({0: 1}),
        "tnr": shares.sum({1: 1}),
        "fpr": shares.sum({1: -1}, plus=1),
        "fnr": shares.sum({0: -1}, plus=1),
        "bacc": shares.sum({0: 0.5, 1: 0.5}),
        "ppr": shares.sum({2: 1}),
        "gap": shares.sum({0: 1, 1: -1}),
    }


def share_errors(tally: Tally, confidence: float | None) -> Shares:
    """The labelled error rate, over all labels, and the predicted one, over what is scored of
    them."""
    cells = tally.clusters.counts.reshape(-1, 3, 3)
    predicted = count_predictions(cells, tally.is_unlabelled[tally.clusters.group])
    hits = np.stack([cells[:, 0].sum(1), predicted[:, 0]], 1)
    of = np.stack([cells[:, :2].sum((1, 2)), predicted[:, :2].sum(1)], 1)
    # No label is missing among the labels.
    labelled = np.pad(tally.stated[:, :2].sum(2), ((0, 0), (0, 1)))
    bounds = _bound_shares((labelled, 0), (tally.stated_scored, 0))
    return Shares(tally.clusters, hits, of, bounds, confidence)


def compute_error_rates(tally: Tally, confidence: float | None) -> Figures:
    """labelled_error_rate, predicted_error_rate and bias (= predicted - labelled); with intervals
    p_bias, too.

    The bias is the difference of two shares of discordant claims, of what is labelled and scored;
    where labelled claims are unscored, its interval is moved to the bias over all labels. p_bias is
    two-sided, by the test that this interval inverts; where fewer than `FEWEST_CLUSTERS_FOR_T_TEST`
    clusters have more errors predicted than labelled, or fewer, by the exact sign test of these
    clusters as well, the greater p-value then.
    """
    shares = share_errors(tally, confidence)
    labelled, predicted, bias = shares.sum({0: 1}), shares.sum({1: 1}), shares.sum({0: -1, 1: 1})
    figures = {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": bias}
    if confidence is None:
        return figures
    both, apart = share_discordant_claims(tally.clusters)
    difference, (low, high) = error_balance_interval(apart, confidence)
    moved = bias.point - difference
    # No farther than both rates could be, each at the end of its own interval: MOVER for rates that
    # move oppositely.
    least, most = predicted.ends[0] - labelled.ends[1], predicted.ends[1] - labelled.ends[0]
    ends = (
        np.maximum(np.maximum(low + moved, least), -1),
        np.minimum(np.minimum(high + moved, most), 1),
    )
    # The half on the side of no bias.
    half_width = np.where(bias.point > 0, difference - low, high - difference)
    p = p_value_of_interval(np.abs(bias.point), half_width, apart.n_clusters[:, 0] - 1, confidence)
    net, times, group = both[:, 1, 0] - both[:, 0, 1], tally.clusters.times, tally.clusters.group
    more, fewer = (np.bincount(group, (net * side > 0) * times, len(p)) for side in (1, -1))
    few = more + fewer < FEWEST_CLUSTERS_FOR_T_TEST
    p = np.where(few, np.maximum(p, sign_test_p(more, fewer)), p)
    return figures | {"bias": replace(bias, interval=ends), "p_bias": Figure(p)}


def count_bias_clusters(tally: Tally) -> np.ndarray:
    """int64 (G,): the clusters with labelled and scored claims, which a bias rests on."""
    return share_discordant_claims(tally.clusters)[1].n_clusters[:, 0].astype(np.int64)


def share_discordant_claims(clusters: ClusterCounts) -> tuple[np.ndarray, ClusteredProportions]:
    """Labelled and scored claims by cluster (kinds, 2, 2); the shares labelled 1 and predicted 0,
    and the reverse."""
    both = clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
    n = np.repeat(both.sum((1, 2))[:, None], 2, 1)
    return both, estimate_clustered_proportions(
        clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), n
    )


def count_predictions(cells: np.ndarray, over_all: np.ndarray) -> np.ndarray:
    """(..., 3): predicted 0, 1 and unscored, of the labelled claims or (where ``over_all``) of
    all."""
    return np.where(over_all[:, None], cells.sum(1), cells[:, :2].sum(1))


def _bound_shares(*parts: tuple[np.ndarray, int]) -> IntervalEnds:
    """The least and the greatest share of one prediction in (G, 3) counts of predicted 0, 1 and
    unscored."""
    least = [divide_or_undefined(counts[:, value], counts.sum(1)) for counts, value in parts]
    most = [
        divide_or_undefined(counts[:, value] + counts[:, 2], counts.sum(1))
        for counts, value in parts
    ]
    return np.stack(least, 1), np.stack(most, 1)
