"""Error rates corrected again in every bootstrap replicate, so that corrections have intervals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from factaudit.arrays.scored_claims import BinnedScoredClaims
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.threshold_calibration import (
    CandidateThresholds,
    ThresholdCalibratedErrorRates,
    calibrate_error_rates_at_thresholds,
    cumulate_threshold_weights_in_place,
    narrowest_integer_type,
)
from factaudit.stats.undefined_values import divide_or_undefined

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Of cases that share draws the rates of all replicates are held: at most so many bytes of them, or one case's.
_MOST_RATE_BYTES = 1 << 27
#: Intervals are taken of so many bytes of replicates at a time.
_INTERVAL_BYTES = 1 << 26


@dataclass(frozen=True)
class BinnedCalibrationCounts:
    """Claims by the units that are resampled, clusters or groups of them, and scores in bins: all that a resampled
    calibration reads.

    confusion_by_unit: int (S * 9, C), of each unit its claims by system, label and prediction. thresholds: R of them, a
    bin being called by its greatest score. bins_by_unit: int (labels * R, C), of each unit its claims by label (0, 1
    and, where some claim has none, none) and bin, in the place of the threshold above it: none at that below all bins.
    """

    confusion_by_unit: np.ndarray
    thresholds: CandidateThresholds
    bins_by_unit: csr_array

    @classmethod
    def of(
        cls, binned_claims: BinnedScoredClaims, dataset: str, intervals: ClusterBootstrap
    ) -> BinnedCalibrationCounts:
        from scipy.sparse import csr_array  # slow to import

        size, n_bins = binned_claims.n_systems, len(binned_claims.edges)
        parts = [
            (_assign_calibration_bins(claims.score, binned_claims.edges), claims)
            for claims in binned_claims.claim_parts()
        ]
        place = np.concatenate([bins + claims.system.astype(np.int64) * (n_bins + 1) for bins, claims in parts])
        label, said = (
            np.concatenate([getattr(claims, key) for _, claims in parts]).astype(np.int64) % 3
            for key in ("label", "prediction")
        )
        cluster, names = pd.factorize(np.concatenate([claims.cluster for _, claims in parts]), sort=True)
        unit = intervals.assign_resampled_units(len(names), dataset)[cluster]
        n_units = int(unit.max(initial=-1)) + 1
        system = place // (n_bins + 1)
        cells = (system * 9 + label * 3 + said) * n_units + unit
        tables = np.bincount(cells, minlength=size * 9 * n_units).reshape(size * 9, n_units)
        # Each system has the bins that it has claims in, after its lowest threshold.
        has = np.bincount(place, minlength=size * (n_bins + 1)).reshape(size, -1)[:, :-1] > 0
        row = np.cumsum(np.column_stack([np.ones(size, dtype=np.int64), has]).ravel()).reshape(size, -1) - 1
        row[:, :-1], row[:, -1] = row[:, 1:].copy(), -1
        thresholds = CandidateThresholds([binned_claims.edges[of] for of in has], binned_claims.edges)
        n_rows, labels = len(thresholds.candidates), 3 if (label == 2).any() else 2
        which = row.ravel()[place]
        scored = np.flatnonzero(which >= 0)
        which = label[scored] * n_rows + which[scored]
        order = np.argsort(which.astype(np.uint16) if labels * n_rows < 1 << 16 else which, kind="stable")
        ends = np.append(0, np.cumsum(np.bincount(which, minlength=labels * n_rows))).astype(np.int32)
        columns = unit[scored[order]].astype(np.int32)
        shape = (labels * n_rows, n_units)
        members = csr_array((np.ones(len(columns), dtype=np.int16), columns, ends), shape=shape)
        return cls(tables.astype(narrowest_integer_type(int(tables.max(initial=0)))), thresholds, members)

    @property
    def n_units(self) -> int:
        return self.confusion_by_unit.shape[1]

    def _bins_as(self, kind: type[np.integer]) -> csr_array:
        """`bins_by_unit` of another type; scipy would sort the claims of each bin first."""
        members = self.bins_by_unit
        return type(members)((members.data.astype(kind), members.indices, members.indptr), shape=members.shape)

    def weight_below_thresholds(self, weights: ResampledCalibrationWeights, largest_sum: int) -> np.ndarray:
        """What `calibrate_error_rates_at_thresholds` takes; largest_sum: no system's claims have more weight in any
        weighting.
        """
        most = min(int(np.diff(self.bins_by_unit.indptr).max(initial=0)) * weights.greatest_weight, largest_sum)
        kind = np.uint16 if 1 << 15 <= most < 1 << 16 else narrowest_integer_type(most)
        found = self._bins_as(kind) @ weights.as_integers(kind)
        found = found.astype(narrowest_integer_type(largest_sum), copy=False).reshape(
            -1, len(self.thresholds.candidates), found.shape[1]
        )
        for start, end in itertools.pairwise(self.thresholds.starts.tolist()):
            cumulate_threshold_weights_in_place(found[:, start:end])
        return found


class ResampledCalibrationWeights:
    """How often each of C clusters is drawn in b replicates, in the types that products with it need."""

    def __init__(self, times_drawn: np.ndarray) -> None:
        """times_drawn: uint8 (b, C)."""
        self.greatest_weight = int(times_drawn.max(initial=0))
        self._drawn = np.ascontiguousarray(times_drawn.T)
        self._whole: dict[type, np.ndarray] = {}

    def as_integers(self, kind: type[np.integer]) -> np.ndarray:
        """(C, b), of this type."""
        if kind not in self._whole:
            self._whole[kind] = self._drawn.astype(kind)
        return self._whole[kind]

    def weighted_sums(self, counts: np.ndarray, largest_sum: int) -> np.ndarray:
        """(K, b) of counts (K, C); largest_sum: no sum is above it."""
        # Sums of whole numbers are exact in the narrower type, too, where they are small enough.
        exact = np.float32 if largest_sum < 1 << 24 else np.float64
        found: np.ndarray = counts.astype(exact, copy=False) @ self._drawn.astype(exact)
        return found


@dataclass(frozen=True)
class ResampledCalibration:
    """Of B bootstrap replicates: labelled (S, B), and rates per method (calibration, system, B), as in
    `calibration.Estimates`. n_clusters: how many equal clusters would tell the variance as precisely, where a cluster's
    part of it grows with the square of its claims (Satterthwaite 1946)."""

    labelled_rates: np.ndarray
    corrected_rates: Mapping[str, np.ndarray]
    n_clusters: float


def resample_calibrations(
    binned_cases: Sequence[BinnedScoredClaims], methods: Sequence[str], dataset: str, intervals: ClusterBootstrap
) -> Iterator[ResampledCalibration | None]:
    """Resample whole clusters of one dataset, calibrate and correct again, for each case (an evaluator's claims, say).

    What is drawn is the same for all, and made ready once for as many cases as are held at a time. None where there is
    nothing to resample.
    """
    start = 0
    while start < len(binned_cases):
        size = max(1, binned_cases[start].n_systems)
        end = start + max(1, _MOST_RATE_BYTES // (size**2 * intervals.replicates * 8 * len(methods)))
        yield from _resample_calibration_cases(binned_cases[start:end], methods, dataset, intervals)
        start = end


def _resample_calibration_cases(
    binned_cases: Sequence[BinnedScoredClaims], methods: Sequence[str], dataset: str, intervals: ClusterBootstrap
) -> list[ResampledCalibration | None]:
    spreads = [
        BinnedCalibrationCounts.of(case, dataset, intervals) if case.n_systems else None for case in binned_cases
    ]
    found: list[ResampledCalibration | None] = [None] * len(binned_cases)
    for n_units in sorted({spread.n_units for spread in spreads if spread and spread.n_units > 1}):
        places = [at for at, spread in enumerate(spreads) if spread and spread.n_units == n_units]
        mine = [spread for spread in spreads if spread and spread.n_units == n_units]
        shapes = [(binned_cases[at].n_systems, intervals.replicates) for at in places]
        labelled = [np.empty(shape) for shape in shapes]
        # Without a correction every calibration system gives the others the same: held once.
        rates = [
            {method: np.empty(shape if method == "none" else (shape[0], *shape)) for method in methods}
            for shape in shapes
        ]
        done = 0
        for several in _resample_each_calibration(mine, methods, dataset, intervals):
            block = slice(done, done + several[0].labelled_rates.shape[-1])
            for at, one in enumerate(several):
                labelled[at][:, block] = one.labelled_rates
                for method, held in rates[at].items():
                    of = one.corrected_rates[method]
                    held[..., block] = of[0] if method == "none" else of
            done = block.stop
        for place, spread, labelled_rates, corrected in zip(places, mine, labelled, rates, strict=True):
            if "none" in methods:
                corrected["none"] = np.broadcast_to(corrected["none"], (len(labelled_rates), *labelled_rates.shape))
            part = spread.confusion_by_unit.sum(0, dtype=np.float64) ** 2
            found[place] = ResampledCalibration(labelled_rates, corrected, float(part.sum() ** 2 / (part**2).sum()))
    return found


def _resample_each_calibration(
    spreads: Sequence[BinnedCalibrationCounts], methods: Sequence[str], dataset: str, intervals: ClusterBootstrap
) -> Iterator[list[ThresholdCalibratedErrorRates]]:
    """Of each block of replicates what each spread's claims give in it; all are of as many units."""
    n_units = spreads[0].n_units
    tables = np.concatenate([spread.confusion_by_unit for spread in spreads])
    some = np.flatnonzero(tables.any(1))
    used, claims = tables[some], int(max(spread.confusion_by_unit.sum() for spread in spreads))
    ends = np.cumsum([0, *(len(spread.confusion_by_unit) for spread in spreads)])
    # Blocks that stay in the processor's cache take half the time.
    width = n_units + max(spread.bins_by_unit.shape[0] for spread in spreads)
    for drawn in intervals.draw_cluster_weights(n_units, dataset, width=width):
        weights = ResampledCalibrationWeights(drawn)
        sums = np.zeros((len(tables), len(drawn)))
        sums[some] = weights.weighted_sums(used, claims * weights.greatest_weight)
        several = []
        for spread, (start, end) in zip(spreads, itertools.pairwise(ends.tolist()), strict=True):
            mine = sums[start:end].reshape(-1, 3, 3, len(drawn))
            below = spread.weight_below_thresholds(weights, int(mine.sum((1, 2)).max(initial=0)))
            several.append(calibrate_error_rates_at_thresholds(mine, spread.thresholds, below, methods))
        yield several


def _assign_calibration_bins(score: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """int64 (m,): the bin of each score, by its greatest; one more than there are where there is none."""
    # Of ascending scores only the edges are looked for.
    score = np.where(np.isnan(score), np.inf, score)
    order = np.argsort(score)
    ends = np.searchsorted(score[order], edges, side="right")
    found = np.empty(len(score), dtype=np.int64)
    found[order] = np.repeat(np.arange(len(edges) + 1), np.diff(ends, prepend=0, append=len(score)))
    return found


#: What a calibration leaves of a system: its corrected rate, and that less the labelled one.
CORRECTED_FIGURES = ("adjusted_error_rate", "bias")


def resampled_calibration_rate_intervals(
    intervals: ClusterBootstrap,
    resampled_calibration: ResampledCalibration | None,
    method: str,
    possible_calibrations: Sequence[int],
    points: np.ndarray,
) -> np.ndarray:
    """The intervals of each system's adjusted rate and bias, by each calibration and by the mean over the others.

    possible_calibrations: the calibrations that could be made. points: (2, S + 1, S), the figures themselves, by
    `CORRECTED_FIGURES`, calibration (the mean last) and system. Gives (2, 2, S + 1, S): low and high ends, which hold
    the point. NaN where there is none, and where nothing varied when it was resampled: something might in the next
    claims.
    """
    size = points.shape[-1]
    if resampled_calibration is None:
        return np.full((2, *points.shape), np.nan)
    of, others = resampled_calibration.corrected_rates[method], ~np.eye(size, dtype=bool)
    # As the observed mean is over the calibrations that could be made, so is each replicate's.
    mean = _mean_rate_over_resampled_calibrations(of, possible_calibrations)
    found = np.full((2, *points.shape), np.nan)
    found[:, :, size] = _resampled_calibration_interval_ends(intervals, resampled_calibration, mean, np.arange(size))
    if method == "none" and size > 1:  # every calibration system gives the others the same
        ends = _resampled_calibration_interval_ends(intervals, resampled_calibration, of[0], np.arange(size))
        found[:, :, :size] = ends[:, :, None]
    else:
        calibration, system = np.nonzero(others)
        step = max(1, _INTERVAL_BYTES // (16 * intervals.replicates))
        for start in range(0, len(system), step):
            by, whose = calibration[start : start + step], system[start : start + step]
            ends = _resampled_calibration_interval_ends(intervals, resampled_calibration, of[by, whose], whose)
            found[:, :, by, whose] = ends
    found[:, :, np.isnan(points[0])] = np.nan
    return np.stack([np.minimum(found[0], points), np.maximum(found[1], points)])


def _resampled_calibration_interval_ends(
    intervals: ClusterBootstrap, resampled_calibration: ResampledCalibration, rates: np.ndarray, system: np.ndarray
) -> np.ndarray:
    """(2, 2, J): low and high ends of J corrected rates, of replicates (J, B), and of their bias; NaN where they are
    one.
    """
    replicates = np.concatenate([rates, rates - resampled_calibration.labelled_rates[system]])
    ends = np.stack(intervals.percentile_ends(replicates.T, resampled_calibration.n_clusters))
    return np.where(ends[0] < ends[1], ends, np.nan).reshape(2, 2, -1)


def _mean_rate_over_resampled_calibrations(rates: np.ndarray, possible_calibrations: Sequence[int]) -> np.ndarray:
    """Of rates (calibration, system, B) the mean over the calibrations ``possible_calibrations`` on other systems:
    (system, B).
    """
    total, n = np.zeros(rates.shape[1:]), np.zeros(rates.shape[1:])
    for at in possible_calibrations:
        known = ~np.isnan(rates[at])
        known[at] = False
        total += np.where(known, rates[at], 0)
        n += known
    return divide_or_undefined(total, n)
