"""AUC and average precision of scores in clustered data, with intervals.

Both get the influence of each unit on them, so that their variance over clusters is a sum (DeLong, DeLong &
Clarke-Pearson 1988; Obuchowski 1997 for clusters); the interval is made on the scale of log odds.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from factaudit.stats.clustered_proportions import IntervalEnds, student_t_quantile, wilson_interval
from factaudit.stats.distinct_rows import encode_distinct_integer_pairs
from factaudit.stats.undefined_values import divide_or_undefined


@dataclass(frozen=True)
class RocCurveEstimate:
    """A figure in [0, 1] of each of G groups: (G,) each.

    n_rarer: units of the rarer class; n_clusters: the clusters that have units of a class, of the class that has fewer.
    """

    point: np.ndarray
    variance: np.ndarray
    n_rarer: np.ndarray
    n_clusters: np.ndarray

    def log_odds_intervals(self, confidence: float) -> IntervalEnds:
        """(G,) each, on the scale of log odds with Student's t (Pepe 2003); Wilson's where nothing varied.

        NaN where the figure is undefined or a class is in fewer than two clusters.
        """
        varies = (self.variance > 0) & (self.point > 0) & (self.point < 1)
        # A variance is no surer than the few clusters that a class is in, and an influence is measured with the cluster
        # in: of few clusters it tells too little of the next one (CR3).
        freedom = self.n_clusters - 1
        error = np.sqrt(self.variance) * divide_or_undefined(self.n_clusters, freedom)
        n = np.where(np.isnan(self.point), np.nan, self.n_rarer)
        low, high = wilson_interval(self.point, n, freedom, confidence)
        point = np.where(varies, self.point, 0.5)
        half = student_t_quantile(freedom, confidence) * error / (point * (1 - point))
        odds = scipy.special.logit(point)
        on_odds = scipy.special.expit(odds - half), scipy.special.expit(odds + half)
        return np.where(varies, on_odds[0], low), np.where(varies, on_odds[1], high)


def order_roc_scores_by_group(group: np.ndarray, score: np.ndarray, n_groups: int) -> np.ndarray:
    """The places of units by group, then by rising score, ties in the order given: int64 (n,).

    group: int (n,), 0..n_groups-1; score: float (n,).

    >>> order_roc_scores_by_group(np.array([1, 0, 0]), np.array([0.1, 0.9, 0.2]), 2).tolist()
    [2, 1, 0]
    """
    order = np.argsort(score)  # not a stable one, which takes several times as long
    block = np.cumsum(_mark_changes_between_sorted_scores(score[order])) - 1
    if len(order) and block[-1] < len(order) - 1:
        block *= len(order)
        order = np.sort(block + order) - block
    # Of short numbers numpy counts, which is much faster than comparing.
    short = group[order].astype(np.uint16 if n_groups < 1 << 16 else np.int64)
    return order[np.argsort(short, kind="stable")]


def _mark_changes_between_sorted_scores(*ranked: np.ndarray) -> np.ndarray:
    """bool (n,): where one of the sorted arrays has another value than before."""
    new = np.ones(len(ranked[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in ranked])
    return new


@dataclass(frozen=True)
class RocTiedScores:
    """How many units of each label have each of a group's scores.

    The V pairs of a group and a score are sorted. group: int (V,); positive, negative: int64 (V,), the units of label 1
    and 0. AUC and average precision follow from these numbers alone.

    >>> ties = RocTiedScores(np.array([0, 0]), positive=np.array([1, 3]), negative=np.array([2, 1]), n_groups=1)
    >>> ties.points()["auc"].round(4).item()
    0.7083
    """

    group: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    n_groups: int

    def add_extreme_claims(self, n_below: np.ndarray, n_above: np.ndarray) -> RocTiedScores:
        """With more claims of each group, by label int64 (2, G): some below all its scores, some above them."""
        groups = np.arange(self.n_groups)
        own = np.arange(len(self.group)) + 2 * self.group + 1
        size = len(own) + 2 * self.n_groups
        group, counts = np.empty(size, dtype=np.int64), np.empty((2, size), dtype=np.int64)
        group[own], counts[:, own] = self.group, (self.negative, self.positive)
        for added, side, at in ((n_below, "left", 0), (n_above, "right", 1)):
            place = np.searchsorted(self.group, groups, side) + 2 * groups + at  # type: ignore[call-overload]
            group[place], counts[:, place] = groups, added
        return RocTiedScores(group, counts[1], counts[0], self.n_groups)

    def points(self) -> dict[str, np.ndarray]:
        """The figures of each group: (G,), NaN where a class is missing."""
        both = self.n_rarer_class > 0
        return {
            "auc": np.where(both, self.auc, np.nan),
            "average_precision": np.where(both, self.average_precision, np.nan),
        }

    @cached_property
    def auc(self) -> np.ndarray:
        """(G,)."""
        return divide_or_undefined(self.sum_by_group(self.positive, self.shares_on_right_side[1]), self.n_positive)

    @cached_property
    def average_precision(self) -> np.ndarray:
        """(G,): average precision of errors, found by going up from the least score."""
        return divide_or_undefined(self.sum_by_group(self.negative, self.precision_by_score[0]), self.n_negative)

    @cached_property
    def shares_on_right_side(self) -> np.ndarray:
        """(2, V): of a claim of each label, the share of the other class that its score is on the right side of."""
        below, above = self._before(self.positive) + self.positive / 2, self._before(self.negative) + self.negative / 2
        others = self.n_positive[self.group]
        return np.stack(
            [divide_or_undefined(others - below, others), divide_or_undefined(above, self.n_negative[self.group])]
        )

    @cached_property
    def precision_by_score(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(V,) each: the precision with a score's claims, and how many errors and others are found with them."""
        errors, others = (self._before(some) + some for some in (self.negative, self.positive))
        return divide_or_undefined(errors, errors + others), errors, others

    @cached_property
    def n_positive(self) -> np.ndarray:
        return np.bincount(self.group, self.positive, self.n_groups)

    @cached_property
    def n_negative(self) -> np.ndarray:
        return np.bincount(self.group, self.negative, self.n_groups)

    @cached_property
    def n_rarer_class(self) -> np.ndarray:
        return np.minimum(self.n_positive, self.n_negative)

    @cached_property
    def starts(self) -> np.ndarray:
        """int (G,): each group's first place."""
        return np.searchsorted(self.group, np.arange(self.n_groups))

    def sum_by_group(self, times: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(G,): sums of values (V,), each added so many times: as claims one by one would be."""
        return np.bincount(np.repeat(self.group, times), np.repeat(values, times), self.n_groups)

    def _before(self, counts: np.ndarray) -> np.ndarray:
        """int64 (V,): the group's claims that come earlier."""
        running = np.cumsum(counts) - counts
        return running - np.append(running, 0)[self.starts][self.group]


@dataclass(frozen=True)
class RocRankedScores:
    """n units with a label and a score, of G groups: arrays (n,), in the order of `order_roc_scores_by_group`.

    group: int, 0..n_groups-1; label: int, 0 or 1; score: float without NaN; cluster: int, 0 or more.

    >>> label, score = np.array([0, 0, 1, 1, 0, 1]), np.array([0.1, 0.4, 0.35, 0.8, 0.2, 0.9])
    >>> scores = RocRankedScores.of(np.zeros(6, dtype=int), label, score, np.arange(6), n_groups=1)
    >>> low, high = scores.auc().log_odds_intervals(0.95)
    >>> scores.auc().point.round(3).item(), round(low.item(), 2), round(high.item(), 2)
    (0.889, 0.0, 1.0)
    """

    group: np.ndarray
    label: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    n_groups: int

    @classmethod
    def of(
        cls, group: np.ndarray, label: np.ndarray, score: np.ndarray, cluster: np.ndarray, n_groups: int
    ) -> RocRankedScores:
        order = order_roc_scores_by_group(group, score, n_groups)
        return cls(group[order], label[order], score[order], cluster[order], n_groups)

    def points(self) -> dict[str, np.ndarray]:
        """The figures of each group: (G,), NaN where a class is missing."""
        return self.ties.points()

    def auc(self) -> RocCurveEstimate:
        """How probably an attributable claim's score is above an unattributable one's, a tie counting half."""
        ties = self.ties
        size = np.stack([ties.n_negative, ties.n_positive])[:, ties.group]
        return self._curve(ties.auc, divide_or_undefined(ties.shares_on_right_side - ties.auc[ties.group], size))

    def average_precision(self) -> RocCurveEstimate:
        """Of errors, found by going up from the least score: mean precision at each error (ties at once)."""
        ties = self.ties
        precision, errors, others = ties.precision_by_score
        # A claim changes the precision at every error that is found with it or after it.
        change = divide_or_undefined(1, (errors + others) ** 2)
        after_error, after_other = (self._after(change * part) for part in (others, errors))
        influence = np.stack([precision - ties.average_precision[ties.group] + after_error, -after_other])
        return self._curve(ties.average_precision, divide_or_undefined(influence, ties.n_negative[ties.group]))

    def ties_without(self, left_out: np.ndarray) -> RocTiedScores:
        """The ties without some of the claims: bool (n,)."""
        positive, negative = (
            np.bincount(self._place[left_out & (self.label == label)], minlength=len(self.ties.group))
            for label in (1, 0)
        )
        ties = self.ties
        return RocTiedScores(ties.group, ties.positive - positive, ties.negative - negative, ties.n_groups)

    def _curve(self, point: np.ndarray, influence: np.ndarray) -> RocCurveEstimate:
        """influence: (2, V), of a claim of each label and score."""
        place, group = self._pairs
        each = np.nan_to_num(influence).ravel()[self.label * influence.shape[1] + self._place]
        sums = np.bincount(place, each, len(group))
        n_clusters = np.bincount(group, minlength=self.n_groups)
        squares = np.bincount(group, sums * sums, self.n_groups)
        point = np.where(self.ties.n_rarer_class > 0, point, np.nan)
        has_label = (np.bincount(place, self.label == label, len(group)) > 0 for label in (0, 1))
        of_class = [np.bincount(group[has], minlength=self.n_groups) for has in has_label]
        variance = squares * divide_or_undefined(n_clusters, n_clusters - 1)
        return RocCurveEstimate(point, variance, self.ties.n_rarer_class, np.minimum(*of_class))

    def _after(self, value: np.ndarray) -> np.ndarray:
        """(V,): the sum over the group's errors of their score's value, of all that have this score or a higher one."""
        ties = self.ties
        running = np.append(np.cumsum(np.repeat(value, ties.negative)), 0)
        n_before = np.cumsum(ties.negative) - ties.negative
        # What comes before a claim, as it was added up with it and then taken off.
        is_error = self.label[np.flatnonzero(self._begins)] == 0
        before = np.where(is_error, running[n_before] - value, running[n_before - 1])
        before -= np.append(before, 0)[ties.starts][ties.group]
        return ties.sum_by_group(ties.negative, value)[ties.group] - before

    @cached_property
    def ties(self) -> RocTiedScores:
        first = np.flatnonzero(self._begins)
        n, label = np.diff(np.append(first, len(self.label))), np.append(0, np.cumsum(self.label, dtype=np.int64))
        positive = label[first + n] - label[first]
        return RocTiedScores(self.group[first], positive, n - positive, self.n_groups)

    @cached_property
    def _begins(self) -> np.ndarray:
        """bool (n,): the first claims of a group with their scores."""
        return _mark_changes_between_sorted_scores(self.group, self.score)

    @cached_property
    def _place(self) -> np.ndarray:
        """int64 (n,): the place of each claim's score among the V of its group."""
        return np.cumsum(self._begins) - 1

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each claim among the pairs of a group and a cluster, and the group of each pair."""
        size = max(int(self.cluster.max(initial=-1)) + 1, 1)
        pairs, place = encode_distinct_integer_pairs(self.group, self.cluster, size)
        return place, pairs // size
