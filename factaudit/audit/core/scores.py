"""Labelled claims by their scores: how many there are of each kind that no calibration tells apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.audit.core.shares import Clusters, by_cluster

#: Predictions counted, plainly or corrected; then thresholds on the score.
METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")


@dataclass(frozen=True)
class Claims:
    """m claims (or responses) of S systems of one dataset, under one evaluator.

    system: int (m,), 0..S-1; label, prediction, score: (m,), as in `factaudit.audit.core.judged.Judged`; cluster: int
    (m,), in the order of the clusters' names.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    cluster: np.ndarray


@dataclass(frozen=True)
class Kinds:
    """The K kinds of claims that the methods can tell apart, sorted by system, score, label and prediction.

    system, label, prediction, score: (K,), as in `Claims`, those without a score last in their system; times: int64
    (K,), how many claims there are of each; values: the distinct scores, ascending, NaN last.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    times: np.ndarray
    values: np.ndarray
    n_systems: int

    @classmethod
    def of(
        cls,
        system: np.ndarray,
        label: np.ndarray,
        prediction: np.ndarray,
        score: np.ndarray,
        n_systems: int,
        times: np.ndarray | None = None,
    ) -> Kinds:
        """Of claims, or of kinds with their ``times``: (m,) each, in any order."""
        order = np.argsort(score)
        by_score = score[order]
        values = by_score[np.append(True, (by_score[1:] > by_score[:-1]) | _lost(by_score))[: len(order)]]
        # By system as well: of short numbers numpy counts, which is much faster than comparing.
        order = order[np.argsort(system[order].astype(np.uint16), kind="stable")]
        which, ranked = system[order].astype(np.int64), score[order]
        new = np.append(True, (which[1:] != which[:-1]) | (ranked[1:] > ranked[:-1]) | _lost(ranked))[: len(order)]
        cells = (np.cumsum(new) - 1) * 9 + (label[order] + 1) * 3 + prediction[order] + 1
        total = np.bincount(cells, None if times is None else times[order], 9 * int(new.sum())).astype(np.int64)
        found = np.flatnonzero(total)
        place, said = np.divmod(found, 9)
        which, ranked = which[new][place], ranked[new][place]
        return cls(which, said // 3 - 1, said % 3 - 1, ranked, total[found], values, n_systems)

    def binned(self, most: int) -> Kinds:
        """By at most so many bins of scores, a bin being called by its greatest."""
        place = np.searchsorted(self.values, self.score)
        scored = np.bincount(place, self.times, len(self.values)).astype(np.int64)[~np.isnan(self.values)]
        if len(scored) <= most:
            return self
        bins = (np.cumsum(scored) - scored) * most // scored.sum()
        last = np.flatnonzero(np.diff(bins, append=most))
        called = np.append(self.values[: len(scored)][last], np.nan)
        at = np.append(np.searchsorted(bins[last], bins), np.full(len(self.values) - len(scored), len(last)))
        return Kinds.of(self.system, self.label, self.prediction, called[at[place]], self.n_systems, self.times)

    def place(self, claims: Claims) -> np.ndarray:
        """int64 (m,): the kind of each claim, by the bin that its score is in."""
        size = len(self.values)
        own = _codes(self.system, np.searchsorted(self.values, self.score), self.label, self.prediction, size)
        found = np.zeros(self.n_systems * size * 9, dtype=np.int64)
        found[own] = np.arange(len(own))
        score = np.searchsorted(self.values, claims.score)
        return found[_codes(claims.system, score, claims.label, claims.prediction, size)]

    @property
    def cells(self) -> np.ndarray:
        """int (K,): the place of each kind in the flat (S, 3, 3) `tables`."""
        return self.system * 9 + self.label % 3 * 3 + self.prediction % 3

    @cached_property
    def tables(self) -> np.ndarray:
        """int64 (S, 3, 3): the claims of each system by label and prediction, each 0, 1 or missing."""
        return np.bincount(self.cells, self.times, self.n_systems * 9).astype(np.int64).reshape(-1, 3, 3)

    @cached_property
    def bars(self) -> tuple[np.ndarray, np.ndarray]:
        """Each system's distinct scores, and the (system, score) of each kind, -1 where it has none.

        Starts int (S + 1,), of each system's among the T pairs of a system and a score; place int (K,), of each kind
        among them.
        """
        scored = np.flatnonzero(~np.isnan(self.score))
        system, score = self.system[scored], self.score[scored]
        new = np.append(True, (np.diff(system) != 0) | (np.diff(score) != 0))[: len(scored)]
        place = np.full(len(self.score), -1, dtype=np.int64)
        place[scored] = np.cumsum(new) - 1
        return np.searchsorted(system[new], np.arange(self.n_systems + 1)), place

    def histograms(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each system its distinct scores (t,), ascending, and int (3, t), its claims of each by label."""
        starts, place = self.bars
        scored = place >= 0
        cells, last = self.label[scored] % 3 * starts[-1] + place[scored], place[scored]
        counts = np.bincount(cells, self.times[scored], 3 * starts[-1]).astype(np.int64).reshape(3, -1)
        scores = np.empty(starts[-1])
        scores[last] = self.score[scored]
        return [(scores[a:b], counts[:, a:b]) for a, b in itertools.pairwise(starts.tolist())]


def _codes(system: np.ndarray, score: np.ndarray, label: np.ndarray, prediction: np.ndarray, size: int) -> np.ndarray:
    return ((system.astype(np.int64) * size + score) * 3 + label + 1) * 3 + prediction + 1


def _lost(ranked: np.ndarray) -> np.ndarray:
    """Where scores end and claims without one begin: bool (m - 1,), of ascending scores, NaN last."""
    return np.isnan(ranked[1:]) & ~np.isnan(ranked[:-1])


@dataclass(frozen=True)
class Case:
    """Labelled claims (or responses) of S systems of one dataset under one evaluator, as numbers.

    right: of each system's claims with a label and a prediction, clusters by their numbers in the cells of label and
    prediction, (k, 4); rows: the claims themselves, in parts: read where their clusters are resampled, only.
    """

    kinds: Kinds
    right: Callable[[], Clusters]
    rows: Callable[[], Iterable[Claims]]

    @classmethod
    def of(cls, claims: Claims, n_systems: int) -> Case:
        kinds = Kinds.of(claims.system, claims.label, claims.prediction, claims.score, n_systems)

        def right() -> Clusters:
            known = np.flatnonzero((claims.label >= 0) & (claims.prediction >= 0))
            cells = claims.label[known].astype(np.int64) * 2 + claims.prediction[known]
            return by_cluster(claims.cluster[known], claims.system[known].astype(np.int64), n_systems, cells, 4)

        return cls(kinds, right, lambda: [claims])

    @property
    def n_systems(self) -> int:
        return self.kinds.n_systems

    @cached_property
    def has_scores(self) -> bool:
        return not np.isnan(self.kinds.values).all()

    def sizes(self, method: str) -> np.ndarray:
        """int (S, 3, 2): numbers of claims by label (0, 1, none), of which the method can not use, and can.

        A method can use the claims with a prediction, or those with a score.
        """
        return self._sizes[method in METHODS[2:]]

    @cached_property
    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        kinds = self.kinds
        every, scored = kinds.tables.sum(-1), ~np.isnan(kinds.score)
        cells = kinds.system[scored] * 3 + kinds.label[scored] % 3
        with_score = np.bincount(cells, kinds.times[scored], self.n_systems * 3).astype(np.int64).reshape(-1, 3)
        usable = (kinds.tables[..., :2].sum(-1), with_score)
        predicted, tuned = (np.stack([every - each, each], axis=-1) for each in usable)
        return predicted, tuned
