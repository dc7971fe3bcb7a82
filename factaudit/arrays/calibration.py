"""Error rates corrected with the labels of one system: adjusted counts and tuned thresholds (VC §5,
A.7; Forman 2006).

Each of S systems of a data set calibrates in turn, and corrects the error rates of the others. All
that a correction reads are numbers of claims, by label and prediction, and by label and score; so
claims can be weighted, and the same code corrects the claims as they are and in many bootstrap
replicates at once. Scores are told apart exactly up to `MOST_SCORES` different ones, in replicates
up to `MOST_RESAMPLED_SCORES`.
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
from factaudit.stats.cluster_bootstrap import ClusterBootstrap, ClusterDraws
from factaudit.stats.clustered_proportions import count_codes_by_cluster
from factaudit.stats.undefined_values import divide_or_undefined

THRESHOLD_METHODS = CORRECTION_METHODS[2:]
MOST_SCORES = 1 << 16
MOST_RESAMPLED_SCORES = 128


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
    def select(
        cls, units: Judgements, evaluator: int, rows_by_system: Sequence[np.ndarray]
    ) -> CalibrationClaims:
        """The claims (or responses) of these rows, system by system."""
        system = np.repeat(np.arange(len(rows_by_system)), [len(rows) for rows in rows_by_system])
        rows = np.concatenate([np.empty(0, dtype=np.int64), *rows_by_system])
        said, score = units.prediction[evaluator][rows], units.score[evaluator][rows]
        return cls(
            system, units.label[rows], said, score, units.cluster_codes[rows], len(rows_by_system)
        )

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
        """int64 (S, 3, 2): claims by label (0, 1, none), of which the method can not use, and can:
        those with a prediction, or with a score."""
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
                self.cluster,
                self.system,
                self.n_systems,
                encode_cells(self.label, self.prediction),
                9,
            )
            # TNR - FNR is 2 BAcc - 1. The test is that of a correction's denominator, at 95 %
            # whatever the confidence of a run's intervals.
            low = compute_rates(Tally(clusters), 0.95)["bacc"].ends[0]
            why[~(low > 0.5)] = (
                "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"
            )
            # Compared as products of counts, which are exact: equal rates must not differ in the
            # last bit.
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

    labelled: (S, b), the share of errors among all labels. corrected: per method (calibration,
    system, b). thresholds: per method (calibration, b), NaN where it has none. NaN in the
    weightings in which a calibration is unidentifiable.
    """

    labelled: np.ndarray
    corrected: Mapping[str, np.ndarray]
    thresholds: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class _ScoreBins:
    """The scores of claims in T bins.

    edges: (T,), the greatest score of each bin, ascending. row: int (m,), system, label (0, 1,
    none) and bin of each claim as a place in an array (S, 3, T); -1 without a score. candidates,
    cuts: of each system the thresholds worth trying, those nearest 0.5 first, and how many bins are
    not above each.
    """

    edges: np.ndarray
    row: np.ndarray
    candidates: list[np.ndarray]
    cuts: list[np.ndarray]

    @classmethod
    def of(cls, claims: CalibrationClaims, most_bins: int) -> _ScoreBins:
        """Bins hold about as many claims each, one score where there are no more scores than
        bins."""
        scored = np.flatnonzero(~np.isnan(claims.score))
        edges, counts = np.unique(claims.score[scored], return_counts=True)
        if len(edges) > most_bins:
            bins = (np.cumsum(counts) - counts) * most_bins // counts.sum()
            edges = edges[np.flatnonzero(np.diff(bins, append=most_bins))]
        bins, system = np.searchsorted(edges, claims.score[scored]), claims.system[scored]
        row = np.full(len(claims.score), -1)
        row[scored] = (system * 3 + claims.label[scored] % 3) * len(edges) + bins
        candidates, cuts = [], []
        for at in range(claims.n_systems):
            thresholds = list_candidate_thresholds(edges[np.unique(bins[system == at])])
            candidates.append(thresholds[np.argsort(np.abs(thresholds - 0.5), kind="stable")])
            cuts.append(np.searchsorted(edges, candidates[-1], side="right"))
        return cls(edges, row, candidates, cuts)


def correct_rates(claims: CalibrationClaims, methods: Sequence[str]) -> CorrectedRates:
    """Correct by the claims as they are: b = 1."""
    bins = _ScoreBins.of(claims, MOST_SCORES)
    in_bins = np.bincount(bins.row[bins.row >= 0], minlength=claims.n_systems * 3 * len(bins.edges))
    return _correct_weighted_rates(claims.cells[..., None], in_bins[:, None], bins, methods)


def _correct_weighted_rates(
    cells: np.ndarray, in_bins: np.ndarray, bins: _ScoreBins, methods: Sequence[str]
) -> CorrectedRates:
    """cells: (S, 3, 3, b), the weight of claims by label and prediction; in_bins: int (rows of
    ``bins``, b)."""
    size, b = len(cells), cells.shape[-1]
    cells = cells.astype(np.float64)
    labels, said = cells[:, :2].sum(2), cells[:, :, :2].sum(1)
    plain = np.broadcast_to(divide_or_undefined(said[:, 0], said.sum(1)), (size, size, b))
    corrected, thresholds = (
        dict.fromkeys(methods, plain),
        {method: np.full((size, b), np.nan) for method in methods},
    )
    if "adjusted_counts" in methods:
        corrected["adjusted_counts"] = adjust_counts(
            plain, np.moveaxis(cells[:, None, :2, :2], -1, -3)
        )
    tuned = [method for method in methods if method in THRESHOLD_METHODS]
    corrected |= {method: np.full((size, size, b), np.nan) for method in tuned}
    if tuned:
        # The weight below each edge, (S, 3, T + 1, b): bin by bin, which is several times as fast
        # as `numpy.cumsum`.
        below = np.zeros((size, 3, len(bins.edges) + 1, b), dtype=in_bins.dtype)
        by_bin = in_bins.reshape(size, 3, -1, b)
        for at in range(len(bins.edges)):
            np.add(below[:, :, at], by_bin[:, :, at], out=below[:, :, at + 1])
        total = below[:, :, -1].sum(1).astype(np.float64)
        total[total == 0] = np.nan
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
    """Corrected rates in B bootstrap replicates; n_clusters: how many equal clusters would tell the
    variance as precisely, where a cluster's part of it grows with the square of its claims
    (Satterthwaite 1946).
    """

    rates: CorrectedRates
    n_clusters: float


def resample_corrected_rates(
    claims: CalibrationClaims, methods: Sequence[str], draws: ClusterDraws
) -> ResampledRates | None:
    """Calibrate and correct again by whole clusters that are drawn again; None where there is
    nothing to resample.

    draws: of ``claims.cluster``.
    """
    from scipy.sparse import csr_array  # slow to import

    if draws.n_units < 2 or not claims.n_systems:
        return None
    bins, size = _ScoreBins.of(claims, MOST_RESAMPLED_SCORES), claims.n_systems
    codes = claims.system * 9 + encode_cells(claims.label, claims.prediction)
    cells = np.bincount(
        codes * draws.n_units + draws.unit, minlength=size * 9 * draws.n_units
    ).reshape(size * 9, -1)
    scored = bins.row >= 0
    ones = np.ones(int(scored.sum()), dtype=np.int32)
    members = csr_array(
        (ones, (bins.row[scored], draws.unit[scored])),
        shape=(size * 3 * len(bins.edges), draws.n_units),
    )
    found = []
    for block in draws.blocks():
        # Sums of whole numbers below 2 ** 24 are exact as float32, too, which a product of matrices
        # is fastest with.
        kind = np.float32 if len(codes) < 1 << 16 else np.float64
        in_cells = (cells.astype(kind) @ block.T.astype(kind)).reshape(size, 3, 3, len(block))
        in_bins = members @ np.ascontiguousarray(block.T, dtype=np.int32)
        found.append(_correct_weighted_rates(in_cells, in_bins, bins, methods))
    every = CorrectedRates(
        np.concatenate([one.labelled for one in found], axis=-1),
        {
            method: np.concatenate([one.corrected[method] for one in found], axis=-1)
            for method in methods
        },
        {},
    )
    part = np.bincount(draws.unit, minlength=draws.n_units).astype(float) ** 2
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
    """The intervals of each system's corrected rate and bias, by each calibration and by the mean
    over the others.

    possible: the calibrations that could be made. points: (2, S + 1, S), by `CORRECTED_FIGURES`,
    calibration (the mean last) and system. Gives (2, 2, S + 1, S): low and high ends, which hold
    the point. NaN where there is none, and where nothing varied when it was resampled: something
    might in the next claims.
    """
    found = np.full((2, *points.shape), np.nan)
    if resampled is None:
        return found
    size, rates, labelled = (
        points.shape[-1],
        resampled.rates.corrected[method],
        resampled.rates.labelled,
    )
    # Uncorrected, every calibration gives the others the same.
    n_different = 1 if method == "none" else size
    for by in [*range(n_different), size]:
        replicates = rates[min(by, size - 1)]
        # As the observed mean is over the calibrations that could be made, so is each replicate's.
        if by == size:
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
