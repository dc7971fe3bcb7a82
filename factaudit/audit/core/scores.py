"""Labelled claims by their scores: how many there are of each kind that no calibration tells apart."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.audit.core.shares import Clusters, Places

#: Predictions counted, plainly or corrected; then thresholds on the score.
METHODS = ("none", "adjusted_counts", "zero_bias_threshold", "bacc_threshold")
#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
SCORE_BINS = 256


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
    (K,), how many claims there are of each; values: the distinct scores, ascending, NaN last; scored: int64, how many
    claims have each.
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    times: np.ndarray
    values: np.ndarray
    scored: np.ndarray
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
        # No score is above infinity, which numpy sorts several times as fast as NaN.
        score = np.where(np.isnan(score), np.inf, score)
        order = np.argsort(score)
        first = _first(score[order])
        values = score[order[first]]
        counts = np.ones(len(order), dtype=np.int64) if times is None else times[order]
        scored = np.add.reduceat(counts, first) if len(first) else counts
        # By system as well: of short numbers numpy counts, which is much faster than comparing.
        order = order[np.argsort(system[order].astype(np.uint16), kind="stable")]
        which, ranked = system[order].astype(np.int64), score[order]
        new = np.append(True, (which[1:] != which[:-1]) | (ranked[1:] != ranked[:-1]))[: len(order)]
        cells = (np.cumsum(new) - 1) * 9 + (label[order] + 1) * 3 + prediction[order] + 1
        total = np.bincount(cells, None if times is None else times[order], 9 * int(new.sum())).astype(np.int64)
        found = np.flatnonzero(total > 0)
        place, said = np.divmod(found, 9)
        which, ranked = which[new][place], _unscored(ranked[new][place])
        return cls(which, said // 3 - 1, said % 3 - 1, ranked, total[found], _unscored(values), scored, n_systems)

    def edges(self, most: int) -> np.ndarray:
        """The greatest score of each of at most so many bins, ascending: each has about as many claims."""
        some = ~np.isnan(self.values)
        values, scored = self.values[some], self.scored[some]
        if len(values) <= most:
            return values
        bins = (np.cumsum(scored) - scored) * most // scored.sum()
        return values[np.flatnonzero(np.diff(bins, append=most))]

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


def _first(ranked: np.ndarray) -> np.ndarray:
    """Where each distinct number begins among ascending ones."""
    return np.flatnonzero(np.append(True, ranked[1:] != ranked[:-1])[: len(ranked)])


def _unscored(values: np.ndarray) -> np.ndarray:
    """NaN where a score is infinite."""
    return np.where(np.isinf(values), np.nan, values)


@dataclass(frozen=True)
class Binned:
    """Labelled claims whose clusters are resampled, with the greatest score of each bin: all that a replicate reads.

    edges: ascending; rows: the claims, in parts, made when asked for.
    """

    edges: np.ndarray
    rows: Callable[[], Iterable[Claims]]
    n_systems: int


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
    def of(
        cls,
        claims: Claims,
        n_systems: int,
        places: Places | None = None,
        rows: Callable[[], Iterable[Claims]] | None = None,
    ) -> Case:
        """places: the pairs of a system and a cluster, where they are known; rows: makes the claims again, so that who
        keeps what is `binned` need not keep them."""
        kinds = Kinds.of(claims.system, claims.label, claims.prediction, claims.score, n_systems)

        def right() -> Clusters:
            known = (claims.label >= 0) & (claims.prediction >= 0)
            cells = np.where(known, claims.label.astype(np.int64) * 2 + claims.prediction, -1)
            found = Places.of(claims.system.astype(np.int64), claims.cluster, n_systems) if places is None else places
            return found.count(cells, 4)

        return cls(kinds, right, rows or (lambda: [claims]))

    def binned(self) -> Binned:
        """By at most `SCORE_BINS` bins of scores."""
        return Binned(self.kinds.edges(SCORE_BINS), self.rows, self.n_systems)

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
