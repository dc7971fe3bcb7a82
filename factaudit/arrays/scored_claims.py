"""Labelled claims by their scores, counted by what corrections of error rates can tell apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class ScoredClaims:
    """m claims (or responses) of S systems of one dataset, under one evaluator.

    system: int (m,), 0..S-1. label, prediction, score: (m,), as in `Judgements`. cluster: int (m,), in the order of the
    clusters' names.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    cluster: np.ndarray


@dataclass(frozen=True)
class DistinctScoredClaims:
    """The K kinds of claims that corrections can tell apart, sorted by system, score, label and prediction.

    system, label, prediction, score: (K,), as in `ScoredClaims`, those without a score last in their system. n_claims:
    int64 (K,), the claims of each kind. distinct_scores: ascending, NaN last. n_claims_by_score: int64, the claims of
    each distinct score.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    n_claims: np.ndarray
    distinct_scores: np.ndarray
    n_claims_by_score: np.ndarray
    n_systems: int

    @classmethod
    def of(
        cls,
        system: np.ndarray,
        label: np.ndarray,
        prediction: np.ndarray,
        score: np.ndarray,
        n_systems: int,
        n_claims: np.ndarray | None = None,
    ) -> DistinctScoredClaims:
        """Count claims, or kinds with their ``n_claims``: (m,) each, in any order."""
        # No score is above infinity, which numpy sorts several times as fast as NaN.
        score = np.where(np.isnan(score), np.inf, score)
        order = np.argsort(score)
        ranked = score[order]
        first = np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)])  # of equal scores
        values = score[order[first]]
        counts = np.ones(len(order), dtype=np.int64) if n_claims is None else n_claims[order]
        scored = np.add.reduceat(counts, first) if len(first) else counts
        # By system as well: of short numbers numpy counts, which is much faster than comparing.
        order = order[np.argsort(system[order].astype(np.uint16), kind="stable")]
        which, ranked = system[order].astype(np.int64), score[order]
        new = np.append(True, (which[1:] != which[:-1]) | (ranked[1:] != ranked[:-1]))[: len(order)]
        cells = (np.cumsum(new) - 1) * 9 + (label[order] + 1) * 3 + prediction[order] + 1
        total = np.bincount(cells, None if n_claims is None else n_claims[order], 9 * int(new.sum())).astype(np.int64)
        found = np.flatnonzero(total > 0)
        place, said = np.divmod(found, 9)
        which, ranked = which[new][place], _infinite_scores_to_nan(ranked[new][place])
        return cls(
            which, said // 3 - 1, said % 3 - 1, ranked, total[found], _infinite_scores_to_nan(values), scored, n_systems
        )

    def bin_edges(self, most_bins: int) -> np.ndarray:
        """The greatest score of each of at most so many bins, ascending: each has about as many claims."""
        some = ~np.isnan(self.distinct_scores)
        values, scored = self.distinct_scores[some], self.n_claims_by_score[some]
        if len(values) <= most_bins:
            return values
        bins = (np.cumsum(scored) - scored) * most_bins // scored.sum()
        return values[np.flatnonzero(np.diff(bins, append=most_bins))]

    @property
    def confusion_cells(self) -> np.ndarray:
        """int (K,): the place of each kind in the flat (S, 3, 3) `tables`."""
        return self.system * 9 + self.label % 3 * 3 + self.prediction % 3

    @cached_property
    def confusions(self) -> np.ndarray:
        """int64 (S, 3, 3): the claims of each system by label and prediction, each 0, 1 or missing."""
        return np.bincount(self.confusion_cells, self.n_claims, self.n_systems * 9).astype(np.int64).reshape(-1, 3, 3)

    @cached_property
    def places_of_scores(self) -> tuple[np.ndarray, np.ndarray]:
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

    def score_histograms(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each system its distinct scores (t,), ascending, and int (3, t), its claims of each by label."""
        starts, place = self.places_of_scores
        scored = place >= 0
        cells, last = self.label[scored] % 3 * starts[-1] + place[scored], place[scored]
        counts = np.bincount(cells, self.n_claims[scored], 3 * starts[-1]).astype(np.int64).reshape(3, -1)
        scores = np.empty(starts[-1])
        scores[last] = self.score[scored]
        return [(scores[a:b], counts[:, a:b]) for a, b in itertools.pairwise(starts.tolist())]


def _infinite_scores_to_nan(values: np.ndarray) -> np.ndarray:
    """NaN where a score is infinite."""
    return np.where(np.isinf(values), np.nan, values)


@dataclass(frozen=True)
class BinnedScoredClaims:
    """Labelled claims whose clusters are resampled, with the greatest score of each bin: all that a replicate reads.

    edges: ascending; claim_parts: the claims, in parts, made when asked for.
    """

    edges: np.ndarray
    claim_parts: Callable[[], Iterable[ScoredClaims]]
    n_systems: int
