"""Calibrating again in every bootstrap replicate: how sure is what is left of a system's bias?"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from factaudit.audit.core.calibration import Ranked, cumulated, estimates_of, mean_of, narrowest
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.scores import Case

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: A replicate tunes thresholds between so many bins of scores; distinct scores up to this number have a bin each.
SCORE_BINS = 256
#: Up to so many clusters the sums below all thresholds are one product of dense matrices.
_DENSE = 96


@dataclass(frozen=True)
class Spread:
    """Claims cluster by cluster, its scores in bins: all that a resampled calibration reads.

    tables: int (C, S * 9), of each cluster its claims by system, label and prediction. scores: per system the bins
    that it has claims in (t,), ascending, a bin being called by its greatest score. members: int (rows, C), of each
    cluster its claims by system, label (0, 1 and, where some claim has none, none) and bin: ``labels * t`` rows of each
    system.
    """

    tables: np.ndarray
    scores: Sequence[np.ndarray]
    members: csr_array
    labels: int

    @classmethod
    def of(cls, case: Case) -> Spread:
        from scipy.sparse import csr_array  # slow to import

        kinds = case.kinds.binned(SCORE_BINS)
        parts = [(kinds.place(claims), claims.cluster) for claims in case.rows()]
        kind, cluster = (np.concatenate(each) for each in zip(*parts, strict=True))
        cluster, names = pd.factorize(cluster, sort=True)
        cells, n_clusters = kinds.n_systems * 9, len(names)
        tables = np.bincount(cluster * cells + kinds.cells[kind], minlength=n_clusters * cells)
        starts, place = kinds.bars
        labels = 3 if (kinds.label < 0).any() else 2
        # Of one system's bins those of label 0 come first, then those of label 1.
        row = place + starts[kinds.system] * (labels - 1) + kinds.label % 3 * np.diff(starts)[kinds.system]
        row, size = np.where(place < 0, -1, row)[kind], labels * int(starts[-1])
        order = np.flatnonzero(row >= 0)
        row = row[order]
        order = order[np.argsort(row.astype(np.uint16) if size < 1 << 16 else row, kind="stable")]
        ends = np.append(0, np.cumsum(np.bincount(row, minlength=size)))
        members = csr_array((np.ones(len(row), dtype=np.int16), cluster[order], ends), shape=(size, n_clusters))
        return cls(tables.reshape(-1, cells), [scores for scores, _ in kinds.histograms()], members, labels)

    @cached_property
    def below(self) -> np.ndarray:
        """float32 (rows, C): of each cluster its claims below each threshold, by system, label and threshold."""
        n_clusters = self.members.shape[1]
        parts = self._systems(self.members.toarray(), 0)
        below = [cumulated(part, int(part.sum())).reshape(-1, n_clusters) for part in parts]
        return np.concatenate([np.zeros((0, n_clusters)), *below]).astype(np.float32)

    def _systems(self, rows: np.ndarray, more: int) -> list[np.ndarray]:
        """The rows (R, b) of each system, ``more`` than its scores for each label: (labels, t + more, b)."""
        sizes = [len(names) + more for names in self.scores]
        ends = (self.labels * np.cumsum([0, *sizes])).tolist()
        parts = zip(sizes, itertools.pairwise(ends), strict=True)
        return [rows[start:end].reshape(self.labels, size, rows.shape[1]) for size, (start, end) in parts]

    def weigh(self, drawn: np.ndarray) -> tuple[np.ndarray, list[Ranked]]:
        """What `estimates_of` takes, of clusters that are each drawn so often: uint8 (b, C)."""
        most, b = int(drawn.max(initial=0)), len(drawn)
        totals = self.tables.sum(0)
        largest = int(totals.reshape(-1, 9).sum(1).max(initial=0)) * most
        # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
        exact = np.float32 if largest < 1 << 24 else np.float64
        some = np.flatnonzero(totals)
        turned = np.ascontiguousarray(drawn.T)
        tables = np.zeros((len(totals), b))
        tables[some] = self.tables[:, some].T.astype(exact) @ turned.astype(exact)
        if len(turned) <= _DENSE and largest < 1 << 24:
            whole = narrowest(largest)
            every = (self.below @ turned.astype(np.float32)).astype(whole)
            below = self._systems(every, 1)
        else:
            narrow = narrowest(int(np.diff(self.members.indptr).max(initial=0)) * most)
            weights = self.members.astype(narrow, copy=False) @ turned.astype(narrow)
            below = [cumulated(part, largest) for part in self._systems(weights, 0)]
        ranked = [Ranked.of(names, part) for names, part in zip(self.scores, below, strict=True)]
        return tables.reshape(-1, 3, 3, b), ranked


@dataclass(frozen=True)
class Resampled:
    """Of B bootstrap replicates, from so many clusters: labelled (S, B), and rates per method (calibration, system, B),
    as in `calibration.Estimates`."""

    labelled: np.ndarray
    rates: Mapping[str, np.ndarray]
    n_clusters: int


def resampled(case: Case, methods: Sequence[str], dataset: str, intervals: Intervals | None) -> Resampled | None:
    """Resample whole clusters, calibrate and correct again; None where there is nothing to resample."""
    if intervals is None or not case.n_systems:
        return None
    spread = Spread.of(case)
    size, n_clusters = spread.members.shape
    if n_clusters < 2:
        return None
    # Blocks that stay in the processor's cache take half the time.
    blocks = [
        estimates_of(*spread.weigh(drawn), methods) for drawn in intervals.draws(n_clusters, dataset, width=2 * size)
    ]
    return Resampled(
        np.concatenate([block.labelled for block in blocks], axis=-1),
        {method: np.concatenate([block.rates[method] for block in blocks], axis=-1) for method in methods},
        n_clusters,
    )


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
    mean = np.stack([mean_of(of[[at for at in made if at != system], system]) for system in range(size)])
    if method == "none" and size > 1:  # every calibration system gives the others the same
        rates, system = np.concatenate([of[0], mean]), np.tile(np.arange(size), 2)
    else:
        rates, system = np.concatenate([of[others], mean]), np.append(np.nonzero(others)[1], np.arange(size))
    ends = intervals.ends(np.concatenate([rates, rates - drawn.labelled[system]]).T, drawn.n_clusters)
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
