"""What a score is worth whatever its threshold: AUC and average precision, and the threshold that a score needs.

Both figures get the influence of each claim on them, so that their variance over clusters is a sum (DeLong, DeLong &
Clarke-Pearson 1988; Obuchowski 1997 for clusters), and Wilson's interval on the number of claims that this variance is
worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from factaudit.audit.core.groups import pair_codes
from factaudit.audit.core.rows import ratio
from factaudit.audit.core.shares import Limits, wilson


@dataclass(frozen=True)
class Curve:
    """A figure of each of G groups in [0, 1], its variance, clusters and the claims of its rarer class: (G,) each."""

    point: np.ndarray
    variance: np.ndarray
    n_clusters: np.ndarray
    n_rarer: np.ndarray

    def limits(self, confidence: float) -> Limits:
        """(G,) each; NaN where the figure is undefined or there are fewer than two clusters."""
        varies = (self.variance > 0) & (self.point > 0) & (self.point < 1)
        # An influence is measured with the claim in: of few claims it tells too little of the next one (HC3).
        variance = self.variance * ratio(self.n_rarer, self.n_rarer - 1) ** 2
        n = np.where(varies, ratio(self.point * (1 - self.point), variance), self.n_rarer)
        # A variance from a few claims of a class is no surer than those claims are.
        freedom = np.minimum(self.n_clusters, self.n_rarer) - 1
        return wilson(self.point, np.where(np.isnan(self.point), np.nan, n), freedom, confidence)


@dataclass(frozen=True)
class Scored:
    """n claims with a label and a score each, of G groups: arrays (n,), sorted by group, then by rising score."""

    group: np.ndarray
    label: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    n_groups: int

    @classmethod
    def of(cls, group: np.ndarray, label: np.ndarray, score: np.ndarray, cluster: np.ndarray, n_groups: int) -> Scored:
        order = np.argsort(score, kind="stable")
        return cls.ranked(group[order], label[order], score[order], cluster[order], n_groups)

    @classmethod
    def ranked(
        cls, group: np.ndarray, label: np.ndarray, score: np.ndarray, cluster: np.ndarray, n_groups: int
    ) -> Scored:
        """Of claims by rising score, in any order of groups."""
        # Of short numbers numpy counts, which is much faster than comparing.
        order = np.argsort(group.astype(np.uint16) if n_groups < 1 << 16 else group, kind="stable")
        return cls(group[order], label[order], score[order], cluster[order], n_groups)

    def points(self) -> dict[str, np.ndarray]:
        """The figures of each group: (G,), NaN where a class is missing."""
        both = self._rarer > 0
        return {
            "auc": np.where(both, self._auc[0], np.nan),
            "average_precision": np.where(both, self._average_precision[0], np.nan),
        }

    def auc(self) -> Curve:
        """How probably an attributable claim's score is above an unattributable one's, a tie counting half."""
        point, worth = self._auc
        size = np.where(self._positive > 0, self._n_positive[self.group], self._n_negative[self.group])
        return self._curve(point, ratio(worth - point[self.group], size))

    def average_precision(self) -> Curve:
        """Of errors, found by going up from the least score: mean precision at each error (ties at once)."""
        point, precision, errors, others = self._average_precision
        first, _ = self._ties
        # A claim changes the precision at every error that is found with it or after it.
        change = np.where(self._negative > 0, 1.0, 0.0) * ratio(1, (errors + others) ** 2)
        after = {}
        for name, part in (("error", change * others), ("other", change * errors)):
            after[name] = self._sum(part)[self.group] - self._before(part)[first]
        influence = np.where(self._negative > 0, precision - point[self.group] + after["error"], -after["other"])
        return self._curve(point, ratio(influence, self._n_negative[self.group]))

    @cached_property
    def _auc(self) -> tuple[np.ndarray, np.ndarray]:
        """The figure of each group, and the share of the other class that each claim is on the right side of."""
        first, last = self._ties
        positive, negative, n_positive = self._positive, self._negative, self._n_positive
        worth = np.zeros(len(self.group))
        for mine, others, n_others, above in (
            (positive, negative, self._n_negative, 1),
            (negative, positive, n_positive, 0),
        ):
            before = self._before(others)
            tied = before[last] + others[last] - before[first]
            below = before[first] + tied / 2
            total = n_others[self.group]
            share = ratio(below if above else total - below, total)
            worth = np.where(mine > 0, share, worth)
        return ratio(self._sum(np.where(positive > 0, worth, 0)), n_positive), worth

    @cached_property
    def _average_precision(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The figure of each group; of each claim the precision, the errors and the others found with it."""
        _, last = self._ties
        positive, negative = self._positive, self._negative
        errors = self._before(negative)[last] + negative[last]
        others = self._before(positive)[last] + positive[last]
        precision = ratio(errors, errors + others)
        point = ratio(self._sum(np.where(negative > 0, precision, 0)), self._n_negative)
        return point, precision, errors, others

    def _curve(self, point: np.ndarray, influence: np.ndarray) -> Curve:
        place, group = self._pairs
        sums = np.bincount(place, np.nan_to_num(influence), len(group))
        n_clusters = np.bincount(group, minlength=self.n_groups)
        squares = np.bincount(group, sums * sums, self.n_groups)
        point = np.where(self._rarer > 0, point, np.nan)
        return Curve(point, squares * ratio(n_clusters, n_clusters - 1), n_clusters, self._rarer)

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each claim among the pairs of a group and a cluster, and the group of each pair."""
        size = max(int(self.cluster.max(initial=-1)) + 1, 1)
        pairs, place = pair_codes(self.group, self.cluster, size)
        return place, pairs // size

    @cached_property
    def _positive(self) -> np.ndarray:
        return (self.label == 1).astype(np.float64)

    @cached_property
    def _negative(self) -> np.ndarray:
        return (self.label == 0).astype(np.float64)

    @cached_property
    def _n_positive(self) -> np.ndarray:
        return self._sum(self._positive)

    @cached_property
    def _n_negative(self) -> np.ndarray:
        return self._sum(self._negative)

    @cached_property
    def _rarer(self) -> np.ndarray:
        return np.minimum(self._n_positive, self._n_negative)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.group, values, self.n_groups)

    def _before(self, values: np.ndarray) -> np.ndarray:
        """(n,): the sum of the values of the group's claims that come earlier."""
        running = np.cumsum(values) - values
        starts = np.searchsorted(self.group, np.arange(self.n_groups))
        return running - np.append(running, 0)[starts][self.group]

    @cached_property
    def _ties(self) -> tuple[np.ndarray, np.ndarray]:
        """int (n,) each: the first and the last place of the claims of one group with one score."""
        new = np.ones(len(self.group), dtype=bool)
        new[1:] = (np.diff(self.group) != 0) | (np.diff(self.score) != 0)
        starts = np.flatnonzero(new)
        block = np.cumsum(new) - 1
        return starts[block], np.append(starts[1:], len(self.group))[block] - 1


@dataclass(frozen=True)
class Tuned:
    """A threshold of best BAcc. threshold: of all claims; prediction: int8 (n,), each claim by the threshold that the
    *other* folds' claims give it (-1 where those are of one class); thresholds: each fold's."""

    threshold: float
    prediction: np.ndarray
    thresholds: np.ndarray


def tune_threshold(
    label: np.ndarray, score: np.ndarray, cluster: np.ndarray, *, folds: int = 5, seed: int = 0
) -> Tuned | None:
    """Cross-validate the threshold of best BAcc, whole clusters (documents) left out at a time.

    label: 0 or 1, score: float without NaN, cluster: int, all (n,). A claim is predicted attributable where its score
    is above the threshold. None where only one class is there.
    """
    member, names = pd.factorize(cluster, sort=True)
    fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % max(1, min(folds, len(names))))[member]
    values, place = np.unique(score, return_inverse=True)
    n_folds, size = int(fold.max(initial=-1)) + 1, 2 * len(values)
    codes = fold * size + label.astype(np.int64) * len(values) + place
    counts = np.bincount(codes, minlength=n_folds * size).reshape(n_folds, 2, -1)
    total = counts.sum(0)
    whole = _best(values, total)
    if whole is None:
        return None
    prediction = np.full(len(label), -1, dtype=np.int8)
    thresholds = []
    for at in np.unique(fold):
        inside = fold == at
        threshold = _best(values, total - counts[at])
        if threshold is not None:
            prediction[inside] = score[inside] > threshold
            thresholds.append(threshold)
    return Tuned(whole, prediction, np.array(thresholds))


def best_threshold(label: np.ndarray, score: np.ndarray) -> float | None:
    """The threshold of best BAcc: a midpoint between neighbouring scores, the middle one of equally good ones.

    None where a class is missing.
    """
    values, place = np.unique(score, return_inverse=True)
    codes = label.astype(np.int64) * len(values) + place
    return _best(values, np.bincount(codes, minlength=2 * len(values)).reshape(2, -1))


def _best(values: np.ndarray, counts: np.ndarray) -> float | None:
    """`best_threshold` of claims by label (2, V) at each of the ascending values; some may have none."""
    some = counts[0] + counts[1] > 0
    values, negative, positive = values[some], counts[0, some], counts[1, some]
    if not positive.sum() or not negative.sum():
        return None
    # After the i-th value everything up to it is predicted 0.
    missed, found = np.cumsum(positive) / positive.sum(), np.cumsum(negative) / negative.sum()
    gain = np.append(0.0, found - missed)  # 2 BAcc - 1 of cutting below the first value, then after each
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    at = int(best[len(best) // 2])
    if at == 0:
        return float(np.nextafter(values[0], -np.inf))
    if at == len(values):
        return float(values[-1])
    middle = (values[at - 1] + values[at]) / 2
    return float(middle if middle < values[at] else values[at - 1])
