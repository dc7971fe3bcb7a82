"""What do the labels of one system make of the error rates of the others? Adjusted counts and tuned
thresholds (VC §5, A.7; Forman 2006).

Each of S systems of a data set calibrates in turn, and corrects the error rates of the others. All
that a correction reads are numbers of claims, by label and prediction, and by label and score. So
clusters of claims can be weighted, and the same code corrects the claims as they are (every cluster
once) and in many bootstrap replicates at once (each cluster as often as it is drawn).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factaudit.arrays.figures import Tally, compute_rates, encode_cells
from factaudit.arrays.judgements import Judgements
from factaudit.stats import divide_or_undefined
from factaudit.stats.calibration import (
    CORRECTION_METHODS,
    adjust_counts,
    list_candidate_thresholds,
    mean_of_calibrations,
    tune_calibration_threshold,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap, ClusterDraws
from factaudit.stats.clustered_proportions import count_codes_by_cluster

THRESHOLD_METHODS = CORRECTION_METHODS[2:]
#: Scores are told apart exactly up to so many different ones; of more, bins of about as many claims
#: each are.
MOST_SCORES = 1 << 16
#: The same in bootstrap replicates, whose memory grows with the number of bins.
MOST_RESAMPLED_SCORES = 128


@dataclass(frozen=True)
class CorrectedRates:
    """What S calibrations make of the error rates of S systems, in b weightings of the claims.

    labelled: (S, b), the share of errors among all labels. corrected: per method (calibration,
    system, b). thresholds: per threshold method (calibration, b). NaN in the weightings in which a
    calibration is unidentifiable.
    """

    labelled: np.ndarray
    corrected: Mapping[str, np.ndarray]
    thresholds: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class CalibrationClaims:
    """m labelled claims (or responses) of S systems of one data set, as one evaluator sees them.

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

    @property
    def methods(self) -> Sequence[str]:
        """Those that can be used: an evaluator without scores has no thresholds."""
        return CORRECTION_METHODS[:2] if np.isnan(self.score).all() else CORRECTION_METHODS

    @cached_property
    def cell_codes(self) -> np.ndarray:
        """int64 (m,): system, label and prediction of each claim as a place in an array (S, 3,
        3)."""
        return self.system * 9 + encode_cells(self.label, self.prediction)

    @cached_property
    def cells(self) -> np.ndarray:
        """int64 (S, 3, 3): claims by label and prediction."""
        return np.bincount(self.cell_codes, minlength=self.n_systems * 9).reshape(-1, 3, 3)

    def count_usable(self, method: str) -> np.ndarray:
        """int64 (S, 2): labelled errors, and other claims, that the method can use: those with a
        prediction, or with a score."""
        if method not in THRESHOLD_METHODS:
            return self.cells[:, :2, :2].sum(-1)
        codes = (self.system * 2 + self.label)[~np.isnan(self.score)]
        return np.bincount(codes, minlength=self.n_systems * 2).reshape(-1, 2)

    def explain_refusals(self, method: str) -> list[str]:
        """Why each system cannot calibrate; "" where it can."""
        usable = self.count_usable(method)
        why: np.ndarray = np.full(self.n_systems, "", dtype=object)
        if method == "adjusted_counts":
            by_cluster = count_codes_by_cluster(
                self.cluster, self.system, self.n_systems, self.cell_codes % 9, 9
            )
            # TNR − FNR is 2 BAcc − 1. The test is that of a correction's denominator, at 95 %
            # whatever the confidence of a run's intervals.
            low = compute_rates(Tally(by_cluster), 0.95)["bacc"].ends[0]
            why[~(low > 0.5)] = (
                "TNR − FNR is not clear of 0: the evaluator may do no better than chance on it"
            )
        if method in ("adjusted_counts", "bacc_threshold"):
            why[usable[:, 0] == 0] = "no labelled error"
            why[usable[:, 1] == 0] = "labelled errors only"
        if method != "none":
            why[usable.sum(1) == 0] = "no labelled claim that the method can use"
        return why.tolist()

    def correct_rates(
        self,
        methods: Sequence[str],
        draws: ClusterDraws | None = None,
        most_scores: int = MOST_SCORES,
    ) -> CorrectedRates:
        """Correct by the claims as they are (b = 1), or in the replicates of draws of
        ``cluster``."""
        bins = _ScoreBins.of(self, most_scores)
        scored = bins.row >= 0
        n_bins = self.n_systems * 2 * len(bins.edges)
        if draws is None:
            in_bins = np.bincount(bins.row[scored], minlength=n_bins)[:, None]
            return self._correct(self.cells[..., None], in_bins, bins, methods)
        from scipy.sparse import csr_array  # slow to import

        ones = np.ones(len(self.system), dtype=np.int32)
        of_cells = csr_array(
            (ones, (self.cell_codes, draws.unit)), shape=(self.n_systems * 9, draws.n_units)
        )
        of_bins = csr_array(
            (ones[scored], (bins.row[scored], draws.unit[scored])), shape=(n_bins, draws.n_units)
        )
        parts = []
        for block in draws.blocks():
            times = np.ascontiguousarray(block.T, dtype=np.int32)
            cells, in_bins = np.asarray(of_cells @ times), np.asarray(of_bins @ times)
            cells = cells.reshape(-1, 3, 3, len(block))
            parts.append(self._correct(cells, in_bins, bins, methods))
        return CorrectedRates(
            np.concatenate([part.labelled for part in parts], axis=-1),
            {
                method: np.concatenate([part.corrected[method] for part in parts], axis=-1)
                for method in methods
            },
            {},
        )

    def _correct(
        self, cells: np.ndarray, in_bins: np.ndarray, bins: _ScoreBins, methods: Sequence[str]
    ) -> CorrectedRates:
        """cells: (S, 3, 3, b), the weight of claims by label and prediction; in_bins: int (rows of
        ``bins``, b)."""
        size, b = self.n_systems, cells.shape[-1]
        cells = cells.astype(np.float64)
        labels, said = cells[:, :2].sum(2), cells[:, :, :2].sum(1)
        plain = np.broadcast_to(divide_or_undefined(said[:, 0], said.sum(1)), (size, size, b))
        corrected = dict.fromkeys(methods, plain)
        if "adjusted_counts" in methods:
            confusion = np.moveaxis(cells[:, None, :2, :2], -1, -3)
            corrected["adjusted_counts"] = adjust_counts(plain, confusion)
        tuned = [method for method in methods if method in THRESHOLD_METHODS]
        corrected |= {method: np.full((size, size, b), np.nan) for method in tuned}
        thresholds = {method: np.full((size, b), np.nan) for method in tuned}
        if tuned:
            # The weight up to each edge, (S, 2, T + 1, b): bin by bin, which is several times as
            # fast as `numpy.cumsum`.
            below = np.zeros((size, 2, len(bins.edges) + 1, b), dtype=in_bins.dtype)
            by_bin = in_bins.reshape(size, 2, -1, b)
            for at in range(len(bins.edges)):
                np.add(below[:, :, at], by_bin[:, :, at], out=below[:, :, at + 1])
            total = below[:, :, -1].sum(1).astype(np.float64)
            total[total == 0] = np.nan
            for at, (candidates, cuts) in enumerate(zip(bins.candidates, bins.cuts, strict=True)):
                own = below[at][:, cuts]
                for method in tuned:
                    place = tune_calibration_threshold(method, own, below[at, :, -1])
                    some = np.flatnonzero(place >= 0)
                    thresholds[method][at, some] = candidates[place[some]]
                    weight = below[:, :, cuts[place[some]], some].sum(1)
                    corrected[method][at][:, some] = weight / total[:, some]
        return CorrectedRates(
            divide_or_undefined(labels[:, 0], labels.sum(1)), corrected, thresholds
        )


@dataclass(frozen=True)
class _ScoreBins:
    """The scores of claims in T bins.

    edges: (T,), the greatest score of each bin, ascending. row: int (m,), system, label and bin
    of each claim as a place in an array (S, 2, T); -1 without a score. candidates,
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
        row[scored] = (system * 2 + claims.label[scored]) * len(edges) + bins
        candidates, cuts = [], []
        for at in range(claims.n_systems):
            thresholds = list_candidate_thresholds(edges[np.unique(bins[system == at])])
            candidates.append(thresholds[np.argsort(np.abs(thresholds - 0.5), kind="stable")])
            cuts.append(np.searchsorted(edges, candidates[-1], side="right"))
        return cls(edges, row, candidates, cuts)


def average_calibrations(rates: np.ndarray, possible: np.ndarray) -> np.ndarray:
    """Each system's rate, averaged over the calibrations on other systems that could be made: (S,
    ...).

    rates: (S, S, ...), by calibration and system; possible: bool (S,), of each calibration.
    """
    is_used = possible[:, None] & ~np.eye(len(possible), dtype=bool)
    spread = is_used.reshape(is_used.shape + (1,) * (rates.ndim - 2))
    return mean_of_calibrations(np.where(spread, rates, np.nan))


def estimate_corrected_intervals(
    claims: CalibrationClaims,
    possible: Mapping[str, np.ndarray],
    bootstrap: ClusterBootstrap,
    draws: ClusterDraws,
) -> dict[str, np.ndarray]:
    """The percentile intervals of each system's corrected rate and of its bias, as
    `average_calibrations` makes them, by method: (2 ends, 2 figures, S).

    Each replicate calibrates again, so that the errors of the calibration and of the rate are both
    in them. possible: by method which calibrations could be made. NaN where nothing varied when it
    was drawn again: something might in the next claims.
    """
    rates = claims.correct_rates(list(possible), draws, MOST_RESAMPLED_SCORES)
    # How many equal clusters would tell the variance as precisely, where a cluster's part of it
    # grows with the square of its claims (Satterthwaite 1946).
    part = np.bincount(draws.unit, minlength=draws.n_units).astype(float) ** 2
    n_clusters = float(part.sum() ** 2 / (part**2).sum())
    found = {}
    for method, is_possible in possible.items():
        corrected = average_calibrations(rates.corrected[method], is_possible)
        both = np.stack([corrected, corrected - rates.labelled])
        low, high = bootstrap.percentile_ends(both, n_clusters)
        found[method] = np.where(low < high, [low, high], np.nan)
    return found
