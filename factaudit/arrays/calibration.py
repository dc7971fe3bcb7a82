"""Error rates corrected with the labels of one system: adjusted counts and tuned thresholds (VC §5, A.7; Forman 2006).

Each of S systems of a data set calibrates in turn, and corrects the error rates of the others. All that a correction
reads are numbers of claims, by label and prediction, and by label and score; so claims can be weighted, and the same
code corrects the claims as they are and in many bootstrap replicates at once. Scores are told apart exactly up to
`MOST_SCORES` different ones, in replicates up to `MOST_RESAMPLED_SCORES`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.arrays.figures import Tally, compute_rates, encode_cells
from factaudit.arrays.judgements import Judgements
from factaudit.stats.calibration import (
    CORRECTION_METHODS,
    adjust_counts,
    list_candidate_thresholds,
    mean_of_calibrations,
    tune_calibration_threshold,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster
from factaudit.stats.distinct_rows import rank_distinct_integers
from factaudit.stats.undefined_values import divide_or_undefined

THRESHOLD_METHODS = CORRECTION_METHODS[2:]
MOST_SCORES = 1 << 16
MOST_RESAMPLED_SCORES = 128
_REPLICATES_AT_A_TIME = 500


@dataclass(frozen=True)
class CalibrationClaims:
    """m claims (or responses) of S systems of one data set, as one evaluator sees them.

    system: int (m,), 0..S-1; label, prediction, score: (m,), as in `Judgements`; cluster: int (m,).
    """

    system: np.ndarray
    label: np.ndarray
    prediction: np.ndarray
    score: np.ndarray
    cluster: np.ndarray
    n_systems: int

    @classmethod
    def select(cls, units: Judgements, evaluator: int, rows_by_system: Sequence[np.ndarray]) -> CalibrationClaims:
        """The claims (or responses) of these rows, system by system."""
        system = np.repeat(np.arange(len(rows_by_system)), [len(rows) for rows in rows_by_system])
        rows = np.concatenate([np.empty(0, dtype=np.int64), *rows_by_system])
        said, score = units.prediction[evaluator][rows], units.score[evaluator][rows]
        return cls(system, units.label[rows], said, score, units.cluster_codes[rows], len(rows_by_system))

    @cached_property
    def methods(self) -> Sequence[str]:
        """Those that can be used: an evaluator without scores has no thresholds."""
        return CORRECTION_METHODS[:2] if np.isnan(self.score).all() else CORRECTION_METHODS

    @cached_property
    def cells(self) -> np.ndarray:
        """int64 (S, 3, 3): claims by label and prediction."""
        codes = self.system * 9 + encode_cells(self.label, self.prediction)
        return np.bincount(codes, minlength=self.n_systems * 9).reshape(-1, 3, 3)

    def count_usable(self, method: str) -> np.ndarray:
        """int64 (S, 3, 2): claims by label (0, 1, none), of which the method can not use, and can: those with a
        prediction, or with a score."""
        every, usable = self.cells.sum(-1), self.cells[..., :2].sum(-1)
        if method in THRESHOLD_METHODS:
            codes = (self.system * 3 + self.label % 3)[~np.isnan(self.score)]
            usable = np.bincount(codes, minlength=self.n_systems * 3).reshape(-1, 3)
        return np.stack([every - usable, usable], axis=-1)

    def explain_refusals(self, method: str) -> list[str]:
        """Why each system cannot calibrate; "" where it can."""
        usable = self.count_usable(method)[:, :2, 1]
        why: np.ndarray = np.full(self.n_systems, "", dtype=object)
        if method == "none":
            return why.tolist()
        if method == "adjusted_counts":
            clusters = count_codes_by_cluster(
                self.cluster, self.system, self.n_systems, encode_cells(self.label, self.prediction), 9
            )
            # TNR - FNR is 2 BAcc - 1. The test is that of a correction's denominator, at 95 % whatever the confidence
            # of a run's intervals.
            low = compute_rates(Tally(clusters), 0.95)["bacc"].ends[0]
            why[~(low > 0.5)] = "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"
            # Compared as products of counts, which are exact: equal rates must not differ in the last bit.
            errors, others = self.cells[:, :2, :2].sum(-1).T
            better = self.cells[:, 0, 0] * others - self.cells[:, 1, 0] * errors
            why[better < 0] = "TNR < FNR: on its labels the evaluator is no better than chance"
            why[better == 0] = "TNR = FNR"
        if method != "zero_bias_threshold":
            why[usable[:, 0] == 0] = "no labelled error"
            why[usable[:, 1] == 0] = "labelled errors only"
        why[usable.sum(1) == 0] = "no labelled claim that the method can use"
        return why.tolist()


@dataclass(frozen=True)
class CorrectedRates:
    """What S calibrations make of the error rates of S systems, in b weightings of the claims.

    labelled: (S, b), the share of errors among all labels. corrected: per method (calibration, system, b). thresholds:
    per method (calibration, b), NaN where it has none. NaN in the weightings in which a calibration is unidentifiable.
    """

    labelled: np.ndarray
    corrected: Mapping[str, np.ndarray]
    thresholds: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class _ScoreBins:
    """The scores of claims in T bins.

    edges: (T,), the greatest score of each bin, ascending. row: int (m,), system, label (of 2, or of 3 where some is
    missing) and bin of each claim as a place in an array (S, labels, T); -1 without a score. candidates, cuts: of each
    system the thresholds worth trying, those nearest 0.5 first, and how many bins are not above each.
    """

    edges: np.ndarray
    row: np.ndarray
    n_labels: int
    candidates: list[np.ndarray]
    cuts: list[np.ndarray]

    @classmethod
    def of(cls, claims: CalibrationClaims, most_bins: int) -> _ScoreBins:
        """Bins hold about as many claims each, one score where there are no more scores than bins."""
        scored = np.flatnonzero(~np.isnan(claims.score))
        edges, counts = np.unique(claims.score[scored], return_counts=True)
        if len(edges) > most_bins:
            bins = (np.cumsum(counts) - counts) * most_bins // counts.sum()
            edges = edges[np.flatnonzero(np.diff(bins, append=most_bins))]
        bins = np.searchsorted(edges, claims.score[scored])
        row = np.full(len(claims.score), -1)
        n_labels = 3 if (claims.label < 0).any() else 2
        row[scored] = (claims.system[scored] * n_labels + claims.label[scored] % 3) * len(edges) + bins
        is_used = np.zeros((claims.n_systems, len(edges)), dtype=bool)
        is_used[claims.system[scored], bins] = True
        candidates = [list_candidate_thresholds(edges[used]) for used in is_used]
        candidates = [each[np.argsort(np.abs(each - 0.5), kind="stable")] for each in candidates]
        cuts = [np.searchsorted(edges, each, side="right") for each in candidates]
        return cls(edges, row, n_labels, candidates, cuts)

    def sum_below(self, in_bins: np.ndarray, n_systems: int) -> np.ndarray:
        """int (S, labels, T + 1, b): the weight below each edge, of the weight in each row, (S * labels * T, b)."""
        n_bins, b = len(self.edges), in_bins.shape[1]
        in_bins = in_bins.reshape(n_systems, self.n_labels, n_bins, b)
        kind = np.promote_types(in_bins.dtype, np.int32)
        below = np.zeros((n_systems, self.n_labels, n_bins + 1, b), dtype=kind)
        if b == 1:
            np.cumsum(in_bins, axis=2, out=below[:, :, 1:])
        else:  # of many weightings several times as fast
            for at in range(n_bins):
                np.add(below[:, :, at], in_bins[:, :, at], out=below[:, :, at + 1])
        return below


def correct_rates(claims: CalibrationClaims, methods: Sequence[str]) -> CorrectedRates:
    """Correct by the claims as they are: b = 1."""
    bins = _ScoreBins.of(claims, MOST_SCORES)
    in_bins = np.bincount(bins.row[bins.row >= 0], minlength=claims.n_systems * bins.n_labels * len(bins.edges))
    return _correct_weighted_rates(claims.cells[..., None], in_bins[:, None], bins, methods)


def _correct_weighted_rates(
    cells: np.ndarray, in_bins: np.ndarray, bins: _ScoreBins, methods: Sequence[str]
) -> CorrectedRates:
    """cells: (S, 3, 3, b), the weight of claims by label and prediction; in_bins: int (rows of ``bins``, b)."""
    size, b = len(cells), cells.shape[-1]
    cells = cells.astype(np.float64)
    labels, said = cells[:, :2].sum(2), cells[:, :, :2].sum(1)
    plain = np.broadcast_to(divide_or_undefined(said[:, 0], said.sum(1)), (size, size, b))
    corrected, thresholds = dict.fromkeys(methods, plain), {method: np.full((size, b), np.nan) for method in methods}
    if "adjusted_counts" in methods:
        by_weighting = np.moveaxis(cells[:, None, :2, :2], -1, -3)
        corrected["adjusted_counts"] = adjust_counts(plain, by_weighting)
    tuned = [method for method in methods if method in THRESHOLD_METHODS]
    if tuned:
        below = bins.sum_below(in_bins, size)
        total = below[:, :, -1].sum(1).astype(np.float64)
        total[total == 0] = np.nan
        corrected |= {method: np.full((size, size, b), np.nan) for method in tuned}
        for at, (candidates, cuts) in enumerate(zip(bins.candidates, bins.cuts, strict=True)):
            own = below[at, :2][:, cuts]
            for method in tuned:
                place = tune_calibration_threshold(method, own, below[at, :2, -1])
                some = np.flatnonzero(place >= 0)
                thresholds[method][at, some] = candidates[place[some]]
                weight = below[:, :, cuts[place[some]], some].sum(1)
                corrected[method][at][:, some] = weight / total[:, some]
    return CorrectedRates(divide_or_undefined(labels[:, 0], labels.sum(1)), corrected, thresholds)


@dataclass(frozen=True)
class ResampledRates:
    """Corrected rates in B bootstrap replicates; n_clusters: how many equal clusters would tell the variance as
    precisely, where a cluster's part of it grows with the square of its claims (Satterthwaite 1946)."""

    rates: CorrectedRates
    n_clusters: float


class ClusterWeights:
    """How often each unit of clusters of one data set is drawn in B replicates; drawn once for all who ask."""

    def __init__(self, cluster: np.ndarray, dataset: str, bootstrap: ClusterBootstrap) -> None:
        names, places = rank_distinct_integers(cluster)
        self.unit = bootstrap.assign_resampled_units(len(names), dataset)[places]
        self.n_units = int(self.unit.max(initial=-1)) + 1
        drawn = bootstrap.draw_cluster_weights(self.n_units, dataset) if self.n_units > 1 else iter(())
        times = np.concatenate([np.zeros((0, self.n_units), dtype=np.uint8), *drawn])
        #: uint8 (units, b) each: of so many replicates that sums over them stay in the processor's cache.
        self.blocks = [
            np.ascontiguousarray(times[start : start + _REPLICATES_AT_A_TIME].T)
            for start in range(0, len(times), _REPLICATES_AT_A_TIME)
        ]


def resample_corrected_rates(
    claims: CalibrationClaims, methods: Sequence[str], weights: ClusterWeights
) -> ResampledRates | None:
    """Draw whole clusters again, calibrate and correct again; None where there is nothing to resample."""
    from scipy.sparse import csr_array  # slow to import

    if weights.n_units < 2 or not claims.n_systems:
        return None
    bins, size = _ScoreBins.of(claims, MOST_RESAMPLED_SCORES), claims.n_systems
    n_rows = size * bins.n_labels * len(bins.edges)
    codes = claims.system * 9 + encode_cells(claims.label, claims.prediction)
    cells = np.bincount(codes * weights.n_units + weights.unit, minlength=size * 9 * weights.n_units)
    cells = cells.reshape(size * 9, -1).astype(np.float32)
    scored = bins.row >= 0
    # The narrower type takes half the time, where no bin's weight is beyond it.
    most = np.bincount(bins.row[scored]).max(initial=0) * max(int(block.max(initial=0)) for block in weights.blocks)
    ones = np.ones(int(scored.sum()), dtype=np.int16 if most < 1 << 15 else np.int32)
    members = csr_array((ones, (bins.row[scored], weights.unit[scored])), shape=(n_rows, weights.n_units))
    found = []
    for block in weights.blocks:
        # Sums of whole numbers below 2 ** 24 are exact as float32, too, which a product of matrices is fastest with.
        in_cells = cells @ block.astype(np.float32 if len(codes) < 1 << 16 else np.float64)
        in_cells = in_cells.reshape(size, 3, 3, block.shape[1])
        found.append(_correct_weighted_rates(in_cells, members @ block.astype(members.dtype), bins, methods))
    every = CorrectedRates(
        np.concatenate([one.labelled for one in found], axis=-1),
        {method: np.concatenate([one.corrected[method] for one in found], axis=-1) for method in methods},
        {},
    )
    part = np.bincount(weights.unit, minlength=weights.n_units).astype(float) ** 2
    return ResampledRates(every, float(part.sum() ** 2 / (part**2).sum()))


#: What a calibration leaves of a system: its corrected rate, and that less the labelled one.
CORRECTED_FIGURES = ("adjusted_error_rate", "bias")


def estimate_corrected_intervals(
    bootstrap: ClusterBootstrap,
    resampled: ResampledRates | None,
    method: str,
    possible: Sequence[int],
    points: np.ndarray,
) -> np.ndarray:
    """The intervals of each system's corrected rate and bias, by each calibration and by the mean over the others.

    possible: the calibrations that could be made. points: (2, S + 1, S), by `CORRECTED_FIGURES`, calibration (the mean
    last) and system. Gives (2, 2, S + 1, S): low and high ends, which hold the point. NaN where there is none, and
    where nothing varied when it was resampled: something might in the next claims.
    """
    found = np.full((2, *points.shape), np.nan)
    if resampled is None:
        return found
    size, rates, labelled = points.shape[-1], resampled.rates.corrected[method], resampled.rates.labelled
    n_different = 1 if method == "none" else size  # uncorrected, every calibration gives the others the same
    for by in [*range(n_different), size]:
        replicates = rates[min(by, size - 1)]
        if by == size:  # as the observed mean is over the calibrations that could be made, so is each replicate's
            replicates = np.full(labelled.shape, np.nan)
            for system in range(size):
                others = [at for at in possible if at != system]
                replicates[system] = mean_of_calibrations(rates[others, system])
        both = np.stack([replicates, replicates - labelled])
        low, high = bootstrap.percentile_ends(np.moveaxis(both, -1, 0), resampled.n_clusters)
        found[:, :, by] = np.where(low < high, [low, high], np.nan)
    found[:, :, n_different:size] = found[:, :, :1]
    found[:, :, np.isnan(points[0])] = np.nan
    return np.stack([np.minimum(found[0], points), np.maximum(found[1], points)])
