"""What a score is worth whatever its threshold: AUC and average precision, and the threshold that a score needs.

Both figures get the influence of each claim on them, so that their variance over clusters is a sum (DeLong, DeLong &
Clarke-Pearson 1988; Obuchowski 1997 for clusters), and Wilson's interval on the number of claims that this variance is
worth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
        # By group as well: of short numbers numpy counts, which is much faster than comparing.
        short = group.astype(np.uint16) if n_groups < 1 << 16 else group
        order = order[np.argsort(short[order], kind="stable")]
        return cls(group[order], label[order], score[order], cluster[order], n_groups)

    def auc(self) -> Curve:
        """How probably an attributable claim's score is above an unattributable one's, a tie counting half."""
        first, last = self._ties()
        positive, negative = self._classes()
        n_positive, n_negative = self._sum(positive), self._sum(negative)
        worth = np.zeros(len(self.group))
        for mine, others, n_others, above in ((positive, negative, n_negative, 1), (negative, positive, n_positive, 0)):
            before = self._before(others)
            tied = before[last] + others[last] - before[first]
            below = before[first] + tied / 2
            total = n_others[self.group]
            share = ratio(below if above else total - below, total)
            worth = np.where(mine > 0, share, worth)
        point = ratio(self._sum(np.where(positive > 0, worth, 0)), n_positive)
        size = np.where(positive > 0, n_positive[self.group], n_negative[self.group])
        return self._curve(point, ratio(worth - point[self.group], size))

    def average_precision(self) -> Curve:
        """Of errors, found by going up from the least score: mean precision at each error (ties at once)."""
        _, last = self._ties()
        positive, negative = self._classes()
        errors = self._before(negative)[last] + negative[last]
        others = self._before(positive)[last] + positive[last]
        n_errors = self._sum(negative)
        precision = ratio(errors, errors + others)
        point = ratio(self._sum(np.where(negative > 0, precision, 0)), n_errors)
        # A claim changes the precision at every error that is found with it or after it.
        change = np.where(negative > 0, 1.0, 0.0) * ratio(1, (errors + others) ** 2)
        first, _ = self._ties()
        after = {}
        for name, part in (("error", change * others), ("other", change * errors)):
            after[name] = self._sum(part)[self.group] - self._before(part)[first]
        influence = np.where(negative > 0, precision - point[self.group] + after["error"], -after["other"])
        return self._curve(point, ratio(influence, n_errors[self.group]))

    def _curve(self, point: np.ndarray, influence: np.ndarray) -> Curve:
        positive, negative = self._classes()
        size = int(self.cluster.max(initial=-1)) + 1
        pairs, place = pair_codes(self.group, self.cluster, max(size, 1))
        sums = np.bincount(place, np.nan_to_num(influence), len(pairs))
        group = pairs // max(size, 1)
        n_clusters = np.bincount(group, minlength=self.n_groups)
        squares = np.bincount(group, sums * sums, self.n_groups)
        rarer = np.minimum(self._sum(positive), self._sum(negative))
        point = np.where(rarer > 0, point, np.nan)
        return Curve(point, squares * ratio(n_clusters, n_clusters - 1), n_clusters, rarer)

    def _classes(self) -> tuple[np.ndarray, np.ndarray]:
        return (self.label == 1).astype(np.float64), (self.label == 0).astype(np.float64)

    def _sum(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.group, values, self.n_groups)

    def _before(self, values: np.ndarray) -> np.ndarray:
        """(n,): the sum of the values of the group's claims that come earlier."""
        running = np.cumsum(values) - values
        starts = np.searchsorted(self.group, np.arange(self.n_groups))
        return running - np.append(running, 0)[starts][self.group]

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
    names, member = np.unique(cluster, return_inverse=True)
    fold = np.random.default_rng(seed).permutation(np.arange(len(names)) % max(1, min(folds, len(names))))[member]
    whole = best_threshold(label, score)
    if whole is None:
        return None
    prediction = np.full(len(label), -1, dtype=np.int8)
    thresholds = []
    for at in np.unique(fold):
        inside = fold == at
        threshold = best_threshold(label[~inside], score[~inside])
        if threshold is not None:
            prediction[inside] = score[inside] > threshold
            thresholds.append(threshold)
    return Tuned(whole, prediction, np.array(thresholds))


def best_threshold(label: np.ndarray, score: np.ndarray) -> float | None:
    """The threshold of best BAcc: a midpoint between neighbouring scores, the middle one of equally good ones.

    None where a class is missing.
    """
    values, place = np.unique(score, return_inverse=True)
    positive, negative = (np.bincount(place, label == which, len(values)) for which in (1, 0))
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
