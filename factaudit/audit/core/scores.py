"""Labelled claims by their scores: how many there are of each kind that no calibration tells apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from factaudit.audit.core.groups import pair_codes
from factaudit.audit.core.shares import Clusters, by_cluster

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
        values, place = np.unique(score, return_inverse=True)
        codes = _codes(system, place, label, prediction, len(values))
        found, kind = pair_codes(np.zeros(len(codes), dtype=np.int64), codes, 1)
        total = np.bincount(kind, times, minlength=len(found)).astype(np.int64)
        rest, said = np.divmod(found, 3)
        rest, truth = np.divmod(rest, 3)
        which, place = np.divmod(rest, max(len(values), 1))
        return cls(which, truth - 1, said - 1, values[place], total, values, n_systems)

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
        score = np.searchsorted(self.values, claims.score)
        return np.searchsorted(own, _codes(claims.system, score, claims.label, claims.prediction, size))

    def tables(self, weights: np.ndarray) -> np.ndarray:
        """int (S, 3, 3, b): the weights (K, b) of the kinds by label and prediction, each 0, 1 or missing."""
        cells = self.system * 9 + self.label % 3 * 3 + self.prediction % 3
        found = adding(cells, self.n_systems * 9, np.int32) @ weights
        return found.reshape(self.n_systems, 3, 3, weights.shape[1])


def _codes(system: np.ndarray, score: np.ndarray, label: np.ndarray, prediction: np.ndarray, size: int) -> np.ndarray:
    return ((system.astype(np.int64) * size + score) * 3 + label + 1) * 3 + prediction + 1


def adding(codes: np.ndarray, n_codes: int, dtype: type) -> csr_array:
    """The matrix (n_codes, K) that sums the rows of each code."""
    from scipy.sparse import csr_array  # slow to import

    return csr_array((np.ones(len(codes), dtype=dtype), (codes, np.arange(len(codes)))), shape=(n_codes, len(codes)))


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
        kinds = self.kinds
        usable = ~np.isnan(kinds.score) if method in METHODS[2:] else kinds.prediction >= 0
        codes = (kinds.system * 3 + kinds.label % 3) * 2 + usable
        return np.bincount(codes, kinds.times, self.n_systems * 6).astype(np.int64).reshape(-1, 3, 2)

    def members(self, kinds: Kinds) -> csr_array:
        """int64 (K, C): how many claims of each kind each cluster has; the clusters in the order of their codes."""
        from scipy.sparse import csr_array  # slow to import

        parts = [(kinds.place(claims), claims.cluster) for claims in self.rows()]
        kind, cluster = (np.concatenate(each) for each in zip(*parts, strict=True))
        names, cluster = np.unique(cluster, return_inverse=True)
        size = (len(kinds.system), len(names))
        return csr_array((np.ones(len(kind), dtype=np.int64), (kind, cluster)), shape=size)
