"""How are rates of labels and predictions computed for groups of claims, with bounds and intervals?

A `Tally` counts the claims of each group in cells of k values. Each value is 0, 1 or missing, in
that order along an axis of length 3; the cells of a label and a prediction are ``[label,
prediction]``.

Figures of the labels alone use all labels, whichever claims an evaluator scored. Figures that need
a prediction use the claims that are labelled and scored. If a group has no label at all, figures
that need none (such as the predicted error rate) use all scored claims. Bounds say what a figure
could be if every claim had been scored by a reply that states a verdict; they count guessed
predictions (`Judgements.stated_prediction`) as missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factaudit.stats import divide_or_undefined
from factaudit.stats.clustered_proportions import (
    ClusterCounts,
    ClusteredProportions,
    IntervalEnds,
    count_codes_by_cluster,
    estimate_clustered_proportions,
)
from factaudit.stats.hypothesis_tests import p_value_of_interval, sign_test_p
from factaudit.stats.mover import error_balance_interval, mover_proportion_sum

#: If fewer clusters have a bias, the t test of the bias is checked by an exact test.
FEWEST_CLUSTERS_FOR_T_TEST = 20


@dataclass(frozen=True)
class Figure:
    """A figure of N groups: float64 (N,), NaN where undefined.

    bounds: the lowest and the highest value that are possible, given the unscored claims. interval:
    the confidence interval for other claims of the same kind.
    """

    point: np.ndarray
    bounds: IntervalEnds | None = None
    interval: IntervalEnds | None = None

    @property
    def limits(self) -> IntervalEnds:
        """The bounds. They equal the point if nothing is unscored."""
        return (self.point, self.point) if self.bounds is None else self.bounds

    @property
    def ends(self) -> IntervalEnds:
        """The ends of the interval; NaN if there is none."""
        lacking = np.full(len(self.point), np.nan)
        return (lacking, lacking) if self.interval is None else self.interval

    def where(self, is_defined: np.ndarray) -> Figure:
        """The figure with its bounds and interval where ``is_defined``, bool (N,); else NaN."""
        point, least, most, low, high = (
            np.where(is_defined, values, np.nan)
            for values in (self.point, *self.limits, *self.ends)
        )
        return Figure(point, (least, most), None if self.interval is None else (low, high))


Figures = dict[str, Figure]


def encode_cells(*values: np.ndarray) -> np.ndarray:
    """The cell of each claim by its k values, which are 0, 1 or -1: int64 (n,), a position in an
    array with k axes of length 3."""
    # As an unsigned number, -1 is the greatest value; taking minima is faster than dividing.
    found = np.zeros(len(values[0]), dtype=np.uint8)
    for one in values:
        found = found * np.uint8(3) + np.minimum(one.astype(np.uint8), 2)
    return found.astype(np.int64)


@dataclass(frozen=True)
class Tally:
    """Claims of G groups, counted by k values. ``clusters`` holds, for each kind of cluster, the
    number of claims in each of the 3 ** k cells.

    stated: the cells (G, 3, ..., 3) without guessed predictions; None if no prediction was guessed.
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
        """bool (G,): the group has no labelled claim, so its shares use all scored claims."""
        return self.cells[:, :2].sum((1, 2)) == 0

    @property
    def scored(self) -> np.ndarray:
        """int64 (G, 3): the numbers of claims predicted 0, predicted 1 and unscored, among the
        labelled claims; among all claims if none is labelled."""
        return count_predictions(self.cells, self.is_unlabelled)

    @property
    def stated_scored(self) -> np.ndarray:
        """The same as `scored`, with guessed predictions counted as missing."""
        return count_predictions(self.stated, self.is_unlabelled)

    def count_sizes(self) -> dict[str, np.ndarray]:
        """``n`` predictions, ``n_unscored`` missing ones, ``n_guessed`` guessed ones among the n,
        and ``n_unlabelled`` claims of all."""
        scored = self.scored
        return {
            "n": scored[:, :2].sum(1),
            "n_unscored": scored[:, 2],
            "n_guessed": self.stated_scored[:, 2] - scored[:, 2],
            "n_unlabelled": self.cells[:, 2].sum(1),
        }


@dataclass(frozen=True)
class Shares:
    """J shares of G groups. Figures are weighted sums of them.

    hits, of: numerators and denominators, (kinds of clusters, J) each. bounds: (G, J) each.
    confidence: the level of the intervals; None for no intervals.
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
        """A weighted sum of columns. Its interval is MOVER's (Wilson's for a single share)."""
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


def estimate_share(
    clusters: ClusterCounts,
    hits: np.ndarray,
    of: np.ndarray,
    confidence: float | None,
    bounds: IntervalEnds | None = None,
) -> Figure:
    """One share of each of G groups, with Wilson's interval. hits, of: (kinds of clusters,)."""
    share = estimate_clustered_proportions(clusters, hits[:, None], of[:, None])
    if confidence is None:
        return Figure(share.point[:, 0], bounds)
    low, high = share.wilson_intervals(confidence)
    return Figure(share.point[:, 0], bounds, (low[:, 0], high[:, 0]))


def share_units(
    is_hit: np.ndarray,
    inside: np.ndarray,
    cluster: np.ndarray,
    confidence: float | None,
    bounds: IntervalEnds | None = None,
) -> Figure:
    """The share of hits among the units that are inside, as a figure of one group. hits and inside
    are bool (n,), cluster is int (n,)."""
    hits, everywhere = is_hit[inside].astype(np.int64), np.zeros(int(inside.sum()), dtype=np.int64)
    clusters = count_codes_by_cluster(cluster[inside], everywhere, 1, hits, 2)
    counts = clusters.counts
    return estimate_share(clusters, counts[:, 1], counts.sum(1), confidence, bounds)


def compute_rates(tally: Tally, confidence: float | None) -> Figures:
    """tpr, tnr, fpr, fnr, bacc, ppr and gap (= tpr - tnr) of each group. If nothing is labelled,
    ppr uses all claims."""
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
    """The labelled error rate, over all labels, and the predicted one, over the labelled claims
    that are scored."""
    cells = tally.clusters.counts.reshape(-1, 3, 3)
    predicted = count_predictions(cells, tally.is_unlabelled[tally.clusters.group])
    hits = np.stack([cells[:, 0].sum(1), predicted[:, 0]], 1)
    of = np.stack([cells[:, :2].sum((1, 2)), predicted[:, :2].sum(1)], 1)
    # No label is missing among the labels.
    labelled = np.pad(tally.stated[:, :2].sum(2), ((0, 0), (0, 1)))
    bounds = _bound_shares((labelled, 0), (tally.stated_scored, 0))
    return Shares(tally.clusters, hits, of, bounds, confidence)


def compute_error_rates(tally: Tally, confidence: float | None) -> Figures:
    """labelled_error_rate, predicted_error_rate and bias (= predicted - labelled); also p_bias if
    intervals are wanted.

    The bias is the difference of two shares of discordant claims (labelled 1 and predicted 0, and
    the reverse) among the labelled and scored claims. If some labelled claims are unscored, its
    interval is shifted to the bias over all labels. p_bias is two-sided and comes from the test
    that this interval inverts. If in fewer than `FEWEST_CLUSTERS_FOR_T_TEST` clusters the predicted
    and labelled numbers of errors differ, an exact sign test of these clusters is made as well, and
    p_bias is the greater of the two p-values.
    """
    shares = share_errors(tally, confidence)
    labelled, predicted, bias = shares.sum({0: 1}), shares.sum({1: 1}), shares.sum({0: -1, 1: 1})
    figures = {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": bias}
    if confidence is None:
        return figures
    both, apart = share_discordant_claims(tally.clusters)
    difference, (low, high) = error_balance_interval(apart, confidence)
    moved = bias.point - difference
    # The bias cannot be farther from 0 than with each rate at the end of its own interval. This is
    # MOVER for rates that move in opposite directions.
    least, most = predicted.ends[0] - labelled.ends[1], predicted.ends[1] - labelled.ends[0]
    ends = (
        np.maximum(np.maximum(low + moved, least), -1),
        np.minimum(np.minimum(high + moved, most), 1),
    )
    # The half of the interval that faces no bias.
    half_width = np.where(bias.point > 0, difference - low, high - difference)
    p = p_value_of_interval(np.abs(bias.point), half_width, apart.n_clusters[:, 0] - 1, confidence)
    net, times, group = both[:, 1, 0] - both[:, 0, 1], tally.clusters.times, tally.clusters.group
    more, fewer = (np.bincount(group, (net * side > 0) * times, len(p)) for side in (1, -1))
    few = more + fewer < FEWEST_CLUSTERS_FOR_T_TEST
    p = np.where(few, np.maximum(p, sign_test_p(more, fewer)), p)
    return figures | {"bias": replace(bias, interval=ends), "p_bias": Figure(p)}


def count_bias_clusters(tally: Tally) -> np.ndarray:
    """int64 (G,): the number of clusters with labelled and scored claims, on which a bias rests."""
    return share_discordant_claims(tally.clusters)[1].n_clusters[:, 0].astype(np.int64)


def share_discordant_claims(clusters: ClusterCounts) -> tuple[np.ndarray, ClusteredProportions]:
    """The labelled and scored claims by cluster, (kinds, 2, 2), and the two shares of discordant
    claims: labelled 1 and predicted 0, and the reverse."""
    both = clusters.counts.reshape(-1, 3, 3)[:, :2, :2]
    n = np.repeat(both.sum((1, 2))[:, None], 2, 1)
    return both, estimate_clustered_proportions(
        clusters, np.stack([both[:, 1, 0], both[:, 0, 1]], 1), n
    )


def count_predictions(cells: np.ndarray, over_all: np.ndarray) -> np.ndarray:
    """(..., 3): the numbers of claims predicted 0, predicted 1 and unscored, among the labelled
    claims or (where ``over_all`` is true) among all."""
    return np.where(over_all[:, None], cells.sum(1), cells[:, :2].sum(1))


def _bound_shares(*parts: tuple[np.ndarray, int]) -> IntervalEnds:
    """The least and the greatest possible share of one prediction, from (G, 3) counts of claims
    predicted 0, predicted 1 and unscored."""
    least = [divide_or_undefined(counts[:, value], counts.sum(1)) for counts, value in parts]
    most = [
        divide_or_undefined(counts[:, value] + counts[:, 2], counts.sum(1))
        for counts, value in parts
    ]
    return np.stack(least, 1), np.stack(most, 1)
