"""Calibrating again in every bootstrap replicate: how sure is what is left of a system's bias?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from factaudit.audit.core.calibration import Estimates, Thresholds, cumulate, estimates_of, narrowest
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.rows import ratio
from factaudit.audit.core.scores import Binned

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Of cases that share draws the rates of all replicates are held: at most so many bytes of them, or one case's.
_BYTES = 1 << 27


@dataclass(frozen=True)
class Spread:
    """Claims cluster by cluster, its scores in bins: all that a resampled calibration reads.

    tables: int (S * 9, C), of each cluster its claims by system, label and prediction. thresholds: R of them, a bin
    being called by its greatest score. members: int (labels * R, C), of each cluster its claims by label (0, 1 and,
    where some claim has none, none) and bin, in the place of the threshold above it: none at that below all bins.
    """

    tables: np.ndarray
    thresholds: Thresholds
    members: csr_array

    @classmethod
    def of(cls, case: Binned) -> Spread:
        from scipy.sparse import csr_array  # slow to import

        size, n_bins = case.n_systems, len(case.edges)
        parts = [(_bins(claims.score, case.edges), claims) for claims in case.rows()]
        place = np.concatenate([bins + claims.system.astype(np.int64) * (n_bins + 1) for bins, claims in parts])
        label, said = (
            np.concatenate([getattr(claims, key) for _, claims in parts]).astype(np.int64) % 3
            for key in ("label", "prediction")
        )
        cluster, names = pd.factorize(np.concatenate([claims.cluster for _, claims in parts]), sort=True)
        n_clusters = len(names)
        system = place // (n_bins + 1)
        cells = (system * 9 + label * 3 + said) * n_clusters + cluster
        tables = np.bincount(cells, minlength=size * 9 * n_clusters).reshape(size * 9, n_clusters)
        # Each system has the bins that it has claims in, after its lowest threshold.
        has = np.bincount(place, minlength=size * (n_bins + 1)).reshape(size, -1)[:, :-1] > 0
        row = np.cumsum(np.column_stack([np.ones(size, dtype=np.int64), has]).ravel()).reshape(size, -1) - 1
        row[:, :-1], row[:, -1] = row[:, 1:].copy(), -1
        thresholds = Thresholds([case.edges[of] for of in has], case.edges)
        n_rows, labels = len(thresholds.tried), 3 if (label == 2).any() else 2
        which = row.ravel()[place]
        scored = np.flatnonzero(which >= 0)
        which = label[scored] * n_rows + which[scored]
        order = np.argsort(which.astype(np.uint16) if labels * n_rows < 1 << 16 else which, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(which, minlength=labels * n_rows))).astype(np.int32)
        columns = cluster[scored[order]].astype(np.int32)
        shape = (labels * n_rows, n_clusters)
        members = csr_array((np.ones(len(columns), dtype=np.int16), columns, ends), shape=shape)
        return cls(tables.astype(narrowest(int(tables.max(initial=0)))), thresholds, members)

    @property
    def n_clusters(self) -> int:
        return self.tables.shape[1]

    def below(self, weights: Weights, largest: int) -> np.ndarray:
        """What `estimates_of` takes; largest: no system's claims have more weight in any weighting."""
        most = int(np.diff(self.members.indptr).max(initial=0)) * weights.most
        found = self.members.astype(narrowest(most), copy=False) @ weights.whole(most)
        found = found.astype(narrowest(largest), copy=False).reshape(-1, len(self.thresholds.tried), found.shape[1])
        for start, end in itertools.pairwise(self.thresholds.starts.tolist()):
            cumulate(found[:, start:end])
        return found


class Weights:
    """How often each of C clusters is drawn in b replicates, as what is multiplied with it needs it."""

    def __init__(self, drawn: np.ndarray) -> None:
        """drawn: uint8 (b, C)."""
        self.most = int(drawn.max(initial=0))
        self._drawn = np.ascontiguousarray(drawn.T)
        self._whole: dict[type, np.ndarray] = {}

    def whole(self, largest: int) -> np.ndarray:
        """(C, b), of the narrowest type that holds whole numbers up to ``largest``."""
        kind = narrowest(largest)
        if kind not in self._whole:
            self._whole[kind] = self._drawn.astype(kind)
        return self._whole[kind]

    def sums(self, counts: np.ndarray, largest: int) -> np.ndarray:
        """(K, b) of counts (K, C); largest: no sum is above it."""
        # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
        exact = np.float32 if largest < 1 << 24 else np.float64
        found: np.ndarray = counts.astype(exact, copy=False) @ self._drawn.astype(exact)
        return found


@dataclass(frozen=True)
class Resampled:
    """Of B bootstrap replicates, from so many clusters: labelled (S, B), and rates per method (calibration, system, B),
    as in `calibration.Estimates`."""

    labelled: np.ndarray
    rates: Mapping[str, np.ndarray]
    n_clusters: int


def resampled(
    cases: Sequence[Binned], methods: Sequence[str], dataset: str, intervals: Intervals
) -> Iterator[Resampled | None]:
    """Resample whole clusters of one dataset, calibrate and correct again, for each case (an evaluator's claims, say).

    What is drawn is the same for all, and made ready once for as many cases as are held at a time. None where there is
    nothing to resample.
    """
    start = 0
    while start < len(cases):
        size = max(1, cases[start].n_systems)
        end = start + max(1, _BYTES // (size**2 * intervals.replicates * 8 * len(methods)))
        yield from _together(cases[start:end], methods, dataset, intervals)
        start = end


def _together(
    cases: Sequence[Binned], methods: Sequence[str], dataset: str, intervals: Intervals
) -> list[Resampled | None]:
    spreads = [Spread.of(case) if case.n_systems else None for case in cases]
    found: list[Resampled | None] = [None] * len(cases)
    for n_clusters in sorted({spread.n_clusters for spread in spreads if spread and spread.n_clusters > 1}):
        places = [at for at, spread in enumerate(spreads) if spread and spread.n_clusters == n_clusters]
        mine = [spread for spread in spreads if spread and spread.n_clusters == n_clusters]
        blocks: list[list[Estimates]] = [[] for _ in mine]
        for several in _estimates(mine, methods, dataset, intervals):
            for at, one in enumerate(several):
                blocks[at].append(one)
        for place, of in zip(places, blocks, strict=True):
            labelled = np.concatenate([block.labelled for block in of], axis=-1)
            corrected = [method for method in methods if method != "none"]
            rates = {method: np.concatenate([block.rates[method] for block in of], axis=-1) for method in corrected}
            if "none" in methods:  # every calibration system gives the others the same: held once
                plain = np.concatenate([block.rates["none"][0] for block in of], axis=-1)
                rates["none"] = np.broadcast_to(plain, (len(plain), *plain.shape))
            found[place] = Resampled(labelled, rates, n_clusters)
    return found


def _estimates(
    spreads: Sequence[Spread], methods: Sequence[str], dataset: str, intervals: Intervals
) -> Iterator[list[Estimates]]:
    """Of each block of replicates what each spread's claims give in it; all are of as many clusters."""
    n_clusters = spreads[0].n_clusters
    tables = np.concatenate([spread.tables for spread in spreads])
    some = np.flatnonzero(tables.any(1))
    used, claims = tables[some], int(max(spread.tables.sum() for spread in spreads))
    ends = np.cumsum([0, *(len(spread.tables) for spread in spreads)])
    # Blocks that stay in the processor's cache take half the time.
    width = n_clusters + max(spread.members.shape[0] for spread in spreads)
    for drawn in intervals.draws(n_clusters, dataset, width=width):
        weights = Weights(drawn)
        sums = np.zeros((len(tables), len(drawn)))
        sums[some] = weights.sums(used, claims * weights.most)
        several = []
        for spread, (start, end) in zip(spreads, itertools.pairwise(ends.tolist()), strict=True):
            mine = sums[start:end].reshape(-1, 3, 3, len(drawn))
            below = spread.below(weights, int(mine.sum((1, 2)).max(initial=0)))
            several.append(estimates_of(mine, spread.thresholds, below, methods))
        yield several


def _bins(score: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """int64 (m,): the bin of each score, by its greatest; one more than there are where there is none."""
    # Of ascending scores only the edges are looked for.
    score = np.where(np.isnan(score), np.inf, score)
    order = np.argsort(score)
    ends = np.searchsorted(score[order], edges, side="right")
    found = np.empty(len(score), dtype=np.int64)
    found[order] = np.repeat(np.arange(len(edges) + 1), np.diff(ends, prepend=0, append=len(score)))
    return found


#: What a calibration leaves of a system: its corrected rate, and that less the labelled one.
KEYS = ("adjusted_error_rate", "bias")


def ends_of(
    intervals: Intervals, drawn: Resampled | None, method: str, made: Sequence[int], points: np.ndarray
) -> np.ndarray:
    """The intervals of each system's adjusted rate and bias, by each calibration and by the mean over the others.

    made: the calibrations that could be made; points: (2, S + 1, S), the figures themselves, by `KEYS`, calibration
    (the mean last) and system. Gives (2, 2, S + 1, S): low and high ends, which hold the point. NaN where there is
    none, and where nothing varied when it was resampled: something might in the next claims.
    """
    size = points.shape[-1]
    if drawn is None:
        return np.full((2, *points.shape), np.nan)
    of, others = drawn.rates[method], ~np.eye(size, dtype=bool)
    # As the observed mean is over the calibrations that could be made, so is each replicate's.
    mean = _over_others(of, made)
    if method == "none" and size > 1:  # every calibration system gives the others the same
        rates, system = np.concatenate([of[0], mean]), np.tile(np.arange(size), 2)
    else:
        rates, system = np.concatenate([of[others], mean]), np.append(np.nonzero(others)[1], np.arange(size))
    replicates = np.stack([rates, rates])
    replicates[1] -= drawn.labelled[system]
    ends = intervals.ends(replicates.reshape(-1, rates.shape[1]).T, drawn.n_clusters)
    low, high = (end.reshape(2, -1) for end in ends)
    found = np.full((2, *points.shape), np.nan)
    for at, end in enumerate((low, high)):
        end = np.where(low < high, end, np.nan)
        found[at, :, size] = end[:, -size:]
        if method == "none" and size > 1:
            found[at, :, :size] = end[:, None, :size]
        else:
            found[at, :, :size][:, others] = end[:, :-size]
    found[:, :, np.isnan(points[0])] = np.nan
    return np.stack([np.minimum(found[0], points), np.maximum(found[1], points)])


def _over_others(rates: np.ndarray, made: Sequence[int]) -> np.ndarray:
    """Of rates (calibration, system, B) the mean over the calibrations ``made`` on other systems: (system, B)."""
    total, n = np.zeros(rates.shape[1:]), np.zeros(rates.shape[1:])
    for at in made:
        known = ~np.isnan(rates[at])
        known[at] = False
        total += np.where(known, rates[at], 0)
        n += known
    return ratio(total, n)
