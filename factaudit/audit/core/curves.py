"""What a score is worth whatever its threshold: AUC and average precision, and the threshold that a score needs.

Both figures get the influence of each claim on them, so that their variance over clusters is a sum (DeLong, DeLong &
Clarke-Pearson 1988; Obuchowski 1997 for clusters), and Wilson's interval on the number of claims that this variance is
worth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.audit.core.groups import pair_codes
from factaudit.audit.core.kinds import dense
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


def rising(group: np.ndarray, score: np.ndarray, n_groups: int) -> np.ndarray:
    """int64 (n,): claims by group, then by rising score, ties in the order given."""
    order = np.argsort(score)  # not a stable one, which takes several times as long
    block = np.cumsum(_new(score[order])) - 1
    if len(order) and block[-1] < len(order) - 1:
        block *= len(order)
        order = np.sort(block + order) - block
    # Of short numbers numpy counts, which is much faster than comparing.
    short = group[order].astype(np.uint16 if n_groups < 1 << 16 else np.int64)
    return order[np.argsort(short, kind="stable")]


def _new(*ranked: np.ndarray) -> np.ndarray:
    """bool (n,): where one of the sorted arrays has another value than before."""
    new = np.ones(len(ranked[0]), dtype=bool)
    new[1:] = np.logical_or.reduce([each[1:] != each[:-1] for each in ranked])
    return new


@dataclass(frozen=True)
class Ties:
    """Claims of G groups by label: how many have each of a group's scores. The V pairs of a group and a score are
    sorted; group: int (V,); positive, negative: int64 (V,), the claims of label 1 and 0, 0 or more."""

    group: np.ndarray
    positive: np.ndarray
    negative: np.ndarray
    n_groups: int

    def filled(self, low: np.ndarray, high: np.ndarray) -> Ties:
        """With more claims of each group, by label int64 (2, G): some below all its scores, some above them."""
        groups = np.arange(self.n_groups)
        own = np.arange(len(self.group)) + 2 * self.group + 1
        size = len(own) + 2 * self.n_groups
        group, counts = np.empty(size, dtype=np.int64), np.empty((2, size), dtype=np.int64)
        group[own], counts[:, own] = self.group, (self.negative, self.positive)
        for added, side, at in ((low, "left", 0), (high, "right", 1)):
            place = np.searchsorted(self.group, groups, side) + 2 * groups + at  # type: ignore[call-overload]
            group[place], counts[:, place] = groups, added
        return Ties(group, counts[1], counts[0], self.n_groups)

    def points(self) -> dict[str, np.ndarray]:
        """The figures of each group: (G,), NaN where a class is missing."""
        both = self.rarer > 0
        return {"auc": np.where(both, self.auc, np.nan), "average_precision": np.where(both, self.precision, np.nan)}

    @cached_property
    def auc(self) -> np.ndarray:
        """(G,)."""
        return ratio(self.total(self.positive, self.worth[1]), self.n_positive)

    @cached_property
    def precision(self) -> np.ndarray:
        """(G,): average precision of errors, found by going up from the least score."""
        return ratio(self.total(self.negative, self.found[0]), self.n_negative)

    @cached_property
    def worth(self) -> np.ndarray:
        """(2, V): of a claim of each label, the share of the other class that its score is on the right side of."""
        below, above = self._before(self.positive) + self.positive / 2, self._before(self.negative) + self.negative / 2
        others = self.n_positive[self.group]
        return np.stack([ratio(others - below, others), ratio(above, self.n_negative[self.group])])

    @cached_property
    def found(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(V,) each: the precision with a score's claims, and how many errors and others are found with them."""
        errors, others = (self._before(some) + some for some in (self.negative, self.positive))
        return ratio(errors, errors + others), errors, others

    @cached_property
    def n_positive(self) -> np.ndarray:
        return np.bincount(self.group, self.positive, self.n_groups)

    @cached_property
    def n_negative(self) -> np.ndarray:
        return np.bincount(self.group, self.negative, self.n_groups)

    @cached_property
    def rarer(self) -> np.ndarray:
        return np.minimum(self.n_positive, self.n_negative)

    @cached_property
    def starts(self) -> np.ndarray:
        """int (G,): each group's first place."""
        return np.searchsorted(self.group, np.arange(self.n_groups))

    def total(self, times: np.ndarray, values: np.ndarray) -> np.ndarray:
        """(G,): sums of values (V,), each added so many times: as claims one by one would be."""
        return np.bincount(np.repeat(self.group, times), np.repeat(values, times), self.n_groups)

    def _before(self, counts: np.ndarray) -> np.ndarray:
        """int64 (V,): the group's claims that come earlier."""
        running = np.cumsum(counts) - counts
        return running - np.append(running, 0)[self.starts][self.group]


@dataclass(frozen=True)
class Scored:
    """n claims with a label and a score each, of G groups: arrays (n,), in the order of `rising`."""

    group: np.ndarray
    label: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    n_groups: int

    @classmethod
    def of(cls, group: np.ndarray, label: np.ndarray, score: np.ndarray, cluster: np.ndarray, n_groups: int) -> Scored:
        order = rising(group, score, n_groups)
        return cls(group[order], label[order], score[order], cluster[order], n_groups)

    def points(self) -> dict[str, np.ndarray]:
        """The figures of each group: (G,), NaN where a class is missing."""
        return self.ties.points()

    def auc(self) -> Curve:
        """How probably an attributable claim's score is above an unattributable one's, a tie counting half."""
        ties = self.ties
        size = np.stack([ties.n_negative, ties.n_positive])[:, ties.group]
        return self._curve(ties.auc, ratio(ties.worth - ties.auc[ties.group], size))

    def average_precision(self) -> Curve:
        """Of errors, found by going up from the least score: mean precision at each error (ties at once)."""
        ties = self.ties
        precision, errors, others = ties.found
        # A claim changes the precision at every error that is found with it or after it.
        change = ratio(1, (errors + others) ** 2)
        after_error, after_other = (self._after(change * part) for part in (others, errors))
        influence = np.stack([precision - ties.precision[ties.group] + after_error, -after_other])
        return self._curve(ties.precision, ratio(influence, ties.n_negative[ties.group]))

    def taken(self, some: np.ndarray) -> Ties:
        """The ties without some of the claims: bool (n,)."""
        positive, negative = (
            np.bincount(self._place[some & (self.label == label)], minlength=len(self.ties.group)) for label in (1, 0)
        )
        ties = self.ties
        return Ties(ties.group, ties.positive - positive, ties.negative - negative, ties.n_groups)

    def _curve(self, point: np.ndarray, influence: np.ndarray) -> Curve:
        """influence: (2, V), of a claim of each label and score."""
        place, group = self._pairs
        each = np.nan_to_num(influence).ravel()[self.label * influence.shape[1] + self._place]
        sums = np.bincount(place, each, len(group))
        n_clusters = np.bincount(group, minlength=self.n_groups)
        squares = np.bincount(group, sums * sums, self.n_groups)
        point = np.where(self.ties.rarer > 0, point, np.nan)
        return Curve(point, squares * ratio(n_clusters, n_clusters - 1), n_clusters, self.ties.rarer)

    def _after(self, value: np.ndarray) -> np.ndarray:
        """(V,): the sum over the group's errors of their score's value, of all that have this score or a higher one."""
        ties = self.ties
        running = np.append(np.cumsum(np.repeat(value, ties.negative)), 0)
        n_before = np.cumsum(ties.negative) - ties.negative
        # What comes before a claim, as it was added up with it and then taken off.
        is_error = self.label[np.flatnonzero(self._begins)] == 0
        before = np.where(is_error, running[n_before] - value, running[n_before - 1])
        before -= np.append(before, 0)[ties.starts][ties.group]
        return ties.total(ties.negative, value)[ties.group] - before

    @cached_property
    def ties(self) -> Ties:
        first = np.flatnonzero(self._begins)
        n, label = np.diff(np.append(first, len(self.label))), np.append(0, np.cumsum(self.label, dtype=np.int64))
        positive = label[first + n] - label[first]
        return Ties(self.group[first], positive, n - positive, self.n_groups)

    @cached_property
    def _begins(self) -> np.ndarray:
        """bool (n,): the first claims of a group with their scores."""
        return _new(self.group, self.score)

    @cached_property
    def _place(self) -> np.ndarray:
        """int64 (n,): the place of each claim's score among the V of its group."""
        return np.cumsum(self._begins) - 1

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each claim among the pairs of a group and a cluster, and the group of each pair."""
        size = max(int(self.cluster.max(initial=-1)) + 1, 1)
        pairs, place = pair_codes(self.group, self.cluster, size)
        return place, pairs // size


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
    names, member = dense(cluster)
    fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % max(1, min(folds, len(names))))[member]
    values, place = _values(score)
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
    values, place = _values(score)
    codes = label.astype(np.int64) * len(values) + place
    return _best(values, np.bincount(codes, minlength=2 * len(values)).reshape(2, -1))


def _values(score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct scores, ascending, and the place of each among them."""
    if (score[1:] < score[:-1]).any():
        return np.unique(score, return_inverse=True)
    new = _new(score)
    return score[new], np.cumsum(new) - 1


def _best(values: np.ndarray, counts: np.ndarray) -> float | None:
    """`best_threshold` of claims by label (2, V) at each of the ascending values; some may have none."""
    found, missed = np.cumsum(counts, axis=1)
    if not len(values) or not found[-1] or not missed[-1]:
        return None
    # After the i-th value everything up to it is predicted 0.
    gain = np.append(0.0, found / found[-1] - missed / missed[-1])  # 2 BAcc - 1 of cutting below all, then after each
    best = np.flatnonzero(gain >= gain.max() - 1e-12)
    some = counts[0] + counts[1] > 0
    best = best[(best == 0) | some[best - 1]]
    at = int(best[len(best) // 2])
    last = values[at - 1]
    after = at + int(some[at:].argmax()) if some[at:].any() else None
    if at == 0:
        return float(np.nextafter(values[after], -np.inf))
    if after is None:
        return float(last)
    middle = (last + values[after]) / 2
    return float(middle if middle < values[after] else last)
